"""One side of a comparison: what a plan asks of the old and of the new template.

``stack.Stack`` has it all; a plan names here what it needs of it, so that a test can be a side too.
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
        """What ``view`` answers from: where two are equal, equal trees have equal values."""

    @property
    def content(self) -> object:
        """All that template and parameters say: equal to another's where nothing differs."""

    def required(self, name: str) -> Iterable[str]:
        """The resources that must come before ``name``, implicit ones too; names may repeat."""

    def properties(
        self, name: str, view: StackView, without: Collection[str] = ()
    ) -> Mapping[str, Any]:
        """The checked values of all properties but those of ``without``, defaults filled in.

        Whatever ``view`` raises leaves as it is.
        """

    def restricted(self, name: str) -> Collection[str]:
        """What the environment forbids for this resource: ``update``, ``replace``."""


class Nothing:
    """The template of a stack that is not there yet, or no more."""

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
