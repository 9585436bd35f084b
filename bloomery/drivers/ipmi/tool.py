"""One run of ``ipmitool``: its command line, its secrets, its time, what it said.

The password reaches it in a file that is in memory alone, so that nothing is left of it however
either of us ends; the Kg key in its environment, which only our own user can read.  ``-v`` is
always given: without it ipmitool keeps to itself why no session could be opened.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bloomery import errors, secrets
from bloomery.drivers.ipmi.info import Info

PROGRAM: Final = "ipmitool"
_NOISE: Final = (
    "Loading IANA PEN Registry", "IANA PEN registry open failed", "Running Get ",
    "Invalid completion code received", "Discovered IPMB address", "RAW REQ", "RAW RSP",
    "Get HPM.x Capabilities", "Unable to Get Channel Cipher Suites",
)  # fmt: skip
_VAGUE: Final = ("Error: Unable to establish",)
_LEAST_MASKED: Final = 4  # characters of a secret
_KG_KEY: Final = b"IPMI_KGKEY"
_NO_ANSWER: Final = "no answer"
_CLOSING: Final = "Close Session command failed"
_UNANSWERED: Final = re.compile(  # a refusal ends with a colon and its reason
    rf"Set Session Privilege Level to \w+ failed|Error: no response from RAKP \d message|{_CLOSING}"
)
_IN_SESSION: Final = b"Running Get "  # with -v, the first words after a session is open
_SILENCE: Final = ("Get Auth Capabilities error", "Error issuing Get Channel Authentication")


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often ipmitool itself sends, and how many seconds apart."""

    retries: int = 1
    interval_s: int = 1


class Failed(Exception):
    """ipmitool ended without success; the text is what it said, without noise.

    ``masked_text``: what of it may be told, without what a BMC echoes of its login.
    ``was_killed``: its time was over, and it had not given up by itself.
    """

    def __init__(
        self, output: str, masked_text: str | None = None, *, was_killed: bool = False
    ) -> None:
        super().__init__(output)
        self.was_killed = was_killed
        self.masked_text = output if masked_text is None else masked_text


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
        ("-C", suite),
        ("-m", info.local_address),
        ("-B", info.transit_channel),
        ("-T", info.transit_address),
        ("-b", info.target_channel),
        ("-t", info.target_address),
    ):
        line += [] if value is None else [flag, str(value)]
    line += ["-K"] if info.kg_key else []
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
    with _in_memory(info.password.encode() or b"\0") as descriptor:
        path = f"/proc/self/fd/{descriptor}"
        line = command(info, words, suite=suite, patience=patience, password_file=path)
        done = _execute(line, descriptor, _environment(info), within_s)
    if done.returncode:
        output = f"{_printable(done.stderr)}\n{_printable(done.stdout)}"
        otherwise = f"{PROGRAM} ended with {done.returncode}"
        raise Failed(
            _explain(output, patience) or otherwise,
            _explain(masked(info, output), patience) or otherwise,
        )
    return _printable(done.stdout)


def masked(info: Info, output: str) -> str:
    """Return what may be told of ipmitool's words: without what a BMC echoes of its login.

    What is shorter than a few characters cannot be told from any other word.
    """
    own = (info.password, info.kg_key.decode(errors="replace"))
    output = secrets.hide(output, [each for each in own if len(each) >= _LEAST_MASKED])
    if info.kg_key:
        output = re.sub(info.kg_key.hex(), secrets.MASK, output, flags=re.IGNORECASE)
    return output


@contextlib.contextmanager
def _in_memory(content: bytes) -> Iterator[int]:
    """A descriptor of a file without a name; an empty password is told by a NUL."""
    descriptor = os.memfd_create("ipmi", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, content)
        yield descriptor
    finally:
        os.close(descriptor)


def _environment(info: Info) -> dict[bytes, bytes]:
    inherited = {name: value for name, value in os.environb.items() if name != _KG_KEY}
    return inherited | ({_KG_KEY: info.kg_key} if info.kg_key else {})


@functools.cache
def tie() -> tuple[str, ...]:
    """Return what lets a program end with the thread that runs it, where the system has that.

    That thread waits for the program: so it ends first only if the whole process was killed,
    and a successor is not to meet a command of ours.
    """
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return ()
    line = (setpriv, "--pdeathsig", "KILL")
    can = subprocess.run(
        (*line, setpriv, "--version"), stdin=subprocess.DEVNULL, capture_output=True, check=False,
    )  # fmt: skip
    return () if can.returncode else line


def _execute(
    line: Sequence[str],
    descriptor: int,
    environment: Mapping[bytes, bytes],
    within_s: float | None,
) -> subprocess.CompletedProcess[bytes]:
    """Run it, with the descriptor; kill it when its time is over, and wait until it is gone."""
    if shutil.which(line[0]) is None:
        raise Failed(f"cannot run {PROGRAM}: {os.strerror(errno.ENOENT)}")
    try:
        return subprocess.run(
            (*tie(), *line), stdin=subprocess.DEVNULL, capture_output=True, check=False,
            pass_fds=(descriptor,), env=environment, timeout=within_s,
        )  # fmt: skip
    except subprocess.TimeoutExpired as late:
        raise Failed(_overrun(late), was_killed=True) from None
    except OSError as refused:
        raise Failed(f"cannot run {PROGRAM}: {refused.strerror}") from None


def _overrun(late: subprocess.TimeoutExpired) -> str:
    """Tell a BMC that opened a session, and is slow, from one that is silent."""
    opened = "it opened a session and gave " if _IN_SESSION in (late.stderr or b"") else ""
    limit = f"within {late.timeout:.0f} s (at most [ipmi]command_retry_timeout)"
    return f"{opened}{_NO_ANSWER} {limit}"


def _explain(output: str, patience: Patience) -> str:
    """Return what ipmitool said that helps: without noise, and the vague only if alone."""
    lines = [line.strip(" >\t") for line in output.splitlines()]
    lines = [line for line in lines if line and not line.startswith(_NOISE)]
    if any(line.startswith(_SILENCE) for line in lines):
        return _NO_ANSWER
    unanswered = [line for line in lines if _UNANSWERED.fullmatch(line)]
    plain = [line for line in lines if line not in unanswered and not line.startswith(_VAGUE)]
    if _CLOSING in unanswered or (unanswered and not plain):
        limit = f"within {patience.interval_s} s a try ([ipmi]min_command_interval)"
        plain.insert(0, f"it answered at first, and then gave {_NO_ANSWER} {limit}")
    text = "; ".join(plain or lines)
    return "".join(char if char.isprintable() else "?" for char in text[:500])


def _printable(output: bytes) -> str:
    """What a BMC sent that is no UTF-8 becomes question marks."""
    return output.decode(errors="surrogateescape").encode(errors="replace").decode()
