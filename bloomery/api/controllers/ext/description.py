"""What this API is, for programs: /ext/v1/openapi.json."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from bloomery.api import routing
from bloomery.api.declare import Call, endpoint
from bloomery.api.routing import Rest


def _described(root: Callable[[], Rest]) -> dict[str, Any]:
    from bloomery.api import openapi  # it takes its time to load, and few ask

    return openapi.document(routing.endpoints(root()))


class Openapi(Rest):
    """The document, made when it is first asked for; ``root`` returns the controller of all."""

    def __init__(self, root: Callable[[], Rest]) -> None:
        super().__init__()
        self._document = functools.cache(functools.partial(_described, root))

    @endpoint(rule="public")
    def get(self, call: Call) -> dict[str, Any]:
        return self._document()
