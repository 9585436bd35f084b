"""A bootable ISO of a kernel and a ramdisk: ISOLINUX for BIOS, GRUB for UEFI.

GRUB is in an EFI system partition image and reads its configuration from the CD.  Files are copied
in pieces of a MiB. Source: El Torito 1.0, sections 2.1 to 2.4; UEFI 2.10, 13.3.2.1.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from bloomery.conf.default import Default
from bloomery.drivers.agent_boot import parameters

KERNEL: Final = "/vmlinuz"  # its path on the CD
_PIECE: Final = 1 << 20
_LABEL: Final = "VMEDIA_BOOT_ISO"  # agents recognise the CD by it
_DRIVE_LABEL: Final = "config-2"  # or by that of a config drive
_ODD: Final = re.compile(r"[^A-Z0-9_]")
_EFI: Final = 0xEF
_SECTOR: Final = 512
_MOST_SECTORS: Final = 0xFFFF
_ISOLINUX_SECTORS: Final = 4  # it loads the rest of itself
_ISOLINUX: Final = (
    "/usr/lib/ISOLINUX/isolinux.bin",
    "/usr/lib/syslinux/isolinux.bin",
    "/usr/share/syslinux/isolinux.bin",
)
_LDLINUX: Final = (
    "/usr/lib/syslinux/modules/bios/ldlinux.c32",
    "/usr/share/syslinux/ldlinux.c32",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Isolinux:
    """The boot loader of CDs in BIOS mode; ``module``: loaded by version 5 and newer."""

    loader: Path
    module: Path | None


def find_isolinux(conf: Default) -> Isolinux | None:
    """Return the configured or installed ISOLINUX, or None: then there is no boot in BIOS mode."""
    loader = _first(conf.isolinux_bin, _ISOLINUX)
    if loader is None:
        return None
    return Isolinux(loader=loader, module=_first(conf.ldlinux_c32, _LDLINUX))


def _first(configured: str | None, usual: tuple[str, ...]) -> Path | None:
    names = usual if configured is None else (configured,)
    return next((Path(name) for name in names if Path(name).is_file()), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The parts of the ISO; ``bootloader``: an EFI system partition image.

    ``grub_config``: the path on the CD where GRUB looks for its configuration.  ``files``: those of
    a config drive, by path.
    """

    kernel: BinaryIO
    ramdisk: BinaryIO
    bootloader: BinaryIO | None
    isolinux: Isolinux | None
    grub_config: str
    command_line: str
    files: Mapping[str, str]


def write(contents: Contents, out: BinaryIO) -> None:
    """Write the ISO to an open file; blocks until it is complete."""
    import pycdlib  # most conductors build no ISO

    iso = pycdlib.PyCdlib()
    iso.new(
        interchange_level=3, rock_ridge="1.09", vol_ident=_DRIVE_LABEL if contents.files else _LABEL
    )
    tree = _Tree(iso)
    tree.add(KERNEL.strip("/"), contents.kernel)
    tree.add("initrd", contents.ramdisk)
    for path, text in contents.files.items():
        tree.add_text(path, text)
    if (isolinux := contents.isolinux) is not None:
        tree.add("isolinux/isolinux.bin", io.BytesIO(isolinux.loader.read_bytes()))
        if isolinux.module is not None:
            tree.add("isolinux/ldlinux.c32", io.BytesIO(isolinux.module.read_bytes()))
        tree.add_text(
            "isolinux/isolinux.cfg",
            "default agent\nprompt 0\nlabel agent\n"
            f"  kernel {KERNEL}\n  append initrd=/initrd {contents.command_line}\n",
        )
        tree.boot("isolinux/isolinux.bin", boot_load_size=_ISOLINUX_SECTORS, boot_info_table=True)
    if contents.bootloader is not None:
        tree.add("efiboot.img", contents.bootloader)
        tree.add_text(contents.grub_config.strip("/"), grub_config(contents.command_line))
        sectors = -(-_size(contents.bootloader) // _SECTOR)  # 0: up to the end of the CD
        load_size = sectors if sectors <= _MOST_SECTORS else 0
        tree.boot("efiboot.img", boot_load_size=load_size, platform_id=_EFI, efi=True)
    iso.write_fp(out, blocksize=_PIECE)
    iso.close()


def grub_config(command_line: str) -> str:
    """Return the configuration of GRUB that boots kernel and ramdisk of the CD."""
    return (
        "set timeout=0\nmenuentry 'agent' {\n"
        f"  linux {KERNEL} {parameters.quoted_for_grub(command_line)}\n"
        "  initrd /initrd\n}\n"
    )


class _Tree:
    """The files of an ISO under lower-case names, which Rock Ridge keeps."""

    def __init__(self, iso: Any) -> None:
        self._iso = iso
        self._folders = {""}

    def add(self, path: str, file: BinaryIO) -> None:
        folder, _, name = path.rpartition("/")
        self._add_folder(folder)
        self._iso.add_fp(file, _size(file), iso_path=_iso_file(path), rr_name=name)

    def add_text(self, path: str, text: str) -> None:
        self.add(path, io.BytesIO(text.encode("ascii")))

    def boot(self, path: str, **entry: Any) -> None:
        """Add an entry to the boot catalog."""
        self._iso.add_eltorito(_iso_file(path), bootcatfile="/BOOT.CAT;1", **entry)

    def _add_folder(self, path: str) -> None:
        if path in self._folders:
            return
        parent, _, name = path.rpartition("/")
        self._add_folder(parent)
        self._folders.add(path)
        self._iso.add_directory(_iso_folder(path), rr_name=name)


def _size(file: BinaryIO) -> int:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return size


def _iso_folder(path: str) -> str:
    return "".join("/" + _ODD.sub("_", name) for name in path.upper().split("/") if name)


def _iso_file(path: str) -> str:
    folder, _, name = path.rpartition("/")
    stem, dot, suffix = name.rpartition(".")
    stem, suffix = (stem, suffix) if dot else (suffix, "")
    return f"{_iso_folder(folder)}{_iso_folder(stem)}.{_iso_folder(suffix)[1:]};1"
