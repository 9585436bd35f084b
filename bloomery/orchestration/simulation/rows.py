"""One resource of a simulated stack: its record, and what others may see of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bloomery.orchestration.resources import base
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.template.definitions import ResourceDefinition

UNBORN: Final = frozenset({Action.INIT, Action.DELETE})


class Row:
    """A ``ResourceView``.  ``definition`` and ``kind``: those of its last create or update."""

    __slots__ = (
        "_resource",
        "context",
        "definition",
        "has_values",
        "kind",
        "policy",
        "record",
    )

    def __init__(
        self,
        record: base.Record,
        definition: ResourceDefinition,
        kind: type[base.Resource],
        context: base.ResourceContext,
    ) -> None:
        self.record = record
        self.definition = definition
        self.kind = kind
        self.context = context
        self.policy: Mapping[str, Any] = {}  # its update policy, as last read
        self.has_values = False  # it never had: its kind was not asked to do anything yet
        self._resource: base.Resource | None = None

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def gone(self) -> bool:
        """Whether nothing real stands behind it."""
        record = self.record
        deleted = record.action is Action.DELETE and record.status is Status.COMPLETE
        return record.action is Action.INIT or deleted

    def resource_with(
        self, properties: Mapping[str, Any], policy: Mapping[str, Any] | None = None
    ) -> base.Resource:
        """The resource as its kind sees it, with the values of an action."""
        return self.kind(self.record, properties, self.context, update_policy=policy)

    def keep(self, properties: Mapping[str, Any]) -> None:
        """Store the values of an action, for whoever asks and for the next comparison."""
        self.record.properties = properties
        self.has_values = True
        self._resource = None

    def resource(self) -> base.Resource:
        """The resource as it was last made."""
        if self._resource is None:
            self._resource = self.resource_with(self.record.properties)
        return self._resource

    # ------------------------------------------------------------------------- what others see

    @property
    def ready(self) -> bool:
        record = self.record
        failed = record.action is Action.CREATE and record.status is Status.FAILED
        return record.action not in UNBORN and not failed

    def reference_id(self) -> Any:
        return self.resource().get_reference_id() if self.ready else self.name

    def has_attribute(self, name: str) -> bool:
        return name == "show" or self.kind.offers_attribute(name)

    def attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        if not self.ready or name == "show":
            return None
        return self.resource().resolve_attribute(name, path)

    def attributes(self) -> Mapping[str, Any]:
        return self.resource().all_attributes() if self.ready else {}


class RowFacade:
    """A row as the facade of the stack below it (``view.Facade``)."""

    __slots__ = ("_row",)

    def __init__(self, row: Row) -> None:
        self._row = row

    def metadata(self) -> Any:
        return self._row.record.metadata

    def deletion_policy(self) -> str:
        return str(self._row.definition.deletion_policy)

    def update_policy(self) -> Any:
        return self._row.policy
