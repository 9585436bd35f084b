"""A webhook: an address that receives events, and its state."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from bloomery import errors, fetching
from bloomery.model.rules import idents

EVENT_TYPE: Final = re.compile(r"[a-z_]+(\.[a-z_]+){0,3}", re.ASCII)
# JSON schemas, for the OpenAPI document: a secret has 24 to 64 bytes in base64.
TYPE: Final = {"pattern": f"^{EVENT_TYPE.pattern}$"}
URL: Final = {"pattern": "^https?://[!-~]+$"}
SECRET: Final = {
    "pattern": "^(whsec_)?([A-Za-z0-9+/]{4}){8,20}"
    "([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4}([A-Za-z0-9+/]{2}==)?)?$"
}
MOST_TEXT: Final = 255
MOST_URL: Final = 2048
_SECRET_BYTES: Final = (24, 64)
_PREFIX: Final = "whsec_"
SECRET_SIZE: Final = (
    f"{_SECRET_BYTES[0]} to {_SECRET_BYTES[1]} bytes in base64 are needed, after {_PREFIX} or "
    "without it"
)
WRITABLE: Final = ("description", "object_uuid", "secret", "state", "type", "url")


class State(StrEnum):
    ACTIVE = "active"
    FAILING = "failing"  # the last delivery failed, and is retried
    PARKED = "parked"  # no deliveries until an operator sets it to active


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """One row of ``webhooks``; ``secret`` is sealed.

    ``type``: a prefix of event types, by whole words; ``object_uuid``: of one node or stack.
    """

    uuid: str
    url: str
    secret: str
    type: str | None = None
    object_uuid: str | None = None
    description: str | None = None
    state: str = State.ACTIVE
    failures: int = 0
    last_error: str | None = None
    last_delivered_at: datetime | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None

    @property
    def sink(self) -> str:
        """Return the name of the webhook's sink."""
        return sink_of(self.uuid)


SINK_PREFIX: Final = "webhook:"


def sink_of(uuid: str) -> str:
    return f"{SINK_PREFIX}{uuid}"


def uuid_of(sink: str) -> str:
    return sink.removeprefix(SINK_PREFIX)


def is_webhook(sink: str) -> bool:
    return sink.startswith(SINK_PREFIX)


OPTION: Final = "[events]webhook_allow_local"  # allows addresses of this host and its link


def check_reach(values: Mapping[str, Any]) -> None:
    """Raise Invalid for a forbidden numeric address; names are resolved later."""
    url = values.get("url")
    if url and any(map(fetching.is_reserved, fetching.numeric(fetching.checked(url)))):
        raise errors.Invalid(reason=f"cannot use url: {fetching.LEADS_HERE.format(option=OPTION)}")


def check_url(url: Any) -> str:
    """Return the URL.  Raises Invalid for an unusable one."""
    if not isinstance(url, str):
        raise errors.Invalid(reason="cannot do without url: replace it with another one")
    try:
        fetching.checked(url)
    except fetching.FetchRefused as exc:
        raise errors.Invalid(reason=f"cannot use url: {exc}") from exc
    if len(url) > MOST_URL:
        raise errors.Invalid(reason=f"cannot use url: {MOST_URL} characters are allowed")
    if not url.isascii() or any(char <= " " for char in url):
        raise errors.Invalid(reason="cannot use url: write it in ASCII, without spaces")
    return url


def check_secret(secret: Any) -> str:
    """Return the secret.  Raises Invalid, which does not repeat it."""
    if not is_secret(secret):
        raise errors.Invalid(reason=f"cannot use secret: {SECRET_SIZE}")
    return str(secret)


def is_secret(secret: Any) -> bool:
    """Return whether a text can sign, as ``SECRET_SIZE`` says."""
    least, most = _SECRET_BYTES
    try:
        size = len(base64.b64decode(str(secret).removeprefix(_PREFIX), validate=True))
    except (binascii.Error, ValueError):
        return False
    return least <= size <= most


def check_type(event_type: Any) -> str | None:
    """Return the words of a type.  Raises Invalid."""
    if event_type is not None and not EVENT_TYPE.fullmatch(event_type):
        raise errors.Invalid(
            reason=f"cannot use type {event_type!r}: write up to four words of a type from the "
            "left, such as baremetal.node.provision_set",
        )
    return event_type  # type: ignore[no-any-return]


def check_state(state: Any) -> str:
    """Return the state.  Raises Invalid for a state that only deliveries set."""
    if state not in (State.ACTIVE, State.PARKED):
        raise errors.Invalid(reason="cannot use state: set it to active or parked")
    return str(state)


def check_object(uuid: Any) -> str | None:
    return None if uuid is None else idents.check_uuid("object_uuid", uuid)


CHECKS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "object_uuid": check_object,
    "secret": check_secret,
    "state": check_state,
    "type": check_type,
    "url": check_url,
}


def checked(name: str, value: Any) -> Any:
    """Return an attribute's checked value.  Raises Invalid, which repeats no secret."""
    if value is not None and not isinstance(value, str):
        raise errors.Invalid(reason=f"cannot use {name}: it has to be a text")
    if value is not None and "\0" in value:
        raise errors.Invalid(reason=f"cannot use {name}: it holds the character NUL")
    if name in CHECKS:
        return CHECKS[name](value)
    if value is not None and len(value) > MOST_TEXT:
        raise errors.Invalid(reason=f"cannot use {name}: {MOST_TEXT} characters are allowed")
    return value
