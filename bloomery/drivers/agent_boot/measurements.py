"""What GRUB measures of the texts that are written for one boot of one node.

``driver_internal_info`` keeps the SHA-256 of each, as the texts hold the agent's token.  Kernel and
ramdisk are files of all nodes, whose digests are taken when they are asked for.

Source: GRUB 2.12, ``grub-core/script/execute.c`` and ``lib/cmdline.c``: a command is measured with
its words unquoted; the kernel's line has those with spaces quoted again.  The kernel's EFI stub
measures its load options in UTF-16, which GRUB 2.12 gives without an end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from bloomery.drivers.agent_boot import parameters
from bloomery.drivers.base import DriverTask

KEY: Final = "agent_boot_measurements"  # in driver_internal_info, of the last boot files
COMMAND_LINE: Final = "the kernel's command line"


def note(task: DriverTask, kernel: str, line: str, scripts: Mapping[str, str]) -> None:
    """Keep the digests of this boot's texts, by name.

    ``kernel``: its path as GRUB's command ``linux`` has it, ``line`` its command line.
    ``scripts``: the text of each script that GRUB reads, by name.
    """
    words = [kernel, *parameters.grub_words(line)]
    quoted = " ".join(f'"{word}"' if " " in word else word for word in words)
    options = f"BOOT_IMAGE={quoted}".encode("utf-16-le")
    texts = {
        **{name: script.encode("ascii") for name, script in scripts.items()},
        "the command linux": " ".join(["linux", *words]).encode("ascii"),
        COMMAND_LINE: quoted.encode("ascii"),
        "the load options": options,
        "the load options with an end": options + b"\0\0",
    }
    task.node.driver_internal_info[KEY] = {
        name: hashlib.sha256(text).hexdigest() for name, text in texts.items()
    }


def noted(task: DriverTask) -> dict[str, bytes]:
    """Return the digests of the last boot files' texts, by name; {} where none are known."""
    digests: Mapping[str, Any] = task.node.driver_internal_info.get(KEY) or {}
    return {name: bytes.fromhex(digest) for name, digest in digests.items()}
