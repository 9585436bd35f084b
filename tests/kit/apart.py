"""Do something in a process of its own, which ends when it takes too much time or memory.

name, sentence = apart.failure_of(lambda: parse.document(bomb), cpu_s=5, memory_mib=100)
"""

from __future__ import annotations

import os
import re
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bloomery import errors


def failure_of(verb: Callable[[], Any], *, cpu_s: int, memory_mib: int) -> tuple[str, str]:
    """Return the class and the sentence of what ``verb`` raises; fail for anything else.

    The memory is counted beyond what this process has already.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        _do(verb, writer, cpu_s, memory_mib)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    assert not status, f"ended by {os.waitstatus_to_exitcode(status)}: {text or 'too much time'}"
    name, _, sentence = text.partition("\n")
    return name, sentence


def _do(verb: Callable[[], Any], writer: int, cpu_s: int, memory_mib: int) -> None:
    """Write what came of it; never returns into the test run."""
    status = 1
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
        size = re.search(r"VmSize:\s+(\d+) kB", Path("/proc/self/status").read_text())
        assert size is not None
        most = int(size[1]) * 1024 + memory_mib * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        try:
            text = f"nothing\n{verb()!r:.200}"
        except errors.Failure as exc:
            text = f"{type(exc).__name__}\n{exc}"
        os.write(writer, text.encode(errors="replace"))
        status = 0
    except BaseException as exc:  # noqa: BLE001  nothing may get out of here
        os.write(writer, f"{type(exc).__name__}: {exc}"[:1000].encode(errors="replace"))
    finally:
        sys.stdout.flush()
        os._exit(status)
