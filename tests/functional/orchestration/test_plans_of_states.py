"""In each state of its node, an update does to an Instance what its plan has said."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery.db.tables import EVENTS, NODES
from tests.functional.orchestration.test_machine_plans import planned
from tests.functional.orchestration.test_machines import IMAGE, enrol, ironic
from tests.kit.servers.orchestration import Orchestration, template

STATES = (
    "active", "rescue", "service failed", "deploy failed", "manageable", "available",
    "clean failed",
)  # fmt: skip
CHANGES: dict[str, dict[str, Any] | None] = {
    "image": {"image": {**IMAGE, "source": "http://images/b.img"}},
    "power": {"power": "off"},
    "hardware": {"hardware": {"bios": {"settings": {"A": "1"}}}},
    "deletion": None,
}
FLAGS = ("protected", "maintenance")
PASSES = {"rebuild": "deploying", "active": "deploying", "service": "servicing",
          "deleted": "deleting", "provide": "cleaning"}  # fmt: skip
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Orchestration]:
    with Orchestration(tmp_path_factory.mktemp("site") / "state") as running:
        yield running


def stack(number: int, **properties: Any) -> dict[str, Any]:
    base = {"selector": {"resource_class": f"bm.{number}"}, "image": IMAGE}
    web = {"type": "OS::Ironic::Instance", "properties": base | properties}
    return template({"web": web})


def moves_of(site: Orchestration, node: str) -> list[str]:
    moved = sa.select(EVENTS.c.facts).where(
        EVENTS.c.object_uuid == node, EVENTS.c.action == "provision_set"
    )
    with site.service.db.read() as conn:
        rows = conn.execute(moved.order_by(EVENTS.c.id)).scalars().all()
    return [json.loads(each)["provision_state"] for each in rows]


@pytest.mark.parametrize(
    ("state", "change", "flag"),
    [(state, change, None) for state in STATES for change in CHANGES]
    + [("active", change, flag) for change in CHANGES for flag in FLAGS],
)
def test_an_update_does_what_its_plan_says(
    site: Orchestration, state: str, change: str, flag: str | None
) -> None:
    number, properties = next(NUMBERS), CHANGES[change]
    port = {"address": f"52:54:00:00:09:{number:02x}"}
    enrol(site, f"n{number}", resource_class=f"bm.{number}", ports=[port])
    path = site.create(f"web{number}", stack(number))
    site.wait_for(path, "CREATE_COMPLETE")
    node = site.resources(path)["web"]["physical_resource_id"]
    values = {"provision_state": state} | ({flag: True} if flag else {})
    put = sa.update(NODES).where(NODES.c.uuid == node).values(values)
    site.service.db.transact(lambda conn: conn.execute(put))

    new = template({}) if properties is None else stack(number, **properties)
    [step] = planned(site, path, new)["steps"]
    if not step["certain"] and flag is None:
        assert f"node n{number} is {state}" in step["reason"]
        return
    before = len(moves_of(site, node))
    assert site.ask("PUT", path, {"template": new})[0] == 202
    end = site.wait_for(path, "UPDATE_COMPLETE", "UPDATE_FAILED")
    moves = moves_of(site, node)[before:]
    fails = step["action"] == "refuse" or not step["certain"]
    assert end["stack_status"] == ("UPDATE_FAILED" if fails else "UPDATE_COMPLETE"), step
    if fails:
        assert (state if flag is None else flag) in step["reason"]
        assert step["loses_data"] is (flag is not None and change in ("image", "deletion"))
        assert moves == []
        return
    passed = {PASSES[verb] for verb in step["verbs"] if verb in PASSES}
    assert passed == {"deploying", "servicing", "deleting", "cleaning"} & {*moves} - (
        {"cleaning"} if "deleted" in step["verbs"] else set()
    ), step  # fmt: skip
    assert step["loses_data"] is bool({"rebuild", "deleted"}.intersection(step["verbs"]))
    power = ironic(site, "GET", f"/v1/nodes/{node}")[1]["power_state"]
    assert (power == "power off") is ("power off" in step["verbs"]), step
