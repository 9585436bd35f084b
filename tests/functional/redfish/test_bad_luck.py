"""What a BMC does wrong reaches the node in words, in time, and no other node notices."""

from __future__ import annotations

import socket
import time

import pytest

from bloomery import errors
from tests.functional.redfish.conftest import available, enrol, manageable

SILENCE_S = 30  # of a mute BMC; a call that gives up earlier has a limit of its own
MUTE = "it accepted the connection and gave no answer within 1 s"

# fault of every request, what last_error then says
FAULTS = [
    ({"kind": "status", "status": 500}, "it answers HTTP 500: lab fault"),
    ({"kind": "status", "status": 503}, "it answers HTTP 503: lab fault"),
    ({"kind": "status", "status": 401}, "refused: the user name or the password (HTTP 401"),
    ({"kind": "status", "status": 403}, "(HTTP 403: lab fault)"),
    ({"kind": "status", "status": 404}, "HTTP 404: lab fault: "),
    ({"kind": "hang", "seconds": SILENCE_S}, MUTE),
    ({"kind": "delay", "seconds": SILENCE_S}, MUTE),
    ({"kind": "reset"}, "Connection reset by peer"),
    ({"kind": "truncate"}, "its answer broke off"),
    ({"kind": "nojson"}, "its answer is not JSON"),
    ({"kind": "expire"}, "refused: the user name or the password"),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("fault", "told"), FAULTS, ids=[str(f) for f, _ in FAULTS])
def test_a_bmc_that_is_broken_fails_verification_in_words(stage, machine, fault, told) -> None:
    machine.bmc.faults.add(times=-1, **fault)
    node = enrol(stage, machine)
    began_at = time.monotonic()
    stage.ask(node, "manage")
    shown = stage.wait_for(node, "enroll")
    assert time.monotonic() - began_at < SILENCE_S
    assert told in shown["last_error"]
    assert machine.address in shown["last_error"]


@pytest.mark.sampled
@pytest.mark.parametrize(("fault", "told"), FAULTS[:-1], ids=[str(f) for f, _ in FAULTS[:-1]])
def test_a_bmc_that_breaks_later_fails_a_power_change_in_words(stage, machine, fault, told) -> None:
    node = manageable(stage, machine)
    machine.bmc.faults.add(times=-1, **fault)
    began_at = time.monotonic()
    shown = stage.power(node, "power on")
    assert time.monotonic() - began_at < SILENCE_S
    assert told in shown["last_error"]
    assert (shown["power_state"], shown["target_power_state"]) == ("power off", None)


@pytest.mark.sampled
@pytest.mark.parametrize("kind", ["reset", "truncate", "nojson", "status"])
def test_one_bad_answer_to_a_read_is_no_failure(stage, machine, kind) -> None:
    node = enrol(stage, machine)
    machine.bmc.faults.add(kind=kind, path="/Systems/")
    stage.ask(node, "manage")
    assert stage.wait_for(node, "manageable")["last_error"] is None


@pytest.mark.sampled
@pytest.mark.parametrize("fault", [{"kind": "after"}, {"kind": "status"}, {"kind": "reset"}])
def test_an_order_without_a_clear_answer_is_looked_after(stage, machine, fault) -> None:
    node = manageable(stage, machine)
    machine.bmc.faults.add(path="Reset", **fault)
    assert stage.power(node, "power on")["last_error"] is None
    assert machine.system.power == "On"


def test_a_machine_that_does_not_move_is_given_up_in_time(stage, machine) -> None:
    node = manageable(stage, machine)
    machine.bmc.faults.add(kind="stuck", times=-1)
    shown = stage.power(node, "power on")
    assert "did not get there within 3 s, asked 3 times; at last" in shown["last_error"]
    assert "redfish_power" not in stage.site.node(node).driver_internal_info


@pytest.mark.parametrize(
    ("setting", "value", "path"),
    [("boot_mode", "bios", r"/Systems/[^/]+$"), ("secure_boot", True, "SecureBoot$")],
)
@pytest.mark.parametrize("next_value", ["the same", "what it is"])
def test_an_error_of_a_boot_setting_is_gone_once_it_is_so(
    stage, machine, setting, value, path, next_value
) -> None:
    node = manageable(stage, machine)
    now = stage.site.node(node)
    machine.bmc.faults.add(kind="status", status=400, path=path, method="PATCH", times=2)
    put(stage, node, setting, value)
    assert "refused: HTTP 400: lab fault" in stage.show(node)["last_error"]
    machine.bmc.faults.clear()
    put(stage, node, setting, value if next_value == "the same" else getattr(now, setting))
    assert stage.show(node)["last_error"] is None
    assert len(stage.errors(node)) == 1, "the history keeps it"


def put(stage, node: str, setting: str, value) -> None:
    answer = stage.api.put(f"/v1/nodes/{node}/states/{setting}", {"target": value})
    assert answer.status == 202, answer.body
    stage.wait_until_free(node)


