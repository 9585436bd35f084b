"""What a template says of one resource and of one output, each value still a tree.

A definition is built once and never changed.  ``properties`` and its neighbours are trees (see
functions/base.py): resolve them against a view, compare definitions of two templates with ``==``.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bloomery.orchestration.template.functions import base
from bloomery.orchestration.template.view import StackView


class DeletionPolicy(enum.StrEnum):
    DELETE = "Delete"
    RETAIN = "Retain"
    SNAPSHOT = "Snapshot"


NO_DESCRIPTION: Final = "No description given"  # Heat's text for an output without one


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceDefinition:
    """One entry of ``resources``; absent parts are empty."""

    name: str
    type: str
    properties: Any = field(default_factory=dict)  # a tree whose value is a map
    metadata: Any = field(default_factory=dict)  # a tree whose value is a map
    depends_on: tuple[str, ...] = ()
    update_policy: Any = field(default_factory=dict)  # a tree whose value is a map
    deletion_policy: DeletionPolicy = DeletionPolicy.DELETE
    external_id: Any = None  # a tree whose value is text; set: the real thing is not ours
    description: str = ""

    def references(self, view: StackView) -> Iterator[base.Reference]:
        """Yield what properties and metadata ask of other resources; policies do not count."""
        yield from base.references(self.properties, view)
        yield from base.references(self.metadata, view)

    def required(self, view: StackView) -> Iterator[str]:
        """Yield the name of each resource that must come first; names may repeat."""
        if self.external_id is not None:
            return
        yield from self.depends_on
        for reference in self.references(view):
            yield reference.resource


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputDefinition:
    """One entry of ``outputs``; one that is not enabled stays listed and is never looked at."""

    name: str
    value: Any = None  # a tree
    description: str = NO_DESCRIPTION
    enabled: bool = True


Resources = Mapping[str, ResourceDefinition]
Outputs = Mapping[str, OutputDefinition]
