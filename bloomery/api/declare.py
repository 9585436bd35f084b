"""A row of the table of endpoints: path, function, policy rule, status, version, arguments, body.

    Endpoint("PUT", "/v1/nodes/{node}/states/boot_mode", node_states.set_boot_mode,
             "baremetal:node:set_boot_mode", 202, since=76, named=TARGET)

    def set_boot_mode(call, node, *, target):
        management.set_boot_mode(call.context, node, target)
        return Reply(location=call.at(f"nodes/{node}/states"))

The function gets the call, the idents of the path, and its arguments by name: those of the query
(``query``), those of the query or a JSON body (``named``), or ``body`` as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum
from typing import Any, Final

import jsonschema_rs
import webob
from webob import exc as statuses

from bloomery import errors, secrets
from bloomery.api import arguments, auth, replies, versions
from bloomery.http_server import bodies
from bloomery.http_server.streams import Stream
from bloomery.http_server.web_socket import Upgrade, WebSocket
from bloomery.model.rules import attributes
from bloomery.operations import policy
from bloomery.operations.context import Context

FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data")
JSON_TYPE: Final = "application/json"
# patches have a media type of their own
JSON_TYPES: Final = re.compile(r"application/([\w.-]+\+)?json", re.ASCII)
REFUSED: Final = 400  # the status of an endpoint that refuses every caller
EVENT_STREAM: Final = "text/event-stream"
KEY: Final = "bloomery.call"  # key of the call in the WSGI environment


@dataclass(slots=True, kw_only=True)
class Call:
    """One request as the middleware has parsed it.

    ``context`` is what operations take; it holds nothing of the API. ``caller`` is the client's
    address, "" if unknown; ``is_forwarded``: a proxy stands between. ``query`` values are texts, or
    lists of texts where an argument was repeated.

    ``suffix`` is a ``.json`` that was cut from the path.  Routing sets ``idents``.
    ``wants_stream``: the client takes server-sent events; ``last_event_id``: the last event that
    the client received; ``hand_over`` begins them, None where the web server cannot.  ``upgrade``:
    the client asks for a web socket.  ``logins`` authenticates callers.
    """

    context: Context
    method: str
    url: str
    path: str = "/"
    query: dict[str, Any]
    body: bytes
    content_type: str
    version: int = versions.MIN
    caller: str = ""
    is_forwarded: bool = False
    suffix: str = ""
    wants_stream: bool = False
    last_event_id: str | None = None
    hand_over: Callable[[Callable[[Stream], None]], None] | None = None
    upgrade: Upgrade | None = None
    logins: auth.Auth = field(default_factory=auth.NoAuth)
    idents: list[str] = field(default_factory=list)

    def at(self, path: str) -> str:
        """Return the URL of a path, as this caller reaches the service."""
        return f"{self.url}/v1/{path}"


class TooOld(Enum):
    """The refusal of a client that is too old for an endpoint."""

    NO_PAGE = (404, "routing")  # second form: the path does not exist
    NOT_FOUND = (404, "handler")
    NOT_FOUND_AFTER_ARGUMENTS = (404, "arguments")  # a bad argument is refused first (400)
    NOT_ALLOWED = (405, "routing")
    REFUSED = (405, "handler")
    NOT_ACCEPTABLE = (406, "handler")


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """A body's schema, compiled once; ``thing`` is the subject of its errors.

    Errors do not repeat values of ``secret`` attributes.  ``document``: the members of the schema
    that the OpenAPI document has otherwise, since operations check more, in words of their own.
    """

    thing: str
    source: Mapping[str, Any]
    secret: frozenset[str] = frozenset()
    document: Mapping[str, Any] = field(default_factory=dict)
    validator: Any = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "validator", jsonschema_rs.validator_for(dict(self.source)))

    def check(self, value: Any) -> None:
        try:
            self.validator.validate(value)
        except jsonschema_rs.ValidationError as exc:
            is_whole, message = not exc.instance_path, exc.message
            if is_whole or exc.instance_path[0] in self.secret:
                masked = jsonschema_rs.validator_for(dict(self.source), mask=secrets.MASK)
                message = next(masked.iter_errors(value)).message
            message = attributes.shortened(message)
            if is_whole and exc.kind.name == "type":
                expected = " or ".join(exc.kind.as_dict()["types"])
                message = f"the body must be a JSON {expected}"
            elif is_whole and exc.kind.name == "additionalProperties":
                allowed = ", ".join(sorted(self.source["properties"]))
                message = f"{message}. Only the following can be given: {allowed}"
            where = "".join(f"{part}: " for part in exc.instance_path)
            raise errors.Invalid(
                reason=f"Schema error for {self.thing}: {where}{message}"
            ) from None


@dataclass(slots=True, kw_only=True)
class Reply:
    """An answer that is more than a document.

    ``status``: replaces the declared one; ``raw``: the body as bytes, of ``content_type``.
    ``stream`` starts server-sent events on the connection, ``web_socket`` a web socket.
    """

    document: Any = None
    location: str | None = None
    status: int | None = None
    raw: bytes | None = None
    content_type: str = JSON_TYPE
    stream: Callable[[Stream], None] | None = None
    web_socket: Callable[[WebSocket], None] | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one path.

    ``too_old``: the refusal of clients older than ``since``; ``also_in``: older versions that have
    the endpoint nevertheless.  ``rule_first``: the policy is checked before the version, so that
    older clients get 403.  A ``status`` of REFUSED: the endpoint refuses every caller and names the
    right path.  ``answers``: the JSON type of the document; "any": no type is promised, and 202 may
    come instead.  ``streams``: a client that asks for server-sent events gets them; ``upgrades``:
    one that asks for a web socket gets it.  ``has_head``:
    HEAD answers as GET, without the body.  ``only_reads``: nothing is changed, whatever the method.
    ``exclusive``: groups of query arguments of which at most one may be given, for the document.
    """

    method: str
    path: str
    function: Callable[..., Any]
    rule: str
    status: int = 200
    _: KW_ONLY
    since: int = versions.MIN
    too_old: TooOld = TooOld.NO_PAGE
    query: arguments.Args = field(default_factory=dict)
    named: arguments.Args | None = None
    body: Schema | None = None
    answers: str = "object"
    rule_first: bool = False
    also_in: tuple[int, ...] = ()
    streams: bool = False
    upgrades: bool = False
    has_head: bool = False
    exclusive: tuple[tuple[str, ...], ...] = ()
    only_reads: bool = False
    begins_with_node: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "begins_with_node", self.path.startswith("/v1/nodes/{node}"))

    def answer(self, call: Call) -> webob.Response:
        """Check the call against the declaration, call the function and build its answer."""
        is_too_old = call.version < self.since and call.version not in self.also_in
        if is_too_old and self.too_old is not TooOld.NOT_FOUND_AFTER_ARGUMENTS:
            if self.rule_first:
                policy.authorize_node(call.context, call.idents[0], self.rule)
            raise self._too_old(call)
        values = self._arguments(call)
        if is_too_old:
            raise self._too_old(call)
        try:
            result = self.function(call, *call.idents, **values)
        except errors.NotFound:
            if not (call.suffix and call.idents):
                raise
            # the name was cut at .json, and may be a name that ends so
            call.idents[-1] += call.suffix
            result = self.function(call, *call.idents, **values)
        reply = result if isinstance(result, Reply) else Reply(document=result)
        headers = versions.headers(call.version)
        if reply.location is not None:
            headers.append(("Location", reply.location))
        status = reply.status or self.status
        if reply.stream is not None:
            if call.hand_over is None:
                raise errors.NotAcceptable(reason="cannot stream events through this web server")
            call.hand_over(reply.stream)
            headers.append(("Cache-Control", "no-store"))
            return replies.raw(b": events\n\n", EVENT_STREAM, 200, headers)
        if (begin := reply.web_socket) is not None and call.upgrade is not None:
            if call.hand_over is None:
                raise errors.NotAcceptable(reason="cannot open consoles through this web server")
            call.hand_over(lambda stream: begin(WebSocket(stream)))
            return replies.empty(101, [*headers, *call.upgrade.headers])
        if reply.raw:
            return replies.raw(reply.raw, reply.content_type, status, headers)
        if reply.document is None:
            return replies.empty(204 if status == 200 else status, headers)
        return replies.document(reply.document, status, headers)

    def _arguments(self, call: Call) -> dict[str, Any]:
        """Return the arguments by name; a body as a whole is checked against its schema."""
        if self.named is not None:
            return arguments.read(self.named, _named(call), call.version)
        values = arguments.read(self.query, call.query, call.version)
        if self.body is None:
            return values
        if call.body and (not call.content_type or call.content_type in FORMS):
            raise errors.Invalid(
                reason="Unexpected arguments: the body came as a form; send it with "
                f"Content-Type: {JSON_TYPE}",
            )
        if call.body:
            _require_json(call)
        values["body"] = bodies.parse(call.body) if call.body else {}
        self.body.check(values["body"])
        return values

    def _too_old(self, call: Call) -> errors.Failure:
        if self.too_old is TooOld.NOT_ACCEPTABLE:
            return errors.NotAcceptable(
                reason=f"cannot use this with API version 1.{call.version}: "
                f"ask with version 1.{self.since} or newer",
            )
        if self.too_old is TooOld.REFUSED:
            return errors.MethodNotAllowed(allowed=f"those of API version 1.{self.since} or newer")
        return errors.NotFound(reason="Not Found")


def _named(call: Call) -> dict[str, Any]:
    """Return the arguments of the query and of a JSON body; a name in both is a repeated argument.

    A form or unreadable JSON counts as no body.
    """
    values = dict(call.query)
    if not call.body or not call.content_type or call.content_type in FORMS:
        return values
    _require_json(call)
    try:
        body = bodies.parse(call.body)
    except errors.Invalid as exc:
        if "not JSON" in str(exc):
            return values
        raise
    for name, value in body.items() if isinstance(body, dict) else ():
        values[name] = [values[name], value] if name in values else value
    return values


def _require_json(call: Call) -> None:
    """Raise HTTPUnsupportedMediaType (415) for a body of another type."""
    if not JSON_TYPES.fullmatch(call.content_type):
        raise statuses.HTTPUnsupportedMediaType(
            f"cannot read a body of type {call.content_type[:99]}: send it with Content-Type: "
            f"{JSON_TYPE}"
        )
