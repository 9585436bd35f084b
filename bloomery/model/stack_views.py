"""Requests and answers about stacks: plain values between the API and operations.

The values hold no URL, link or encoded time; secrets are masked already.  Documents (templates,
environments, metadata) hold only JSON values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

from bloomery.model.conductor import Engine
from bloomery.model.stacks import Event, Revision, Stack, StoredResource

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StackIdentity:
    """The identity of a stack: the name must be right, even if the UUID alone would do.

    The stack belongs to ``project``; a caller of another project learns nothing.
    """

    project: str
    name: str
    uuid: str

    @classmethod
    def of(cls, stack: Stack) -> Self:
        return cls(project=stack.project, name=stack.name, uuid=stack.uuid)


@dataclass(frozen=True, slots=True, kw_only=True)
class StackArguments:
    """The body of create, update, adopt and of their previews, its texts parsed already.

    ``template``           parsed (``template.parse``), fetched if a URL was given; None: absent
    ``template_text``      from which it was parsed; None: it came as a document
    ``environment``        parsed; None: absent.  Not read where ``environment_files`` is not empty
    ``parameters``         over those of the environment
    ``timeout_mins``       None: not said.  0: the default
    ``disable_rollback``   None: not said
    ``tags``               None: not said
    ``adopt_data``         parsed; its own template is used
    ``existing``           of an update: what is not said stays as it is (PATCH)
    ``clear_parameters``   with ``existing``: stored values that are dropped first
    ``converge``           of an update: compare with what is really there
    ``plan_basis``         of an update: refuse it unless the plan's ``basis`` still holds
    ``resource_orders``    of an update: by path of a resource, ``action`` (replace or rebuild),
                           ``reason`` and ``quarantine``
    ``override_checks``    of an update: get past the operator's checks on plans
    ``revision``           of an update: the one whose template, environment and files are taken
    """

    template: Mapping[str, Any] | None = None
    template_text: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] | None = None
    environment_files: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    files_container: str | None = None
    timeout_mins: int | None = None
    disable_rollback: bool | None = None
    tags: Sequence[str] | None = None
    adopt_data: Mapping[str, Any] | None = None
    existing: bool = False
    clear_parameters: Sequence[str] = ()
    converge: bool = False
    plan_basis: Mapping[str, Any] | None = None
    resource_orders: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    override_checks: bool = False
    revision: int | None = None


# Filters of stack lists, as the API spells them, and their fields of ``model.stacks.Stack``.  No
# stack has a ``stack_user_project``: this filter matches nothing.
STACK_FILTERS: Final[Mapping[str, str]] = {
    "id": "uuid",
    "name": "name",
    "stack_name": "name",
    "action": "action",
    "stack_action": "action",
    "status": "status",
    "stack_status": "status",
    "stack_status_reason": "reason",
    "disable_rollback": "disable_rollback",
    "timeout_mins": "timeout_mins",
    "stack_owner": "user",
    "username": "user",
    "tenant": "project",
    "tenant_id": "project",
    "parent": "owner_uuid",
    "owner_id": "owner_uuid",
    "stack_user_project_id": "stack_user_project",
}
STACK_SORT_KEYS: Final[Mapping[str, str]] = {
    "stack_name": "name",
    "stack_status": "status",
    "creation_time": "created_at",
    "updated_time": "updated_at",
}
EVENT_SORT_KEYS: Final[Mapping[str, str]] = {"event_time": "created_at", "resource_type": "type"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StackQuery:
    """A query for a list of stacks: filters, order, marker and limit.

    ``filters``    column (a value of STACK_FILTERS) -> values, of which one must fit; a status may
                   be ``CREATE_FAILED``, which is split; values are text as in a URL
    ``tags``       all of them; ``tags_any``: one of them; ``not_tags``: not all; ``not_tags_any``
    ``sort_keys``  columns (values of STACK_SORT_KEYS); others are passed over
    ``descending`` None: as Heat does, by creation time descending, by a sort key ascending
    ``limit``      None: no limit; 0: an empty page.  A marker that is not there is passed over
    ``everybody``  of all projects (``global_tenant``), which has a policy of its own
    """

    filters: Mapping[str, Sequence[str]] = field(default_factory=dict)
    tags: Sequence[str] = ()
    tags_any: Sequence[str] = ()
    not_tags: Sequence[str] = ()
    not_tags_any: Sequence[str] = ()
    show_deleted: bool = False
    show_nested: bool = False
    show_hidden: bool = False
    everybody: bool = False
    sort_keys: Sequence[str] = ()
    descending: bool | None = None
    marker: str | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """``error``: why the value could not be computed; None where it could."""

    key: str
    description: str
    value: Any = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StackDetails:
    """A stack by itself.  ``outputs`` is None if they were not requested or are not available."""

    stack: Stack
    description: str
    parameters: Mapping[str, str]
    outputs: Sequence[Output] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionDetails:
    """A revision; ``is_current``: the stack has its template.

    ``documents``: template, environment and files, if requested.
    """

    revision: Revision
    is_current: bool
    documents: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceQuery:
    """``filters``: type (a part of it), status, name, action, uuid, physical_id -> values.

    ``nested_depth``: levels below the stack that are listed, too.
    """

    filters: Mapping[str, Sequence[str]] = field(default_factory=dict)
    nested_depth: int = 0
    with_detail: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceDetails:
    """A resource with its neighbours, and those of its values that the caller may see.

    ``stack``       its own; ``nested``: the one it owns; ``parent``: the name of ``stack``'s owner
    ``attributes``  None, as ``description`` is, in lists without detail
    ``properties``  in previews of new stacks only
    """

    resource: StoredResource
    stack: StackIdentity
    required_by: Sequence[str] = ()
    nested: StackIdentity | None = None
    parent: str | None = None
    description: str | None = None
    attributes: Mapping[str, Any] | None = None
    properties: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventQuery:
    """Events of one stack, or of a resource of it.

    ``filters``       action, status, name, type -> values
    ``nested_depth``  None: not given, and no event names the root; else levels below the stack
    ``sort_keys``     columns (values of EVENT_SORT_KEYS); others are passed over
    ``descending``    None: newest first
    """

    resource: str | None = None
    filters: Mapping[str, Sequence[str]] = field(default_factory=dict)
    nested_depth: int | None = None
    sort_keys: Sequence[str] = ()
    descending: bool | None = None
    marker: str | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventDetails:
    """One event.  ``properties`` is None in lists; ``root``: in lists with ``nested_depth``."""

    event: Event
    stack: StackIdentity
    root: StackIdentity | None = None
    properties: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewedStack:
    """A previewed stack.  In ``resources``, a list of its resources stands for a child stack.

    ``plan``: the document of its creation (``foresight.document``).
    """

    identity: StackIdentity
    description: str
    parameters: Mapping[str, str]
    disable_rollback: bool
    timeout_mins: int | None
    user: str | None
    tags: Sequence[str]
    resources: Sequence[Any]  # ResourceDetails, or a sequence of such, and so on
    outputs: Sequence[Output] = ()  # none has a value yet
    plan: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatePreview:
    """The changes of an update by resource; ``plan``: the document of ``foresight.document``."""

    unchanged: Sequence[ResourceDetails] = ()
    updated: Sequence[ResourceDetails] = ()
    replaced: Sequence[ResourceDetails] = ()
    added: Sequence[ResourceDetails] = ()
    deleted: Sequence[ResourceDetails] = ()
    plan: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineDetails:
    """An engine process.  ``up``: its row was written at most two intervals ago."""

    engine: Engine
    up: bool
