"""Steps: which ones a flow runs and in which order, the conductor's own ones, and their results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from bloomery import errors, parsing, secrets
from bloomery.conductor import inspection, notification_utils, states, task_manager, writes
from bloomery.conductor.states import Power
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.writes import EncodedWrite
from bloomery.db import hardware, nodes, rows
from bloomery.drivers.base import Driver
from bloomery.model.node import STEP_INTERFACES, Node
from bloomery.model.rules import attributes, verbs
from bloomery.model.rules import steps as step_rules
from bloomery.model.step import Step, internal_step
from bloomery.outcome import DONE, Again, Done, Hold, Outcome, WaitForCall

UserStep = Mapping[str, Any]  # {"interface": ..., "step": ..., "args": ..., "priority": ...}

# For equal priorities the higher number goes first (spec: interface order).
_ORDER: Final[dict[str, Mapping[str, int]]] = {
    "verify": {
        name: 13 - i
        for i, name in enumerate(
            (
                "power", "management", "firmware", "inspect", "deploy", "boot", "bios", "raid",
                "vendor", "network", "storage", "console", "rescue",
            ),
        )
    },
}  # fmt: skip
_REBOOTS: Final = (Power.REBOOT, Power.SOFT_REBOOT)
_CHILD_TARGETS: Final = {"power_on": Power.ON, "power_off": Power.OFF, "reboot": Power.REBOOT}
_MOST_WAIT_S: Final = 1e9
_PARENT_LOCKED_S: Final = 1.0  # between two attempts to take the lock of the parent
_DEFAULT_ORDER: Final = {name: 7 - i for i, name in enumerate(STEP_INTERFACES)}


# ------------------------------------------------------------------------ which ones, in order


def available_steps(task: TaskManager, phase: str) -> list[Step]:
    """Return every step that the node's interfaces offer in ``phase``, unordered."""
    return task.driver.steps(task.node, phase, _ORDER.get(phase, _DEFAULT_ORDER))


def by_priority(steps: Iterable[Step], phase: str) -> list[Step]:
    """Return the steps with a priority above 0, the highest first."""
    order = _ORDER.get(phase, _DEFAULT_ORDER)
    enabled = [step for step in steps if step.priority > 0]
    return sorted(enabled, key=lambda s: (s.priority, order[s.interface]), reverse=True)


def override(steps: Iterable[Step], priorities: Mapping[str, str]) -> list[Step]:
    """Apply the operator's ``interface.step:priority`` settings; 0 disables a step."""
    return [replace(step, priority=int(priorities.get(step.name, step.priority))) for step in steps]


def validated_user_steps(
    task: TaskManager, phase: str, user_steps: Sequence[UserStep]
) -> list[Step]:
    """Return the user's steps in order, with sealed arguments; a child step once per child.

    A deploy step that no interface offers is accepted while an agent may still offer it: it fails
    by name after the agent's boot.  Raises StepNotFound, InvalidParameterValue (arguments).
    """
    planned: list[Step] = []
    unknown: dict[_Place, list[str]] = {}
    deploy = task.driver.deploy
    for user_step, place in _placed(task, phase, user_steps):
        step, args = place.find(user_step), dict(user_step.get("args") or {})
        is_own = place.child is None and user_step["interface"] == deploy.kind == phase
        if step is None and is_own and deploy.expects_steps(task.node, phase):
            optional = {name: {"required": False} for name in args}
            step = Step(
                interface=deploy.kind, step=user_step["step"], argsinfo=optional, resumable=True
            )
        if step is None:
            unknown.setdefault(place, []).append(_name(user_step))
            continue
        check_args(step, args)
        priority = int(user_step.get("priority", step.priority))
        planned.append(replace(step, args=task.runtime.sealer.seal(args), priority=priority))
    if unknown:
        place, names = next(iter(unknown.items()))
        raise errors.StepNotFound(
            verb=phase, node=place.child or task.node.uuid, steps=", ".join(names),
            offered=", ".join(sorted(place.offered)) or "none",
        )  # fmt: skip
    return planned


