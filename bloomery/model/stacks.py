"""Stacks and what belongs to them, as they are stored: plain values between rows and the engine.

The engine works on objects of its own.  It hands over its changes as a ``Turn`` of these values;
another engine continues from a ``Tree`` of them.  Actions and statuses are those of Heat's API.
The creator of a value chooses its id, so that a repeated creation gives the same.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final


class Action(enum.StrEnum):
    """Actions of Heat on a stack or a resource."""

    INIT = "INIT"
    CREATE = "CREATE"
    DELETE = "DELETE"
    UPDATE = "UPDATE"
    ROLLBACK = "ROLLBACK"
    SUSPEND = "SUSPEND"
    RESUME = "RESUME"
    ADOPT = "ADOPT"
    SNAPSHOT = "SNAPSHOT"
    CHECK = "CHECK"
    RESTORE = "RESTORE"  # of stacks only: their resources say UPDATE
    SIGNAL = "SIGNAL"  # of events only


class Status(enum.StrEnum):
    """The status of an action."""

    IN_PROGRESS = "IN_PROGRESS"
    COMPLETE = "COMPLETE"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A template as a stack has it; immutable: another one gets another uuid.

    ``environment``  merged, with the parameters that the user gave; those are sealed at rest
    ``files``        by name; equal maps are stored once
    ``has_secret``   a hidden value of a parent stack may be in the template itself, as in the
                     template of a group: sealed at rest, too
    ``text``         in which a user sent it; None: as a document, or the service made it
    """

    uuid: str
    template: Mapping[str, Any]
    environment: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    has_secret: bool = False
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """``root_uuid``: of the tree's root, which may be the stack itself.

    ``owner_uuid``, ``owner_resource``: the parent of a nested stack, and its resource there.

    ``traversal``  number of the last traversal; an engine that knows an older one cannot write
    ``graph``      vertices and edges of the running traversal; None at rest
    ``open``       the traversal, or an action of an earlier one, has not ended
    """

    uuid: str
    name: str
    project: str
    user: str | None = None
    root_uuid: str
    owner_uuid: str | None = None
    owner_resource: str | None = None
    depth: int = 0
    template_uuid: str
    previous_template_uuid: str | None = None
    credentials_uuid: str | None = None
    action: str
    status: str
    reason: str
    disable_rollback: bool = True
    timeout_mins: int | None = None
    deadline_at: datetime | None = None
    traversal: int = 1
    graph: Mapping[str, Any] | None = None
    open: bool = False
    tags: tuple[str, ...] = ()
    created_at: datetime
    updated_at: datetime | None = None
    deleted_at: datetime | None = None

    @property
    def state(self) -> str:
        return f"{self.action}_{self.status}"


UNBORN: Final = frozenset({Action.INIT, Action.DELETE})
STACK_TYPE: Final = "OS::Heat::Stack"  # in the events of a stack itself
MARKED_UNHEALTHY: Final = "marked_unhealthy"  # key of the data of a resource that a client marked


class Stage(enum.StrEnum):
    """How far the action of a resource is."""

    BEGIN = "begin"  # IN_PROGRESS is stored; the handler is to be called
    CHECK = "check"  # the handler was called; the check tells when the action is done
    BACKOFF = "rest"  # the attempt failed; the next one begins when the resource is due


