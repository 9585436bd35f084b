"""Power on request: on, off, reboot and the soft forms."""

from __future__ import annotations

import datetime as dt

import pytest

from bloomery import errors
from tests.kit.machines.bmc import UNREACHABLE, FakeBmc
from tests.kit.waiting import wait_for

ENDS = {
    "power on": "power on", "rebooting": "power on", "soft rebooting": "power on",
    "power off": "power off", "soft power off": "power off",
}  # fmt: skip


@pytest.fixture
def node(stage):
    return stage.bring_to("manageable")


@pytest.fixture
def bmc():
    return FakeBmc()


@pytest.fixture
def watched(make_stage, bmc):
    """A stage whose BMCs are told by the story what to say."""
    return make_stage(registry=bmc.registry(), node_locked_retry_attempts=0)


def changes(stage, node):
    return [(told["to_power"], told["power_state"]) for told in stage.facts(node, "power_set")]


@pytest.mark.parametrize("target", ENDS)
def test_each_target_ends_where_it_should(stage, node, target):
    shown = stage.power(node, target)
    assert stage.power_of(node) == (ENDS[target], None)
    assert shown["last_error"] is None
    assert stage.told(node)[-2:] == ["power_set.start", "power_set.end"]
    assert changes(stage, node) == [(target, None), (target, ENDS[target])]
    assert stage.facts(node, "power_set")[0]["target_power_state"] == ENDS[target]
    changed_at = shown["driver_internal_info"]["last_power_state_change"]
    assert dt.datetime.fromisoformat(changed_at).tzinfo is None
    assert stage.standing(node) == ("manageable", None)


def test_power_is_allowed_before_the_node_was_checked(stage):
    node = stage.enrol()
    stage.power(node, "power on")
    assert stage.power_of(node) == ("power on", None)
    assert stage.standing(node) == ("enroll", None)


@pytest.mark.parametrize(
    ("there", "targets"),
    [("power on", ["power on"]), ("power off", ["power off", "soft power off"])],
)
def test_hardware_that_is_there_already_is_not_asked(watched, bmc, there, targets):
    node = watched.bring_to("manageable")
    watched.power(node, there)
    before = len(bmc.orders)
    for target in targets:
        watched.power(node, target)
        assert watched.told(node)[-2:] == ["power_set.start", "power_set.end"]
    assert len(bmc.orders) == before
    assert watched.power_of(node) == (there, None)


def test_reboot_is_asked_even_where_power_is_on(watched, bmc):
    node = watched.bring_to("manageable")
    watched.power(node, "power on")
    watched.power(node, "rebooting")
    assert [state for state, _ in bmc.orders] == ["power on", "rebooting"]


def test_refusal_of_the_bmc_is_told(stage, node):
    stage.power(node, "power on")
    stage.behave(node, fail=["power.set_power_state"])
    shown = stage.power(node, "power off")
    assert stage.power_of(node) == ("power on", None)
    assert "power.set_power_state was told to fail" in shown["last_error"]
    assert stage.errors(node) == [shown["last_error"]]
    assert stage.told(node)[-2:] == ["power_set.start", "power_set.error"]
    assert stage.care(node) == (False, None)
    assert stage.steps(node, "power")[-1] == ("power.change", "failed")
    stage.behave(node)
    assert stage.power(node, "power off")["last_error"] is None


def test_bmc_that_cannot_be_read_is_told(watched, bmc):
    node = watched.bring_to("manageable")
    bmc.reads = UNREACHABLE
    shown = watched.power(node, "power on")
    assert "no route" in shown["last_error"]
    assert watched.power_of(node) == (None, None)


@pytest.mark.parametrize("target", ["power off", "soft power off"])
def test_node_that_may_not_be_switched_off_is_not(stage, node, target):
    stage.power(node, "power on")
    stage.patch(node, disable_power_off=True)
    answer = stage.try_power(node, target)
    assert answer.status == 409
    assert "disable_power_off" in answer.said
    assert stage.power_of(node) == ("power on", None)
    stage.power(node, "rebooting")
    assert stage.power_of(node) == ("power on", None)


def test_what_is_asked_shows_while_the_bmc_works(watched, bmc):
    node = watched.bring_to("manageable")
    bmc.is_busy = True
    assert watched.try_power(node, "power on").status == 202
    assert watched.power_of(node) == (None, "power on")
    assert watched.show(node)["reservation"] == watched.site.runtime.host
    wait_for(lambda: watched.steps(node, "power") == [("power.change", "again")], "a busy BMC")
    told = watched.why(node)
    assert told["lock"]["purpose"] == "power on"
    assert told["step"]["reason"] == "the BMC is busy"
    assert told["next_action"] == "wait: step power.change of power runs"
    assert watched.try_power(node, "power off").status == 409
    bmc.is_busy = False
    watched.wait_until_free(node)
    assert watched.power_of(node) == ("power on", None)


def test_soft_forms_are_given_the_configured_time(make_stage, bmc):
    stage = make_stage(registry=bmc.registry(), soft_power_off_timeout=77)
    node = stage.bring_to("manageable")
    for target in ("power on", "soft power off", "soft rebooting"):
        stage.power(node, target)
    stage.power(node, "power off", timeout=5)
    assert bmc.orders == [
        ("power on", None), ("soft power off", 77.0), ("soft rebooting", 77.0), ("power off", 5),
    ]  # fmt: skip


def test_power_that_takes_longer_than_it_may_fails(make_stage):
    stage = make_stage(soft_power_off_timeout=1)
    node = stage.bring_to("manageable")
    stage.power(node, "power on")
    stage.behave(node, delay={"power.set_power_state": 60})
    shown = stage.power(node, "soft power off")
    assert "took more than 1 s" in shown["last_error"]
    assert stage.power_of(node) == ("power on", None)


def test_node_that_lacks_something_is_told_at_once(watched, bmc):
    node = watched.enrol()
    bmc.usable = errors.MissingParameterValue(reason="missing driver_info/address")
    answer = watched.try_power(node, "power on")
    assert answer.status == 400
    assert "driver_info/address" in answer.said
    assert watched.power_of(node) == (None, None)


def test_error_of_a_failed_node_is_cleared_by_an_order(stage, node):
    """As in Ironic, which clears it before the worker starts."""
    stage.behave(node, fail=["vendor"])
    stage.ask(node, "provide")
    stage.wait_for(node, "clean failed")
    assert stage.power(node, "power on")["last_error"] is None


@pytest.mark.parametrize(
    ("what", "value"), [("boot_mode", "uefi"), ("boot_mode", "bios"), ("secure_boot", True)]
)
def test_fake_hardware_takes_boot_mode_and_secure_boot(stage, what, value):
    node = stage.bring_to("manageable")
    assert stage.api.put(f"/v1/nodes/{node}/states/{what}", {"target": value}).status == 202
    stage.wait_until_free(node)
    shown = stage.show(node)
    assert (shown[what], shown["last_error"]) == (value, None)
    stage.behave(node, fail=["management"])
    other = {"uefi": "bios", "bios": "uefi", True: False}[value]
    stage.api.put(f"/v1/nodes/{node}/states/{what}", {"target": other})
    stage.wait_until_free(node)
    assert "was told to fail" in stage.show(node)["last_error"]
    assert stage.show(node)[what] == value