def raw_user_steps(task: TaskManager, phase: str, user_steps: Sequence[UserStep]) -> list[Step]:
    """Return the user's steps in order, including unknown steps.

    An unknown step fails when it runs, after the steps before it.
    """
    steps = []
    for user_step, place in _placed(task, phase, user_steps):
        unknown = Step(interface=user_step["interface"], step=user_step["step"], child=place.child)
        offered = place.find(user_step)
        step = unknown if offered is None else replace(offered, argsinfo=offered.argsinfo or {})
        args = task.runtime.sealer.seal(dict(user_step.get("args") or {}))
        steps.append(replace(step, args=args))
    return steps


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Place:
    """A node that runs steps, the flow's own or a ``child``, and the steps that it offers."""

    child: str | None
    offered: Mapping[str, Step]

    def find(self, user_step: UserStep) -> Step | None:
        """Return the step that the node's interfaces or the conductor offer, or None."""
        if user_step["step"] in RESERVED:
            step: Step | None = Step(
                interface=user_step["interface"], step=user_step["step"], abortable=True,
                requires_ramdisk=False, argsinfo=_RESERVED_ARGSINFO.get(user_step["step"]),
                resumable=True,
            )  # fmt: skip
        else:
            step = self.offered.get(_name(user_step))
        if step is None or self.child is None:
            return step
        return replace(step, child=self.child, requires_ramdisk=False)


def _placed(
    task: TaskManager, phase: str, user_steps: Sequence[UserStep]
) -> Iterator[tuple[UserStep, _Place]]:
    """Yield each step with each node that it runs on.

    Raises InvalidParameterValue for a step that children cannot run, and for too many steps.
    """
    own = _Place(child=None, offered=_offered(task.driver, task.node, phase))
    children: dict[str, Node] = {}
    places: dict[str, _Place] = {}
    number = 0
    for user_step in user_steps:
        on_children = bool(user_step.get("execute_on_child_nodes"))
        if on_children and not children:
            with task.runtime.db.read() as conn:
                listed = nodes.list_children(conn, task.node.uuid)
            children = {child.uuid: child for child in listed}
        chosen = _chosen(task, user_step, children) if on_children else []
        for uuid in chosen:
            if uuid in places:
                continue
            try:
                driver = task.runtime.registry.driver_of(children[uuid])
            except errors.Failure as exc:
                raise errors.InvalidParameterValue(
                    reason=f"cannot run steps on child node {uuid}: {exc}",
                ) from exc
            places[uuid] = _Place(child=uuid, offered=_offered(driver, children[uuid], phase))
        number += len(chosen) if on_children else 1
        if number > step_rules.MOST_STEPS:
            raise errors.InvalidParameterValue(
                reason=f"a flow of node {errors.name_of(task.node)} has at most "
                f"{step_rules.MOST_STEPS} steps, and one for each child node that is asked is too "
                "many",
            )
        for place in [places[uuid] for uuid in chosen] if on_children else [own]:
            yield user_step, place


def _offered(driver: Driver, node: Node, phase: str) -> dict[str, Step]:
    kinds = _ORDER.get(phase, _DEFAULT_ORDER)
    return {step.name: step for step in driver.steps(node, phase, kinds)}


def _chosen(task: TaskManager, user_step: UserStep, children: Mapping[str, Node]) -> list[str]:
    """Return the children that the step names, in its order; all where it names none.

    The API sends only children that the caller may run steps on.
    """
    if user_step["step"] in RESERVED and user_step["step"] not in ON_CHILDREN:
        raise errors.InvalidParameterValue(
            reason=f"step {_name(user_step)} cannot run on child nodes: of the conductor's own "
            f"steps {', '.join(ON_CHILDREN)} can",
        )
    uuids = user_step.get("limit_child_node_execution", list(children))
    if strangers := [uuid for uuid in uuids if uuid not in children]:
        raise errors.InvalidParameterValue(
            reason=f"limit_child_node_execution of step {_name(user_step)} names "
            f"{strangers[0]}, which is no child of node {errors.name_of(task.node)}",
        )
    return list(dict.fromkeys(uuids))


def _name(user_step: UserStep) -> str:
    return f"{user_step['interface']}.{user_step['step']}"


