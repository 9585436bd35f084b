"""The folder of boot CDs that BMCs fetch without a login: their names are what protects them.

    name = boot_isos.new_name(node.uuid)      # UUID-SECRET.iso, another secret for each boot
    boot_isos.find(folder, name)              # its path, None for other names

Who boots writes and removes them, the API or a web server hands them out, and nobody lists them
to others.
"""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path
from typing import Final

FOLDER: Final = "boot-iso"  # below [deploy]http_root, and in addresses
PART: Final = ".part"  # behind the name of one that is being written
_SECRET: Final = r"[A-Za-z0-9_-]{43}"  # noqa: S105  a pattern
_NAME: Final = re.compile(rf"[0-9a-fA-F-]{{36}}-({_SECRET})\.iso")
_UUID: Final = 36  # characters


def folder_in(http_root: str | None) -> Path | None:
    return None if http_root is None else Path(http_root) / FOLDER


def new_name(node_uuid: str) -> str:
    return f"{node_uuid}-{secrets.token_urlsafe(32)}.iso"


def find(folder: Path, name: str) -> Path | None:
    """Return the path of what has such a name, which need not be there; no other leads anywhere."""
    return folder / name if _NAME.fullmatch(name) else None


def list_paths(folder: Path) -> list[Path]:
    """Return what there is, also what was begun and never completed."""
    try:
        return [Path(entry.path) for entry in os.scandir(folder) if entry.name[_UUID:][:1] == "-"]
    except (FileNotFoundError, NotADirectoryError):
        return []


def owner(path: Path) -> str:
    """Return the UUID of the node that boots from it."""
    return path.name[:_UUID]


def secret_of(address: str) -> str | None:
    """Return the part of an address that nobody may read, if it is one of a boot CD."""
    found = _NAME.search(address)
    return found and found[1]
