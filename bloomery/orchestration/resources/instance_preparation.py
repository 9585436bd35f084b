"""What is done to a node before the system of an Instance is written: a runbook, hardware.

A runbook cleans it before the first deployment::

prepare -> before <-> order_before -> deploy        manage, clean with the runbook, provide
release <-> order_before                            back again, where it went no further
"""

from __future__ import annotations

from typing import Final

from bloomery.conductor.states import UNSTABLE_STATES, State
from bloomery.orchestration.resources import instance_schema, step_run, stepwise
from bloomery.orchestration.resources.machines import RUNBOOK, Json

HARDWARE: Final = "hardware"  # steps of configurations go along with the deployment
BEFORE: Final = "before"  # the verb that was ordered last, of the three
CLEANING: Final = frozenset({State.CLEANING, State.CLEANWAIT, State.CLEANHOLD})
CLEANABLE: Final = frozenset({State.MANAGEABLE, State.CLEANFAIL})


class Preparation(stepwise.OnNode):
    """The steps of an Instance between the claim of a node and the deployment on it."""

    def check_runbooks(self) -> None:
        """Raise MachineRefused for a runbook that is not there, before a node is looked for."""
        for name in ("runbook_before", "runbook_after"):
            ident = self.properties[name]
            if ident and self.machines.find(RUNBOOK, ident) is None:
                raise stepwise.MachineRefused(f"cannot use {name} {ident}: there is none")

    def step_before(self) -> str | None:
        """Name the verb that comes next, when the one before has ended."""
        node, last = self.get_node(), self.record.data.get(BEFORE)
        state = node["provision_state"]
        if state in UNSTABLE_STATES | CLEANING:
            timeout_s = instance_schema.timeout_s(self.properties, "clean")
            self.wait_for(node["uuid"], timeout_s, "for the runbook before it to end")
        if state == State.CLEANFAIL and last is not None:
            raise stepwise.MachineFailed(str(node["last_error"]))
        verb = next_verb(state, last, cleans=bool(self.properties["runbook_before"]))
        if verb is not None:
            return self._order_before(node, verb, then="before")
        self.record.data.pop(BEFORE, None)
        self.note_move(node)
        return "deploy"

    def _order_before(self, node: Json, verb: str, then: str) -> str:
        self.note_move(node)
        self.record.data |= {BEFORE: verb, "then": then}
        return "order_before"

    def step_order_before(self) -> str | None:
        data, runbook = self.record.data, self.properties["runbook_before"]
        arguments = {"runbook": runbook} if data[BEFORE] == "clean" else {}
        self.order(data[BEFORE], **arguments)
        return str(data["then"])

    def steps_of_hardware(self) -> list[Json]:
        """Return the steps that configurations of the node in the same stack wait with."""
        steps = [step for each in self._hardware() for step in each.steps_for_deployment()]
        self.record.data[HARDWARE] = bool(steps)
        return steps

    def note_hardware(self) -> None:
        """Tell configurations whose steps were taken along that the deployment went well."""
        if self.record.data.pop(HARDWARE, False):
            for each in self._hardware():
                each.note_deployment()

    def _hardware(self) -> list[step_run.HardwareConfiguration]:
        siblings = self.context.siblings
        return siblings.list(step_run.HardwareConfiguration, self.node_uuid()) if siblings else []

    def bring_back(self, node: Json) -> str | None:
        """Return the step that makes a node available that was only being prepared; None: it stays.

        What its last cleaning has failed in is left to the operator.
        """
        state, last = node["provision_state"], self.record.data.get(BEFORE)
        if state == State.MANAGEABLE:
            return self._order_before(node, "provide", then="release")
        if state == State.CLEANFAIL and last == "clean":
            return self._order_before(node, "manage", then="release")
        return None


def next_verb(state: str, last: str | None, *, cleans: bool) -> str | None:
    """Return the verb that brings a node nearer to its deployment; None: it may be deployed.

    ``last``: the verb that has ended; ``cleans``: a runbook is to run.
    """
    if state == State.CLEANFAIL:
        return "manage"
    if state == State.MANAGEABLE:
        return "clean" if cleans and last != "clean" else "provide"
    if state == State.AVAILABLE:
        return "manage" if cleans and last != "provide" else None
    raise stepwise.MachineFailed(f"the node is {state}, and was to be prepared")
