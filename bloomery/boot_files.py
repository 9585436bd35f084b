"""What machines and BMCs fetch without a login to boot an agent, below [deploy]http_root.

    boot-files/UUID-SECRET.iso      a boot CD, a kernel, a ramdisk or a script of iPXE: their
                                    names are another secret for each boot
    pxelinux.cfg/52-54-00-00-00-01  a link to the script for the machine with that MAC address
    boot.ipxe                       leads each machine that runs iPXE to its link

Who boots writes and removes them, the API or a web server hands them out, and nobody lists them
to others.
"""

from __future__ import annotations

import re
import secrets
from pathlib import Path
from typing import Final

FOLDER: Final = "boot-files"
LINKS: Final = "pxelinux.cfg"  # Ironic's name, for the servers of others
ENTRY: Final = "boot.ipxe"
ISO, KERNEL, RAMDISK, SCRIPT = KINDS = ("iso", "kernel", "ramdisk", "ipxe")
PART: Final = ".part"  # behind the name of one that is being written
_SECRET: Final = r"[A-Za-z0-9_-]{43}"  # noqa: S105  a pattern
_NAME: Final = re.compile(rf"[0-9a-fA-F-]{{36}}-({_SECRET})\.(?:{'|'.join(KINDS)})")
_PATH: Final = re.compile(
    rf"{FOLDER}/{_NAME.pattern}|{LINKS}/[0-9a-f]{{2}}(?:-[0-9a-f]{{2}}){{5}}|{re.escape(ENTRY)}"
)
_UUID: Final = 36  # characters


def new_name(node_uuid: str, kind: str) -> str:
    return f"{node_uuid}-{secrets.token_urlsafe(32)}.{kind}"


def link_name(mac: str) -> str:
    """Return what iPXE makes of the address: ``${mac:hexhyp}``."""
    return mac.lower().replace(":", "-")


def find(http_root: Path, path: str) -> Path | None:
    """Return where such a file is, if there is one; no other path leads anywhere."""
    return http_root / path if _PATH.fullmatch(path) else None


def list_files(http_root: str | None) -> list[Path]:
    """Return what nodes own, also what was begun and never completed."""
    return _entries(http_root, FOLDER)


def list_links(http_root: str | None) -> list[Path]:
    """Return the links to scripts of nodes; they lead nowhere when the script has gone."""
    return _entries(http_root, LINKS)


def _entries(http_root: str | None, folder: str) -> list[Path]:
    if http_root is None:
        return []
    try:
        return [path for path in Path(http_root, folder).iterdir() if owner(path)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def owner(path: Path) -> str:
    """Return the UUID of the node that boots from a file or link; nothing if it is none of ours."""
    try:
        name = path.readlink().name
    except OSError:  # no link, or gone by now
        name = path.name
    return name[:_UUID] if name[_UUID:][:1] == "-" else ""


def secret_of(address: str) -> str | None:
    """Return the part of an address that nobody may read, if it is one of a boot file."""
    match = _NAME.search(address)
    return match and match[1]
