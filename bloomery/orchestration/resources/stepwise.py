"""What kinds of machines have in common: actions of several steps, each named in the rows before.

The name of the step that is being done stands in ``data``.  A step does one thing at the real thing
and returns the name of the next, or None at the end.  A step that returns an outcome
(``wait_for``) is called again.  A step that orders is called only when its name is stored: after a
crash the next engine knows what may have been ordered, looks, and orders nothing twice.  A kind
shows its steps in a table; names of steps are stored, so that they stay::

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
SINCE: Final = "since"  # when the node moved last, before it is ordered to
ORDERS: Final = "orders"  # how many orders were numbered, whose flows are looked for
UNTOLD: Final = (
    "cannot tell how the steps ended: the node has no record of them any more (see "
    "[conductor]step_flows_max_entries); update the stack to run them anew"
)
REFUSED_IN_MAINTENANCE: Final = frozenset({"active", "rebuild", "clean", "service"})
HELD: Final = frozenset({State.CLEANHOLD, State.SERVICEHOLD})
UNFINISHED: Final = (Again, WaitForCall, Hold)
UNTIL: Final = "until"  # when the present step gives up, in seconds since the epoch


class MachineRefused(Exception):
    """The bare-metal service refuses, or the machine is not one that may be used."""


class MachineFailed(Exception):
    """The machine did not come to where it was to come; its own words say why."""


class MachineTimedOut(Exception):
    """The machine did not come there in time."""


# What a step returns: the name of the next step, None at the end, or an outcome to be called again.
Following: TypeAlias = str | Outcome | None
END: Final = "end"


class Step(NamedTuple):
    """One row of the table of a kind: what the step does, what follows, what it waits for.

    ``then``: the steps that may follow; end: the action is done.  ``orders``: a verb, a power state
    or a record.  ``run``: the function of the step; the kind's method ``step_<name>`` without it.
    """

    does: str
    then: str = "end"
    waits: str = ""
    orders: bool = False
    run: Callable[[Any], Following] | None = None


MARKS: Final[dict[str, Step]] = {
    "mark": Step("put the mark of the resource on what external_id names"),
    "unmark": Step("take the mark away from what stays"),
}


class Stepwise(base.Resource):
    """A kind whose actions are done step by step."""

    steps: ClassVar[Mapping[str, Step]] = MARKS
    ordering_steps: ClassVar[frozenset[str]] = frozenset()  # by the column ``orders``
    default_timeout_mins: ClassVar[int | None] = 240
    always_replace_on_check_failed: ClassVar[bool] = False  # who drifts is not thrown away
    compares: ClassVar[bool] = True  # False: nothing of its own can differ, and ``real`` is missing

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
    def is_same_thing(
        cls, record: base.ResourceState, name: str, value: Any, find_node: FindNode
    ) -> bool:
        """Another name of the same node is no other node."""
        before = record.properties.get(name)
        if name not in cls.node_properties or not (before and isinstance(value, str)):
            return False
        node, other = find_node(before), find_node(value)
        return node is not None and other is not None and node["uuid"] == other["uuid"]

    # ---------------------------------------------------------------------------------- steps

    def enter_action(self) -> None:
        """Go on with no step of an action that has failed: each begins its own, or has none."""
        self.record.data.pop(STEP, None)

    def begin(self, step: str) -> None:
        """Let an action begin with a step; it is stored with the action, or done again."""
        self.record.data.pop(UNTIL, None)
        self.record.data[STEP] = step

    def advance(self) -> Outcome:
        """Do what is to be done.  Raises what the steps raise."""
        data = self.record.data
        while (name := data.get(STEP)) is not None:
            try:
                following = self._run_step(name)
            except errors.Conflict as exc:  # the engine would throw a Conflict's thing away
                raise MachineRefused(str(exc)) from exc
            if isinstance(following, UNFINISHED):
                return following
            data.pop(UNTIL, None)
            if following is None:
                del data[STEP]
            else:
                data[STEP] = following
                if following in self.ordering_steps:
                    return Again(after_s=0, reason="")  # the order is stored before it is given
        return DONE

    def _run_step(self, name: str) -> Following:
        step = self.steps[name]
        run = step.run or getattr(type(self), f"step_{name}")
        following: Following = run(self)
        if not isinstance(following, UNFINISHED) and (following or END) not in step.then.split():
            raise LookupError(f"step {name} cannot go on with {following}: see the table of steps")
        return following

    def check_create_complete(self, token: Any) -> Outcome:
        return self.advance()

    check_update_complete = check_delete_complete = check_create_complete
    check_suspend_complete = check_resume_complete = check_create_complete
    check_mark_complete = check_adopt_complete = check_retain_complete = check_create_complete
    check_prepare_for_replace_complete = check_create_complete

    def wait_for(
        self, uuid: str, timeout_s: float, purpose: str, *, every_s: float | None = None
    ) -> Outcome:
        """Wait for a change of a thing; ``timeout_s`` counts from the step's first wait.

        ``every_s``: no event tells of the change, so that it is looked for.  Raises
        MachineTimedOut when the time is over.
        """
        now = self.context.utc()
        until = self.record.data.setdefault(UNTIL, now + timeout_s)
        if now >= until:
            raise MachineTimedOut(f"cannot wait longer than {timeout_s:g} s {purpose}")
        if every_s is not None:
            return Again(after_s=every_s, reason=f"waits {purpose}")
        return base.wait_for(uuid, until - now)

    # -------------------------------------------------------------------------- how it really is

    def handle_check(self) -> Any:
        """Raise NotFound, or Drifted with each difference; nothing is changed."""
        drift.refuse(self.find_differences())

    def find_differences(self) -> list[drift.Difference]:
        """Return where the thing is not as the properties say.  Raises NotFound, Busy.

        Of what ``external_id`` names, no properties are stored: it is there, or it is not.
        """
        real = self.real()
        return [*self.differences(real)] if self.properties else []

    def real(self) -> Json:
        """Return the thing as the API has it, secrets as stars.  Raises NotFound."""
        raise NotImplementedError

    def show(self) -> Any:
        return value_or_none(self.real) if self.compares else None

    def differences(self, real: Json) -> Iterator[drift.Difference]:
        raise NotImplementedError

    def mark_differences(self, real: Json) -> Iterator[drift.Difference]:
        """Yield that the mark of this resource is gone; the new owner is not named."""
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
        """Take over what an abandoned stack has left, and put this resource's mark on it."""
        super().handle_adopt(data)
        self.begin("mark")

    def step_mark(self) -> str | None:
        """A kind that leaves no mark has nothing to put anywhere."""
        return None

    def step_unmark(self) -> str | None:
        return None

    def mark(self) -> Json:
        """What a thing bears that this resource has made, or uses."""
        return {
            "stack_id": self.context.stack_id,
            "resource": self.record.name,
            "project": self.context.project_id,
            "id": self.record.uuid,
        }

    def is_ours(self, marked: Mapping[str, Any] | None) -> bool:
        mark = (marked or {}).get(MARK)
        return isinstance(mark, Mapping) and mark.get("id") == self.record.uuid

    def check_unmarked(self, marked: Mapping[str, Any] | None, thing: str) -> None:
        """Raise MachineRefused for what another resource of a stack that is there has."""
        mark = (marked or {}).get(MARK)
        if not isinstance(mark, Mapping) or self.is_ours(marked):
            return
        stack_id = str(mark.get("stack_id"))
        if self.machines.is_live_stack(stack_id):
            own = stack_id == self.context.stack_id
            holder = f"resource {mark.get('resource')} of this stack" if own else "another stack"
            raise MachineRefused(f"cannot use {thing}: {holder} has it")


