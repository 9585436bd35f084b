"""The JSON format of calls and replies on every transport.

A call is {"method", "version", "call_id", "host", "context", "arguments"}; ``context`` holds the
fields of ``Request`` and fields of the transport, which are dropped; ``host`` is the addressee.  A
reply is {"result": value} or {"failure": {"class", "facts", "text", "status"}}:

    unpacked({"result": value}) == value
    unpacked(failed(errors.NodeLocked(...)))        # raises NodeLocked
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bloomery import errors, secrets
from bloomery.model.request import Request

Reply = dict[str, Any]
_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "str": (str,), "str | None": (str,), "bool": (bool,), "float | None": (int, float),
    "tuple[str, ...]": (list, tuple),
}  # fmt: skip
_CONTEXT: Final = {field.name: _KINDS[str(field.type)] for field in dataclasses.fields(Request)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a contract's method; repetitions have the same ``call_id``."""

    method: str
    version: str
    call_id: str
    host: str
    request: Request
    arguments: Mapping[str, Any]

    def packed(self) -> dict[str, Any]:
        context = {name: getattr(self.request, name) for name in _CONTEXT}
        return {
            "method": self.method, "version": self.version, "call_id": self.call_id,
            "host": self.host, "context": context,
            "arguments": dict(self.arguments),
        }  # fmt: skip


def read_call(message: Mapping[str, Any]) -> Call:
    """Parse a message.  Raises CallMalformed."""
    texts: dict[str, Any] = {
        name: message.get(name) for name in ("method", "version", "call_id", "host")
    }
    for name, text in texts.items():
        if not isinstance(text, str):
            raise errors.CallMalformed(reason=f"{name} is no text")
    arguments = message.get("arguments")
    if not isinstance(arguments, Mapping):
        raise errors.CallMalformed(reason="arguments is no object")
    return Call(request=read_request(message.get("context")), arguments=arguments, **texts)


def read_request(context: object) -> Request:
    """Return the request; unknown keys are dropped.  Raises CallMalformed."""
    if not isinstance(context, Mapping) or not isinstance(context.get("request_id"), str):
        raise errors.CallMalformed(reason="context has no request_id")
    fields = {name: context[name] for name in _CONTEXT if context.get(name) is not None}
    for name, value in fields.items():
        if not isinstance(value, _CONTEXT[name]):
            raise errors.CallMalformed(reason=f"{name} of context is {type(value).__name__}")
    roles = fields["roles"] = tuple(fields.get("roles", ()))
    if not all(isinstance(role, str) for role in roles):
        raise errors.CallMalformed(reason="roles of context are no texts")
    return Request(**fields)


def failed(error: errors.Failure) -> Reply:
    """Return the reply that raises ``error`` again; facts with secret names are masked."""
    name, facts = error.packed()
    masked: dict[str, Any] = secrets.mask(json.loads(json.dumps(facts, default=str)))
    packed = {"class": name, "facts": masked, "text": str(error), "status": error.status}
    return {"failure": packed}


def unpacked(reply: Mapping[str, Any]) -> Any:
    """Return the result, or raise the failure as its own class, with the sender's sentence."""
    if "failure" not in reply:
        return reply.get("result")
    packed = reply["failure"]
    error = errors.revive(
        packed["class"], packed["facts"], text=packed["text"], status=packed["status"]
    )
    error.args = (packed["text"],)
    raise error
