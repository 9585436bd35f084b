"""Base classes of bare-metal resources: an action is a sequence of steps, stored one by one.

``data`` holds the name of the current step.  A step returns the name of the next step, or None at
the end.  A step that returns an outcome (``wait_for``) is called again.  A step with ``orders``
runs only after its name is stored.  After a crash the next engine thus knows that the order may
have been given, reads the node, and gives no order twice.  The table ``steps`` declares the steps.
Their names are stored, so that they must not change::

    class Lamp(Stepwise):
        steps = MARKS | {
            "find": Step("find the lamp", "switch", "until it is there"),
            "switch": Step("switch it on", "end", orders=True),
        }

        def handle_create(self) -> Any:
            self.begin("find")

        def step_find(self) -> str | None: ...
        def step_switch(self) -> str | None: ...
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias

from bloomery import errors
from bloomery.conductor.states import UNSTABLE_STATES, State
from bloomery.orchestration.properties.schema import Schema
from bloomery.orchestration.resources import base, drift
from bloomery.orchestration.resources.effects import Effect
from bloomery.orchestration.resources.machines import MARK, Busy, FindNode, Json, Machines
from bloomery.outcome import DONE, Again, FlowOutcome, Hold, Outcome, WaitForCall

STEP: Final = "step"
SINCE: Final = "since"  # provision_updated_at of the node before the order
ORDERS: Final = "orders"  # the number of the last order; find_flow looks for its flow
OUTCOME_UNKNOWN: Final = (
    "cannot tell how the steps ended: the node has no record of them any more (see "
    "[conductor]step_flows_max_entries); update the stack to run them anew"
)
REFUSED_IN_MAINTENANCE: Final = frozenset({"active", "rebuild", "clean", "service"})
PROTECTED_FROM: Final = frozenset({"rebuild", "deleted"})
HOLD_STATES: Final = frozenset({State.CLEANHOLD, State.SERVICEHOLD})
UNFINISHED: Final = (Again, WaitForCall, Hold)
UNTIL: Final = "until"  # when the current step times out, in seconds since the epoch


class MachineRefused(Exception):
    """The bare-metal service refuses the request, or the machine cannot be used."""


class MachineFailed(Exception):
    """The machine did not reach its target; the argument is usually its ``last_error``."""


class MachineTimedOut(Exception):
    """The machine did not reach its target in time."""


# The result of a step: the name of the next step, None at the end, or an outcome to run it again.
Following: TypeAlias = str | Outcome | None
END: Final = "end"


class Step(NamedTuple):
    """A row of the step table of a kind: what the step does, what follows, what it waits for.

    ``then``: names of the steps that may follow; "end": the action is done.  ``orders``: the step
    orders a verb, a power state or a record.  ``run``: the function of the step, by default the
    method ``step_<name>``.
    """

    does: str
    then: str = "end"
    waits: str = ""
    orders: bool = False
    run: Callable[[Any], Following] | None = None


MARKS: Final[dict[str, Step]] = {
    "mark": Step("write the mark of the resource on the object of external_id"),
    "unmark": Step("remove the mark from the object that stays"),
}


class Stepwise(base.Resource):
    """A kind whose actions are sequences of steps."""

    steps: ClassVar[Mapping[str, Step]] = MARKS
    ordering_steps: ClassVar[frozenset[str]] = frozenset()  # set by __init_subclass__
    default_timeout_mins: ClassVar[int | None] = 240
    always_replace_on_check_failed: ClassVar[bool] = False  # drift does not cause a replacement
    compares: ClassVar[bool] = True  # False: it has no live state of its own, and no ``real``

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.ordering_steps = frozenset(name for name, step in cls.steps.items() if step.orders)

    @property
    def machines(self) -> Machines:
        if self.context.machines is None:
            raise errors.NotFound(
                reason=f"cannot use {self.record.type}: no bare-metal service is here"
            )
        return self.context.machines

    @classmethod
    def names_same_object(
        cls, record: base.ResourceState, name: str, value: Any, find_node: FindNode
    ) -> bool:
        """Tell whether a new value of a node property names the same node."""
        before = record.properties.get(name)
        if name not in cls.node_properties or not (before and isinstance(value, str)):
            return False
        node, other = find_node(before), find_node(value)
        return node is not None and other is not None and node["uuid"] == other["uuid"]

    # ---------------------------------------------------------------------------------- steps

    def enter_action(self) -> None:
        """Drop the step of an earlier action that has failed."""
        self.record.data.pop(STEP, None)

    def begin(self, step: str) -> None:
        """Set the first step of an action; a crash before it is stored repeats the handler."""
        self.record.data.pop(UNTIL, None)
        self.record.data[STEP] = step

    def advance(self) -> Outcome:
        """Run steps until a step waits or the action is done.  Raises the errors of the steps."""
        data = self.record.data
        while (name := data.get(STEP)) is not None:
            step = self.steps[name]
            run = step.run or getattr(type(self), f"step_{name}")
            try:
                following: Following = run(self)
            except errors.Conflict as exc:  # the engine deletes and retries after a Conflict
                raise MachineRefused(str(exc)) from exc
            if isinstance(following, UNFINISHED):
                return following
            if (following or END) not in step.then.split():
                raise LookupError(
                    f"step {name} cannot go on with {following}: see the table of steps"
                )
            data.pop(UNTIL, None)
            if following is None:
                del data[STEP]
            else:
                data[STEP] = following
                if following in self.ordering_steps:
                    return Again(after_s=0, reason="")  # the step is stored before it orders
        return DONE

    def check_create_complete(self, token: Any) -> Outcome:
        return self.advance()

    check_update_complete = check_delete_complete = check_create_complete
    check_suspend_complete = check_resume_complete = check_create_complete
    check_mark_complete = check_adopt_complete = check_retain_complete = check_create_complete
    check_prepare_for_replace_complete = check_create_complete

    def wait_for(
        self, uuid: str, timeout_s: float, purpose: str, *, every_s: float | None = None
    ) -> Outcome:
        """Wait for a change of the object ``uuid``; ``timeout_s`` counts from the first wait.

        ``every_s``: poll at this interval, because no event reports the change.  Raises
        MachineTimedOut when the time is over.
        """
        now = self.context.utc()
        until = self.record.data.setdefault(UNTIL, now + timeout_s)
        if now >= until:
            raise MachineTimedOut(f"cannot wait longer than {timeout_s:g} s {purpose}")
        if every_s is not None:
            return Again(after_s=every_s, reason=f"waits {purpose}")
        return base.wait_for(uuid, until - now)

    # ---------------------------------------------------------------------------------- live state

    def handle_check(self) -> Any:
        """Raise NotFound, or Drifted with each difference; the check changes nothing."""
        drift.refuse(self.find_differences())

    def find_differences(self) -> list[drift.Difference]:
        """Return the differences between properties and live state.  Raises NotFound, Busy.

        A resource with ``external_id`` has no stored properties: only its existence is checked.
        """
        real = self.real()
        return [*self.differences(real)] if self.properties else []

    def real(self) -> Json:
        """Return the physical resource from the API, secrets as stars.  Raises NotFound."""
        raise NotImplementedError

    def show(self) -> Any:
        return value_or_none(self.real) if self.compares else None

    def differences(self, real: Json) -> Iterator[drift.Difference]:
        raise NotImplementedError

    def mark_differences(self, real: Json) -> Iterator[drift.Difference]:
        """Yield a difference if the mark of this resource is gone; it names no new owner."""
        if not self.is_ours(real["extra"]):
            field = f"extra/{MARK}"
            yield drift.Difference(field, f"{field} does not name this resource any more")

    # ---------------------------------------------------------------------------------- marks

    def handle_retain(self) -> Any:
        if self.record.physical_id is not None:
            self.begin("unmark")

    def handle_mark(self) -> Any:
        self.begin("mark")

    def handle_adopt(self, data: Mapping[str, Any]) -> Any:
        """Adopt the physical resource, and begin to write this resource's mark on it."""
        super().handle_adopt(data)
        self.begin("mark")

    def step_mark(self) -> str | None:
        """Write no mark: this default is for kinds without one."""
        return None

    def step_unmark(self) -> str | None:
        return None

    def mark(self) -> Json:
        """Return the mark of this resource on the objects that it has created, or uses."""
        return {
            "stack_id": self.context.stack_id,
            "resource": self.record.name,
            "project": self.context.project_id,
            "id": self.record.uuid,
        }

    def is_ours(self, marked: Mapping[str, Any] | None) -> bool:
        mark = (marked or {}).get(MARK)
        return isinstance(mark, Mapping) and mark.get("id") == self.record.uuid

    def check_unmarked(self, marked: Mapping[str, Any] | None, label: str) -> None:
        """Raise MachineRefused if an object bears the mark of another resource of a live stack."""
        mark = (marked or {}).get(MARK)
        if not isinstance(mark, Mapping) or self.is_ours(marked):
            return
        stack_id = str(mark.get("stack_id"))
        if self.machines.is_live_stack(stack_id):
            own = stack_id == self.context.stack_id
            holder = f"resource {mark.get('resource')} of this stack" if own else "another stack"
            raise MachineRefused(f"cannot use {label}: {holder} has it")


