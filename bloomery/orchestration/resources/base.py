"""The base class of all resource plug-ins: the handle_* contract of Heat.

Class variables declare the properties and attributes of a kind.  ``handle_<action>`` begins an
action and returns at once.  The engine then calls ``check_<action>_complete(token)`` until it
returns ``DONE``.  The token is JSON and is stored, because after a crash another engine continues
the action from the row alone.

The engine writes ``action``, ``status`` and the stored values.  A kind writes ``physical_id``
(through ``resource_id_set``), ``data``, ``redacted`` and ``metadata``, and nothing else.

    class Kettle(base.Resource):
        properties_schema = {"litres": Schema(Type.NUMBER, "How much.", required=True)}

        def handle_create(self) -> Any:
            self.resource_id_set(self.physical_resource_name())
            return {"until": self.context.utc() + 60}

        def check_create_complete(self, token: Any) -> Outcome:
            left_s = token["until"] - self.context.utc()
            return Again(after_s=left_s, reason="the water is cold") if left_s > 0 else DONE
"""

from __future__ import annotations

import base64
import math
import re
import uuid as uuids
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from bloomery import errors
from bloomery.orchestration.limits import LIMITS, Limits
from bloomery.orchestration.properties import presence, translation
from bloomery.orchestration.properties.schema import (
    SUPPORTED,
    Attribute,
    OnChange,
    Plans,
    Schema,
    Support,
    names_for,
    secret_names,
)
from bloomery.orchestration.resources.children import Children, OtherStacks
from bloomery.orchestration.resources.effects import NO_EFFECT, Effect
from bloomery.orchestration.resources.machines import FindNode, Machines
from bloomery.orchestration.resources.software import SoftwareStore
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.template.entries import ResourceDefinition
from bloomery.orchestration.template.view import Walked
from bloomery.outcome import Again, Outcome, WaitForCall

__all__ = ["Action", "Status"]  # defined in model.stacks; plug-ins import them from here

LONGEST_LOOK_S: Final = 60.0

# The result of a check.  Plug-ins that were written for Heat return True, or something false.
Progress: TypeAlias = Outcome | bool | None


class UpdateReplace(Exception):
    """The update needs a replacement; handlers and checks raise it, as Heat's ``UpdateReplace``."""


def wait_for(uuid: str, timeout_s: float = 0) -> WaitForCall:
    """Wait for a change of an object: a child stack, a resource that is signalled, a node."""
    return WaitForCall(reason="", timeout_s=timeout_s, then="same", source=uuid)


def look_again(left_s: float, reason: str) -> Again:
    """Repeat a check after whole seconds, at most a minute, because clocks differ a little."""
    return Again(after_s=float(math.ceil(min(left_s, LONGEST_LOOK_S))), reason=reason)


class NoActionRequired(Exception):
    """``handle_signal`` did nothing; the engine writes no event."""


class ResourceInError(Exception):
    """The physical resource is in error: the engine may retry its creation."""

    def __init__(self, status: str = "ERROR", reason: str = "Unknown") -> None:
        super().__init__(f'Went to status {status} due to "{reason}"')


R = TypeVar("R", bound="Resource")


