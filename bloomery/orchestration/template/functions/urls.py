"""make_url: a URL put together from its parts, each one quoted for its place."""

from __future__ import annotations

from typing import Any, Final
from urllib import parse

from bloomery import errors
from bloomery.orchestration.template.functions import base, shapes
from bloomery.orchestration.template.functions.base import Call
from bloomery.orchestration.template.view import StackView

_TEXTS: Final = ("scheme", "username", "password", "host", "path", "fragment")
_PARTS: Final = (*_TEXTS, "port", "query")
_PORTS: Final = range(1, 65536)


class MakeUrl(Call):
    __slots__ = ()
    summary = "A URL made of scheme, username, password, host, port, path, query and fragment."

    def check(self) -> None:
        self._check(self.args)

    def _check(self, args: Any) -> None:
        """Refuse arguments of the wrong shape; calls that are not resolved yet may be anything."""
        if not isinstance(args, dict):
            raise self.fault(f"{self.name} takes a map of {', '.join(_PARTS)}")
        for part, value in args.items():
            if part not in _PARTS:
                raise self.fault(
                    f"{self.name} does not know {part!r}; it knows {', '.join(_PARTS)}."
                    f"{errors.nearest(part, _PARTS)}"
                )
            if isinstance(value, base.Function):
                continue
            described = shapes.described(value)
            if part == "port":
                try:
                    port = int(value)
                except (TypeError, ValueError, OverflowError):
                    raise self.fault(f"port of {self.name} is a number, not {described}") from None
                if port not in _PORTS:
                    raise self.fault(f"port of {self.name} is from 1 to 65535, not {described}")
            elif not isinstance(value, dict if part == "query" else str):
                kind = "a map" if part == "query" else "text"
                raise self.fault(f"{part} of {self.name} is {kind}, not {described}")

    def result(self, args: Any, view: StackView) -> Any:
        self._check(args)
        if ":" in args.get("scheme", ""):
            raise self.fault(f"scheme of {self.name} is a name such as http, without ':'")
        # quoting works byte by byte, so a URL has a smaller limit than text
        if sum(len(str(value)) for value in args.values()) > view.limits.url_chars:
            raise self.fault(
                f"the parts of {self.name} have more than {view.limits.url_chars} characters "
                "(url_chars)"
            )
        scheme, place, path = args.get("scheme", ""), _place(args), args.get("path", "")
        pieces = [f"{scheme}:"] if scheme else []
        if scheme or place:
            pieces += ["//", place]
            if path and not path.startswith("/"):
                path = f"/{path}"
        pieces.append(parse.quote(path))
        if query := args.get("query"):
            pieces += ["?", parse.urlencode(query, safe="/")]
        if fragment := args.get("fragment"):
            pieces += ["#", parse.quote(fragment)]
        return "".join(pieces)


def _place(args: dict[str, Any]) -> str:
    """``username:password@host:port``, as far as they are given."""
    place = ""
    username, password = args.get("username", ""), args.get("password", "")
    if username or password:
        secret = f":{parse.quote(password, safe='')}" if password else ""
        place = f"{parse.quote(username, safe='')}{secret}@"
    if host := args.get("host"):
        place += _host(host)
    return f"{place}:{args['port']}" if "port" in args else place


def _host(host: str) -> str:
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
        return f"[{parse.quote(host, safe=':')}]"
    return f"[{parse.quote(host, safe=':')}]" if ":" in host else parse.quote(host, safe="")
