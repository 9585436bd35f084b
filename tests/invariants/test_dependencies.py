"""What is imported is declared: nothing arrives by way of somebody else's dependency."""

from __future__ import annotations

import configparser
import re
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OURS = {"bench", "bloomery", "tests", "tools"}
APART = {"heat", "oslo_log", "PIL"}  # run where Heat is (`make heat`), or Pillow (`make ui-shots`)
IMPORT = re.compile(
    r"^ *(?:from (\w+)[\w.]* import |import (\w+)[\w.]*(?: as \w+)?(?:  #.*)?$)", re.MULTILINE
)
LOCK = "\n".join(path.read_text() for path in sorted(ROOT.glob("requirements*.lock")))


def distributions(*requirements: str) -> set[str]:
    """The names in lines such as ``oslo.service[threading]>=4.2.0``, as PyPI compares them."""
    lines = [line for text in requirements for line in text.split()]
    return {plain(re.split(r"[^\w.-]", line)[0]) for line in lines}


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imports(folder: str) -> dict[str, str]:
    """Return {top-level module of somebody else: a file that imports it}."""
    modules = {
        name: str(file.relative_to(ROOT))
        for file in (ROOT / folder).rglob("*.py")
        for names in IMPORT.findall(file.read_text())
        for name in names
        if name
    }
    return {name: file for name, file in modules.items() if name not in sys.stdlib_module_names}


def declared() -> tuple[set[str], set[str]]:
    """Return what the service requires, and what its tests may import."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    service = distributions(setup["options"]["install_requires"])
    extras = setup["options.extras_require"]
    names = ("postgresql", "mysql", "nats", "otel")
    optional = distributions(*(extras[name] for name in names))
    return service | optional, service | optional | distributions(extras["test"])


@pytest.mark.parametrize(("folder", "which"), [("bloomery", 0), ("tests", 1), ("bench", 1)])
def test_whatever_is_imported_is_declared(folder: str, which: int) -> None:
    owners = metadata.packages_distributions()
    missing = {
        name: file
        for name, file in imports(folder).items()
        if name not in OURS | APART
        and not {plain(owner) for owner in owners.get(name, ())} & declared()[which]
    }
    assert missing == {}


def test_whatever_is_declared_is_locked() -> None:
    locked = {plain(line.partition("==")[0]) for line in LOCK.splitlines() if "==" in line}
    assert declared()[1] - locked == set()


def test_whatever_is_locked_has_hashes() -> None:
    blocks = re.split(r"\n(?=\S)", re.sub(r"^#.*\n", "", LOCK, flags=re.MULTILINE).strip())
    assert [block.split("==")[0] for block in blocks if "--hash=sha256:" not in block] == []
    assert "://" not in LOCK, "a registry is the reader's own"
