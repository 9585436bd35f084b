#!/usr/bin/env python3
"""Build the site of pages: doc/, the generated reference pages and the release notes.

Sphinx reads a copy in build/docs/source, so that no generated page lies beside a written one.
A warning fails the build.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import reference_pages

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCE: Final = ROOT / "build/docs/source"
SITE: Final = ROOT / "build/docs/html"


def main() -> int:
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.copytree(ROOT / "doc", SOURCE)
    reference_pages.write(SOURCE / "reference")
    _run("reno", "--quiet", "report", "--output", str(SOURCE / "release-notes.rst"))
    _run("sphinx-build", "-W", "--keep-going", "-q", "-E", "-b", "html", str(SOURCE), str(SITE))
    print(f"wrote {SITE.relative_to(ROOT)}/index.html")
    return 0


def _run(tool: str, *arguments: str) -> None:
    """Run one tool of this environment."""
    subprocess.run([Path(sys.executable).parent / tool, *arguments], cwd=ROOT, check=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as failed:
        sys.exit(failed.returncode)
