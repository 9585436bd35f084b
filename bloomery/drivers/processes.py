"""Programs that drivers start: their secrets in memory, and their end with the process."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def in_memory(content: bytes) -> Iterator[int]:
    """Yield the descriptor of a nameless file, which leaves no trace after a crash."""
    descriptor = os.memfd_create("bloomery", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, content)
        yield descriptor
    finally:
        os.close(descriptor)


@functools.cache
def tie() -> tuple[str, ...]:
    """Return a command prefix that kills the program with its parent thread, where available.

    The thread waits for the program, so it ends first only if the process was killed; then a
    successor must not meet a command of ours.
    """
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return ()
    line = (setpriv, "--pdeathsig", "KILL")
    can = subprocess.run(
        (*line, setpriv, "--version"), stdin=subprocess.DEVNULL, capture_output=True, check=False,
    )  # fmt: skip
    return () if can.returncode else line


class ProcessLine:
    """The end of a ``terminal.Line`` that a process carries, in a session of its own."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def abort(self) -> None:
        with self._mutex:
            if self._process is not None:
                _signal(self._process, signal.SIGTERM)

    def kill(self, after_s: float) -> None:
        with self._mutex:
            process = self._process
        if process is None:
            return
        try:
            process.wait(after_s)
        except subprocess.TimeoutExpired:
            _signal(process, signal.SIGKILL)
            process.wait()


def _signal(process: subprocess.Popen[bytes], order: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, order)
