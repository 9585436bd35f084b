"""Rules about agents that the API and the conductor share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from bloomery import errors, parsing
from bloomery.model.rules import idents

LAST_HEARTBEAT: Final = "agent_last_heartbeat"  # in driver_internal_info
LOOKED_UP: Final = "agent_looked_up"  # in driver_internal_info: an agent found its node
ATTESTED: Final = "agent_attested"  # in driver_internal_info: it has proved what it has booted
BOOT_RETRIES: Final = "agent_boot_retries"  # in driver_internal_info: {"count", "last", "since"}
TOKEN_TAKER: Final = "agent_token_given_to"  # noqa: S105  a key: the address of the lookup
STATUSES: Final = ("start", "end", "error")
FAILED: Final = STATUSES[-1]
_MOST_TEXT: Final = 1024  # characters of a text of an agent that is stored
_MOST_VERSION: Final = 255
_SESSION: Final = ("agent_url", "agent_secret_token")


def is_fast_track(driver_info: Mapping[str, Any], default: bool) -> bool:
    """May an agent already run on the node before a flow begins?

    ``driver_info/fast_track`` of the node overrides ``default``, which is [deploy]fast_track.
    """
    own = driver_info.get("fast_track")
    return default if own is None else parsing.boolean(own)


def bounded(text: str) -> str:
    """Return the beginning of a text that an agent sent, and the number of characters cut off."""
    rest = len(text) - _MOST_TEXT
    return f"{text[:_MOST_TEXT]}... ({rest} more characters)" if rest > 0 else text


def check_version(version: str | None) -> None:
    """Refuse a version of an agent that is longer than any version."""
    if version is not None and len(version) > _MOST_VERSION:
        raise errors.InvalidParameterValue(
            reason=f"cannot take an agent_version of more than {_MOST_VERSION} characters",
        )


def has_session(internal_info: Mapping[str, Any]) -> bool:
    """Return whether an agent has sent a heartbeat since the machine was booted."""
    return all(internal_info.get(key) for key in _SESSION)


def has_called(internal_info: Mapping[str, Any]) -> bool:
    """Return whether an agent has looked its node up, or sent a heartbeat, since the boot."""
    return any(internal_info.get(key) for key in ("agent_url", LOOKED_UP))


def note_boot_retry(internal_info: dict[str, Any], waits_since: datetime, now: datetime) -> None:
    """Count the restart of a machine whose agent is awaited ``waits_since``."""
    retries = internal_info.get(BOOT_RETRIES) or {"count": 0, "since": waits_since.isoformat()}
    internal_info[BOOT_RETRIES] = retries | {"count": retries["count"] + 1, "last": now.isoformat()}


def boot_retried_at(internal_info: Mapping[str, Any]) -> datetime | None:
    """Return when the machine was last restarted, because its agent had not called."""
    retries = internal_info.get(BOOT_RETRIES)
    return datetime.fromisoformat(retries["last"]) if retries else None


def boot_awaited_since(internal_info: Mapping[str, Any]) -> datetime | None:
    """Return when the wait for a boot began that was retried; None: it was not."""
    retries = internal_info.get(BOOT_RETRIES)
    return datetime.fromisoformat(retries["since"]) if retries else None


def retry_note(internal_info: Mapping[str, Any]) -> str:
    """Return the end of the sentence that describes the wait for an agent."""
    if BOOT_RETRIES not in internal_info:
        return ""
    count = internal_info[BOOT_RETRIES]["count"]
    times = "once" if count == 1 else f"{count} times"
    return f"; the machine was restarted {times} ([pxe]boot_retry_timeout)"


def has_live_agent(internal_info: Mapping[str, Any], timeout_s: float, now: datetime) -> bool:
    """Return whether the session of an agent is open, with a heartbeat within ``timeout_s``."""
    last = internal_info.get(LAST_HEARTBEAT)
    if last is None or not has_session(internal_info):
        return False
    return now - datetime.fromisoformat(last) <= timedelta(seconds=timeout_s)


def valid_addresses(addresses: Iterable[Any]) -> list[str]:
    """Return the distinct MAC addresses as they are stored; invalid ones are left out."""
    return list(dict.fromkeys(filter(None, map(idents.folded_mac, addresses))))


def require_same_url(internal_info: Mapping[str, Any], callback_url: str) -> None:
    """Raise Invalid if the agent has reported another URL in this session."""
    agent_url = internal_info.get("agent_url")
    if agent_url is not None and agent_url != callback_url:
        raise errors.Invalid(
            reason="cannot take this callback_url: the agent of the node has named another one "
            "before",
        )
