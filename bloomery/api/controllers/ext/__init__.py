"""/ext/v1: what the Ironic API does not have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from webob import exc as statuses

from bloomery.api.controllers.ext import description, nodes
from bloomery.api.declare import Call
from bloomery.api.routing import Rest


class V1(Rest):
    """Only what is below it answers."""

    children: ClassVar[Mapping[str, Rest]] = {
        "nodes": nodes.Nodes(),
        "openapi.json": description.Openapi(),
    }

    def walk(self, call: Call, segments: list[str]) -> Any:
        if not segments or segments[0] not in self.children:
            raise statuses.HTTPNotFound
        return super().walk(call, segments)


class Ext(V1):
    """Our own versions."""

    children: ClassVar[Mapping[str, Rest]] = {"v1": V1()}
