"""From a method and a path to an endpoint: the first row of the table that fits.

An endpoint is a function that takes the call and what the braces of its path stand for, and
returns a document, None, or a Reply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

BRACES: Final = re.compile(r"\{(\w+)(?:=([\w|]+))?\}")
_ARN: Final = "arn"  # the one name that stands for several segments


@dataclass(frozen=True, slots=True)
class Route:
    """One row.  ``methods``: as in "GET,POST".  ``path``: below the project, as in "stacks/{arn}".

    ``{arn}`` stands for an ARN with all that follows it; every other name for one segment, which
    ``{part=events|files}`` limits to some words.  ``only_reads``: whatever its methods are, nothing
    goes on after the request.
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
    """Nothing has that path."""


class MethodRefused(Exception):
    """The path is there, the method is not; ``allowed`` are."""

    def __init__(self, allowed: Sequence[str]) -> None:
        super().__init__()
        self.allowed = tuple(allowed)


class Router:
    """A table of routes; a path with words comes before one with braces in its place."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self.routes = tuple(routes)

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        """Return the endpoint's row and what its braces stand for.

        Raises NoPath, and MethodRefused where another method would do.
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
    """Undo the one escape that the server leaves: of a slash inside a segment."""
    return re.sub("%2f", "/", segment, flags=re.IGNORECASE)


def _compiled(path: str) -> re.Pattern[str]:
    pattern, end = "", 0
    for braces in BRACES.finditer(path):
        name, words = braces.groups()
        anything = "(?i:arn):.+" if name == _ARN else "[^/]+"
        pattern += re.escape(path[end : braces.start()]) + f"(?P<{name}>{words or anything})"
        end = braces.end()
    return re.compile(pattern + re.escape(path[end:]))
