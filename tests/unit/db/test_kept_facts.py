"""What rows tell of a node long after: its last cleaning, and its leaks."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from bloomery import errors
from bloomery.db import engine, nodes, steps
from bloomery.model.node import LEAKS, RingShare
from bloomery.model.step import Run, Step, StepRun

ALL = [RingShare("", ("fake-hardware",), None)]
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PREPARE = Step(interface="deploy", step="prepare_cleaning", internal=True)
ERASE = Step(interface="deploy", step="erase_devices")
ON_CHILD = Step(interface="power", step="power_on", child="some")


def flow(node: str, name: str, *runs: tuple[Step, Run], phase: str = "clean") -> list[StepRun]:
    return [
        StepRun(
            flow=name, node_uuid=node, phase=phase, position=at, step=step, state=state,
            started_at=AT,
        )
        for at, (step, state) in enumerate(runs)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        ([], "good"),
        ([flow("NODE", "newer", (ERASE, Run.DONE))], "newer"),
        ([flow("NODE", "failed", (ERASE, Run.DONE), (ERASE, Run.FAILED))], "good"),
        ([flow("NODE", "runs", (ERASE, Run.DONE), (ERASE, Run.RUNNING))], "good"),
        ([flow("NODE", "cut", (ERASE, Run.DONE), (ERASE, Run.SKIPPED))], "good"),
        ([flow("NODE", "nothing", (PREPARE, Run.DONE))], "good"),
        ([flow("NODE", "child", (PREPARE, Run.DONE), (ON_CHILD, Run.DONE))], "good"),
        ([flow("NODE", "deploy", (ERASE, Run.DONE), phase="deploy")], "good"),
    ],
    ids=["alone", "newer", "failed", "runs", "cut", "nothing", "child", "another phase"],
)
def test_the_latest_flow_that_ended_well_is_the_last_cleaning(
    db: engine.Database, add_node: Any, later: list[list[StepRun]], expected: str
) -> None:
    node = db.transact(add_node)
    flows = [flow(node, "good", (PREPARE, Run.DONE), (ERASE, Run.DONE)), *later]
    for runs in flows:
        for run in runs:
            run.node_uuid = node
        db.transact(lambda conn, runs=runs: steps.insert(conn, steps.encode(runs)))
    with db.read() as conn:
        assert {run.flow for run in steps.list_complete(conn, node, "clean")} == {expected}
        assert steps.list_complete(conn, node, "service") == []


def test_nodes_with_leaks_are_listed_in_whatever_state(db: engine.Database, add_node: Any) -> None:
    leak = {"driver_internal_info": {LEAKS: {"since": AT.isoformat(), "detectors": ["a"]}}}
    states: dict[str, dict[str, Any]] = {
        "active": {"provision_state": "active"},
        "free": {"provision_state": "available"},
        "leaking": {"provision_state": "available", "maintenance": True} | leak,
        "leaking, active": {"provision_state": "active"} | leak,
        "maintenance": {"provision_state": "active", "maintenance": True},
    }
    names = {
        db.transact(lambda conn, values=values: add_node(conn, **values)): name
        for name, values in states.items()
    }
    with db.read() as conn:
        rows = nodes.list_for_sensors(conn, ALL, also_free=False)
    assert {names[row.key.uuid]: bool(row.has_leaks) for row in rows} == {
        "active": False, "leaking": True, "leaking, active": True,
    }  # fmt: skip
    for also_free in (False, True):
        with db.read() as conn:
            rows = nodes.list_for_sensors(conn, ALL, also_free=also_free)
            listed = {row.key.uuid for row in rows}
            for uuid, name in names.items():
                facts = nodes.get_sensor_facts(conn, uuid, also_free=also_free)
                assert facts == (uuid in listed, states[name].get("maintenance", False))
    with db.read() as conn, pytest.raises(errors.NodeNotFound):
        nodes.get_sensor_facts(conn, "nobody", also_free=True)
