"""Types of single attributes, the same on POST and on PATCH."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any, Final

import jsonschema_rs

from bloomery import errors, parsing
from bloomery.model.fields import FieldTable, schema_of
from bloomery.model.rules import idents

MASK: Final = "******"
SEALED: Final = "$sealed"
MOST_TEXT: Final = 4096  # characters of a description, a reason, or a search text
_MOST_SCHEME: Final = 20  # characters of a URL's scheme in an error
_MOST_SHOWN: Final = 500  # characters of a schema's error, which repeats the value


def shortened(message: str) -> str:
    """Shorten a schema's error, which may repeat a whole body."""
    return message if len(message) <= _MOST_SHOWN else f"... {message[-_MOST_SHOWN:]}"


def explained(exc: jsonschema_rs.ValidationError) -> str:
    """Return a schema's error with all its alternatives."""
    if exc.kind.name != "enum":
        return exc.message
    return f"{exc.instance!r} is not one of {', '.join(map(str, exc.kind.as_dict()['options']))}"


def check_text(name: str, text: str | None) -> None:
    """Refuse a text that is longer than any column."""
    if text is not None and len(text) > MOST_TEXT:
        raise errors.InvalidParameterValue(
            reason=f"Invalid {name}: at most {MOST_TEXT} characters, not {len(text)}",
        )


def check_url(name: str, url: Any, schemes: Sequence[str]) -> None:
    """Refuse what is no URL of one of these schemes, with a host unless it is of file."""
    try:
        parts = urllib.parse.urlsplit(url if isinstance(url, str) else "")
        leads = parts.scheme == "file" or bool(parts.hostname and parts.port != 0)
    except ValueError:
        parts, leads = urllib.parse.urlsplit(""), False
    if not leads or parts.scheme not in schemes:
        is_other = parts.scheme and parts.scheme not in schemes
        fault = f", not of {parts.scheme[:_MOST_SCHEME]}" if is_other else ", with a host"
        raise errors.InvalidParameterValue(
            reason=f"{name} must be a URL of {', '.join(schemes)}{fault}",
        )


def refuse_sealed(value: Any, where: str) -> None:
    """Raise InvalidParameterValue if a client sends text that looks like a sealed secret.

    A client could otherwise copy a secret that it cannot read.
    """
    if isinstance(value, dict):
        if SEALED in value:
            raise errors.InvalidParameterValue(
                reason=f"cannot take the key {SEALED!r} in {where}: it is reserved",
            )
        for inner in value.values():
            refuse_sealed(inner, where)
    elif isinstance(value, list):
        for inner in value:
            refuse_sealed(inner, where)


def refuse_sealed_in(body: Mapping[str, Any]) -> None:
    """Refuse a sealed value in any argument or attribute, by name."""
    for name, value in body.items():
        refuse_sealed(value, name)


class Checker:
    """Validate the attributes of one noun; its schemas are compiled once."""

    def __init__(self, noun: str, fields: FieldTable) -> None:
        self._noun = noun
        self.fields = fields
        self._validators = {
            name: jsonschema_rs.validator_for(
                schema_of(field),
                mask=MASK if field.secret else None,
            )
            for name, field in fields.items()
        }

    def cleaned(self, name: str, value: Any) -> Any:
        """Return ``value`` as it is stored.  Raises Invalid, naming the attribute."""
        try:
            self._validators[name].validate(value)
        except jsonschema_rs.ValidationError as exc:
            raise errors.InvalidParameterValue(
                reason=f"Schema error for {self._noun}: {name}: {shortened(exc.message)}",
            ) from None
        kind = None if value is None else self.fields[name].kind
        if kind == "uuid":
            return idents.check_uuid(name, value)
        return boolean(name, value) if kind == "bool" else value


def boolean(name: str, value: Any) -> bool:
    """Parse oslo's strict booleans: yes, no, on, off, true, false, 1, 0 ..."""
    try:
        return parsing.boolean(value, strict=True)
    except ValueError as exc:
        raise errors.InvalidParameterValue(reason=f"Invalid {name}: {exc}") from None
