"""The OpenAPI document: /ext/v1/openapi.json."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from bloomery.api import routing
from bloomery.api.declare import Call, endpoint
from bloomery.api.routing import Rest


def _described(root: Callable[[], Rest]) -> dict[str, Any]:
    from bloomery.api import openapi  # the import is slow, and few requests need it

    return openapi.document(routing.endpoints(root()))


class Openapi(Rest):
    """The OpenAPI document, built on the first request; ``root`` returns the root controller."""

    def __init__(self, root: Callable[[], Rest]) -> None:
        super().__init__()
        self._document = functools.cache(functools.partial(_described, root))

    @endpoint(rule="public")
    def get(self, call: Call) -> dict[str, Any]:
        return self._document()
