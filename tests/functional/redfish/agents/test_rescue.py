"""A machine that is deployed boots an agent, in which its user logs in, and its instance again."""

from __future__ import annotations

import pytest
from oslo_utils import secretutils

from tests.functional.redfish.agents.conftest import AGENT, IMAGE, INSTANCE, MAC, Ramdisk
from tests.functional.redfish.conftest import manageable
from tests.kit.servers.stories import Stage

PASSWORD = "opensesame"
FINALIZE = "rescue.finalize_rescue"


@pytest.fixture
def active(stage: Stage, node: str) -> str:
    """One that was deployed, for all that its row says."""
    stage.patch(node, rescue_interface="agent")
    stage.site.set(node, provision_state="active", power_state="power on")
    return node


def rescue(stage: Stage, node: str, ramdisk: Ramdisk) -> tuple[str, str | None]:
    stage.ask(node, "rescue", rescue_password=PASSWORD)
    shown = ramdisk.live_until(node, "rescue", "rescue failed")
    return shown["provision_state"], shown["last_error"]


def test_a_rescue_sets_the_password_and_an_unrescue_boots_the_disk(stage, active, machine, ramdisk):
    assert stage.api.get(f"/v1/nodes/{active}/validate").json["rescue"] == {"result": True}
    assert rescue(stage, active, ramdisk) == ("rescue", None)
    assert ramdisk.server.told == ["boot", FINALIZE]
    told = ramdisk.server.params[FINALIZE]
    assert told["hashed"] is True
    assert told["rescue_password"].startswith("$5$")
    crypted = secretutils.crypt_password(PASSWORD, told["rescue_password"])
    assert crypted == told["rescue_password"]
    assert (machine.system.power, machine.system.booted["image"]) == ("On", AGENT)
    stage.ask(active, "unrescue")
    shown = ramdisk.live_until(active, "active", "unrescue failed")
    assert (shown["provision_state"], shown["last_error"]) == ("active", None)
    assert "rescue_password" not in shown["instance_info"]
    assert (machine.system.power, machine.system.booted["target"]) == ("On", "Hdd")
    assert machine.system.media == {"Cd": None}


def test_the_password_is_in_no_log_and_no_answer(stage, active, ramdisk, caplog):
    caplog.set_level("DEBUG")
    assert rescue(stage, active, ramdisk) == ("rescue", None)
    hashed = ramdisk.server.params[FINALIZE]["rescue_password"]
    for secret in (PASSWORD, hashed):
        assert secret not in caplog.text
        assert secret not in stage.api.get(f"/v1/nodes/{active}").body.decode()


def test_an_agent_whose_answer_is_lost_has_the_password(stage, active, ramdisk):
    ramdisk.server.loses_answers_to.add(FINALIZE)
    assert rescue(stage, active, ramdisk) == ("rescue", None)
    assert ramdisk.server.told == ["boot", FINALIZE]


def test_an_agent_that_refuses_the_password_is_taken_away(stage, active, machine, ramdisk):
    ramdisk.server.refuses[FINALIZE] = 500
    state, said = rescue(stage, active, ramdisk)
    assert (state, "refused rescue.finalize_rescue" in str(said)) == ("rescue failed", True), said
    assert (machine.system.power, machine.system.media) == ("Off", {"Cd": None})
    assert "rescue_password" not in stage.show(active)["instance_info"]
    stage.ask(active, "unrescue")
    assert ramdisk.live_until(active, "active")["last_error"] is None


def test_an_abort_takes_the_agent_away(stage, active, machine):
    stage.ask(active, "rescue", rescue_password=PASSWORD)
    stage.wait_for(active, "rescue wait")
    stage.ask(active, "abort")
    stage.wait_for(active, "rescue failed")
    assert (machine.system.power, machine.system.media) == ("Off", {"Cd": None})


def test_a_rescued_machine_is_undeployed_and_cleaned(stage, active, machine, ramdisk):
    assert rescue(stage, active, ramdisk) == ("rescue", None)
    stage.ask(active, "deleted")
    shown = ramdisk.live_until(active, "available", "clean failed")
    assert (shown["provision_state"], shown["last_error"]) == ("available", None)
    assert machine.system.media == {"Cd": None}


@pytest.mark.parametrize(
    ("named", "image"),
    [({"rescue_iso": AGENT, "deploy_iso": IMAGE}, AGENT), ({"deploy_iso": AGENT}, AGENT)],
    ids=["an ISO of its own", "that of deployments"],
)
def test_a_rescue_boots_what_is_named_for_it(stage, machine, server, named, image):
    node = manageable(stage, machine, **named)
    stage.patch(node, deploy_interface="direct", rescue_interface="agent", instance_info=INSTANCE)
    stage.api.post("/v1/ports", {"node_uuid": node, "address": MAC})
    stage.site.set(node, provision_state="active")
    assert rescue(stage, node, Ramdisk(stage, machine, server)) == ("rescue", None)
    assert machine.system.booted["image"] == image


def test_what_a_rescue_lacks_is_named_before_anything_is_done(stage, machine):
    node = manageable(stage, machine)
    stage.patch(node, rescue_interface="agent")
    stage.site.set(node, provision_state="active")
    refusal = stage.api.get(f"/v1/nodes/{node}/validate").json["rescue"]
    assert (refusal["result"], "deploy_iso" in refusal["reason"]) == (False, True)
    before = list(machine.system.happened)
    answer = stage.api.put(
        f"/v1/nodes/{node}/states/provision", {"target": "rescue", "rescue_password": PASSWORD}
    )
    assert (answer.status, "deploy_iso" in str(answer.json)) == (500, True)  # as Ironic
    assert machine.system.happened == before
