"""Trees of a template read against a view of a stack, for rooms that know no functions.

values.Properties(schemas, definition.properties, Reader(view))
"""

from __future__ import annotations

from typing import Any

from bloomery.orchestration.template.functions import base
from bloomery.orchestration.template.view import StackView


class Reader:
    """What ``properties.values`` asks of a tree."""

    __slots__ = ("view",)

    def __init__(self, view: StackView) -> None:
        self.view = view

    def resolve(self, tree: Any) -> Any:
        return base.resolve(tree, self.view)

    def settled(self, tree: Any) -> bool:
        """Say whether all resources that ``tree`` asks are ready."""
        resource = self.view.resource
        return all(
            resource(reference.resource).ready for reference in base.references(tree, self.view)
        )
