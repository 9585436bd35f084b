"""Classification of ipmitool's messages: whether a retry helps, and what the operator can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bloomery.drivers.bmc.meanings import Meaning

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


def meaning(text: str, also_retryable: Sequence[str] = ()) -> Meaning | None:
    """Return the meaning of a message; None for silence and what else a retry may help."""
    if _has(text, also_retryable):
        return None
    found = next((meaning for part, (meaning, _) in _MEANINGS.items() if part in text), None)
    return Meaning.REFUSED if found is None and is_about_suite(text) else found


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
    explained = next((words for part, (_, words) in _MEANINGS.items() if part in text), "")
    return f"{explained}: {masked_text}" if explained else masked_text


def _has(text: str, parts: Sequence[str]) -> bool:
    return any(part in text for part in parts)
