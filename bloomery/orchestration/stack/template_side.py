"""A template with its parameters: what a plan compares, and what secrets follow from.

``stack.Stack`` implements it, and tests have simpler ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, Protocol

from bloomery import errors
from bloomery.orchestration.resources.base import Resource
from bloomery.orchestration.template.entries import OutputDefinition, ResourceDefinition
from bloomery.orchestration.template.redaction import Redaction
from bloomery.orchestration.template.view import Plain, StackView


class TemplateSide(Protocol):
    @property
    def definitions(self) -> Mapping[str, ResourceDefinition]:
        """The resources of the template whose condition holds."""

    @property
    def outputs(self) -> Mapping[str, OutputDefinition]: ...

    @property
    def parameters(self) -> Collection[str]:
        """The names that ``view.parameter`` knows."""

    @property
    def hidden(self) -> Collection[str]:
        """The names of the hidden parameters."""

    @property
    def redaction(self) -> Redaction:
        """Masks the values of hidden parameters, here and in the parents."""

    @property
    def view(self) -> StackView:
        """Parameters, files, conditions and mappings; its resources are never read."""

    @property
    def context(self) -> object:
        """The inputs of ``view``; for equal contexts, equal trees have equal values."""

    @property
    def content(self) -> object:
        """Template and parameters, to compare with the content of the other side."""

    def kind(self, name: str) -> type[Resource]: ...

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

    def written_conditions(self) -> Mapping[str, Any]:
        """Return the conditions of the document, with functions not resolved."""

    def written(self, name: str, part: str) -> Any:
        """Return a part of a resource as the document has it, or None.

        Only this form has the condition of an ``if``, and the branch that is not taken.
        """


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
