"""BMCs that are gone, hang, or say no: the node tells so in time, and the worker is free."""

from __future__ import annotations

import time

import pytest

from bloomery import errors
from bloomery.drivers.ipmi import tool
from bloomery.lab.ipmi import IpmiRack

SOON_S = 10.0  # a budget of 3 seconds, and a machine that is busy otherwise


@pytest.fixture
def enrol(machine):
    def enrolled(stage, **said):
        return stage.enrol(driver="ipmi", driver_info=machine.driver_info | said)

    return enrolled


def manage(stage, node, state):
    began_at = time.monotonic()
    stage.ask(node, "manage")
    stage.wait_for(node, state)
    return time.monotonic() - began_at


@pytest.mark.sampled
@pytest.mark.parametrize("how", ["pause", "stop"])
def test_a_bmc_that_does_not_answer_fails_verifying_in_time(stage, machine, enrol, how):
    node = enrol(stage)
    getattr(machine, how)()
    took_s = manage(stage, node, "enroll")
    told = stage.show(node)["last_error"]
    assert f"cannot reach the BMC of node {node[:8]} at 127.0.0.1:{machine.port}: no answer" in told
    assert took_s < SOON_S
    assert stage.why(node)["contact"]["bmc"]["last_error"]


@pytest.mark.sampled
@pytest.mark.parametrize("how", ["pause", "stop"])
def test_a_bmc_that_goes_silent_fails_the_power_request_in_time(stage, machine, enrol, how):
    node = enrol(stage)
    manage(stage, node, "manageable")
    getattr(machine, how)()
    began_at = time.monotonic()
    shown = stage.power(node, "rebooting")
    assert "no answer" in shown["last_error"]
    assert shown["target_power_state"] is None
    assert shown["power_state"] == "power off"
    assert time.monotonic() - began_at < SOON_S


def test_a_bmc_that_comes_back_is_used_again(make_stage, machine, enrol):
    stage = make_stage(command_retry_timeout=60)
    node = enrol(stage)
    manage(stage, node, "manageable")
    machine.pause()
    assert stage.try_power(node, "rebooting").status == 202
    machine.resume()
    stage.wait_until_free(node)
    assert stage.show(node)["last_error"] is None
    assert machine.is_on


def test_a_mute_bmc_does_not_slow_its_neighbour(stage, machine, enrol, folder):
    with IpmiRack(folder / "neighbours", nodes=1) as neighbours:
        mute, other = enrol(stage), stage.enrol(
            driver="ipmi", driver_info=neighbours.machines[0].driver_info,
        )  # fmt: skip
        machine.pause()
        stage.ask(mute, "manage")
        took_s = manage(stage, other, "manageable")
        assert stage.standing(mute)[0] == "verifying"
        assert took_s < 3
        stage.wait_for(mute, "enroll")


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"ipmi_password": "wrong"}, "ipmi_password (or ipmi_hex_kg_key) is wrong"),
        ({"ipmi_username": "nobody"}, "ipmi_username is unknown to it"),
        ({"ipmi_cipher_suite": 17}, "does not take this ipmi_cipher_suite"),
        ({"ipmi_address": "no-such-host.invalid"}, "Address lookup for no-such-host.invalid"),
    ],
)
def test_a_bmc_that_does_not_let_us_in_says_why(stage, enrol, said, told):
    node = enrol(stage, **said)
    manage(stage, node, "enroll")
    assert told in stage.show(node)["last_error"]
    assert "wrong" not in stage.show(node)["driver_info"].values()


def test_another_cipher_suite_is_found(make_stage, enrol):
    stage = make_stage(cipher_suite_versions=["3", "17"])
    node = enrol(stage, ipmi_cipher_suite=None)
    manage(stage, node, "manageable")
    assert stage.show(node)["power_state"] == "power off"


def test_the_old_protocol_works(stage, enrol):
    node = enrol(stage, ipmi_protocol_version="1.5", ipmi_cipher_suite=None)
    manage(stage, node, "manageable")


def test_a_machine_that_stays_as_it_is_is_told(stage, machine, enrol):
    node = enrol(stage)
    manage(stage, node, "manageable")
    machine.behave("stuck")
    shown = stage.power(node, "power on")
    assert "took `ipmitool power on` and still reads power off" in shown["last_error"]
    machine.behave("stuck", so=False)
    assert stage.power(node, "power on")["last_error"] is None


def test_a_guest_that_does_not_shut_down_is_told(stage, machine, enrol):
    node = enrol(stage)
    manage(stage, node, "manageable")
    stage.power(node, "power on")
    machine.behave("hard-of-hearing")
    answer = stage.try_power(node, "soft power off", timeout=2)
    assert answer.status == 202
    stage.wait_until_free(node)
    shown = stage.show(node)
    assert "still reads power on" in shown["last_error"]
    assert shown["power_state"] == "power on"


def test_wrong_driver_info_is_refused_before_anything_is_asked(stage, machine, enrol):
    node = enrol(stage, ipmi_port="x")
    answer = stage.try_power(node, "power on")
    assert answer.status == 400
    assert "driver_info/ipmi_port must be a number from 1 to 65535" in answer.said
    assert machine.calls == []


def test_a_port_that_is_taken_keeps_the_rack_from_starting(machine, folder):
    with pytest.raises(errors.CannotStart, match=f"UDP port {machine.port} .* is taken"):
        IpmiRack(folder / "other", nodes=1, port=machine.port).start()


@pytest.fixture
def runs(monkeypatch):
    """What ipmitool was run for."""
    made = []
    run = tool.run

    def counted(info, words, **more):
        made.append(words)
        return run(info, words, **more)

    monkeypatch.setattr(tool, "run", counted)
    return made


def test_a_wrong_password_is_shown_once_until_it_changes(stage, machine, enrol, runs):
    """Each further try may lock the account for everybody."""
    node = enrol(stage, ipmi_password="wrong")
    manage(stage, node, "enroll")
    assert len(runs) == 1
    for _ in range(3):
        manage(stage, node, "enroll")
        assert "left alone" in stage.show(node)["last_error"]
    assert len(runs) == 1
    refused = stage.why(node)["contact"]["bmc"]["login_refused"]
    assert (refused["tries"], bool(refused["next_try_at"])) == (1, True)
    stage.patch(node, **{"driver_info.ipmi_password": machine.driver_info["ipmi_password"]})
    manage(stage, node, "manageable")
    assert stage.show(node)["last_error"] is None
    assert stage.why(node)["contact"]["bmc"]["login_refused"] is None


def test_what_a_user_may_not_do_is_no_refused_login(stage, machine, enrol, runs):
    node = enrol(stage, ipmi_cipher_suite=17)
    manage(stage, node, "enroll")
    assert stage.why(node)["contact"]["bmc"]["login_refused"] is None
    manage(stage, node, "enroll")
    assert len(runs) == 2