class OnNode(Stepwise):
    """A kind whose ``physical_id`` is a node, and which orders verbs of this node.

    Before an order, ``data`` notes the node's ``provision_updated_at``.  If the time differs
    later, this engine or one that crashed has given the order already.
    """

    mark_field: ClassVar[str] = ""  # the field of the node for the mark; empty: no mark
    phases: ClassVar[Mapping[str, Schema]] = {}  # the property ``timeouts``: seconds by phase

    def node_uuid(self) -> str:
        if self.record.physical_id is None:
            raise errors.EntityNotFound(entity=self.record.type, name=self.record.name)
        return self.record.physical_id

    def get_node(self) -> Json:
        return self.machines.get_node(self.node_uuid())

    def real(self) -> Json:
        return self.get_node()

    def timeout_s(self, phase: str) -> float:
        chosen = (self.properties.get("timeouts") or {}).get(phase)
        return float(chosen or self.phases[phase].default)

    def wait_in(self, phase: str, purpose: str, uuid: str = "") -> Outcome:
        """Wait for the node, or the object ``uuid``, at most as long as the phase may take."""
        return self.wait_for(uuid or self.node_uuid(), self.timeout_s(phase), purpose)

    def handle_create_cancel(self, token: Any) -> None:
        self.handle_preempt()

    handle_update_cancel = handle_create_cancel

    def current_effect(
        self, effect: Effect, properties: Mapping[str, Any] | None, names: Collection[str]
    ) -> Effect:
        """Return an effect that is not certain where a field of the node refuses its verbs."""
        if not effect.verbs or self.record.physical_id is None:
            return effect
        values = self.properties if properties is None else properties
        unprotects = values.get("protected") is False
        reason = reason_to_refuse(self.get_node(), effect.verbs, unprotects=unprotects)
        return replace(effect, certain=False, reason=reason) if reason else effect

    def console_url(self) -> str | None:
        node = self.get_node()
        url: str | None = None
        if node["console_enabled"]:
            url = value_or_none(lambda: self.machines.find_console(node["uuid"]))
        return url

    def step_mark(self) -> str | None:
        """Write the mark into the node.  Raises MachineRefused if another resource has the node."""
        if not (field := self.mark_field):
            return None
        node = self.get_node()
        self.check_unmarked(node[field], f"node {node['name'] or node['uuid']}")
        fields = {f"{field}/{MARK}": self.mark(), **self.missing_fields(node)}
        self.machines.update_node(node["uuid"], patch_of(fields))
        self.resource_id_set(node["uuid"])  # it may have been a name
        return None

    def missing_fields(self, node: Json) -> Json:
        """Return fields that an adopted node lacks, and that a created one would have."""
        return {}

    def step_unmark(self) -> str | None:
        if field := self.mark_field:
            with contextlib.suppress(errors.NodeNotFound):
                node = self.get_node()
                if self.is_ours(node[field]):
                    patch = patch_of({f"{field}/{MARK}": None})
                    self.machines.update_node(node["uuid"], patch)
        return None

    def note_move(self, node: Json) -> None:
        self.record.data[SINCE] = node["provision_updated_at"]

    def number_order(self) -> None:
        self.record.data[ORDERS] = self.record.data.get(ORDERS, 0) + 1

    def order_id(self) -> str:
        """Return the ID of the order that was numbered last, unique on its node."""
        return f"{self.record.uuid[:8]}-{self.record.data.get(ORDERS, 0)}"

    def order_numbered(self, verb: str, **arguments: Any) -> bool:
        """Give the numbered order, unless it was given already; return whether its flow exists.

        False: another client has moved the node since ``note_move``, and nothing was ordered.
        Without arguments, nothing is ordered.
        """
        if arguments and self._find_flow() is None:
            self.order(verb, order_id=self.order_id(), **arguments)
        return self._find_flow() is not None

    def wait_for_flow(self, phase: str, purpose: str) -> Following:
        """Return an outcome until the flow of the numbered order has ended, then its error.

        None: the flow has succeeded.  Raises as ``wait_for``.
        """
        if ORDERS not in self.record.data:  # stored by an engine that did not number orders
            node = self.get_node()
            if node["provision_state"] in UNSTABLE_STATES | HOLD_STATES:
                return self.wait_in(phase, purpose)
            is_well = node["provision_state"] in (State.MANAGEABLE, State.ACTIVE)
            return None if is_well else str(node["last_error"])
        flow = self._find_flow()
        if flow is not None and flow.is_open:
            return self.wait_in(phase, purpose)
        return OUTCOME_UNKNOWN if flow is None else flow.error

    def _find_flow(self) -> FlowOutcome | None:
        return self.machines.find_flow(self.node_uuid(), self.order_id())

    def order(self, verb: str, **arguments: Any) -> None:
        node = self.get_node()
        if node["provision_updated_at"] != self.record.data.get(SINCE):
            return
        try:
            self.machines.set_provision_state(node["uuid"], verb, **arguments)
        except errors.InvalidStateRequested:
            if self.get_node()["provision_updated_at"] == self.record.data.get(SINCE):
                raise


