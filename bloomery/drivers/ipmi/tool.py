"""One run of ``ipmitool``: its command line, its password, its time, what it said.

The password reaches it in a file of mode 0600 that lives as long as the run.  ``-v`` is always
given: without it ipmitool keeps to itself why no session could be opened.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from oslo_concurrency import processutils

from bloomery import errors
from bloomery.drivers.ipmi.info import Info

PROGRAM: Final = "ipmitool"
_NOISE: Final = (
    "Loading IANA PEN Registry", "IANA PEN registry open failed", "Running Get ",
    "Invalid completion code received", "Discovered IPMB address", "RAW REQ", "RAW RSP",
    "Get HPM.x Capabilities",
)  # fmt: skip
_VAGUE: Final = ("Error: Unable to establish",)
_UNLOGGED: Final = 1  # below every level: oslo would log the command line
_NO_ANSWER: Final = "no answer"
_SILENCE: Final = ("Get Auth Capabilities error", "Error issuing Get Channel Authentication")


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often ipmitool itself sends, and how many seconds apart."""

    retries: int = 1
    interval_s: int = 1


class Failed(Exception):
    """ipmitool ended without success; the text is what it said, without noise."""


def require() -> None:
    """Raise CannotStart where the program is missing."""
    if shutil.which(PROGRAM) is None:
        raise errors.CannotStart(
            reason=f"cannot enable hardware type ipmi: the program {PROGRAM} is not on PATH; "
            f"install the package {PROGRAM}, or take ipmi out of enabled_hardware_types",
        )


def command(
    info: Info,
    words: Sequence[str],
    *,
    suite: int | None,
    patience: Patience,
    password_file: str,
) -> list[str]:
    """Return the command line.

    ``-v`` stands there once, be it as a word of the command: twice, it prints keys.
    """
    line = [PROGRAM, "-I", info.interface, "-H", info.address, "-L", info.priv_level]
    for flag, value in (
        ("-p", info.port),
        ("-U", info.username),
        ("-y", info.hex_kg_key),
        ("-C", suite),
        ("-m", info.local_address),
        ("-B", info.transit_channel),
        ("-T", info.transit_address),
        ("-b", info.target_channel),
        ("-t", info.target_address),
    ):
        line += [] if value is None else [flag, str(value)]
    line += [] if "-v" in words else ["-v"]
    line += ["-R", str(patience.retries), "-N", str(patience.interval_s)]
    return [*line, "-f", password_file, *words]


def run(
    info: Info,
    words: Sequence[str],
    *,
    patience: Patience,
    suite: int | None = None,
    within_s: float | None = None,
) -> str:
    """Run one command and return what it printed.  Raises Failed.

    ``within_s``: after so many seconds it is killed; None: it may take its time.
    """
    with _password_file(info.password) as path:
        line = command(info, words, suite=suite, patience=patience, password_file=path)
        return _execute(line, within_s)


@contextlib.contextmanager
def _password_file(password: str) -> Iterator[str]:
    """A file that holds the password; an empty one is told by a NUL."""
    descriptor, name = tempfile.mkstemp(prefix="bloomery-ipmi-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(password.encode() or b"\0")
        yield name
    finally:
        Path(name).unlink(missing_ok=True)


def _execute(line: Sequence[str], within_s: float | None) -> str:
    """Run it; errors are raised ``from None``: their causes show the line with the Kg key."""
    started: list[subprocess.Popen[bytes]] = []
    more: dict[str, Any] = {"timeout": within_s, "loglevel": _UNLOGGED}
    try:
        said, _ = processutils.execute(*line, on_execute=started.append, **more)
    except processutils.ProcessExecutionError as failed:
        raise Failed(_explain(failed)) from None
    except subprocess.TimeoutExpired:
        _kill(started[0])
        raise Failed(_NO_ANSWER) from None
    except OSError as refused:
        raise Failed(f"cannot run {PROGRAM}: {refused.strerror}") from None
    return _printable(said)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a program that overran its time, and read its pipes to the end, so that they close."""
    process.kill()
    process.communicate()


def _explain(failed: processutils.ProcessExecutionError) -> str:
    """Return what ipmitool said that helps: without noise, and the vague only if alone."""
    said = f"{failed.stderr or ''}\n{failed.stdout or ''}"
    lines = [line.strip(" >\t") for line in _printable(said).splitlines()]
    lines = [line for line in lines if line and not line.startswith(_NOISE)]
    if any(line.startswith(_SILENCE) for line in lines):
        return _NO_ANSWER
    plain = [line for line in lines if not line.startswith(_VAGUE)] or lines
    return "; ".join(plain)[:500] or f"{PROGRAM} ended with {failed.exit_code}"


def _printable(said: Any) -> str:
    """What a BMC sent that is no UTF-8 becomes question marks."""
    return str(said).encode(errors="replace").decode()
