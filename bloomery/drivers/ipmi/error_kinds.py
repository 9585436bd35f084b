"""Classification of ipmitool's messages: whether a retry helps, and what the operator can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_WRONG_KEY: Final = "ipmi_password (or ipmi_hex_kg_key) is wrong"
_LOGIN: Final = (  # retries may lock the account
    "RAKP 2 HMAC is invalid", "RAKP 4 message has invalid integrity check", "unauthorized name",
)  # fmt: skip
_REFUSALS: Final = {  # part of a message: its explanation, if it needs one
    "RAKP 2 HMAC is invalid": _WRONG_KEY,
    "RAKP 4 message has invalid integrity check": _WRONG_KEY,
    "unauthorized name": "ipmi_username is unknown to it",
    "unauthorized role": "the user may not have ipmi_priv_level",
    "Set Session Privilege Level to": "the user may not have ipmi_priv_level",
    "nsufficient privilege": "the user may not do that",
    "Invalid privilege level": "",
    "Invalid command": "",
    "Invalid data field": "",
    "not supported in present state": "",
    "SOL payload already de-activated": "",
}
_PUT_OFF: Final = (
    "insufficient resources for session", "Node busy", "Timeout", "Out of space",
    "BMC initialization in progress",
)  # fmt: skip
_SUITES: Final = (
    "no matching", "no cipher suite match", "invalid authentication algorithm",
    "invalid integrity algorithm", "invalid confidentiality algorithm", "Unsupported cipher suite",
)  # fmt: skip


def is_refusal(text: str, also_retryable: Sequence[str] = ()) -> bool:
    """Return whether the BMC or ipmitool refused for good."""
    return not _has(text, also_retryable) and _has(text, (*_REFUSALS, *_SUITES))


def is_login_refused(text: str) -> bool:
    """Return whether the BMC refused the user or the password."""
    return _has(text, _LOGIN)


def is_put_off(text: str, also_retryable: Sequence[str] = ()) -> bool:
    """Return whether the BMC is busy and may accept a retry."""
    return _has(text, (*_PUT_OFF, *also_retryable))


def is_about_suite(text: str) -> bool:
    """Return whether another cipher suite may help."""
    return _has(text, _SUITES)


def sentence(text: str, masked_text: str) -> str:
    """Return the explanation, followed by the masked message."""
    if is_about_suite(text):
        return f"it does not take this ipmi_cipher_suite: {masked_text}"
    meaning = next((meaning for part, meaning in _REFUSALS.items() if part in text), "")
    return f"{meaning}: {masked_text}" if meaning else masked_text


def _has(text: str, parts: Sequence[str]) -> bool:
    return any(part in text for part in parts)