class Siblings(Protocol):
    """The other resources of the same stack."""

    def find(self, reference_id: Any) -> Resource | None:
        """Return the resource with this reference ID; changes of its record are stored."""

    def list(self, kind: type[R], physical_id: str) -> list[R]:
        """Return the resources of a kind that have this physical resource ID."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceContext:
    """The stack and the services that a resource can use; the engine builds it."""

    stack_name: str
    stack_id: str
    utc: Callable[[], float]  # seconds since the epoch: tokens and data outlast a process
    random: Callable[[], float]  # in [0, 1); the system's source, because secrets use it
    timeout_s: float = 3600  # of the stack's action
    project_id: str = ""
    endpoint: str = ""  # of the orchestration API, for addresses of signals
    children: Children | None = None  # None: composite kinds cannot be created here
    siblings: Siblings | None = None  # None: the stack has no other resource yet
    software: SoftwareStore | None = None  # None: software cannot be deployed here
    machines: Machines | None = None  # None: there is no bare-metal service
    stacks: OtherStacks | None = None  # None: stacks of other trees cannot be read here
    webhooks: Webhooks | None = None  # None: nobody is called
    engines: int = 1  # live engines: a concurrent chain creates as many members at once
    limits: Limits = LIMITS


class Answer(NamedTuple):
    """What came of the call of a webhook; an empty ``fault``: it has accepted the call."""

    fault: str = ""
    is_drained: bool = False


class Webhooks(Protocol):
    def post(
        self, call: str, webhook_id: str, webhook: Mapping[str, Any], body: Mapping[str, Any]
    ) -> Answer | None:
        """Begin a call, or return its answer once; None while it lasts.

        ``call``: its name in this process.  ``webhook``: its ``url``, and its ``secret``, which
        signs the ``body``.
        """


class ResourceState(Protocol):
    """The part of a ``StoredResource`` that a kind can use.

    A kind writes ``physical_id``, ``metadata``, ``data`` and ``redacted``, and nothing else.
    """

    physical_id: str | None
    metadata: Mapping[str, Any]
    data: dict[str, Any]  # the kind's own memory, JSON
    redacted: set[str]  # keys of data that hold secrets

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def uuid(self) -> str: ...
    @property
    def action(self) -> Action: ...
    @property
    def status(self) -> Status: ...
    @property
    def reason(self) -> str: ...
    @property
    def has_no_object(self) -> bool: ...

    @property
    def properties(self) -> Mapping[str, Any]:
        """Return the resolved values of the last create or update."""

    def with_properties(self, properties: Mapping[str, Any]) -> ResourceState:
        """Return the state as if the resource had been made with other properties."""


NAME_TAIL: Final = re.compile(r"\*$")


def ending(
    ends: Collection[tuple[str, ...]], value: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths into ``value`` that have one of ``ends``; each begins with ``path``."""
    if not ends or not isinstance(value, dict | list):
        return
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        inner_path = (*path, key)
        if any(inner_path[-len(end) :] == end for end in ends):
            yield inner_path
        else:
            yield from ending(ends, inner, inner_path)