def check_args(step: Step, args: Mapping[str, Any]) -> None:
    """Raise InvalidParameterValue for unknown or missing arguments."""
    argsinfo = step.argsinfo or {}
    unexpected = sorted(set(args) - set(argsinfo))
    missing = sorted(
        name for name, info in argsinfo.items() if info.get("required") and name not in args
    )
    if unexpected or missing:
        faults = [f"unexpected arguments: {', '.join(unexpected)}"] if unexpected else []
        faults += [f"missing arguments: {', '.join(missing)}"] if missing else []
        raise errors.InvalidParameterValue(reason=f"step {step.name} has {'; '.join(faults)}")


# ------------------------------------------------------------------------- of the conductor


def change_power(task: TaskManager, target: str, timeout_s: float | None = None) -> Outcome:
    """Run one attempt to bring the node to ``target``; skip the order where it is there already.

    It ends the session of the node's agent: the next agent gets a new token.  Raises
    PowerStateFailure for a node that may not be switched off, and the driver's errors.
    """
    node, power = task.node, task.driver.power
    verbs.refuse_power_off(node, target)
    end_state = Power.ON if target in states.ENDS_ON else Power.OFF
    if target not in _REBOOTS and task.turn == 0 and power.get_power_state(task) == end_state:
        node.power_state = end_state
        return DONE
    if not task.turn:  # later attempts must not end the session of the new agent
        task.log("power: %s", target)
        if not power.only_restarts:
            task.forget_agent(may_boot_again=True)
    changed_at = rows.now().replace(tzinfo=None)  # Ironic's format: UTC without an offset
    node.driver_internal_info["last_power_state_change"] = changed_at.isoformat()
    if target == Power.REBOOT:
        return power.reboot(task, timeout_s) or DONE
    return power.set_power_state(task, target, timeout_s) or DONE


def _power_on(task: TaskManager) -> Outcome:
    return change_power(task, Power.ON)


def _power_off(task: TaskManager) -> Outcome:
    return change_power(task, Power.OFF)


def _reboot(task: TaskManager) -> Outcome:
    return change_power(task, Power.REBOOT)


def _hold(task: TaskManager) -> Outcome:
    return Hold(reason="a hold step: unhold the node to go on, or abort")


def _wait(task: TaskManager, seconds: Any = None) -> Outcome:
    """Wait so many seconds, or for the agent's next heartbeat."""
    if seconds is None:
        return WaitForCall(reason="a wait step: goes on when the agent calls")
    if task.turn:
        return DONE
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not (is_number and 0 <= seconds <= _MOST_WAIT_S):
        raise errors.InvalidParameterValue(
            reason="seconds of a wait step takes a number of at least 0, not "
            f"{type(seconds).__name__} {attributes.shortened(repr(seconds))}",
        )
    wait_s = float(seconds)
    limit_s = task.runtime.conf.conductor.max_conductor_wait_step_seconds
    if wait_s > limit_s:
        text = (
            f"A wait step of {wait_s:g} s waits {limit_s} s alone: "
            "[conductor]max_conductor_wait_step_seconds"
        )
        task.save(writes.history_entry(task.context, task.node, text, event_type="wait"))
    return Again(after_s=min(wait_s, limit_s), reason=f"a wait step of {wait_s:g} s")


# These steps exist on every interface.
RESERVED: Final[dict[str, Callable[..., Outcome]]] = {
    "power_on": _power_on,
    "power_off": _power_off,
    "reboot": _reboot,
    "hold": _hold,
    "wait": _wait,
}
ON_CHILDREN: Final = ("power_on", "power_off", "reboot")
_RESERVED_ARGSINFO: Final[dict[str, dict[str, Any]]] = {
    "wait": {"seconds": {"description": "how long; left out: until the agent calls"}},
}


# ------------------------------------------------------------------------------ their results


_STORES: Final[dict[str, Callable[..., None]]] = {
    "bios_settings": hardware.replace_bios_settings,
    "erasure": hardware.add_erasure,
    "firmware": hardware.replace_firmware,
    "inspection": inspection.store,
}


def store_result(task: TaskManager, result: Mapping[str, Any]) -> list[EncodedWrite]:
    """Set the node's fields from a step's result; return the writes for its other parts.

    ``node``: fields of the node, set at once.  ``inspection``: the result of
    ``inspection.process``. ``bios_settings`` and ``firmware``: lists of rows.  ``erasure``: a
    proof.  The transaction that ends the step takes the writes.
    """
    for name, value in result.get("node", {}).items():
        setattr(task.node, name, value)
    uuid = task.node.uuid
    return [
        lambda conn, store=store, part=result[name]: store(conn, uuid, part)  # type: ignore[misc]
        for name, store in _STORES.items()
        if name in result
    ]


