"""The format of an image on the conductor's disk: read from its header, and converted to raw.

Headers are read before any other program sees the file.  Source of the limits of qemu-img:
Ironic's [disk_utils].
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bloomery import errors
from bloomery.conf.agent import DiskUtils
from bloomery.conf.default import Default

RAW: Final = "raw"
CONVERTED: Final = ("vmdk", "vdi", "vhdx")  # agents do not write these
FORMATS: Final = (RAW, "qcow2", *CONVERTED)
QEMU_IMG: Final = "qemu-img"
HOW_TO_INSTALL: Final = "install qemu-img (Debian's package is qemu-utils) on the conductors' hosts"
_RAW_FAMILY: Final = frozenset({RAW, "gpt", "iso"})  # disks as they are
_PIECE: Final = 1 << 16
_MIB: Final = 1 << 20
_MAGIC: Final = (  # of files that look raw to the inspector, and are of no use to a machine
    (b"# Disk DescriptorFile", "a vmdk of several files"),
    (b"\x1f\x8b", "compressed by gzip"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd"),
    (b"\xfd7zXZ\x00", "compressed by xz"),
    (b"BZh", "compressed by bzip2"),
)
_VDI_AREA: Final = struct.Struct("<344xI28xI8xI")  # start, block size, number of blocks
_LEAKS_ONLY: Final = 3  # qemu-img check: no errors
_NO_CHECK: Final = 63  # the format has none
_MOST_MESSAGE: Final = 300  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The format that a header shows, and the bytes of the disk that it describes."""

    format: str
    size: int


def is_converted(name: str | None, conf: Default) -> bool:
    """Return whether images of this format, or of an unknown one (None), become raw."""
    return name in CONVERTED or (conf.force_raw_images and name != RAW)


def read(path: Path) -> Header:
    """Return the header of an image.

    Raises StepFailure for a file of another format, and for one that refers to other files.
    """
    from oslo_utils.imageutils import format_inspector  # late: 8 MiB, cryptography among them

    with path.open("rb") as file:
        start = file.read(_PIECE)
        file.seek(0)
        wrapper = format_inspector.InspectWrapper(file)
        try:
            while wrapper.formats is None and wrapper.read(_PIECE):
                """Feed the inspectors."""
        finally:
            wrapper.close()
    inspectors = {str(each): each for each in wrapper.formats or ()}
    if _RAW_FAMILY.issuperset(inspectors):
        if kind := next((kind for magic, kind in _MAGIC if start.startswith(magic)), None):
            raise _refused(f"it is {kind}; give the disk image itself, in one file")
        return Header(format=RAW, size=path.stat().st_size)
    name = next(iter(inspectors))
    if len(inspectors) > 1 or name not in FORMATS:
        raise _refused(
            f"its header says {' and '.join(sorted(inspectors))}; give one of {', '.join(FORMATS)}"
        )
    try:
        inspectors[name].safety_check()
    except format_inspector.SafetyCheckFailed as exc:
        reasons = "; ".join(str(failure) for failure in exc.failures.values())
        raise _refused(
            f"as {name} it is unsafe: {reasons}; make an image that needs no other file"
        ) from exc
    except format_inspector.ImageFormatError as exc:
        raise _refused(f"its {name} header is truncated or broken: {exc}") from exc
    if name == "vdi":  # qemu-img takes a truncated file for one with zeros at its end
        begin, block, blocks = _VDI_AREA.unpack_from(start)
        if begin + block * blocks > path.stat().st_size:
            raise _refused("it is truncated: its header promises more data")
    return Header(format=name, size=inspectors[name].virtual_size)


def convert(source: Path, name: str, target: Path, conf: DiskUtils) -> None:
    """Convert an image of this format to raw; a damaged or truncated one is refused.

    Raises StepFailure.
    """
    arguments = ("-f", name, "-q", str(source))
    _run(("check", *arguments), conf, fine=(0, _LEAKS_ONLY, _NO_CHECK))
    target.touch(0o600)
    _run(("convert", "-f", name, "-O", RAW, str(source), str(target)), conf, fine=(0,))


def check_tool() -> None:
    """Raise InvalidParameterValue where qemu-img is not installed."""
    if shutil.which(QEMU_IMG) is None:
        raise errors.InvalidParameterValue(
            reason=f"the conductor would have to convert the image to raw: {HOW_TO_INSTALL}, or "
            "give a raw image with image_disk_format = raw",
        )


def _run(arguments: tuple[str, ...], conf: DiskUtils, *, fine: tuple[int, ...]) -> None:
    if shutil.which(QEMU_IMG) is None:
        raise _refused(f"it must be converted to raw: {HOW_TO_INSTALL}")
    from oslo_concurrency import processutils  # late: few images are converted

    limits = processutils.ProcessLimits(address_space=conf.image_convert_memory_limit * _MIB)
    own = {"LC_ALL": "C", "MALLOC_ARENA_MAX": "3"}  # arenas use up the address space
    try:
        processutils.execute(
            QEMU_IMG, *arguments, prlimit=limits, timeout=conf.image_convert_timeout,
            on_completion=_end, env_variables={**os.environ, **own}, check_exit_code=list(fine),
        )  # fmt: skip
    except subprocess.TimeoutExpired as exc:
        raise _refused(
            f"qemu-img {arguments[0]} takes more than {conf.image_convert_timeout} s "
            "([disk_utils]image_convert_timeout)"
        ) from exc
    except processutils.ProcessExecutionError as exc:
        message = "".join(str(exc.stderr).strip().splitlines()[-1:])[-_MOST_MESSAGE:]
        raise _refused(
            f"qemu-img {arguments[0]} fails with {exc.exit_code}, within "
            f"{conf.image_convert_memory_limit} MiB ([disk_utils]image_convert_memory_limit): "
            f"{message}"
        ) from exc


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a qemu-img that still runs at the end of its time."""
    if process.poll() is None:
        process.kill()
        process.communicate()


def _refused(why: str) -> errors.StepFailure:
    return errors.StepFailure(reason=f"cannot use the image: {why}")
