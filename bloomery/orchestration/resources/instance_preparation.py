"""Preparation of a node for a deployment: ``runbook_before``, and hardware configurations.

The runbook cleans the node before the first deployment::

prepare -> before <-> order_before -> deploy        manage, clean with the runbook, provide
release <-> order_before                            back, if the node was not deployed
"""

from __future__ import annotations

from typing import Final

from bloomery.conductor.states import UNSTABLE_STATES, State
from bloomery.orchestration.resources import step_run, stepwise
from bloomery.orchestration.resources.machines import RUNBOOK, Json
from bloomery.orchestration.resources.stepwise import OnNode

HARDWARE: Final = "hardware"  # the deployment has steps of hardware configurations
BEFORE: Final = "before"  # the last verb of the three
CLEANING: Final = frozenset({State.CLEANING, State.CLEANWAIT, State.CLEANHOLD})
CLEANABLE: Final = frozenset({State.MANAGEABLE, State.CLEANFAIL})


def check_runbooks(instance: OnNode) -> None:
    names = {name: instance.properties[name] for name in ("runbook_before", "runbook_after")}
    names["hardware.runbook"] = (instance.properties["hardware"] or {}).get("runbook")
    for name, ident in names.items():
        if ident and instance.machines.find(RUNBOOK, ident) is None:
            raise stepwise.MachineRefused(f"cannot use {name} {ident}: there is none")


def before(instance: OnNode) -> stepwise.Following:
    node, last = instance.get_node(), instance.record.data.get(BEFORE)
    state = node["provision_state"]
    if state in UNSTABLE_STATES | CLEANING:
        return instance.wait_in("clean", "for the runbook before it to end")
    if state == State.CLEANFAIL and last is not None:
        raise stepwise.MachineFailed(str(node["last_error"]))
    verb = next_verb(state, last, cleans=bool(instance.properties["runbook_before"]))
    if verb is not None:
        return _order_before(instance, node, verb, then="before")
    instance.record.data.pop(BEFORE, None)
    instance.note_move(node)
    return "deploy"


def _order_before(instance: OnNode, node: Json, verb: str, then: str) -> str:
    instance.note_move(node)
    instance.record.data |= {BEFORE: verb, "then": then}
    return "order_before"


def order_before(instance: OnNode) -> str | None:
    data, runbook = instance.record.data, instance.properties["runbook_before"]
    arguments = {"runbook": runbook} if data[BEFORE] == "clean" else {}
    instance.order(data[BEFORE], **arguments)
    return str(data["then"])


def steps_of_hardware(instance: OnNode) -> list[Json]:
    """Return the pending steps of the stack's HardwareConfigurations of the node."""
    steps = [step for each in _hardware(instance) for step in each.steps_for_deployment()]
    instance.record.data[HARDWARE] = bool(steps)
    return steps


def note_hardware(instance: OnNode) -> None:
    if instance.record.data.pop(HARDWARE, False):
        for each in _hardware(instance):
            each.note_deployment()


def _hardware(instance: OnNode) -> list[step_run.HardwareConfiguration]:
    siblings = instance.context.siblings
    return siblings.list(step_run.HardwareConfiguration, instance.node_uuid()) if siblings else []


def bring_back(instance: OnNode, node: Json) -> str | None:
    """Return the step that makes a prepared node available again, or None."""
    state = node["provision_state"]
    if state == State.MANAGEABLE:
        return _order_before(instance, node, "provide", then="release")
    if state == State.CLEANFAIL and is_cleaned_before(instance):
        return _order_before(instance, node, "manage", then="release")
    return None


def is_cleaned_before(instance: OnNode) -> bool:
    """Tell whether runbook_before is the last that was ordered."""
    return instance.record.data.get(BEFORE) == "clean"


def next_verb(state: str, last: str | None, *, cleans: bool) -> str | None:
    """Return the next verb of the preparation, or None if the node can be deployed."""
    if state == State.CLEANFAIL:
        return "manage"
    if state == State.MANAGEABLE:
        return "clean" if cleans and last != "clean" else "provide"
    if state == State.AVAILABLE:
        return "manage" if cleans and last != "provide" else None
    raise stepwise.MachineFailed(f"the node is {state}, and was to be prepared")
