"""Build the payload of a notification from a snapshot and the event's facts.

The import loads oslo.versionedobjects; classes are built on first use.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from bloomery import secrets
from bloomery.objects import base, payloads
from bloomery.objects.payloads import Payload

Json = dict[str, Any]

REDACTED: Final = {
    "redacted_contents": "** Value redacted: not published on the notification bus. **",
}
_STEP_KEYS: Final = ("interface", "step", "args", "priority", "order")


def _steps(value: Sequence[Mapping[str, Any]] | None) -> list[Json]:
    """Return a step without the columns of its row; secrets in its arguments are masked."""
    return [secrets.mask({k: step[k] for k in _STEP_KEYS if k in step}) for step in value or ()]


def _time(value: str | None) -> datetime | None:
    """Return a time in the zone that oslo writes as Z, as consumers expect."""
    return None if value is None else datetime.fromisoformat(value).astimezone(UTC)


_SHAPES: Final[Mapping[str, tuple[str, Callable[[Any], Any]]]] = {
    "steps": ("objects", _steps),
    "time": ("time", _time),
    "redacted": ("object", lambda value: dict(REDACTED)),
}  # kind of the table -> kind of the field, and the conversion of its value


@functools.cache
def class_of(payload_name: str) -> type[base.Object]:
    """Return the versioned class of a payload, built on first use."""
    payload = payloads.PAYLOADS[payload_name]
    kinds = {
        name: _SHAPES[kind][0] if kind in _SHAPES else kind for name, kind in payload.fields.items()
    }
    return base.make(payload.name, payload.version, kinds)


def payload(kind: Payload, snapshot: Mapping[str, Any], facts: Mapping[str, Any]) -> Json:
    """Return the envelope: four keys, every field of the payload in its data.

    A field that is missing in the snapshot is null.  Raises ValueError or TypeError for an invalid
    value.
    """
    values = {}
    for name, field_kind in kind.fields.items():
        value = (facts if name in kind.facts else snapshot).get(name)
        values[name] = _SHAPES[field_kind][1](value) if field_kind in _SHAPES else value
    return base.primitive(class_of(kind.name), values)
