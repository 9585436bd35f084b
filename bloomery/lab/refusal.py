"""The error answer of a BMC: a status and a Redfish error document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Rule: TypeAlias = "type | tuple[type, ...] | list[Any] | None"


class Refusal(Exception):
    """An error answer."""

    def __init__(
        self,
        status: int,
        message: str,
        message_id: str = "GeneralError",
        headers: Mapping[str, str] | None = None,
        args: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})
        self.document = document(message, message_id, args)


def document(
    message: str, message_id: str = "GeneralError", args: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the Redfish error document."""
    code = f"Base.1.8.{message_id}"
    details = details_of(message, message_id, args)
    return {"error": {"code": code, "message": message, "@Message.ExtendedInfo": [details]}}


def details_of(message: str, message_id: str, args: Sequence[str] = ()) -> dict[str, Any]:
    """Return one message of an answer."""
    return {
        "@odata.type": "#Message.v1_0_8.Message",
        "Severity": "Critical",
        "Resolution": "None",
        "MessageId": f"Base.1.8.{message_id}",
        "Message": message,
        **({"MessageArgs": list(args)} if args else {}),
    }


def missing(what: str) -> Refusal:
    return Refusal(404, f"no such resource: {what}", "ResourceMissingAtURI")


def checked(
    document: Any,
    rules: Mapping[str, Rule],
    what: str = "the body",
) -> dict[str, Any]:
    """Return ``document`` if it is an object with known properties of the right type.

    A rule is a list of values, a type, several types, or None for anything.
    """
    if not isinstance(document, dict):
        raise Refusal(400, f"{what} is not a JSON object", "PropertyValueTypeError")
    for name, value in document.items():
        if name not in rules and "@" not in name:
            raise Refusal(400, f"{name} is not known in {what}", "PropertyUnknown")
        rule = rules.get(name)
        if isinstance(rule, list) and value not in rule:
            raise Refusal(400, f"{name}: {value!r} is not one of {rule}", "PropertyValueNotInList")
        kinds = (rule,) if isinstance(rule, type) else rule
        if isinstance(kinds, tuple) and type(value) not in kinds:
            raise Refusal(400, f"{name}: {value!r} has a wrong type", "PropertyValueTypeError")
    return document


def needed(document: Mapping[str, Any], name: str) -> Any:
    """Return a required property."""
    if name not in document:
        raise Refusal(400, f"{name} is missing", "ActionParameterMissing")
    return document[name]