# ------------------------------------------------------------------------------ on child nodes


def takes_power_from_parent(node: Node) -> bool:
    own = node.driver_info.get("has_dedicated_power_supply", False)
    return not parsing.boolean(own)


def power_parent(task: TaskManager) -> Any:
    """Return UUID, power state and reservation of the parent that gives the node its power."""
    node = task.node
    if node.parent_node in (None, node.uuid) or not takes_power_from_parent(node):
        return None
    with task.runtime.db.read() as conn:
        return nodes.find_row(conn, node.parent_node, ("uuid", "power_state", "reservation"))


def parent_first(task: TaskManager, *, refuses_locked: bool = False) -> list[Step]:
    """Return the step that switches on the parent, before a flow switches the node on.

    It is needed where the parent gives the node its power and is not on.  ``refuses_locked``: raise
    ParentNodeLocked at once; else the step waits for the lock.
    """
    row = power_parent(task)
    if row is None or row.power_state == Power.ON:
        return []
    if refuses_locked and row.reservation is not None:
        raise errors.ParentNodeLocked(
            node=errors.name_of(task.node), parent=row.uuid, holder=row.reservation
        )
    return [replace(internal_step("power", "power_on"), child=row.uuid)]


def run_on_child(task: TaskManager, step: Step) -> Outcome:
    """Run one attempt of ``step`` on ``step.child``; the arguments are readable.

    The parent's flow has one row for each child, so that a successor knows which children are done.
    The parent's task carries the child's lock, during the child's step and while its BMC works
    (``Again``).  The child's provision state stays.

    Raises the child's NodeLocked and NodeNotFound, and StepFailure where the child would wait or
    hold.  A step on the flow's own parent waits for its lock: siblings and the parent may be at
    work, and one of them may switch it on.
    """
    if task.child is None or task.child.node_id != step.child:
        task.release_child()
        is_parent = step.child == task.node.parent_node
        if is_parent and step.step == "power_on" and not parent_first(task):
            return DONE
        relation = "for child" if is_parent else "of parent"
        purpose = f"step {step.name} {relation} node {task.node.uuid}"
        context = replace(task.context, in_place=True)
        try:
            task.child = task_manager.acquire(
                context, str(step.child), purpose=purpose, retry=not is_parent
            )
        except errors.NodeLocked as locked:
            if not is_parent:
                raise
            return Again(after_s=_PARENT_LOCKED_S, reason=f"its parent: {secrets.brief(locked)}")
    child = task.child  # of this attempt, or of the one before
    child.turn, child.insists, child.reads = task.turn, task.insists, {}
    if step.step in ON_CHILDREN:
        outcome: Outcome = RESERVED[step.step](child)
    else:
        outcome = child.driver.interface(step.interface).run_step(child, step)
    if isinstance(outcome, Again):
        _save_child(child)
        return outcome
    option = "permit_child_node_step_async_result"
    may_go_on = isinstance(outcome, WaitForCall) and getattr(task.runtime.conf.conductor, option)
    if isinstance(outcome, Hold | WaitForCall) and not may_go_on:
        verb = "wait" if isinstance(outcome, WaitForCall) else "hold"
        raise errors.StepFailure(
            reason=f"the step wants to {verb} ({outcome.reason}), which no child node can; "
            f"[conductor]{option} lets the flow go on without waiting",
        )
    result = outcome.result if isinstance(outcome, Done) else {}
    events = []
    if target := _CHILD_TARGETS.get(step.step):
        emit = notification_utils.emit_power_set_notification
        events = [emit(child.context, child.node, status, target) for status in ("start", "end")]
    _save_child(child, *store_result(child, result), *events, release=True)
    task.release_child()
    return DONE


def _save_child(child: TaskManager, *journal: EncodedWrite, release: bool = False) -> None:
    """Write the changes of the child; a lost lock of the child fails the step, not the parent."""
    try:
        child.save(*journal, release=release)
    except errors.LockLost as lost:
        raise errors.StepFailure(reason=str(lost)) from lost
