"""The release that comes before the newest revision of the schema, built from the history."""

from __future__ import annotations

import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Final

import pytest

from bloomery.db import schema
from tests.functional.cli.test_packages import ROOT, build

_REVISIONS: Final = "bloomery/db/migrations/versions"


def unpack(folder: Path) -> Path:
    """Build the wheel of that release; return the folder that has its content."""
    newest = f"{schema.HEAD}_*.py"
    added = _git(
        "log", "--diff-filter=A", "--reverse", "--format=%H", "--", f"{_REVISIONS}/{newest}"
    ).decode().split()  # fmt: skip
    if not added:
        pytest.skip(f"the history does not have the commit that added revision {schema.HEAD}")
    source, code = folder / "source", folder / "code"
    archive = folder / "source.tar"
    archive.write_bytes(_git("archive", f"{added[0]}^"))
    with tarfile.open(archive) as files:
        files.extractall(source, filter="data")
    with zipfile.ZipFile(build("wheel", source, folder)) as wheel:
        wheel.extractall(code)
    assert not list((code / _REVISIONS).glob(newest))
    return code


def _git(*words: str) -> bytes:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"there is no history: {done.stderr.decode().strip()}")
    return done.stdout