@dataclass(slots=True, kw_only=True)
class ResourceAction:
    """One action on one resource, from IN_PROGRESS to its end.  All of it is JSON.

    ``traversal``, ``phase``  of the vertex that the action serves
    ``arguments``             what the handler needs beyond the stored properties
    """

    action: Action
    traversal: int
    phase: str = "make"
    stage: Stage = Stage.BEGIN
    token: Any = None
    arguments: dict[str, Any] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return the action as stored JSON: its own values, not copies."""
        return {
            "action": self.action,
            "traversal": self.traversal,
            "phase": self.phase,
            "stage": self.stage,
            "token": self.token,
            "arguments": self.arguments,
        }

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> ResourceAction:
        values = dict(document)
        action = values.pop("action", None) or values.pop("word")  # its key before revision 0011
        return cls(action=Action(action), stage=Stage(values.pop("stage")), **values)

    def copy(self) -> ResourceAction:
        return ResourceAction.of(copy_json(self.document()))


@dataclass(slots=True, kw_only=True)
class StoredResource:
    """A resource of a stack, or the old row of a replaced resource (``is_current`` is False).

    The engine, the kind of the resource and the API share this value.  Before it is stored it has
    only a name, a type and a UUID.  Lists read only the fields that they show.

    ``state_before``     ACTION_STATUS before the pending action: the plan decides by it
    ``traversal``        the last one that finished the resource
    ``template_uuid``    of its definition and kind
    ``properties_uuid``  of its resolved values, those of a pending action included
    ``due_at``           when the action is checked again; None: at once, or when it is woken
    ``has_secret``       a hidden value may be in ``metadata`` or ``pending_action``: sealed at rest
    ``data``             the kind's own memory, JSON; ``redacted``: its keys that are sealed at rest
    ``properties``       as the resource was last made or changed; they have rows of their own
    """

    uuid: str
    stack_uuid: str = ""
    root_uuid: str = ""
    name: str
    type: str
    action: Action = Action.INIT
    status: Status = Status.COMPLETE
    reason: str = ""
    state_before: str | None = None
    physical_id: str | None = None
    is_current: bool = True
    replaces_uuid: str | None = None
    traversal: int = 0
    template_uuid: str = ""
    properties_uuid: str | None = None
    policy: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    metadata_version: int = 0
    requires: tuple[str, ...] = ()
    pending_action: ResourceAction | None = None
    attempt: int = 0
    due_at: datetime | None = None
    waits_for: str | None = None
    data: dict[str, Any] = field(default_factory=dict, repr=False)
    redacted: set[str] = field(default_factory=set)
    has_secret: bool = False
    created_at: datetime | None = None
    updated_at: datetime | None = None
    properties: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def state(self) -> str:
        return f"{self.action}_{self.status}"

    @property
    def ready(self) -> bool:
        """Whether the resource has its id and attributes."""
        failed = self.action is Action.CREATE and self.status is Status.FAILED
        return self.action not in UNBORN and not failed

    @property
    def has_no_object(self) -> bool:
        """Whether the resource has no real object: never created, or deleted."""
        deleted = self.action is Action.DELETE and self.status is Status.COMPLETE
        return deleted or self.action is Action.INIT

    @property
    def previous_properties_uuid(self) -> str | None:
        """The properties before the pending action, if that changes them."""
        return None if self.pending_action is None else self.pending_action.arguments.get("before")

    def columns(self) -> dict[str, Any]:
        """Return the values of all fields, by name."""
        return {name: getattr(self, name) for name in RESOURCE_FIELDS}

    def copy(self) -> StoredResource:
        """Return the resource as it is now, with documents of its own."""
        return StoredResource(
            **self.columns() | {
                "metadata": copy_json(self.metadata), "data": copy_json(self.data),
                "redacted": set(self.redacted),
                "pending_action": self.pending_action and self.pending_action.copy(),
            }
        )  # fmt: skip

    def before_action(self) -> StoredResource:
        """Return the resource as a plan sees it: in its state before the pending action.

        A resource that is being created counts as CREATE_COMPLETE, with the stored properties.  One
        that is being deleted is lost.
        """
        if self.pending_action is None or self.state_before is None:
            return self
        if self.action is Action.DELETE and self.state_before != f"{Action.INIT}_{Status.COMPLETE}":
            return self
        action, status = map(str, self.state_before.split("_", 1))
        if self.pending_action.action is Action.CREATE and action == Action.INIT:
            action, status = Action.CREATE, Status.COMPLETE
        before = self.copy()
        before.action, before.status = Action(action), Status(status)
        return before

    def with_properties(self, properties: Mapping[str, Any]) -> StoredResource:
        """Return the resource as if it had been made with other properties."""
        changed = self.copy()
        changed.properties = properties
        return changed


RESOURCE_FIELDS: Final = tuple(each.name for each in dataclasses.fields(StoredResource))


def copy_json(value: Any) -> Any:
    """Return a copy of what can be stored as JSON; ``copy.deepcopy`` takes twice as long."""
    if isinstance(value, dict):
        return {key: copy_json(each) for key, each in value.items()}
    if isinstance(value, list):
        return [copy_json(each) if isinstance(each, dict | list) else each for each in value]
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Properties:
    """Resolved properties; immutable, shared by a resource and the events of that action.

    ``has_secret``: a value of a hidden parameter may have reached them; they are sealed at rest.
    """

    uuid: str
    root_uuid: str
    data: Mapping[str, Any]
    has_secret: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A snapshot of a stack; an engine writes its end, and leaves the rest at its defaults.

    ``action``  of the stack before
    ``data``    adopt data, like that of an abandoned stack; sealed at rest
    """

    uuid: str
    stack_uuid: str
    name: str | None = None
    project: str = ""
    action: str = ""
    status: str
    reason: str
    data: Mapping[str, Any] = field(default_factory=dict)
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event of a stack or its resource; ``reason`` is masked already."""

    uuid: str
    stack_uuid: str
    root_uuid: str
    created_at: datetime
    action: str
    status: str
    name: str
    type: str
    physical_id: str | None = None
    reason: str = ""
    properties_uuid: str | None = None
    stack_name: str | None = None  # of a resource's event, as all that follow; none is a column
    project: str | None = None
    impact: str | None = None  # of an update that ended, on a machine: "service" or "rebuild"
    loses_data: bool = False  # whether the action that ended has cost a machine its data

    @classmethod
    def of_stack(cls, stack: Stack, **values: Any) -> Event:
        """Return an event of a stack itself, with its state and reason unless others are given."""
        own = {
            "stack_uuid": stack.uuid,
            "root_uuid": stack.root_uuid,
            "action": stack.action,
            "status": stack.status,
            "name": stack.name,
            "type": STACK_TYPE,
            "physical_id": stack.uuid,
            "reason": stack.reason,
        }
        return cls(**own | values)

    @property
    def state(self) -> str:
        return f"{self.action}_{self.status}"


REVISION_COUNTS: Final = (
    "created", "updated", "serviced", "rebuilt", "deleted", "failed", "data_lost",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """An order that gave a root stack a template, and how it ended.

    ``number``       1, 2, 3, ... of a stack; old ones are removed, and numbers are not used again
    ``action``, ``status``, ``reason``  of the stack when the order ended, ROLLBACK included
    ``ended_at``     None: its traversal, or an action of it, still runs
    ``counts``       ended actions on the resources of the tree, by effect (REVISION_COUNTS)
    ``has_template`` False: a release that knows no revisions has removed it
    """

    stack_uuid: str
    number: int
    template_uuid: str
    action: str
    status: str
    reason: str
    user: str | None = None
    request_id: str | None = None
    created_at: datetime
    ended_at: datetime | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    has_template: bool = True

    @property
    def state(self) -> str:
        return f"{self.action}_{self.status}"


class OrderKind(enum.StrEnum):
    """Requests to an engine; the order is committed with the state that clients see."""

    CREATE = "create"
    ADOPT = "adopt"  # payload: data
    UPDATE = "update"  # payload: converge
    DELETE = "delete"  # payload: abandon
    SUSPEND = "suspend"
    RESUME = "resume"
    CHECK = "check"
    SNAPSHOT = "snapshot"  # payload: snapshot
    RESTORE = "restore"  # payload: snapshot
    CANCEL = "cancel"  # payload: rollback
    SIGNAL = "signal"  # payload: resource (uuid), details
    UNSET_HOOK = "unset_hook"  # payload: resource (uuid), hook
    MARK_UNHEALTHY = "mark_unhealthy"  # payload: resource (uuid), unhealthy, reason, by_hand


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """``id``: given by the database, in the order of acceptance.  ``request``: the caller."""

    id: int = 0
    root_uuid: str
    stack_uuid: str
    kind: OrderKind
    payload: Mapping[str, Any] = field(default_factory=dict)
    request: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A root stack and its nested stacks, with all that an engine needs to continue them."""

    stacks: Sequence[Stack]
    resources: Sequence[StoredResource]
    templates: Mapping[str, Template]
    properties: Mapping[str, Properties]
    orders: Sequence[Order] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """The changes of one turn of a tree, written in one transaction.

    ``stacks`` and ``resources`` are new or changed; resources are the engine's own objects, which
    do not change until the turn is written.  ``removed``: UUIDs of resources that are gone.
    ``dropped``: UUIDs of templates to which nothing refers any more.  ``orders``: IDs of applied
    orders.  ``is_idle``: nothing is left to do, and the lock may be released.
    """

    stacks: Sequence[Stack] = ()
    resources: Sequence[StoredResource] = ()
    removed: Sequence[str] = ()
    templates: Sequence[Template] = ()
    dropped: Sequence[str] = ()
    properties: Sequence[Properties] = ()
    events: Sequence[Event] = ()
    snapshots: Sequence[Snapshot] = ()
    orders: Sequence[int] = ()
    is_idle: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing has changed: such a turn need not be written."""
        return self.is_idle is False and not any(
            getattr(self, each.name) for each in dataclasses.fields(self)
        )
