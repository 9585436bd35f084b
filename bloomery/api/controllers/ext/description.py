"""What this API is, for programs: /ext/v1/openapi.json."""

from __future__ import annotations

import functools
from typing import Any

from bloomery.api import openapi, routing
from bloomery.api.declare import Call, endpoint
from bloomery.api.routing import Rest


class Openapi(Rest):
    @endpoint(rule="public")
    def get(self, call: Call) -> dict[str, Any]:
        return _document()


@functools.cache
def _document() -> dict[str, Any]:
    from bloomery.api.controllers import root  # it mounts us, so that it comes later

    return openapi.document(routing.endpoints(root.Root()))
