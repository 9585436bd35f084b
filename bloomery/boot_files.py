"""Boot files for machines and BMCs, served without a login, below [deploy]http_root.

    boot-files/UUID-SECRET.iso      a boot CD, a kernel, a ramdisk, a script, or a link to an image;
                                    each boot has another secret
    pxelinux.cfg/52-54-00-00-00-01  a link to the iPXE script of the machine with that MAC address
    pxelinux.cfg/52:54:00:00:00:01  a link to the GRUB script of the machine
    boot.ipxe, grub.cfg             lead each machine that runs iPXE or GRUB to its link

The boot interface writes and removes them, the API or a web server serves them. Directories are
never listed.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from pathlib import Path
from typing import Final

FOLDER: Final = "boot-files"
LINKS: Final = "pxelinux.cfg"  # Ironic's name, for external web servers
IPXE_ENTRY, GRUB_ENTRY = ENTRIES = ("boot.ipxe", "grub.cfg")
ISO, KERNEL, RAMDISK, IPXE, GRUB, IMAGE = KINDS = (
    "iso", "kernel", "ramdisk", "ipxe", "grub", "image",
)  # fmt: skip
PART: Final = ".part"  # suffix of an incomplete file
_SECRET: Final = r"[A-Za-z0-9_-]{43}"  # noqa: S105  a pattern
_NAME: Final = re.compile(rf"[0-9a-fA-F-]{{36}}-({_SECRET})\.(?:{'|'.join(KINDS)})")
_LINK: Final = r"[0-9a-f]{2}(?P<separator>[:-])(?:[0-9a-f]{2}(?P=separator)){4}[0-9a-f]{2}"
_PATH: Final = re.compile(
    rf"{FOLDER}/{_NAME.pattern}|{LINKS}/{_LINK}|{'|'.join(map(re.escape, ENTRIES))}"
)
_UUID: Final = 36  # characters


def new_name(node_uuid: str, kind: str) -> str:
    return f"{node_uuid}-{secrets.token_urlsafe(32)}.{kind}"


def ipxe_link(mac: str) -> str:
    """Return the MAC address in iPXE's format: ``${mac:hexhyp}``."""
    return mac.lower().replace(":", "-")


def grub_link(mac: str) -> str:
    """Return the MAC address in GRUB's format: ``$net_default_mac``."""
    return mac.lower()


def find(http_root: Path, path: str) -> Path | None:
    """Return the file of a URL's path; None unless the path is one of a boot file."""
    return http_root / path if _PATH.fullmatch(path) else None


def list_files(http_root: str | None) -> list[Path]:
    """Return the nodes' boot files, incomplete ones included."""
    return _entries(http_root, FOLDER)


def list_links(http_root: str | None) -> list[Path]:
    """Return the links to nodes' scripts, dangling ones included."""
    return _entries(http_root, LINKS)


def _entries(http_root: str | None, folder: str) -> list[Path]:
    if http_root is None:
        return []
    try:
        return [path for path in Path(http_root, folder).iterdir() if owner(path)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def owner(path: Path) -> str:
    """Return the UUID of the node that boots from a file or link, else ""."""
    name = path.name
    if path.parent.name == LINKS:
        with contextlib.suppress(OSError):  # no link, or removed meanwhile
            name = path.readlink().name
    return name[:_UUID] if name[_UUID:][:1] == "-" else ""


def secret_of(address: str) -> str | None:
    """Return the secret in the URL of a boot file, or None."""
    match = _NAME.search(address)
    return match and match[1]
