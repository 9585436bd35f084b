"""The built packages: what is in them, and a service that runs from nothing else."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests
from click.testing import CliRunner

from bloomery.cli.main import main
from tests.kit.waiting import wait_for

ROOT = Path(__file__).resolve().parents[3]
PYTHONS = ("python3.11", "python3.12", "python3.13")
BUILD = "import sys; from setuptools import build_meta; build_meta.build_{}(sys.argv[1])"
STARTED = 60.0  # seconds, on a busy machine
EXPECTED = (  # of the wheel, each in a folder whose name depends on the version
    "bloomery/web/static/index.html",
    "bloomery/db/migrations/versions/0013_schema.py",
    "share/bloomery/examples/hello.yaml",
    "share/bloomery/examples/machines/cluster.yaml",
    "share/bloomery/systemd/bloomery.service",
    "share/bloomery/sysusers.d/bloomery.conf",
    "share/bloomery/tmpfiles.d/bloomery.conf",
    "share/man/man1/bloomery.1",
)


def build(kind: str, source: Path, into: Path) -> Path:
    """Build the sdist or wheel of a source tree; return the file."""
    command = [sys.executable, "-c", BUILD.format(kind), into]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    [built] = into.glob("*.tar.gz" if kind == "sdist" else "*.whl")
    return built


@pytest.fixture(scope="module")
def tracked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the files that the repository tracks, so that nothing else is packed."""
    copy = tmp_path_factory.mktemp("tracked")
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
    return copy


@pytest.fixture(scope="module")
def sdist(tracked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", tracked, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the sdist, which must therefore have all that a wheel needs."""
    folder = tmp_path_factory.mktemp("source")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    [source] = folder.iterdir()
    return build("wheel", source, tmp_path_factory.mktemp("wheel"))


@pytest.mark.long
def test_the_packages_have_all_but_the_tests(sdist: Path, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert [name for name in EXPECTED if not any(each.endswith(name) for each in names)] == []
    assert not [name for name in names if "tests/" in name]
    with tarfile.open(sdist) as archive:
        files = {name.partition("/")[2] for name in archive.getnames()}
    assert {"doc/index.md", "README.md", "LICENSE", "requirements.lock"} <= files


@contextlib.contextmanager
def serving(bloomery: Path, folder: Path) -> Iterator[str]:
    """Serve from an empty folder; yield the address of its API."""
    log = folder / "log"
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"]}
    config = folder / "bloomery.conf"
    config.write_text("[api]\nport = 0\n[orchestration]\nport = 0\n")
    command = [bloomery, "serve", "--state-dir", folder / "state", "--config-file", config]
    with log.open("w") as output:
        service = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        clouds = folder / "state" / "clouds.yaml"
        wait_for(lambda: clouds.exists() or service.poll(), "clouds.yaml", timeout_s=STARTED)
        assert service.poll() is None, log.read_text()
        [line] = [each for each in clouds.read_text().splitlines() if "baremetal_endpoint" in each]
        yield line.split(": ")[1].strip("'\" ")
    finally:
        service.send_signal(signal.SIGTERM)
        service.wait()
    assert service.returncode == 0, log.read_text()


LOCK = ROOT / "requirements.lock"


def install_by_pip(python: str, wheel: Path, folder: Path) -> Path:
    """Return the program of a fresh environment that has the wheel."""
    if shutil.which(python) is None or subprocess.run([python, "-V"], check=False).returncode:
        pytest.skip(f"{python} does not run here")  # a shim of pyenv may be there without it
    subprocess.run([python, "-m", "venv", folder], check=True)
    pip = [folder / "bin/python", "-m", "pip", "--quiet", "--no-input"]
    locked = ["--require-hashes", "--no-deps", "--requirement", LOCK]
    subprocess.run([*pip, "install", *locked], check=True)
    subprocess.run([*pip, "install", "--no-deps", wheel], check=True)
    subprocess.run([*pip, "check"], check=True)
    return folder / "bin/bloomery"


def install_by_uv(_python: str, wheel: Path, folder: Path) -> Path:
    subprocess.run([sys.executable, "-m", "venv", folder / "of-uv"], check=True)
    subprocess.run([folder / "of-uv/bin/pip", "--quiet", "install", "uv"], check=True)
    environment = os.environ | {
        "UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "bin"),
    }  # fmt: skip
    uv = [folder / "of-uv/bin/uv", "--quiet", "tool", "install"]
    subprocess.run([*uv, "--constraints", LOCK, wheel], env=environment, check=True)
    return folder / "bin/bloomery"


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("install", "python"),
    [*((install_by_pip, python) for python in PYTHONS), (install_by_uv, sys.executable)],
)
def test_a_service_runs_from_the_wheel_alone(
    install: Callable[[str, Path, Path], Path], python: str, wheel: Path, tmp_path: Path
) -> None:
    program = install(python, wheel, tmp_path / "environment")
    folder = tmp_path / "empty"
    folder.mkdir()
    with serving(program, folder) as url:
        assert requests.get(f"{url}/v1/nodes", timeout=STARTED).json() == {"nodes": []}
        assert "<title>" in requests.get(f"{url}/ui/", timeout=STARTED).text
    demo = [program, "demo", "--once"]
    subprocess.run(demo, cwd=folder, check=True, capture_output=True, timeout=600)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands(shell: str) -> None:
    """The values are those by which the shells' own scripts of click ask."""
    result = CliRunner().invoke(
        main, prog_name="bloomery",
        env={
            "_BLOOMERY_COMPLETE": f"{shell}_complete", "COMP_WORDS": "bloomery stack u",
            "COMP_CWORD": "u" if shell == "fish" else "2",
        },
    )  # fmt: skip
    assert "up" in re.split(r"[,\s]", result.output)
