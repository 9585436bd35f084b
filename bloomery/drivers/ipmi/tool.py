"""One run of ``ipmitool``: command line, secrets, time limit, output, the meaning of its messages.

The password is passed by a memory file, which leaves no trace after a crash; the Kg key by the
environment, which only our user can read.  ``-v`` is always set: without it ipmitool hides why a
session failed.  The meaning of a message is whether a retry helps, and what the operator can do.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bloomery import errors, secrets
from bloomery.drivers import processes
from bloomery.drivers.bmc.meanings import Meaning
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
_WRONG_KEY: Final = "ipmi_password (or ipmi_hex_kg_key) is wrong"
_MEANINGS: Final = {  # part of a message: its meaning, and its own explanation, if it needs one
    "RAKP 2 HMAC is invalid": (Meaning.LOGIN, _WRONG_KEY),
    "RAKP 4 message has invalid integrity check": (Meaning.LOGIN, _WRONG_KEY),
    "unauthorized name": (Meaning.LOGIN, "ipmi_username is unknown to it"),
    "unauthorized role": (Meaning.RIGHT, "the user may not have ipmi_priv_level"),
    "Set Session Privilege Level to": (Meaning.RIGHT, "the user may not have ipmi_priv_level"),
    "nsufficient privilege": (Meaning.RIGHT, "the user may not do that"),
    "Invalid privilege level": (Meaning.REFUSED, ""),
    "Invalid command": (Meaning.UNSUPPORTED, ""),
    "Invalid data field": (Meaning.REFUSED, ""),
    "not supported in present state": (Meaning.REFUSED, ""),
    "SOL payload already de-activated": (Meaning.REFUSED, ""),
    "insufficient resources for session": (Meaning.FULL, "all its sessions are in use"),
    "Node busy": (Meaning.BUSY, ""),
    "Out of space": (Meaning.BUSY, ""),
    "BMC initialization in progress": (Meaning.BUSY, "it starts"),
}
_PUT_OFF: Final = ("Timeout",)  # of the BMC's own, beside the busy ones
_SUITES: Final = (
    "no matching", "no cipher suite match", "invalid authentication algorithm",
    "invalid integrity algorithm", "invalid confidentiality algorithm", "Unsupported cipher suite",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """The retries of ipmitool itself, and the seconds between them."""

    retries: int = 1
    interval_s: int = 1


class Failed(Exception):
    """ipmitool failed; the text is its output without noise.

    ``masked_text``: the output without secrets.  ``was_killed``: its time limit ended the run.
    """

    def __init__(
        self, output: str, masked_text: str | None = None, *, was_killed: bool = False
    ) -> None:
        super().__init__(output)
        self.was_killed = was_killed
        self.masked_text = output if masked_text is None else masked_text


def require() -> None:
    """Raise CannotStart where ipmitool is missing."""
    if shutil.which(PROGRAM) is None:
        raise errors.CannotStart(
            reason=f"cannot enable hardware type ipmi: the program {PROGRAM} is not on PATH; "
            f"install the package {PROGRAM}, or take ipmi out of enabled_hardware_types",
        )


def command(
    info: Info,
    arguments: Sequence[str],
    *,
    suite: int | None,
    patience: Patience,
    password_file: str,
    verbose: bool = True,
) -> list[str]:
    """Return the command line.

    ``-v`` is given at most once, be it as an argument of the command: twice, it prints keys.
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
    is_list = "elist" in arguments  # with -v it prints blocks in place of lines
    line += [] if "-v" in arguments or not verbose or is_list else ["-v"]
    line += ["-R", str(patience.retries), "-N", str(patience.interval_s)]
    return [*line, "-f", password_file, *arguments]


