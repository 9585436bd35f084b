"""Steps on a machine at which others work, too: what is told is the end of the steps' own flow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bloomery.conductor.states import State
from bloomery.orchestration.resources import stepwise
from bloomery.orchestration.resources.step_run import RunbookExecution
from bloomery.orchestration.resources.stepwise import OUTCOME_UNKNOWN
from bloomery.outcome import Done, FlowOutcome, WaitForCall
from tests.kit.stacks import kinds, trees
from tests.kit.stacks.machine_sites import TAKES_S, Site, make_site, template
from tests.kit.stacks.memory_machines import MemoryMachines
from tests.kit.stacks.row_engines import Engine

STEPS = [{"interface": "bios", "step": "factory_reset"}]


class OvertakenMachines(MemoryMachines):
    """Somebody else cleans a node after the stack has looked at it, and before its order."""

    others_take_s = 0.0

    def __init__(self, **more: Any) -> None:
        super().__init__(**more | {"takes_s": {**TAKES_S, "clean": 0}})
        self.overtaken = False

    def get_node(self, ident: str) -> dict[str, Any]:
        node = super().get_node(ident)
        if self.flows.get(node["uuid"]) is None and self.overtaken:
            self._takes_s = {**self._takes_s, "clean": self.others_take_s}
            self.set_provision_state(node["uuid"], "clean")
            node = super().get_node(ident)
        self.overtaken = True
        return node


class SlowlyOvertakenMachines(OvertakenMachines):
    """Whose other cleaning goes on still."""

    others_take_s = 50.0


class ForgetfulMachines(MemoryMachines):
    """Who keep no flow that has ended."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more | {"takes_s": {**TAKES_S, "clean": 50}})

    def find_flow(self, uuid: str, order_id: str) -> FlowOutcome | None:
        flow = super().find_flow(uuid, order_id)
        return flow if flow is not None and flow.is_open else None


def run_on(kind: type[MemoryMachines], folder: Path) -> Site:
    site = make_site(trees.database(folder), kind, pool=1)
    for node in site.machines.nodes.values():
        node["provision_state"] = "manageable"
    properties = {"node": "p1", "mode": "clean", "steps": STEPS}
    site.create(
        template({"run": {"type": "OS::Ironic::RunbookExecution", "properties": properties}})
    )
    Engine(site.db, site.runtime()).run(site.root)
    return site


@pytest.mark.parametrize("kind", [OvertakenMachines, SlowlyOvertakenMachines])
def test_who_was_overtaken_looks_again_and_runs_its_own_steps(
    kind: type[MemoryMachines], tmp_path: Path
) -> None:
    site = run_on(kind, tmp_path)
    (row,), (flows,) = site.tree().resources, site.machines.flows.values()
    assert (row.status, row.data["result"]) == ("COMPLETE", "success")
    assert [each.verb for each in flows] == ["clean", "clean"]
    assert flows[0].order_id is None
    assert flows[1].order_id is not None


def test_steps_whose_end_nobody_knows_any_more_are_no_success(tmp_path: Path) -> None:
    (row,) = run_on(ForgetfulMachines, tmp_path).tree().resources
    assert (row.status, row.data["result"]) == ("FAILED", OUTCOME_UNKNOWN)


@pytest.mark.parametrize(
    ("state", "end"),
    [
        ("cleaning", WaitForCall), ("clean hold", WaitForCall), ("manageable", Done),
        ("clean failed", stepwise.MachineFailed),
    ],
)  # fmt: skip
def test_steps_that_an_older_engine_has_ordered_end_as_their_node_says(
    state: str, end: type[Any]
) -> None:
    machines = MemoryMachines()
    machines.add_node(State(state), name="p1", uuid=kinds.UUID, last_error="worn")
    properties = {"node": "p1", "mode": "clean", "steps": STEPS, "timeout": 7200}
    run = kinds.made(RunbookExecution, properties, machines=machines)
    run.record.physical_id = kinds.UUID
    run.record.data["step"] = "ran"
    if issubclass(end, Exception):
        with pytest.raises(end):
            run.check_create_complete(None)
        return
    assert isinstance(run.check_create_complete(None), end)
    assert (run.record.data.get("result") == "success") is (end is Done)
