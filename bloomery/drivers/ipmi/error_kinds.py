"""What ipmitool's messages mean for us: is asking again any use, and what is to be done?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_WRONG_KEY: Final = "ipmi_password (or ipmi_hex_kg_key) is wrong"
_LOGIN: Final = (  # each further try may lock the account
    "RAKP 2 HMAC is invalid", "RAKP 4 message has invalid integrity check", "unauthorized name",
)  # fmt: skip
_REFUSALS: Final = {  # part of a message: what it means, where that needs saying
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
    """Did the BMC, or ipmitool, say a no that will be no the next time, too?"""
    return not _has(text, also_retryable) and _has(text, (*_REFUSALS, *_SUITES))


def is_login_refused(text: str) -> bool:
    """Did the BMC not know the user, or not take the password?"""
    return _has(text, _LOGIN)


def is_put_off(text: str, also_retryable: Sequence[str] = ()) -> bool:
    """Did the BMC say that it would do it later?"""
    return _has(text, (*_PUT_OFF, *also_retryable))


def is_about_suite(text: str) -> bool:
    """Would another cipher suite help?"""
    return _has(text, _SUITES)


def sentence(text: str, masked_text: str) -> str:
    """Return what the message means, before the message as it may be shown."""
    if is_about_suite(text):
        return f"it does not take this ipmi_cipher_suite: {masked_text}"
    meaning = next((meaning for part, meaning in _REFUSALS.items() if part in text), "")
    return f"{meaning}: {masked_text}" if meaning else masked_text


def _has(text: str, parts: Sequence[str]) -> bool:
    return any(part in text for part in parts)
