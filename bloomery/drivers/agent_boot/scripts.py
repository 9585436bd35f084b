"""Scripts of iPXE: an entry script leads each machine to its own, which boots the agent.

A failing command ends a script and returns to the entry script, which boots the disk.  Source:
ipxe.org/scripting; UEFI 2.10, 3.1.1: the firmware tries the next boot entry only after an error, so
the script for UEFI ends with one.
"""

from __future__ import annotations

import re
from typing import Final

from bloomery import boot_files, errors
from bloomery.drivers.agent_boot import parameters

_CHAIN_MS: Final = 60_000
_RAMDISK: Final = "ramdisk"  # the ramdisk's name for kernels started by UEFI
_ODD: Final = re.compile(r"(?:^|\s)(?:&&|\|\||;|#)")

ENTRY: Final = f"""#!ipxe
chain --timeout {_CHAIN_MS} {boot_files.LINKS}/${{mac:hexhyp}} || goto disk
:disk
iseq ${{platform}} efi && exit 1 ||
sanboot --no-describe --drive 0x80 || exit 1
"""

PARAMS: Final = {"initrd": _RAMDISK, "BOOTIF": "01-${mac:hexhyp}"}  # the booting port


def check(command_line: str) -> None:
    """Raise InvalidParameterValue for words that iPXE would interpret."""
    if _ODD.search(command_line):
        raise errors.InvalidParameterValue(
            reason=f"{parameters.KEY} takes no words &&, || and ;, and none that begin with #: "
            "iPXE would act on them",
        )


def agent(kernel: str, ramdisk: str, command_line: str, timeout_s: int) -> str:
    """Return the script that boots an agent; ``timeout_s``: per file, 0: no limit."""
    limit = f" --timeout {timeout_s * 1000}" if timeout_s else ""
    return (
        f"#!ipxe\nkernel{limit} {kernel} {command_line}\n"
        f"initrd{limit} --name {_RAMDISK} {ramdisk}\nboot\n"
    )
