"""What every kind of resource offers: the handle_* contract of Heat.

A kind says in class settings what it takes and tells, and in ``handle_<action>`` what is done.  A
handler returns at once; what takes time is asked again and again through
``check_<action>_complete(token)`` until it returns ``DONE``.  The token is JSON, because it is
stored: an engine that dies is continued by another, which has the row and nothing else.

Who walks the stack owns ``action``, ``status`` and the stored values and writes them; a kind writes
``physical_id`` (through ``resource_id_set``), ``data`` and ``metadata``, and nothing else.

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
from typing import Any, ClassVar, Final, Protocol, TypeAlias, TypeVar

from bloomery import errors
from bloomery.orchestration.limits import LIMITS, Limits
from bloomery.orchestration.properties import translation
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
from bloomery.orchestration.resources.children import Children
from bloomery.orchestration.resources.effects import NO_EFFECT, Effect
from bloomery.orchestration.resources.machines import FindNode, Machines
from bloomery.orchestration.resources.software import SoftwareStore
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.template.definitions import ResourceDefinition
from bloomery.orchestration.template.view import Walked
from bloomery.outcome import Again, Outcome, WaitForCall

__all__ = ["Action", "Status"]  # they stand in states, and are known by this name

LONGEST_LOOK_S: Final = 60.0

# What a check returns.  Plug-ins that were written for Heat return True, or something false.
Progress: TypeAlias = Outcome | bool | None


class UpdateReplace(Exception):
    """The update needs a new resource; a handler or a check raises it from any depth, as Heat's."""


def wait_for(uuid: str, timeout_s: float = 0) -> WaitForCall:
    """Wait for a change of an object: a stack below, a resource that is signalled, a node."""
    return WaitForCall(reason="", timeout_s=timeout_s, then="same", source=uuid)


def look_again(left_s: float, reason: str) -> Again:
    """Ask a check again in whole seconds, because two clocks are never quite the same."""
    return Again(after_s=float(math.ceil(min(left_s, LONGEST_LOOK_S))), reason=reason)


class NoActionRequired(Exception):
    """A signal's answer: nothing was done, and no event shall tell of it."""


class ResourceInError(Exception):
    """The real thing says that it is in error: its creation may be tried again."""

    def __init__(self, status: str = "ERROR", reason: str = "Unknown") -> None:
        super().__init__(f'Went to status {status} due to "{reason}"')


R = TypeVar("R", bound="Resource")


class Siblings(Protocol):
    """The other resources of the same stack."""

    def find(self, reference_id: Any) -> Resource | None:
        """The one that get_resource calls so; what is changed on its record is stored as ours."""

    def list(self, kind: type[R], physical_id: str) -> list[R]:
        """All of a kind that stand for one real thing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceContext:
    """What a resource may know of where it lives; built by who walks the stack."""

    stack_name: str
    stack_id: str
    utc: Callable[[], float]  # seconds since the epoch: tokens and data outlast a process
    random: Callable[[], float]  # in [0, 1); secrets are drawn from it: the system's source
    timeout_s: float = 3600  # of the stack's action
    project_id: str = ""
    endpoint: str = ""  # of the orchestration API, for addresses of signals
    children: Children | None = None  # None: composite kinds cannot be made here
    siblings: Siblings | None = None  # None: nobody else is there yet
    software: SoftwareStore | None = None  # None: nothing can be deployed here
    machines: Machines | None = None  # None: no bare-metal service is here
    engines: int = 1  # that live: as many members of a concurrent chain are made at once
    limits: Limits = LIMITS


class ResourceState(Protocol):
    """What a kind may know of its resource: a ``StoredResource``, without what the engine keeps.

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
    def properties(self) -> Mapping[str, Any]:
        """Resolved values, as the resource was last made or changed."""

    def with_properties(self, properties: Mapping[str, Any]) -> ResourceState:
        """Return the state as if the resource had been made with other properties."""


NAME_TAIL: Final = re.compile(r"\*$")


def ending(
    ends: Collection[tuple[str, ...]], value: Any, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[str | int, ...]]:
    """Yield the paths in a value, which is at ``path`` itself, that have one of these ends."""
    if not ends or not isinstance(value, dict | list):
        return
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        below = (*path, key)
        if any(below[-len(end) :] == end for end in ends):
            yield below
        else:
            yield from ending(ends, inner, below)


