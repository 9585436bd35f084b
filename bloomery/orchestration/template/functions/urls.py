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
    says = "A URL made of scheme, username, password, host, port, path, query and fragment."

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
            if not isinstance(value, base.Function):
                self._check_part(part, value)

    def _check_part(self, part: str, value: Any) -> None:
        expected: type = {"query": dict, "port": object}.get(part, str)
        if not isinstance(value, expected):
            kind = "a map" if expected is dict else "text"
            raise self.fault(f"{part} of {self.name} is {kind}, not {shapes.described(value)}")
        if part == "port":
            self._check_port(value)

    def _check_port(self, value: Any) -> None:
        try:
            port = int(value)
        except (TypeError, ValueError, OverflowError):
            raise self.fault(
                f"port of {self.name} is a number, not {shapes.described(value)}"
            ) from None
        if port not in _PORTS:
            raise self.fault(
                f"port of {self.name} is from 1 to 65535, not {shapes.described(value)}"
            )

    def result(self, args: Any, view: StackView) -> Any:
        self._check(args)
        if ":" in args.get("scheme", ""):
            raise self.fault(f"scheme of {self.name} is a name such as http, without ':'")
        self._bound(args, view)
        return "".join(self._pieces(args))

    def _bound(self, args: dict[str, Any], view: StackView) -> None:
        """Refuse long parts: quoting works byte by byte, so a URL has a smaller limit than text."""
        length = sum(len(str(value)) for value in args.values())
        if length > view.limits.url_chars:
            raise self.fault(
                f"the parts of {self.name} have more than {view.limits.url_chars} characters "
                "(url_chars)"
            )

    def _pieces(self, args: dict[str, Any]) -> list[str]:
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
        return pieces


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