def run(
    info: Info,
    arguments: Sequence[str],
    *,
    patience: Patience,
    suite: int | None = None,
    within_s: float | None = None,
    secret: str | None = None,
) -> str:
    """Run one command and return its output.  Raises Failed.

    ``within_s``: kill it after so many seconds; None: no limit.  ``secret``: the command with its
    arguments, in place of ``arguments``; it is passed by a memory file, and never printed.
    """
    if shutil.which(PROGRAM) is None:
        raise Failed(f"cannot run {PROGRAM}: {os.strerror(errno.ENOENT)}")
    with (
        processes.in_memory(info.password.encode() or b"\0") as descriptor,
        processes.in_memory(f"{secret}\n".encode()) as script,
    ):
        if secret is not None:
            arguments = ("exec", f"/proc/self/fd/{script}")
        line = command(
            info, arguments, suite=suite, patience=patience, verbose=secret is None,
            password_file=f"/proc/self/fd/{descriptor}",
        )  # fmt: skip
        try:
            done = subprocess.run(
                (*processes.tie(), *line), stdin=subprocess.DEVNULL, capture_output=True,
                check=False, pass_fds=(descriptor, script), env=environment(info), timeout=within_s,
            )  # fmt: skip
        except subprocess.TimeoutExpired as late:
            opened = "it opened a session and gave " if _IN_SESSION in (late.stderr or b"") else ""
            limit = f"within {late.timeout:.0f} s (at most [ipmi]command_retry_timeout)"
            raise Failed(f"{opened}{_NO_ANSWER} {limit}", was_killed=True) from None
        except OSError as refused:
            raise Failed(f"cannot run {PROGRAM}: {refused.strerror}") from None
    if done.returncode:
        output = f"{_printable(done.stderr)}\n{_printable(done.stdout)}"
        otherwise = f"{PROGRAM} ended with {done.returncode}"
        raise Failed(
            _explain(output, patience) or otherwise,
            _explain(masked(info, output), patience) or otherwise,
        )
    return _printable(done.stdout)


def masked(info: Info, output: str) -> str:
    """Return ipmitool's output without secrets that the BMC echoes.

    Secrets shorter than a few characters stay, as they would match ordinary words.
    """
    own = (info.password, info.kg_key.decode(errors="replace"))
    output = secrets.hide(output, [each for each in own if len(each) >= _LEAST_MASKED])
    if info.kg_key:
        output = re.sub(info.kg_key.hex(), secrets.MASK, output, flags=re.IGNORECASE)
    return output


def environment(info: Info) -> dict[bytes, bytes]:
    inherited = {name: value for name, value in os.environb.items() if name != _KG_KEY}
    return inherited | ({_KG_KEY: info.kg_key} if info.kg_key else {})


def _explain(output: str, patience: Patience) -> str:
    """Return the helpful part of ipmitool's output."""
    lines = [line.strip(" >\t") for line in output.splitlines()]
    lines = [line for line in lines if line and not line.startswith(_NOISE)]
    if any(line.startswith(_SILENCE) for line in lines):
        return _NO_ANSWER
    unanswered = [line for line in lines if _UNANSWERED.fullmatch(line)]
    reasons = [line for line in lines if line not in unanswered and not line.startswith(_VAGUE)]
    if _CLOSING in unanswered or (unanswered and not reasons):
        limit = f"within {patience.interval_s} s a try ([ipmi]min_command_interval)"
        reasons.insert(0, f"it answered at first, and then gave {_NO_ANSWER} {limit}")
    text = "; ".join(reasons or lines)
    return "".join(char if char.isprintable() else "?" for char in text[:500])


def _printable(output: bytes) -> str:
    return output.decode(errors="surrogateescape").encode(errors="replace").decode()


def fields(output: str) -> dict[str, str]:
    """Parse lines of names and values."""
    pairs = (line.partition(":") for line in output.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


# ------------------------------------------------------------------ the meaning of its messages


def meaning(text: str, also_retryable: Sequence[str] = ()) -> Meaning | None:
    """Return the meaning of a message, or None where a retry may help, as for silence."""
    if _has(text, also_retryable):
        return None
    refusal = Meaning.REFUSED if is_about_suite(text) else None
    return next((meaning for part, (meaning, _) in _MEANINGS.items() if part in text), refusal)


def is_put_off(text: str, also_retryable: Sequence[str] = ()) -> bool:
    """Return whether the BMC is busy and may accept a retry."""
    return meaning(text) in (Meaning.BUSY, Meaning.FULL) or _has(text, (*_PUT_OFF, *also_retryable))


def is_about_suite(text: str) -> bool:
    """Return whether another cipher suite may help."""
    return _has(text, _SUITES)


def sentence(text: str, masked_text: str) -> str:
    """Return the explanation, followed by the masked message."""
    if is_about_suite(text):
        return f"it does not take this ipmi_cipher_suite: {masked_text}"
    reason = next((reason for part, (_, reason) in _MEANINGS.items() if part in text), "")
    return f"{reason}: {masked_text}" if reason else masked_text


def _has(text: str, parts: Sequence[str]) -> bool:
    return any(part in text for part in parts)
