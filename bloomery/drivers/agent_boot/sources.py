"""The kernel, ramdisk and boot loader of a node's agent: from driver_info, else from options."""

from __future__ import annotations

import os
import stat
import urllib.parse
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from bloomery import errors, secrets
from bloomery.conductor.states import State
from bloomery.conf.conductor import Conductor
from bloomery.drivers.base import DriverTask
from bloomery.model import architectures
from bloomery.model.rules import attributes

DEPLOY, RESCUE = "deploy", "rescue"  # what an agent boots for; its files are named by it
RAMDISK_PROPERTIES: Final = {
    "deploy_kernel": "URL of the agent's kernel, http, https or file; unset: "
    "[conductor]deploy_kernel. Optional.",
    "deploy_ramdisk": "URL of the agent's ramdisk; unset: [conductor]deploy_ramdisk. Optional.",
    "rescue_kernel": "URL of the kernel of a rescue; unset: [conductor]rescue_kernel, else as for "
    "a deployment. Optional.",
    "rescue_ramdisk": "URL of the ramdisk of a rescue; unset: [conductor]rescue_ramdisk, else as "
    "for a deployment. Optional.",
}
PROPERTIES: Final = RAMDISK_PROPERTIES | {
    "bootloader": "URL of an EFI system partition image with GRUB, for machines that boot in UEFI "
    "mode; unset: [conductor]bootloader. Optional.",
}
_SCHEMES: Final = ("http", "https", "file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """URLs; ``bootloader``: an EFI system partition image, None: no boot in UEFI mode."""

    kernel: str
    ramdisk: str
    bootloader: str | None


def purpose_of(task: DriverTask) -> str:
    """Return what the agent of the node's flow boots for."""
    return RESCUE if task.node.provision_state == State.RESCUING else DEPLOY


def of(task: DriverTask, conf: Conductor, mode: str | None, purpose: str = DEPLOY) -> Sources:
    """Return the node's files for ``mode``: uefi, which needs a boot loader, bios or None.

    Raises MissingParameterValue with each missing name, InvalidParameterValue.
    """
    defaults = {
        "deploy_kernel": (conf.deploy_kernel_by_arch, conf.deploy_kernel),
        "deploy_ramdisk": (conf.deploy_ramdisk_by_arch, conf.deploy_ramdisk),
        "rescue_kernel": (conf.rescue_kernel_by_arch, conf.rescue_kernel),
        "rescue_ramdisk": (conf.rescue_ramdisk_by_arch, conf.rescue_ramdisk),
        "bootloader": (conf.bootloader_by_arch, conf.bootloader),
    }
    arch, urls = architectures.of(task.node.properties), dict[str, Any]()
    for key, (by_arch, usual) in defaults.items():
        named = {architectures.canonical(name): url for name, url in by_arch.items()}
        urls[key] = task.driver_info.get(key) or named.get(arch) or usual
    if purpose == RESCUE:
        urls |= {f"deploy_{file}": urls[f"rescue_{file}"] or urls[f"deploy_{file}"]
                 for file in ("kernel", "ramdisk")}  # fmt: skip
    needed = {"deploy_kernel", "deploy_ramdisk"} | ({"bootloader"} if mode == "uefi" else set())
    missing = sorted(key for key in needed if urls[key] is None)
    if missing:
        raise errors.MissingParameterValue(
            reason=f"driver_info lacks {', '.join(missing)}, and [conductor] has no default: name "
            "them, or a ready ISO as deploy_iso for virtual media",
        )
    for key, url in urls.items():
        check_url(key, url, conf.file_url_allowed_paths)
    return Sources(
        kernel=str(urls["deploy_kernel"]), ramdisk=str(urls["deploy_ramdisk"]),
        bootloader=urls["bootloader"],
    )  # fmt: skip


def check_url(key: str, url: Any, allowed: tuple[str, ...]) -> None:
    """Raise InvalidParameterValue for a URL that cannot be fetched or may not be named."""
    if url is None:
        return
    attributes.check_url(key, url, _SCHEMES)
    path = local_path(url)
    if path is not None and _folder_of(path, allowed) is None:
        raise errors.InvalidParameterValue(
            reason=f"{key} may not name {secrets.mask_address(url)}: files below "
            f"[conductor]file_url_allowed_paths are allowed, {', '.join(allowed) or 'none'}",
        )


def local_path(url: str) -> Path | None:
    """Return the resolved path of a file URL, or None for other URLs."""
    parts = urllib.parse.urlsplit(url)
    return Path(urllib.parse.unquote(parts.path)).resolve() if parts.scheme == "file" else None


def open_local(url: str, allowed: tuple[str, ...]) -> BinaryIO | None:
    """Open the file of a file URL, below an allowed folder; return None for other URLs.

    A writer of the folder cannot lead out of it: links are resolved once, and the opened path has
    none.  Raises StepFailure.
    """
    path = local_path(url)
    if path is None:
        return None
    folder = _folder_of(path, allowed)
    if folder is None:
        raise errors.StepFailure(
            reason=f"cannot use {path}: it is not below [conductor]file_url_allowed_paths, "
            f"{', '.join(allowed) or 'none'}",
        )
    try:
        descriptor = _open_below(folder, path.relative_to(folder).parts)
    except OSError as exc:
        raise errors.StepFailure(reason=f"cannot read {path}: {exc.strerror}") from exc
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise errors.StepFailure(reason=f"cannot read {path}: it is no file")
    return os.fdopen(descriptor, "rb")


def path_of(file: BinaryIO) -> Path:
    """Return a path of the open file itself, also for a child program."""
    return Path(f"/proc/{os.getpid()}/fd/{file.fileno()}")


def _open_below(folder: Path, parts: tuple[str, ...]) -> int:
    """Open a file below the folder without following a link, and without waiting for a pipe."""
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    for at, part in enumerate(parts, 1):
        is_last = at == len(parts)
        flags = os.O_RDONLY | os.O_NONBLOCK if is_last else os.O_PATH | os.O_DIRECTORY
        try:
            child = os.open(part, flags | os.O_NOFOLLOW, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = child
    return descriptor


def _folder_of(path: Path, folders: tuple[str, ...]) -> Path | None:
    """Return the folder that the path is below."""
    resolved = (Path(each).resolve() for each in folders)
    return next((each for each in resolved if path.is_relative_to(each)), None)
