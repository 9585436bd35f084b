"""What is said no to is told in plain words, and names what is meant."""

from __future__ import annotations

import dataclasses
import threading

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.redfish import Redfish
from bloomery.drivers.redfish import access, reset
from tests.kit.machines.driver_task import FakeTask


def missing(machine, path):
    machine.bmc.faults.add(kind="status", status=404, path=path, times=-1)


def power(system):
    return system.power_state.value


def test_what_the_library_refuses_is_told_with_the_allowed_values_in_words(conf, task):
    import sushy

    def refuse(system):
        allowed = {sushy.BootSource.PXE, sushy.BootSource.HDD}
        raise sushy.exceptions.InvalidParameterValueError(
            parameter="target", value=sushy.BootSource.CD, valid_values=allowed
        )

    with pytest.raises(errors.InvalidParameterValue) as told:
        access.of(conf).change(task, refuse)
    said = str(told.value)
    assert 'does not offer it: The parameter "target" value "Cd" is invalid.' in said
    assert "Pxe" in said
    assert "Hdd" in said
    assert not [mark for mark in ("<", "{", "BootSource") if mark in said]


def test_a_missing_system_advises_to_check_its_id(conf, task, machine):
    missing(machine, "/Systems/")
    with pytest.raises(errors.BmcRefused, match=r"HTTP 404.*check driver_info/redfish_system_id"):
        access.of(conf).read(task, power)


def test_a_missing_service_advises_to_check_the_address(conf, task, machine):
    missing(machine, "/redfish/v1/?$")
    with pytest.raises(errors.BmcRefused, match=r"no Redfish.*check driver_info/redfish_address"):
        access.of(conf).read(task, power)


def test_any_other_missing_document_is_named(conf, task, machine):
    missing(machine, "/Bios$")
    with pytest.raises(errors.BmcRefused) as told:
        access.of(conf).read(task, lambda system: system.bios)
    assert f"it has no {machine.system_id}/Bios" in str(told.value)
    assert "redfish_system_id" not in str(told.value)


@pytest.mark.parametrize(
    ("message_id", "message", "is_busy"),
    [
        ("Base.1.8.ResourceInUse", "The change failed because of a transition.", True),
        ("iLO.2.14.UnableToModifyDuringSystemPOST", "Try later.", True),
        ("Base.1.8.GeneralError", "Another update is in progress.", True),
        ("Base.1.8.GeneralError", "A task of this volume is already running.", True),
        ("Base.1.8.ResourceAlreadyExists", "The volume exists already.", False),
        ("Base.1.8.GeneralError", "A POST to this resource conflicts with its state.", False),
    ],
)
def test_a_busy_bmc_is_told_from_one_that_refuses(
    conf, task, machine, message_id, message, is_busy
):
    info = [{"MessageId": message_id, "Message": message, "Severity": "Warning"}]
    body = {"error": {"code": "Base.1.8.GeneralError", "@Message.ExtendedInfo": info}}
    machine.bmc.faults.add(kind="status", status=409, path="Reset", body=body)
    with pytest.raises(errors.BmcRefused) as refused:
        access.of(conf).change(task, lambda system: reset.send(system, "ForceOff"))
    answer = f"HTTP 409: {message}"
    busy = f"it is busy and did not do it ({answer}): ask again when that has ended"
    assert str(refused.value).endswith(f" refused: {busy if is_busy else answer}")
    assert refused.value.facts["http_status"] == 409


def test_a_system_that_was_found_is_looked_for_again_when_it_is_gone(conf, machine, rack):
    info = {k: v for k, v in machine.driver_info.items() if k != "redfish_system_id"}
    task, way = FakeTask(info), access.of(conf)
    assert way.read(task, power) == "Off"
    before = machine.bmc.requests
    assert way.read(task, power) == "Off"
    assert machine.bmc.requests == before + 1
    machine.bmc.faults.add(kind="status", status=404, path="/Systems/")
    with pytest.raises(errors.BmcRefused):
        way.read(task, power)
    before = machine.bmc.requests
    assert way.read(task, power) == "Off"
    assert machine.bmc.requests == before + 2


def test_two_calls_at_a_time_show_a_wrong_password_once(conf, machine):
    task = FakeTask(machine.driver_info | {"redfish_password": "mistyped"})
    way, together = access.of(conf), threading.Barrier(2)
    said = []

    def ask():
        together.wait(10)
        try:
            way.read(task, power)
        except errors.Failure as exc:
            said.append(type(exc))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(kind.__name__ for kind in said) == ["BmcLoginLeftAlone", "BmcLoginRefused"]
    assert machine.bmc.refused == 1


@pytest.mark.parametrize("password", ["pass  word 1", "tab\tbed word", "bra{ce}s in it"])
@pytest.mark.parametrize("echo", [str, lambda password: " ".join(password.split())])
def test_a_password_with_blanks_is_told_to_nobody(conf, machine, password, echo):
    import sushy

    task = FakeTask(
        machine.driver_info | {"redfish_password": password, "redfish_auth_type": "basic"}
    )

    def refuse(_system):
        raise sushy.exceptions.InvalidParameterValueError(
            parameter="target", value=f"you sent {echo(password)} to us", valid_values=()
        )

    machine.bmc.rules = dataclasses.replace(machine.bmc.rules, users={"admin": password})
    with pytest.raises(errors.InvalidParameterValue, match=r"you sent \*{6} to us"):
        access.of(conf).read(task, refuse)


def test_silence_names_the_time_that_was_waited_and_blames_nobody_for_a_short_one(machine):
    """The breaker counts a BMC that had its time, and not a caller who had less."""
    conf = dataclasses.replace(Conf(), redfish=Redfish(connect_timeout=1, read_timeout=30))
    task, way = FakeTask(machine.driver_info), access.of(conf)
    assert way.read(task, power) == "Off"
    machine.bmc.faults.add(kind="hang", seconds=30, path="/Systems/", times=-1)
    task.budget_s, task.reads = 0.4, {}
    with pytest.raises(errors.BmcUnreachable, match=r"no answer within \d(\.\d)? s \(the rest"):
        way.read(task, power)
    assert way.bmc(task).is_suspect
    assert way.bmc(task).breaker.failures == 0
