"""Explain an allocation: /ext/v1/allocations/<ident>/why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from bloomery.api.controllers.ext.nodes import Parts
from bloomery.api.declare import Call, endpoint
from bloomery.api.routing import Rest
from bloomery.operations import allocation_why


class Why(Rest):
    @endpoint(rule="baremetal:allocation:get")
    def get(self, call: Call, allocation: str) -> dict[str, Any]:
        """Explain why the allocation has no node yet, or failed."""
        return allocation_why.explain(call.context, allocation)


class Allocations(Parts):
    subresources: ClassVar[Mapping[str, Rest]] = {"why": Why()}