def reason_to_refuse(
    node: Mapping[str, Any], verbs: Collection[str], *, unprotects: bool = False
) -> str:
    """Return why a node that is in maintenance, or protected, refuses one of the verbs, or "".

    ``unprotects``: the resource ends the protection first.
    """
    name = node["name"] or node["uuid"]
    rows = [
        ("maintenance", "in maintenance", REFUSED_IN_MAINTENANCE, "maintenance unset"),
        ("protected", "protected", () if unprotects else PROTECTED_FROM, "unset --protected"),
    ]
    for flag, state, refuses, way_out in rows:
        refused = next((verb for verb in verbs if verb in refuses), None)
        if refused is None or not node[flag]:
            continue
        because = f" ({node[f'{flag}_reason']})" if node.get(f"{flag}_reason") else ""
        return (
            f"node {name} is {state}{because}: {refused} is refused until that ends "
            f"(baremetal node {way_out} {name})"
        )
    return ""


def value_or_none(read: Callable[[], Any]) -> Any:
    """Return the result of ``read``, or None if it raises a Failure or Busy."""
    try:
        return read()
    except (errors.Failure, Busy):
        return None


def patch_of(changes: Mapping[str, Any]) -> list[Json]:
    """Return a JSON patch that sets fields to these values, or removes those with None."""
    return [
        {"op": "remove", "path": f"/{name}"} if value is None
        else {"op": "add", "path": f"/{name}", "value": value}
        for name, value in changes.items()
    ]  # fmt: skip
