"""A plan of a creation on a named node says whether the node as it is refuses it."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery.db.tables import NODES
from tests.functional.orchestration.test_machines import IMAGE, enrol, ironic
from tests.kit.servers.orchestration import Orchestration, template

STATES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("available", {}), ("active", {}), ("manageable", {}), ("rescue", {}), ("enroll", {}),
    ("available", {"maintenance": True}), ("available", {"retired": True}),
    ("available", {"instance_uuid": "of another"}),
    ("manageable", {"maintenance": True}), ("active", {"maintenance": True}),
)  # fmt: skip
STEPS = [{"interface": "bios", "step": "factory_reset"}]
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "instance": ("OS::Ironic::Instance", {"image": IMAGE}),
    "service": ("OS::Ironic::RunbookExecution", {"steps": STEPS, "mode": "service"}),
    "clean": ("OS::Ironic::RunbookExecution", {"steps": STEPS, "mode": "clean"}),
}
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Orchestration]:
    with Orchestration(tmp_path_factory.mktemp("site") / "state") as running:
        yield running


def node_in(site: Orchestration, state: str, flags: dict[str, Any]) -> str:
    """Enrol a node, and put it into a state; return its name."""
    number = next(NUMBERS)
    if "instance_uuid" in flags:
        flags = {"instance_uuid": str(uuid.uuid4())}
    port = {"address": f"52:54:00:00:08:{number:02x}"}
    enrol(site, f"n{number}", resource_class=f"bm.{number}", ports=[port])
    node = ironic(site, "GET", f"/v1/nodes/n{number}")[1]["uuid"]
    put = sa.update(NODES).where(NODES.c.uuid == node).values(provision_state=state, **flags)
    site.service.db.transact(lambda conn: conn.execute(put))
    return f"n{number}"


def planned(site: Orchestration, resources: dict[str, Any]) -> dict[str, Any]:
    body = {"stack_name": "new", "template": template(resources)}
    status, preview = site.ask("POST", "/stacks/preview", body)
    assert status == 200, preview
    return {step["resource"]: step for step in preview["plan"]["steps"]}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("state", "flags"), STATES)
def test_a_creation_ends_as_its_plan_says(
    site: Orchestration, state: str, flags: dict[str, Any], kind: str
) -> None:
    name = node_in(site, state, flags)
    resource_type, properties = KINDS[kind]
    resources = {"web": {"type": resource_type, "properties": properties | {"node": name}}}
    step = planned(site, resources)["web"]
    path = site.create(f"on-{name}", template(resources))
    end = site.wait_for(path, "CREATE_COMPLETE", "CREATE_FAILED")
    is_made = end["stack_status"] == "CREATE_COMPLETE"
    assert (step["action"] == "create", step["certain"]) == (is_made, is_made), (step, end)
    assert is_made or step["reason"]


@pytest.mark.parametrize(("kind", "status"), [("deploy", 200), ("depoly", 400), ("image", 400)])
def test_an_interface_that_no_node_has_is_refused(
    site: Orchestration, kind: str, status: int
) -> None:
    properties = {"node": "n1", "image": IMAGE, "custom_deploy": {kind: "ramdisk"}}
    resources = {"web": {"type": "OS::Ironic::Instance", "properties": properties}}
    body = {"stack_name": "new", "template": template(resources)}
    answer = site.ask("POST", "/stacks/preview", body)
    assert answer[0] == status, answer
    assert status == 200 or f"no interface is called {kind}" in answer[1]["error"]["message"]


@pytest.mark.parametrize(("gigabytes", "status"), [(5, 400), (0, 200), (None, 200)])
def test_a_partition_that_no_rebuild_keeps_is_not_promised(
    site: Orchestration, gigabytes: int | None, status: int
) -> None:
    properties = {"node": "n1", "image": IMAGE, "image_update_policy": "rebuild_preserve_ephemeral"}
    if gigabytes is not None:
        properties["ephemeral_gb"] = gigabytes
    resources = {"web": {"type": "OS::Ironic::Instance", "properties": properties}}
    body = {"stack_name": "new", "template": template(resources)}
    answer = site.ask("POST", "/stacks/preview", body)
    assert answer[0] == status, answer
    reason = "cannot preserve the ephemeral partition: a rebuild makes all partitions anew"
    assert status == 200 or reason in answer[1]["error"]["message"]


def test_what_the_plan_itself_moves_is_not_refused(site: Orchestration) -> None:
    """A service needs the node active, and the Instance of the same plan deploys it."""
    name = node_in(site, "available", {})
    resources = {
        key: {"type": KINDS[key][0], "properties": KINDS[key][1] | {"node": name}}
        for key in ("instance", "service")
    }
    resources["service"]["depends_on"] = "instance"
    steps = planned(site, resources)
    assert {key: (step["action"], step["certain"]) for key, step in steps.items()} == {
        "instance": ("create", True), "service": ("create", True),
    }  # fmt: skip
