"""OS::Heat::ResourceChain: resources of several types with the same properties, in a chain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from bloomery.orchestration.properties.schema import Schema, Type
from bloomery.orchestration.resources import composite, groups


class ResourceChain(composite.Membered):
    """A chain of members called 0, 1, 2 and so on; each depends on the previous member."""

    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "resources": Schema(
            Type.LIST, "The type of each member, in order.", required=True, update_allowed=True,
            schema=Schema(Type.STRING),
        ),
        "concurrent": Schema(
            Type.BOOLEAN, "Whether to create members concurrently, at most one per engine.",
            default=False,
        ),
        "resource_properties": Schema(Type.MAP, "The properties of every member."),
    }  # fmt: skip

    def validate(self) -> None:
        self.check_count(len(self._types()), what="a chain")

    def child_document(self) -> Mapping[str, Any]:
        at_once = self.context.engines if self.properties["concurrent"] else 1
        return groups.chain_document(
            self._types(), self.properties["resource_properties"], at_once=max(at_once, 1)
        )

    def _types(self) -> list[str]:
        return self.properties["resources"] or []
