"""The values of stored stacks and their resources, for the engine and for the API.

The engine reads rows that it works on; the API reads rows of the database.  A composite kind sees
its child stack in the same way (``children.Child``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bloomery import errors
from bloomery.model import stacks as model
from bloomery.model.stacks import StoredResource, copy_json
from bloomery.orchestration.engine.definitions import arn_of
from bloomery.orchestration.resources import base
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.stack import Stack
from bloomery.orchestration.template.dialect import DeletionPolicy
from bloomery.orchestration.template.functions import base as functions
from bloomery.orchestration.template.view import StackView


class ReadableResource:
    """A stored resource as other resources and outputs read it (a ``ResourceView``)."""

    __slots__ = ()

    @property
    def stored(self) -> StoredResource:
        raise NotImplementedError

    definitions: Stack  # of the template that last created or updated the resource

    @property
    def kind(self) -> type[base.Resource]:
        raise NotImplementedError

    def resource(self) -> base.Resource:
        """Return the resource as it was last created or updated."""
        raise NotImplementedError

    @property
    def ready(self) -> bool:
        return self.stored.ready

    def reference_id(self) -> Any:
        return self.resource().get_reference_id() if self.ready else self.stored.name

    def has_attribute(self, name: str) -> bool:
        return name == "show" or self.kind.offers_attribute(name)

    def attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        if not self.ready:
            return None
        resource = self.resource()
        return resource.show() if name == "show" else resource.resolve_attribute(name, path)

    def attributes(self) -> Mapping[str, Any]:
        return self.resource().all_attributes() if self.ready else {}


class RowFacade:
    """The parent's resource of a nested stack, as the stack sees it (``view.Facade``).

    ``find``: returns the resource; None: the parent has no such resource now.
    """

    __slots__ = ("_find",)

    def __init__(self, find: Callable[[], ReadableResource | None]) -> None:
        self._find = find

    def metadata(self) -> Any:
        row = self._find()
        return {} if row is None else row.stored.metadata

    def update_policy(self) -> Any:
        row = self._find()
        return {} if row is None else row.stored.policy

    def deletion_policy(self) -> str:
        row = self._find()
        definition = None if row is None else row.definitions.definitions.get(row.stored.name)
        return str(DeletionPolicy.DELETE if definition is None else definition.deletion_policy)


class ReadableStack:
    """A stored stack as its parent and the API read it (``children.Child``)."""

    row: model.Stack
    definition: Stack

    @property
    def id(self) -> str:
        return self.row.uuid

    @property
    def name(self) -> str:
        return self.row.name

    @property
    def arn(self) -> str:
        return arn_of(self.name, self.id, self.row.project)

    @property
    def action(self) -> Action:
        return Action(self.row.action)

    @property
    def status(self) -> Status:
        return Status(self.row.status)

    @property
    def reason(self) -> str:
        return self.row.reason

    @property
    def document(self) -> Mapping[str, Any]:
        return self.definition.definition.template.document

    def resources(self) -> Mapping[str, ReadableResource]:
        """Return the resources of the current template by name."""
        raise NotImplementedError

    def statuses(self) -> Mapping[str, Status]:
        return {name: each.stored.status for name, each in self.resources().items()}

    def view(self) -> StackView:
        """Return the stack as functions see it."""
        return self.definition.definition.view(self.resources())

    def output(self, name: str) -> Any:
        """Return the value of an output, or raise its fault.  A disabled output is None."""
        output = self.definition.outputs[name]
        return functions.resolve(output.value, self.view()) if output.enabled else None

    def outputs(self) -> Mapping[str, Any]:
        """Return every output by name, null where it cannot be resolved."""
        values = {}
        for name in self.definition.outputs:
            try:
                values[name] = self.output(name)
            except errors.Failure:
                values[name] = None
        return values

    def track_changes(self, resource: Any) -> None:
        """Note that the kind of another resource may change ``resource``."""


class StackSiblings:
    """The lookup of other resources of the same stack (``base.Siblings``)."""

    __slots__ = ("_names", "_stack")

    def __init__(self, stack: ReadableStack) -> None:
        self._stack = stack
        self._names: dict[str, str] = {}  # by reference ID, from the last search

    def find(self, reference_id: Any) -> base.Resource | None:
        """Return the resource with a reference ID; search again if the last search lacks it."""
        row = self._named(reference_id)
        if row is None:  # of equal IDs the first one counts
            self._names = {}
            for name, each in self._stack.resources().items():
                if each.ready:
                    self._names.setdefault(str(each.reference_id()), name)
            row = self._named(reference_id)
        if row is None:
            return None
        self._stack.track_changes(row)
        return row.resource()

    def _named(self, reference_id: Any) -> ReadableResource | None:
        row = self._stack.resources().get(self._names.get(str(reference_id), ""))
        is_it = row is not None and row.ready and row.reference_id() == reference_id
        return row if is_it else None

    def list(self, kind: type[base.R], physical_id: str) -> list[base.R]:
        resources, rows = [], self._stack.resources()
        for name in self._stack.definition.names_by_kind.get(kind, ()):
            row = rows.get(name)
            if row is None or row.stored.physical_id != physical_id:
                continue
            if row.kind is kind and row.ready:
                self._stack.track_changes(row)
                resources.append(row.resource())
        return resources  # type: ignore[return-value]  # mypy does not know their kind


def stack_adopt_data(
    stack: model.Stack, template: model.Template, resources: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the document from which another stack can be adopted.

    ``resources``: its entries of resources, by name.
    """
    return {
        "name": stack.name,
        "id": stack.uuid,
        "action": str(stack.action),
        "status": str(stack.status),
        "template": dict(template.template),
        "environment": dict(template.environment),
        "files": dict(template.files),
        "resources": resources,
        "project_id": stack.project,
        "stack_user_project_id": None,
        "tags": list(stack.tags),
    }


def resource_adopt_data(resource: StoredResource, nested: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry of a resource; ``nested``: the document of the stack that it owns."""
    return {
        **nested,
        "name": resource.name,
        "type": resource.type,
        "resource_id": resource.physical_id,
        "action": str(resource.action),
        "status": str(resource.status),
        "metadata": copy_json(resource.metadata),
        "resource_data": copy_json(resource.data),
    }