def test_a_bmc_that_cannot_have_the_image_fails_the_deployment_in_words(stage, machine) -> None:
    node = available(stage, machine)
    machine.bmc.faults.add(kind="status", status=400, path="InsertMedia", times=-1)
    stage.ask(node, "active")
    shown = stage.wait_for(node, "deploy failed")
    assert "deploy step" in shown["last_error"]
    assert "refused: HTTP 400: lab fault" in shown["last_error"]


@pytest.mark.parametrize(
    ("info", "told"),
    [
        ({"redfish_password": "mistyped"}, "refused: the user name or the password (HTTP 401"),
        ({"redfish_address": "http://127.0.0.1:1"}, "Connection refused"),
        ({"redfish_address": "http://bmc.invalid"}, "at http://bmc.invalid: "),
        ({"redfish_system_id": "/redfish/v1/Systems/9"}, "no such resource: 9"),
    ],
)
def test_a_mistake_in_driver_info_is_named(stage, machine, info, told) -> None:
    node = enrol(stage, machine, **info)
    stage.ask(node, "manage")
    assert told in stage.wait_for(node, "enroll")["last_error"]


def test_a_connection_that_nobody_answers_is_given_up(stage, machine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hole:
        address = f"http://127.0.0.1:{hole.getsockname()[1]}"
        node = enrol(stage, machine, redfish_address=address)
        stage.ask(node, "manage")
        assert MUTE in stage.wait_for(node, "enroll")["last_error"]


def test_a_bmc_that_failed_too_often_is_left_alone_but_for_who_asks_now(stage, machine) -> None:
    node = enrol(stage, machine)
    machine.bmc.faults.add(kind="status", status=503, times=-1)
    for _ in range(3):
        stage.ask(node, "manage")
        stage.wait_for(node, "enroll")
    told = stage.why(node)["contact"]["bmc"]
    assert told["left_alone"] is True
    assert told["next_try_at"] is not None
    asked = machine.bmc.requests
    with stage.site.acquire(node) as task, pytest.raises(errors.BmcLeftAlone) as alone:
        task.driver.power.get_power_state(task)
    assert "HTTP 503: lab fault (left alone after 3 failures in a row" in str(alone.value)
    assert machine.bmc.requests == asked
    stage.ask(node, "manage")
    stage.wait_for(node, "enroll")
    assert machine.bmc.requests == asked + 1
    machine.bmc.faults.clear()
    stage.ask(node, "manage")
    assert stage.wait_for(node, "manageable")["last_error"] is None
    assert stage.why(node)["contact"]["bmc"]["left_alone"] is False


def test_an_order_of_a_boot_device_tries_a_bmc_at_once_and_a_look_does_not(stage, machine) -> None:
    node = manageable(stage, machine)
    boot_device = f"/v1/nodes/{node}/management/boot_device"
    machine.bmc.faults.add(kind="status", status=503, times=-1)
    for _ in range(3):
        assert stage.api.get(boot_device).status == 502
    asked = machine.bmc.requests
    assert b"left alone after 3 failures" in stage.api.get(boot_device).body
    assert machine.bmc.requests == asked
    machine.bmc.faults.clear()
    assert stage.api.put(boot_device, {"boot_device": "pxe"}).status == 204
    assert stage.api.get(boot_device).json["boot_device"] == "pxe"


def test_a_wrong_password_is_shown_once_however_often_it_is_asked_for(stage, machine) -> None:
    node = enrol(stage, machine, redfish_password="mistyped")
    for _ in range(4):
        stage.ask(node, "manage")
        shown = stage.wait_for(node, "enroll")
    assert machine.bmc.refused == 1
    assert "(left alone after 1 failure since" in shown["last_error"]
    assert stage.why(node)["contact"]["bmc"]["login_refused"]["tries"] == 1
    stage.patch(node, **{"driver_info.redfish_password": machine.password})
    stage.ask(node, "manage")
    assert stage.wait_for(node, "manageable")["last_error"] is None


def test_a_conductor_that_ends_gives_its_sessions_back(stage, machine) -> None:
    manageable(stage, machine)
    assert len(machine.bmc.sessions) == 1
    stage.site.service.stop()
    assert machine.bmc.sessions == {}


def test_dead_bmcs_do_not_slow_down_a_living_one(stage, make_rack) -> None:
    *dead, living = make_rack(nodes=9).machines
    for machine in dead:
        machine.bmc.faults.add(kind="hang", seconds=30, times=-1)
    mute = [enrol(stage, machine) for machine in dead]
    for node in mute:
        stage.ask(node, "manage")
    node = enrol(stage, living)
    stage.ask(node, "manage")
    stage.wait_for(node, "manageable")
    still_waiting = [n for n in mute if stage.standing(n)[0] == "verifying"]
    assert still_waiting, "the living one had to wait for the dead"
    for node in mute:
        assert MUTE in stage.wait_for(node, "enroll")["last_error"]
