"""What this API is, for programs: /ext/v1/openapi.json."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from bloomery.api import openapi, routing
from bloomery.api.declare import Call, endpoint
from bloomery.api.routing import Rest


class Openapi(Rest):
    """The document, made when it is first asked for; ``root`` returns the controller of all."""

    def __init__(self, root: Callable[[], Rest]) -> None:
        super().__init__()
        self._document = functools.cache(lambda: openapi.document(routing.endpoints(root())))

    @endpoint(rule="public")
    def get(self, call: Call) -> dict[str, Any]:
        return self._document()
