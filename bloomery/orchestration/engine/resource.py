"""A stored resource while an engine works on it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bloomery.model.stacks import Action, ResourceAction, Stage, Status, StoredResource
from bloomery.orchestration.engine.stack_values import ReadableResource
from bloomery.orchestration.resources import base
from bloomery.orchestration.stack import Stack
from bloomery.orchestration.template.entries import ResourceDefinition

__all__ = ["EngineResource", "ResourceAction", "Stage"]


@dataclass(slots=True, kw_only=True, eq=False)
class EngineResource(StoredResource, ReadableResource):
    """A resource of a stack while an engine works on it.

    ``definitions``       the stack of the template that last created or updated the resource
    ``next_properties``   of the pending action; they become ``properties`` when it succeeds
    ``due_s``             clock time of the action's next check; None: not scheduled
    """

    context: base.ResourceContext
    definitions: Stack
    next_properties: Mapping[str, Any] | None = None
    due_s: float | None = None
    queue: str | None = None  # in which it waits; a row that leaves the queue wakes the next
    busy: int = 0  # consecutive checks that gave a reason to wait
    _kind: type[base.Resource] | None = None
    _resource: base.Resource | None = None

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    @property
    def stored(self) -> EngineResource:
        return self

    @property
    def definition(self) -> ResourceDefinition:
        return self.definitions.definitions[self.name]

    @property
    def kind(self) -> type[base.Resource]:
        if self._kind is None:
            self._kind = self.definitions.kind(self.name)
        return self._kind

    @property
    def has_values(self) -> bool:
        """Whether a creation or an update has resolved its properties."""
        return self.properties_uuid is not None

    def resource_with(self, properties: Mapping[str, Any]) -> base.Resource:
        """Return the resource for its kind, with ``properties``."""
        return self.kind(self, properties, self.context, update_policy=self.policy)

    def acting(self) -> base.Resource:
        """Return the resource with the properties of the pending action."""
        if self.next_properties is not None:
            return self.resource_with(self.next_properties)
        return self.resource()

    def resource(self) -> base.Resource:
        """Return the resource as it was last created or updated."""
        if self._resource is None:
            self._resource = self.resource_with(self.properties)
        return self._resource

    def set_template(self, definitions: Stack, template_uuid: str) -> None:
        """Switch the resource to the definition and the kind in another template."""
        self.definitions, self.template_uuid = definitions, template_uuid
        self._kind = self._resource = None

    def keep(self, properties: Mapping[str, Any]) -> None:
        """Make the properties of an action those of the resource."""
        self.properties = properties
        self.next_properties = None
        self._resource = None

    def before_action(self) -> StoredResource:
        """Return the resource as a plan sees it, with the properties of a pending update.

        A later update ends an update that is held, such as by a drain: it counts as failed.
        """
        before = StoredResource.before_action(self)
        if self.next_properties is None:
            return before
        if self.kind.is_held(self.data):
            before.action, before.status = Action.UPDATE, Status.FAILED
            return before
        return before.with_properties(self.next_properties)

    def memory(self) -> str:
        """Return the fields that a kind may change in place, as text to compare."""
        parts = (self.physical_id, self.metadata, self.data, sorted(self.redacted))
        return json.dumps(parts, default=str)
