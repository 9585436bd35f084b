"""One side of a comparison: the interface of the old and the new template to a plan.

``stack.Stack`` implements it, and tests have simpler sides.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, Protocol

from bloomery import errors
from bloomery.orchestration.resources.base import Resource
from bloomery.orchestration.stack.secrecy import Side
from bloomery.orchestration.template.definitions import OutputDefinition, ResourceDefinition
from bloomery.orchestration.template.redaction import Redaction
from bloomery.orchestration.template.view import Plain, StackView


class TemplateSide(Side, Protocol):
    @property
    def outputs(self) -> Mapping[str, OutputDefinition]: ...

    @property
    def context(self) -> object:
        """The inputs of ``view``; for equal contexts, equal trees have equal values."""

    @property
    def content(self) -> object:
        """Template and parameters, to compare with the content of the other side."""

    def required(self, name: str) -> Iterable[str]:
        """Return the resources that ``name`` requires, implicit ones too; names may repeat."""

    def properties(
        self, name: str, view: StackView, without: Collection[str] = ()
    ) -> Mapping[str, Any]:
        """Return the validated properties with defaults, except those of ``without``.

        Errors of ``view`` are passed on unchanged.
        """

    def restricted(self, name: str) -> Collection[str]:
        """Return the restricted actions of the resource: ``update``, ``replace``."""


class Nothing:
    """The template of a stack that does not exist yet, or no longer."""

    definitions: Mapping[str, ResourceDefinition] = {}
    outputs: Mapping[str, OutputDefinition] = {}
    view: StackView = Plain()
    context: object = None
    content: object = None
    parameters: Collection[str] = ()
    hidden: Collection[str] = ()
    redaction = Redaction()

    def written_conditions(self) -> Mapping[str, Any]:
        return {}

    def written(self, name: str, part: str) -> Any:
        return None

    def kind(self, name: str) -> type[Resource]:
        raise errors.InvalidTemplateReference(reason=f"no resource is called {name!r}")

    def required(self, name: str) -> Iterable[str]:
        return ()

    def properties(
        self, name: str, view: StackView, without: Collection[str] = ()
    ) -> Mapping[str, Any]:
        return {}

    def restricted(self, name: str) -> Collection[str]:
        return ()


NOTHING: Final = Nothing()
