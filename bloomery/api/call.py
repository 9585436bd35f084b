"""One request as the middleware has understood it; controllers are handed it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from bloomery.model.request import Request
from bloomery.operations.context import Context, Services

KEY: Final = "bloomery.call"  # where it travels in the WSGI environment


@dataclass(slots=True, kw_only=True)
class Call:
    """``query`` values are texts, or lists of them where an argument came twice.

    ``suffix`` is a ``.json`` that was cut from the path; ``idents`` fills up while routing.
    """

    services: Services
    request: Request
    method: str
    url: str
    version: int
    query: dict[str, Any]
    body: bytes
    content_type: str
    suffix: str = ""
    idents: list[str] = field(default_factory=list)

    @property
    def context(self) -> Context:
        """Return what operations take: no word of the API."""
        return Context(services=self.services, request=self.request)

    def at(self, path: str) -> str:
        """Return the address of something of ours, as this caller reaches it."""
        return f"{self.url}/v1/{path}"