class Resource:
    """One resource of one stack.  ``self.properties``: checked values of the present action."""

    properties_schema: ClassVar[Mapping[str, Schema]] = {}
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {}
    update_policy_schema: ClassVar[Mapping[str, Schema]] = {}
    support: ClassVar[Support] = SUPPORTED
    physical_resource_name_limit: ClassVar[int] = 255
    always_replace_on_check_failed: ClassVar[bool] = True
    dynamic_attributes: ClassVar[bool] = False  # any name may be asked for
    translation_rules: ClassVar[Sequence[translation.Rule]] = ()  # old spellings of properties
    on_change: ClassVar[OnChange | None] = None  # of properties that do not say it themselves
    effect_properties: ClassVar[frozenset[str]] = frozenset()  # these four: by columns, see below
    machine_properties: ClassVar[frozenset[str]] = frozenset()
    node_properties: ClassVar[tuple[str, ...]] = ()
    secret_properties: ClassVar[frozenset[str]] = frozenset()
    secret_paths: ClassVar[frozenset[tuple[str, ...]]] = frozenset()  # ends of paths into others
    default_timeout_mins: ClassVar[int | None] = None  # of a stack that has one, and says nothing
    ignores_properties: ClassVar[bool] = False  # takes whatever it is given, unchecked
    always_updated: ClassVar[bool] = False  # its update is called even if nothing has changed
    preemptible: ClassVar[bool] = False  # an action may be useless, and end sooner then
    repairs_failed: ClassVar[bool] = False  # so it is, if its last action failed

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
        self.update_policy = update_policy or {}  # checked values of the present action

    @classmethod
    def secrets_in(cls, properties: Mapping[str, Any]) -> Iterator[tuple[str | int, ...]]:
        """Yield the paths of what is secret: whole properties, and parts of others."""
        for key, value in properties.items():
            if value and key in cls.secret_properties:
                yield (key,)
            else:
                yield from ending(cls.secret_paths, value, (key,))

    def prepare_create(self) -> None:
        """Put into ``data`` what must be stored before handle_create runs, such as a token."""

    def enter_action(self) -> None:
        """Forget where an earlier action stopped: it is called right before each handler."""

    # Handlers are optional. Those of an action are called handle_<action> and return a token, which
    # check_<action>_complete is handed until it says DONE, or handle_<action>_cancel once when the
    # wait is given up. handle_signal is given what was posted; its text goes into the event.

    def handle_update(
        self, definition: Any, tmpl_diff: Mapping[str, Any], prop_diff: Mapping[str, Any]
    ) -> Any:
        """Change the real thing; here only what later actions read can change in place."""
        if prop_diff and self.on_change is not OnChange.LATER:
            raise UpdateReplace
        return None

    def handle_preempt(self) -> None:
        """End an action whose outcome is useless (``preemptible``); called before each check."""

    def handle_adopt(self, data: Mapping[str, Any]) -> Any:
        """Take over what an abandoned stack left of a resource of this name."""
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
        """Raise SignalRefused for what ``handle_signal`` could do nothing with, as things stand."""

    # --------------------------------------------------------------------- how it really is

    def get_live_state(self, properties: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the properties that the real thing tells.  Raises EntityNotFound: it is gone."""
        data = self.get_live_resource_data()
        return {} if data is None else self.parse_live_resource_data(properties, data)

    def get_live_resource_data(self) -> Any:
        """Return the real thing as its API has it; None: the kind cannot compare it."""
        return None

    def parse_live_resource_data(
        self, properties: Mapping[str, Any], data: Any
    ) -> Mapping[str, Any]:
        """Return the properties in ``data`` of the real thing; ``properties``: as stored."""
        return {}

    # ------------------------------------------------------------------------ what may be asked

    def validate(self) -> None:
        """Refuse what the schema cannot see; StackValidationFailed with a path below properties."""

    def get_reference_id(self) -> Any:
        return self.record.physical_id or self.record.name

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        return None

    def show(self) -> Any:
        """Return the real thing as its API has it, for the attribute ``show``; None: nothing."""
        return None

    def all_attributes(self) -> Mapping[str, Any]:
        """What get_attr gives that names none."""
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
        """Names of ``siblings`` that must come first though the template does not say so."""
        return ()

    @classmethod
    def needs_replace(
        cls,
        before: Mapping[str, Any],
        after: Mapping[str, Any],
        prop_diff: Mapping[str, Any],
    ) -> bool:
        """Whether this change of properties needs a new resource, beyond what the schema says."""
        return False

    @classmethod
    def is_same_thing(
        cls, record: ResourceState, name: str, value: Any, find_node: FindNode
    ) -> bool:
        """Whether another value of a property names what a resource has already: no change."""
        return False

    @classmethod
    def deletes_first(cls, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
        """Tell whether a replaced resource is released first, by handle_prepare_for_replace.

        Else it is deleted when the new one is complete and its users are updated.
        """
        return False

    def data_for_replacement(self, *, returns: bool) -> dict[str, Any]:
        """Return ``data`` for the replacement of a resource that was released first.

        ``returns``: a rollback makes the replacement as the resource was before the update.
        """
        return {}

    @classmethod
    def effect_of_create(cls, properties: Mapping[str, Any]) -> Effect:
        """Say what a creation orders of a machine.

        ``properties``: those of ``effect_properties`` and ``machine_properties``; a value that a
        plan does not know yet is a placeholder.
        """
        return NO_EFFECT

    @classmethod
    def effect_of_update(
        cls, before: Mapping[str, Any], after: Mapping[str, Any], names: Collection[str]
    ) -> Effect:
        """Say what a change of the properties ``names`` in place does to a machine."""
        return NO_EFFECT

    @classmethod
    def effect_of_repair(cls, properties: Mapping[str, Any]) -> Effect:
        """Say what an update does to the machine of a resource that failed (repairs_failed)."""
        return NO_EFFECT

    def reason_to_replace(self) -> str:
        """Say why an update comes to a replacement, as the real thing is now; it only reads."""
        return ""

    def effect_now(
        self, effect: Effect, properties: Mapping[str, Any] | None, names: Collection[str]
    ) -> Effect:
        """Correct the ``effect`` of an update by the state of the real thing, which is only read.

        ``properties``: the new ones, None where some are unknown; ``names``: those that change.
        """
        return effect

    @classmethod
    def reason_to_refuse_at(cls, state: str, verbs: Collection[str]) -> str:
        """Say why a node in a provision state would refuse an order; empty: it would not."""
        return ""

    @classmethod
    def reason_to_refuse_new(cls, properties: Mapping[str, Any], find_node: FindNode) -> str:
        """Say why a creation would be refused, as nodes are now; ``properties`` as of effects."""
        return ""

    @classmethod
    def state_of_node(cls, properties: Mapping[str, Any]) -> str | None:
        """Return the provision state of a node that the resource has brought to its properties."""
        return None

    @classmethod
    def effect_of_delete(cls, properties: Mapping[str, Any]) -> Effect:
        """Say what the end of the resource orders of a machine."""
        return NO_EFFECT

    @classmethod
    def preempted_by(
        cls, before: Mapping[str, Any], after: Mapping[str, Any], names: Collection[str]
    ) -> bool:
        """Whether a change of properties makes an action useless that goes on."""
        return True

    @classmethod
    def needs_replace_failed(cls) -> bool:
        """Whether a resource whose last action failed is made anew by the next update."""
        return True

    # ---------------------------------------------------------------------------- own business

    def resource_id_set(self, physical_id: str | None) -> None:
        self.record.physical_id = physical_id

    def derived_id(self, role: str = "") -> str:
        """Return the UUID of this resource for ``role``: the same each time, also after a crash."""
        return str(uuids.uuid5(uuids.UUID(self.record.uuid), role))

    def physical_resource_name(self) -> str:
        """``<stack>-<resource>-<12 characters>``, shortened in the middle to the kind's limit."""
        stack = NAME_TAIL.sub("", self.context.stack_name)
        whole = f"{stack}-{self.record.name}-{short_id(self.record.uuid)}"
        limit = self.physical_resource_name_limit
        if len(whole) <= limit:
            return whole
        return f"{whole[:2]}-{whole[-(limit - 3) :]}"


def short_id(uuid: str) -> str:
    """The twelve lower-case base32 characters that stand for a UUID in names."""
    return base64.b32encode(uuids.UUID(uuid).bytes[:8])[:12].decode().lower()
