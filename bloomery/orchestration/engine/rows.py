"""One resource of a stack while an engine works on it: its record, its act, what others see of it.

The stored row is authoritative; this is made from it and becomes it again (``value``).
"""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from bloomery.model import stacks as model
from bloomery.orchestration.plan.builder import gone
from bloomery.orchestration.plan.plans import MAKE, Phase
from bloomery.orchestration.resources import base
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.stack import Stack
from bloomery.orchestration.template.definitions import ResourceDefinition

UNBORN: Final = frozenset({Action.INIT, Action.DELETE})


class Stage(enum.StrEnum):
    """How far an act is."""

    BEGIN = "begin"  # IN_PROGRESS is stored, its handler is to be called
    CHECK = "check"  # its handler has been called, and its check says when it is done
    REST = "rest"  # it failed, and is tried again when its row is due


@dataclass(slots=True, kw_only=True)
class Act:
    """One action on one resource, from IN_PROGRESS to its end.  All of it is JSON.

    ``traversal``, ``phase``  of the vertex that it serves, if the stack still walks that traversal
    ``arguments``             what the handler needs beyond the stored properties
    """

    word: Action
    traversal: int
    phase: Phase = MAKE
    stage: Stage = Stage.BEGIN
    token: Any = None
    arguments: dict[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        return {
            "word": self.word.value,
            "traversal": self.traversal,
            "phase": self.phase,
            "stage": self.stage.value,
            "token": copy_json(self.token),
            "arguments": copy_json(self.arguments),
        }

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Act:
        values = copy_json(dict(document))
        values["word"], values["stage"] = Action(values["word"]), Stage(values["stage"])
        return cls(**values)


@dataclass(slots=True, kw_only=True, eq=False)
class Row:
    """A ``ResourceView``.

    ``definitions``       the stack of the template that the row was last made or changed by
    ``next_properties``   of the act that is open; the record has them when it has ended well
    ``due_s``             on the clock: when its act is looked at again; None: not entered
    """

    record: base.Record
    context: base.ResourceContext
    definitions: Stack
    template_uuid: str
    stack_uuid: str
    root_uuid: str
    created_at: datetime
    updated_at: datetime | None = None
    stands: bool = True
    replaces: str | None = None
    traversal: int = 0
    properties_uuid: str | None = None
    next_properties: Mapping[str, Any] | None = None
    policy: Mapping[str, Any] = field(default_factory=dict)
    metadata_version: int = 0
    requires: tuple[str, ...] = ()
    act: Act | None = None
    attempt: int = 0
    due_at: datetime | None = None
    state_before: str | None = None
    waits_for: str | None = None
    hidden: bool = False  # a hidden value may have reached its metadata
    due_s: float | None = None
    queue: str | None = None  # in which it waits; who leaves it wakes the next
    busy: int = 0  # how often what it needs was busy, one time after the other
    _resource: base.Resource | None = None

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def uuid(self) -> str:
        return self.record.uuid

    @property
    def definition(self) -> ResourceDefinition:
        return self.definitions.definitions[self.name]

    @property
    def kind(self) -> type[base.Resource]:
        return self.definitions.kind(self.name)

    @property
    def gone(self) -> bool:
        """Whether nothing real stands behind it."""
        return gone(self.record)

    @property
    def has_values(self) -> bool:
        """Whether its kind was ever asked to do anything."""
        return self.properties_uuid is not None

    def resource_with(self, properties: Mapping[str, Any]) -> base.Resource:
        """The resource as its kind sees it, with the values of an action."""
        return self.kind(self.record, properties, self.context, update_policy=self.policy)

    def acting(self) -> base.Resource:
        """The resource with the values of the act that is open."""
        if self.next_properties is not None:
            return self.resource_with(self.next_properties)
        return self.resource()

    def resource(self) -> base.Resource:
        """The resource as it was last made."""
        if self._resource is None:
            self._resource = self.resource_with(self.record.properties)
        return self._resource

    def turn_to(self, definitions: Stack, template_uuid: str) -> None:
        """Read it from now on with the definition and the kind of another template."""
        self.definitions, self.template_uuid = definitions, template_uuid
        self._resource = None

    def keep(self, properties: Mapping[str, Any]) -> None:
        """Let the record have the values of an action, for the next comparison."""
        self.record.properties = properties
        self.next_properties = None
        self._resource = None

    def ruled(self) -> base.Record:
        """The record by which a plan rules: as it was before the act that is open.

        What is being created counts as if it were there, with the values that are stored.
        """
        if self.act is None or self.state_before is None:
            return self.record
        action, status = self.state_before.split("_", 1)
        if self.act.word is Action.CREATE and action == Action.INIT:
            action, status = Action.CREATE, Status.COMPLETE
        return _with_state(self.record, Action(action), Status(status))

    def memory(self) -> str:
        """What a kind may have changed, to be compared; kinds change maps in place."""
        record = self.record
        parts = (record.physical_id, record.metadata, record.data, sorted(record.redacted))
        return json.dumps(parts, default=str)

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
        if not self.ready:
            return None
        resource = self.resource()
        return resource.show() if name == "show" else resource.resolve_attribute(name, path)

    def attributes(self) -> Mapping[str, Any]:
        return self.resource().all_attributes() if self.ready else {}

    # ------------------------------------------------------------------------------- as stored

    def value(self) -> model.Resource:
        record = self.record
        return model.Resource(
            uuid=record.uuid,
            stack_uuid=self.stack_uuid,
            root_uuid=self.root_uuid,
            name=record.name,
            type=record.type,
            action=record.action.value,
            status=record.status.value,
            reason=record.reason,
            state_before=self.state_before,
            physical_id=record.physical_id,
            stands=self.stands,
            replaces=self.replaces,
            traversal=self.traversal,
            template_uuid=self.template_uuid,
            properties_uuid=self.properties_uuid,
            previous_properties_uuid=None if self.act is None else self.act.arguments.get("before"),
            policy=self.policy,
            metadata=copy_json(record.metadata),
            metadata_version=self.metadata_version,
            requires=self.requires,
            act=None if self.act is None else self.act.document(),
            attempt=self.attempt,
            due_at=self.due_at,
            waits_for=self.waits_for,
            hidden=self.hidden,
            data=copy_json(record.data),
            redacted=frozenset(record.redacted),
            created_at=self.created_at,
            updated_at=self.updated_at,
        )


def record_of(value: model.Resource, properties: Mapping[str, Any]) -> base.Record:
    return base.Record(
        name=value.name,
        type=value.type,
        uuid=value.uuid,
        action=Action(value.action),
        status=Status(value.status),
        reason=value.reason,
        physical_id=value.physical_id,
        properties=properties,
        metadata=copy_json(value.metadata),
        data=copy_json(dict(value.data)),
        redacted=set(value.redacted),
    )


def row_of(
    value: model.Resource,
    record: base.Record,
    context: base.ResourceContext,
    definitions: Stack,
) -> Row:
    """Make a row from what is stored, without the act that may be open."""
    return Row(
        record=record,
        context=context,
        definitions=definitions,
        template_uuid=value.template_uuid,
        stack_uuid=value.stack_uuid,
        root_uuid=value.root_uuid,
        created_at=value.created_at,
        updated_at=value.updated_at,
        stands=value.stands,
        replaces=value.replaces,
        traversal=value.traversal,
        properties_uuid=value.properties_uuid,
        policy=value.policy,
        metadata_version=value.metadata_version,
        requires=tuple(value.requires),
        attempt=value.attempt,
        due_at=value.due_at,
        state_before=value.state_before,
        waits_for=value.waits_for,
        hidden=value.hidden,
    )


def _with_state(record: base.Record, action: Action, status: Status) -> base.Record:
    return base.Record(
        name=record.name,
        type=record.type,
        uuid=record.uuid,
        action=action,
        status=status,
        reason=record.reason,
        physical_id=record.physical_id,
        properties=record.properties,
        metadata=record.metadata,
        data=record.data,
        redacted=record.redacted,
    )


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


def copy_json(value: Any) -> Any:
    """Return a copy of what can be stored as JSON; ``copy.deepcopy`` takes twice as long."""
    if isinstance(value, dict):
        return {key: copy_json(each) for key, each in value.items()}
    if isinstance(value, list):
        return [copy_json(each) if isinstance(each, dict | list) else each for each in value]
    return value
