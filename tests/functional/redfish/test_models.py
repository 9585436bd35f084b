"""The life of a machine behind each make of BMC: enrolled, inspected, deployed and torn down."""

from __future__ import annotations

import pytest

from bloomery.lab import models
from tests.functional.redfish.conftest import ISO, manageable
from tests.kit.servers.stories import Stage

OUTCOME_UNKNOWN = {  # what the operator has to set, as the BMC does not tell it
    "supermicro-x10": {"properties.memory_mb": 32768, "properties.local_gb": 100},
}


def life(stage: Stage, machine, model: str) -> str:
    """Take a node from enrolment to the door of a deployment."""
    node = manageable(stage, machine)
    for name, value in OUTCOME_UNKNOWN.get(model, {}).items():
        stage.patch(node, **{name: value})
    stage.ask(node, "inspect")
    assert stage.wait_for(node, "manageable")["last_error"] is None
    stage.ask(node, "provide")
    stage.wait_for(node, "available")
    stage.patch(node, **{"instance_info.boot_iso": ISO})
    return node


@pytest.mark.parametrize("model", [name for name in models.ALL if name != "supermicro-x10"])
def test_a_machine_behind_any_make_is_deployed_and_torn_down(stage, make_rack, model) -> None:
    machine = make_rack(model=model).machines[0]
    node = life(stage, machine, model)
    shown = stage.show(node)["properties"]
    assert {"memory_mb", "local_gb", "cpu_arch", "cpus"} <= set(shown)
    stage.ask(node, "active")
    shown = stage.wait_for(node, "active")
    assert (shown["last_error"], shown["power_state"]) == (None, "power on")
    assert machine.system.booted["image"] == ISO
    stage.ask(node, "deleted")
    shown = stage.wait_for(node, "available")
    assert (shown["last_error"], machine.system.power) == (None, "Off")
    assert set(machine.system.media.values()) == {None}


def test_a_machine_without_a_virtual_cd_is_told_so(stage, make_rack) -> None:
    machine = make_rack(model="supermicro-x10").machines[0]
    node = life(stage, machine, "supermicro-x10")
    machine.system._on = True
    stage.ask(node, "active")
    shown = stage.wait_for(node, "deploy failed")
    assert "its BMC offers no virtual CD or DVD" in shown["last_error"]
    assert "reset ForceOff" not in machine.system.happened
    stage.ask(node, "deleted")
    assert stage.wait_for(node, "available")["last_error"] is None