class Resource:
    """A resource of a stack.  ``self.properties``: checked values of the current action."""

    properties_schema: ClassVar[Mapping[str, Schema]] = {}
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {}
    update_policy_schema: ClassVar[Mapping[str, Schema]] = {}
    support: ClassVar[Support] = SUPPORTED
    physical_resource_name_limit: ClassVar[int] = 255
    always_replace_on_check_failed: ClassVar[bool] = True
    dynamic_attributes: ClassVar[bool] = False  # get_attr accepts any name
    translation_rules: ClassVar[Sequence[translation.Rule]] = ()  # old spellings of properties
    presence_rules: ClassVar[Sequence[presence.Rule]] = ()  # such as: exactly one of these
    on_change: ClassVar[OnChange | None] = None  # default of ``Schema.on_change``
    effect_properties: ClassVar[frozenset[str]] = frozenset()  # __init_subclass__ sets these four
    machine_properties: ClassVar[frozenset[str]] = frozenset()
    node_properties: ClassVar[tuple[str, ...]] = ()
    secret_properties: ClassVar[frozenset[str]] = frozenset()
    secret_paths: ClassVar[frozenset[tuple[str, ...]]] = frozenset()  # ends of paths of secrets
    default_timeout_mins: ClassVar[int | None] = None  # of its stack, if the request sets none
    ignores_properties: ClassVar[bool] = False  # accepts any properties, unchecked
    always_updated: ClassVar[bool] = False  # handle_update is called even if nothing has changed
    preemptible: ClassVar[bool] = False  # a later traversal may call ``handle_preempt``
    replaces_marked: ClassVar[bool] = False  # where clients mark it unhealthy, as Heat's taint
    repairs_failed: ClassVar[bool] = False  # as always_updated, after an action that has failed

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        properties = cls.properties_schema
        cls.secret_properties = secret_names(properties)
        cls.effect_properties = frozenset(names_for(properties, Plans.VERBS))
        cls.machine_properties = frozenset(names_for(properties, Plans.MACHINE))
        cls.node_properties = names_for(properties, Plans.NODE)

    def __init__(
        self,
        record: ResourceState,
        properties: Mapping[str, Any],
        context: ResourceContext,
        *,
        update_policy: Mapping[str, Any] | None = None,
    ) -> None:
        self.record = record
        self.properties = properties
        self.context = context
        self.update_policy = update_policy or {}  # checked values of the current action

    @classmethod
    def secrets_in(cls, properties: Mapping[str, Any]) -> Iterator[tuple[str | int, ...]]:
        """Yield the paths of secrets: whole properties, and parts of other properties."""
        for key, value in properties.items():
            if value and key in cls.secret_properties:
                yield (key,)
            else:
                yield from ending(cls.secret_paths, value, (key,))

    def prepare_create(self) -> None:
        """Write values into ``data`` that are stored before handle_create runs, such as a token."""

    def enter_action(self) -> None:
        """Drop the position of an earlier action; the engine calls it before each handler."""

    # Handlers are optional. handle_<action> returns a token for check_<action>_complete, which is
    # called until it returns DONE, and for handle_<action>_cancel, which is called once when the
    # engine cancels the wait. handle_signal takes the posted body and returns text for the event.

    def handle_update(
        self, definition: Any, tmpl_diff: Mapping[str, Any], prop_diff: Mapping[str, Any]
    ) -> Any:
        """Update in place.  This default raises UpdateReplace, except with ``OnChange.LATER``."""
        if prop_diff and self.on_change is not OnChange.LATER:
            raise UpdateReplace
        return None

    @classmethod
    def is_held(cls, data: Mapping[str, Any]) -> bool:
        """Tell whether an action with this ``data``, if in progress, waits for a user's signal.

        The engine preempts it when its order is cancelled or another order comes.
        """
        return False

    def handle_preempt(self) -> None:
        """End an action that a later traversal made useless; called before each check."""

    def handle_adopt(self, data: Mapping[str, Any]) -> Any:
        """Adopt the physical resource, data and metadata of an abandoned stack's resource."""
        if not data.get("resource_id"):
            raise errors.NotFound(
                reason=f"cannot adopt {self.record.name}: its resource_id is missing"
            )
        self.resource_id_set(str(data["resource_id"]))
        self.record.data = dict(data.get("resource_data") or {})
        self.record.metadata = dict(data.get("metadata") or {})
        return None

    def handle_restore(
        self, definition: ResourceDefinition, data: Mapping[str, Any]
    ) -> ResourceDefinition:
        """Return the definition that restores the resource from a snapshot."""
        return definition

    @classmethod
    def check_signal(cls, record: ResourceState, details: Mapping[str, Any] | None) -> None:
        """Raise SignalRefused where ``handle_signal`` could do nothing in the current state."""

    # -------------------------------------------------------------------------- live state

    def get_live_state(self, properties: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return properties of the physical resource.  Raises EntityNotFound if it is gone."""
        data = self.get_live_resource_data()
        return {} if data is None else self.parse_live_resource_data(properties, data)

    def get_live_resource_data(self) -> Any:
        """Return the physical resource from its API, or None if the kind cannot compare it."""
        return None

    def parse_live_resource_data(
        self, properties: Mapping[str, Any], data: Any
    ) -> Mapping[str, Any]:
        """Return the properties in ``data``, the live data; ``properties``: the stored ones."""
        return {}

    # --------------------------------------------------------- validation, attributes, planning

    def check_properties(self, pending: presence.Pending = presence.NOTHING) -> None:
        """Check presence and content of properties beyond the schema, as far as they are known.

        Raises StackValidationFailed, its path within properties.
        """
        properties = self.properties
        presence.check(self.presence_rules, properties, pending)
        if not pending:
            self.validate()
            return
        self.properties = presence.Known(properties, pending)
        try:
            self.validate()
        except presence.NotKnownYet:  # the action checks again, with all values
            pass
        finally:
            self.properties = properties

    def validate(self) -> None:
        """Check content beyond the schema and ``presence_rules``; see ``check_properties``.

        Raises StackValidationFailed, its path within properties.
        """

    def get_reference_id(self) -> Any:
        return self.record.physical_id or self.record.name

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        return None

    def show(self) -> Any:
        """Return the physical resource from its API, for the attribute ``show``, or None."""
        return None

    def all_attributes(self) -> Mapping[str, Any]:
        """Return the value of a get_attr that names no attribute."""
        values = {name: self.resolve_attribute(name) for name in self.listed_attributes()}
        return {n: v.value if isinstance(v, Walked) else v for n, v in values.items()}

    @classmethod
    def listed_attributes(cls) -> Iterable[str]:
        return cls.attributes_schema

    @classmethod
    def offers_attribute(cls, name: str) -> bool:
        return cls.dynamic_attributes or name in cls.attributes_schema

    @classmethod
    def implicit_dependencies(
        cls, definition: ResourceDefinition, siblings: Mapping[str, ResourceDefinition]
    ) -> Iterable[str]:
        """Return names of ``siblings`` that this resource depends on beyond the template."""
        return ()

    @classmethod
    def needs_replace(
        cls,
        before: Mapping[str, Any],
        after: Mapping[str, Any],
        prop_diff: Mapping[str, Any],
    ) -> bool:
        """Tell whether this change needs a replacement, beyond what the schema says."""
        return False

    @classmethod
    def names_same_object(
        cls, record: ResourceState, name: str, value: Any, find_node: FindNode
    ) -> bool:
        """Tell whether a new value of a property names the same object: no change."""
        return False

    @classmethod
    def deletes_first(cls, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
        """Tell whether handle_prepare_for_replace releases the old resource first.

        Otherwise the old resource is deleted after the new one and its dependents are complete.
        """
        return False

    def data_for_replacement(self, *, returns: bool) -> dict[str, Any]:
        """Return ``data`` for the replacement of a resource that was released first.

        ``returns``: a rollback creates the replacement, which is as before the update.
        """
        return {}

    @classmethod
    def effect_of_create(cls, properties: Mapping[str, Any]) -> Effect:
        """Return the effect of a create on a machine.

        ``properties``: ``effect_properties`` and ``machine_properties``; unknown values are
        placeholders.
        """
        return NO_EFFECT

    @classmethod
    def effect_of_update(
        cls, before: Mapping[str, Any], after: Mapping[str, Any], names: Collection[str]
    ) -> Effect:
        """Return the effect of an update in place of the properties ``names`` on a machine."""
        return NO_EFFECT

    @classmethod
    def effect_of_repair(cls, properties: Mapping[str, Any]) -> Effect:
        """Return the effect of an update on the machine of a failed resource (repairs_failed)."""
        return NO_EFFECT

    def reason_to_replace(self) -> str:
        """Return why the live state forces an update to replace; it only reads."""
        return ""

    def current_effect(
        self, effect: Effect, properties: Mapping[str, Any] | None, names: Collection[str]
    ) -> Effect:
        """Return the ``effect`` of an update, corrected by the live state; it only reads.

        ``properties``: the new ones, None where some are unknown; ``names``: those that change.
        """
        return effect

    @classmethod
    def reason_to_refuse_at(cls, state: str, verbs: Collection[str]) -> str:
        """Return why a node in a provision state would refuse the verbs; empty: it accepts."""
        return ""

    @classmethod
    def reason_to_refuse_now(cls, node: Mapping[str, Any], verbs: Collection[str]) -> str:
        """Return why a node as it is would refuse the verbs of a create; empty: it accepts."""
        return ""

    @classmethod
    def reason_to_refuse_new(cls, properties: Mapping[str, Any], find_node: FindNode) -> str:
        """Return why a create would be refused now; ``properties``: as of effect_of_create."""
        return ""

    @classmethod
    def state_of_node(cls, properties: Mapping[str, Any]) -> str | None:
        """Return the provision state of the node once the resource is complete."""
        return None

    @classmethod
    def effect_of_delete(cls, properties: Mapping[str, Any]) -> Effect:
        """Return the effect of a delete on a machine."""
        return NO_EFFECT

    @classmethod
    def preempted_by(
        cls, before: Mapping[str, Any], after: Mapping[str, Any], names: Collection[str]
    ) -> bool:
        """Tell whether a change of properties makes the running action useless."""
        return True

    @classmethod
    def needs_replace_failed(cls) -> bool:
        """Tell whether the next update replaces a resource whose last action failed."""
        return True

    # ---------------------------------------------------------------------------------- helpers

    def resource_id_set(self, physical_id: str | None) -> None:
        self.record.physical_id = physical_id

    def derived_id(self, role: str = "") -> str:
        """Return a UUID for ``role``; it is the same in each call, also after a crash."""
        return str(uuids.uuid5(uuids.UUID(self.record.uuid), role))

    def physical_resource_name(self) -> str:
        """Return ``<stack>-<resource>-<12 characters>``, shortened to the kind's limit."""
        stack = NAME_TAIL.sub("", self.context.stack_name)
        whole = f"{stack}-{self.record.name}-{short_id(self.record.uuid)}"
        limit = self.physical_resource_name_limit
        if len(whole) <= limit:
            return whole
        return f"{whole[:2]}-{whole[-(limit - 3) :]}"


def short_id(uuid: str) -> str:
    """Return twelve lower-case base32 characters of a UUID, as physical names have them."""
    return base64.b32encode(uuids.UUID(uuid).bytes[:8])[:12].decode().lower()
