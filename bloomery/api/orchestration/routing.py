"""Find the endpoint of a method and a path: the first matching row of the table.

An endpoint is a function that takes the call and the values of the path's braces, and returns a
document, None, or a Reply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

BRACES: Final = re.compile(r"\{(\w+)(?:=([\w|]+))?\}")
_ARN: Final = "arn"  # the only braces that match several segments


@dataclass(frozen=True, slots=True)
class Route:
    """One row.  ``methods``: as in "GET,POST".  ``path``: below the project, as in "stacks/{arn}".

    ``{arn}`` matches an ARN with all that follows it; every other name one segment, which
    ``{part=events|files}`` limits to some words.  ``only_reads``: the endpoint changes nothing,
    whatever its methods are.
    """

    methods: str
    path: str
    endpoint: Callable[..., Any]
    status: int = 200
    only_reads: bool = False
    pattern: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pattern", _compiled(self.path))


class NoPath(Exception):
    """No row matches the path."""


class MethodRefused(Exception):
    """The path exists without this method; ``allowed`` lists its methods."""

    def __init__(self, allowed: Sequence[str]) -> None:
        super().__init__()
        self.allowed = tuple(allowed)


class Router:
    """A table of routes; words precede braces in a segment."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self.routes = tuple(routes)

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        """Return the row and the values of its braces.

        Raises NoPath, and MethodRefused where another method matches.
        """
        path = path.strip("/")
        others: list[str] = []
        for route in self.routes:
            match = route.pattern.fullmatch(path)
            if match is None:
                continue
            if method in route.methods.split(","):
                return route, {name: _slashes(text) for name, text in match.groupdict().items()}
            others += route.methods.split(",")
        if not others:
            raise NoPath
        raise MethodRefused(list(dict.fromkeys(others)))

    def allowed(self, path: str) -> tuple[str, ...]:
        """Return the methods of a path.  Raises NoPath."""
        try:
            self.find("", path)
        except MethodRefused as exc:
            return exc.allowed
        raise AssertionError


def _slashes(segment: str) -> str:
    """Undo the one escape that the server keeps: a slash inside a segment."""
    return re.sub("%2f", "/", segment, flags=re.IGNORECASE)


def _compiled(path: str) -> re.Pattern[str]:
    pattern, end = "", 0
    for braces in BRACES.finditer(path):
        name, words = braces.groups()
        anything = "(?i:arn):.+" if name == _ARN else "[^/]+"
        pattern += re.escape(path[end : braces.start()]) + f"(?P<{name}>{words or anything})"
        end = braces.end()
    return re.compile(pattern + re.escape(path[end:]))