class OnNode(Stepwise):
    """A kind whose ``physical_id`` is a node, to which it gives orders.

    ``data`` notes when the node moved last, before an order is given: a node that has moved since
    then was ordered to already, by this engine or by one that died.
    """

    mark_field: ClassVar[str] = ""  # of the node, that bears the mark; empty: none does
    phases: ClassVar[Mapping[str, Schema]] = {}  # of ``timeouts``: how long each phase may take

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

    def effect_now(
        self, effect: Effect, properties: Mapping[str, Any] | None, names: Collection[str]
    ) -> Effect:
        """An order that a node in maintenance would refuse is not certain."""
        if not effect.verbs or self.record.physical_id is None:
            return effect
        reason = reason_to_refuse(self.get_node(), effect.verbs)
        return replace(effect, certain=False, reason=reason) if reason else effect

    def console_url(self) -> str | None:
        node = self.get_node()
        url: str | None = None
        if node["console_enabled"]:
            url = value_or_none(lambda: self.machines.find_console(node["uuid"]))
        return url

    def step_mark(self) -> str | None:
        """Put the mark into a field of the node.  Raises MachineRefused where another has it."""
        if not (field := self.mark_field):
            return None
        node = self.get_node()
        self.check_unmarked(node[field], f"node {node['name'] or node['uuid']}")
        patch = [{"op": "add", "path": f"/{field}/{MARK}", "value": self.mark()}]
        self.machines.update_node(node["uuid"], patch)
        self.resource_id_set(node["uuid"])  # it may have been named
        return None

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
        """Return what tells the order that was numbered last from all others on its node."""
        return f"{self.record.uuid[:8]}-{self.record.data.get(ORDERS, 0)}"

    def order_numbered(self, verb: str, **arguments: Any) -> bool:
        """Give the order that was numbered, unless it was given already.

        False: another has moved the node since the move that was noted, and nothing was ordered.
        """
        if self._find_flow() is None:
            self.order(verb, order_id=self.order_id(), **arguments)
        return self._find_flow() is not None

    def wait_for_flow(self, phase: str, purpose: str) -> Following:
        """Return an outcome until the order has ended, whatever else the node does; then its error.

        Raises as ``wait_for``.
        """
        if ORDERS not in self.record.data:  # by an engine that did not number its orders yet
            return self._wait_for_rest(phase, purpose)
        flow = self._find_flow()
        if flow is not None and flow.is_open:
            return self.wait_in(phase, purpose)
        return UNTOLD if flow is None else flow.error

    def _wait_for_rest(self, phase: str, purpose: str) -> Following:
        node = self.get_node()
        if node["provision_state"] in UNSTABLE_STATES | HELD:
            return self.wait_in(phase, purpose)
        is_well = node["provision_state"] in (State.MANAGEABLE, State.ACTIVE)
        return None if is_well else str(node["last_error"])

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


def reason_to_refuse(node: Mapping[str, Any], verbs: Collection[str]) -> str:
    """Say which of the verbs a node in maintenance refuses first; empty: none."""
    refused = next((verb for verb in verbs if verb in REFUSED_IN_MAINTENANCE), None)
    if refused is None or not node["maintenance"]:
        return ""
    because = f" ({node['maintenance_reason']})" if node.get("maintenance_reason") else ""
    name = node["name"] or node["uuid"]
    return (
        f"node {name} is in maintenance{because}: {refused} is refused until that ends "
        f"(baremetal node maintenance unset {name})"
    )


def value_or_none(read: Callable[[], Any]) -> Any:
    """Return the value of an attribute; None where the caller may not read it, or cannot now."""
    try:
        return read()
    except (errors.Failure, Busy):
        return None


def patch_of(changes: Mapping[str, Any]) -> list[Json]:
    """Return the JSON patch that gives fields these values; None takes one away."""
    return [
        {"op": "remove", "path": f"/{name}"} if value is None
        else {"op": "add", "path": f"/{name}", "value": value}
        for name, value in changes.items()
    ]  # fmt: skip
