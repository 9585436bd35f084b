"""The identity of the process that a row belongs to, to detect its end.

    mine = process_identity.ours()
    row.process = mine.encoded()
    process_identity.decoded(row.process).has_ended()      # True only where that is certain

A PID is comparable only under one kernel and in one namespace.  Elsewhere the counter of the row
decides.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import bloomery

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_MOST_OF_A_NAME: Final = 64  # characters: the row has room for 255
_STARTED_AT: Final = 19  # index of starttime behind the program's name in /proc/PID/stat


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """``boot`` and ``namespace`` qualify ``pid``; ``ticks`` is its start time.

    ``release``: of the program; "": one that did not tell.
    """

    pid: int
    machine: str
    boot: str = ""
    namespace: int = 0
    ticks: int = 0
    release: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.machine}"

    def encoded(self) -> str:
        return json.dumps(dataclasses.asdict(self), separators=(",", ":"))

    def has_ended(self) -> bool:
        """Return whether the process has certainly ended, or is this one before a restart in place.

        A process runs one conductor at a time.
        """
        mine = ours()
        if not self.boot or (self.boot, self.namespace) != (mine.boot, mine.namespace):
            return False
        return self == mine or _ticks(self.pid) != self.ticks


_FACTS: Final = frozenset(each.name for each in dataclasses.fields(ProcessIdentity))


def ours() -> ProcessIdentity:
    pid, boot, namespace = os.getpid(), "", 0
    with contextlib.suppress(OSError):
        boot = _BOOT_ID.read_text().strip()
    with contextlib.suppress(OSError):
        namespace = Path("/proc/self/ns/pid").stat().st_ino
    return ProcessIdentity(
        pid=pid,
        machine=socket.gethostname()[:_MOST_OF_A_NAME],
        boot=boot,
        namespace=namespace,
        ticks=_ticks(pid),
        release=bloomery.__version__,
    )


def decoded(text: str | None) -> ProcessIdentity | None:
    """Return the identity in a row, or None if it is missing or unreadable."""
    try:
        facts = json.loads(text or "")
        return ProcessIdentity(**{name: facts[name] for name in facts if name in _FACTS})
    except (ValueError, TypeError):
        return None


def _ticks(pid: int) -> int:
    """Return the start time of a process in ticks since the boot; 0 where it does not run."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    return int(stat.rpartition(")")[2].split()[_STARTED_AT])
