"""What is said no to is told in plain words, and names what is meant."""

from __future__ import annotations

import dataclasses
import json
import threading

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.drivers import Redfish
from bloomery.drivers.redfish import access, boot_device, reset, wire
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


NO_RIGHT = "The user has no privilege for it."
REFUSALS = {  # id: status, message id, message, headers, error, words of the sentence
    "resource in use": (
        409, "Base.1.8.ResourceInUse", "The change failed because of a transition.", {},
        errors.BmcBusy, "is busy: it did not do that (HTTP 409: The change",
    ),
    "in POST": (
        409, "iLO.2.14.UnableToModifyDuringSystemPOST", "Try later.", {},
        errors.BmcBusy, "is busy: the machine is in POST (HTTP 409: Try later.): ask again when",
    ),
    "in POST, by 400": (
        400, "iLO.2.14.InvalidOperationForSystemState", "Try later.", {},
        errors.BmcBusy, "the machine is in POST (HTTP 400: Try later.)",
    ),
    "in progress": (
        409, "Base.1.8.GeneralError", "Another update is in progress.", {},
        errors.BmcBusy, "it did not do that (HTTP 409: Another update is in progress.)",
    ),
    "a task runs": (
        409, "Base.1.8.GeneralError", "A task of this volume is already running.", {},
        errors.BmcBusy, "ask again when that has ended",
    ),
    "exists already": (
        409, "Base.1.8.ResourceAlreadyExists", "The volume exists already.", {},
        errors.BmcRefused, "refused: HTTP 409: The volume exists already.",
    ),
    "POST is a method here": (
        409, "Base.1.8.GeneralError", "A POST to this resource conflicts with its state.", {},
        errors.BmcRefused, "refused: HTTP 409: A POST to this",
    ),
    "locked": (423, "Base.1.8.GeneralError", "-", {}, errors.BmcBusy, "it did not do that"),
    "too many requests": (429, "Base.1.8.GeneralError", "-", {}, errors.BmcBusy, "HTTP 429"),
    "asks to come again": (
        503, "Base.1.8.GeneralError", "Not now.", {"Retry-After": "7"},
        errors.BmcBusy, "it did not do that (HTTP 503: Not now.)",
    ),
    "licence": (
        403, "iLO.2.14.LicenseKeyRequired", "A license is needed.", {},
        errors.BmcRefused, "it has no licence for that (HTTP 403: A license is needed.): add",
    ),
    "licence, by 401": (
        401, "SMC.1.0.OemLicenseNotPassed", "Not licensed: OOB.", {},
        errors.BmcRefused, "it has no licence for that (HTTP 401: Not licensed: OOB.)",
    ),
    "lockdown": (
        403, "IDRAC.2.5.SYS443", "Unable to do it in System Lockdown mode.", {},
        errors.BmcRefused, "it is locked down (HTTP 403: Unable to do it in System Lockdown mode.)",
    ),
    "password change": (
        403, "Base.1.13.0.PasswordChangeRequired", "Change it.", {},
        errors.BmcPasswordChangeRequired,
        "its password must be changed first (HTTP 403: Change it.)",
    ),
    "right": (
        403, "Base.1.8.InsufficientPrivilege", NO_RIGHT, {},
        errors.BmcRefused, f"redfish_username may not do that (HTTP 403: {NO_RIGHT}): give it",
    ),
    "right, by 401": (
        401, "Base.1.8.GeneralError", NO_RIGHT, {},
        errors.BmcRefused, f"may not do that (HTTP 401: {NO_RIGHT})",
    ),
    "no such method": (
        405, "Base.1.8.GeneralError", "-", {},
        errors.BmcRefused, "it does not offer that (HTTP 405",
    ),
    "no such action": (
        400, "Base.1.8.ActionNotSupported", "-", {},
        errors.BmcRefused, "it does not offer that (HTTP 400",
    ),
    "not implemented": (
        501, "Base.1.8.GeneralError", "-", {},
        errors.BmcRefused, "it does not offer that (HTTP 501",
    ),
    "a fault": (
        500, "Base.1.8.InternalError", "Oh.", {}, errors.BmcFailed, "failed: HTTP 500: Oh.",
    ),
    "a wrong value": (
        400, "Base.1.8.PropertyValueNotInList", "Not that.", {},
        errors.BmcRefused, "refused: HTTP 400: Not that.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("named_in", ["extended info", "code"])
@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
def test_each_refusal_has_its_meaning(conf, task, machine, refusal, named_in):
    status, message_id, message, headers, kind, sentence = refusal
    info = [{"MessageId": message_id, "Message": message, "MessageSeverity": "Warning"}]
    error = {"code": "Base.1.8.GeneralError", "message": "See.", "@Message.ExtendedInfo": info}
    if named_in == "code":
        error = {"code": message_id, "message": message}
    machine.bmc.faults.add(
        kind="status", status=status, path="Reset", body={"error": error}, headers=headers, times=-1
    )
    way, other = access.of(conf), FakeTask(task.driver_info)
    with pytest.raises(kind) as refused:
        way.change(task, lambda system: reset.send(system, "ForceOff"))
    assert type(refused.value) is kind
    assert sentence in str(refused.value)
    assert refused.value.status in {errors.BmcBusy: {409}, errors.BmcFailed: {502}}.get(kind, {400})
    assert refused.value.facts.get("retry_after_s") == (7 if headers else None)
    assert way.read(other, power) == "Off"  # no request of another node waits
    assert (way.bmc(task).breaker.failures, machine.bmc.logins) == (0, 1)


@pytest.mark.parametrize(
    "body",
    [
        None, [], "no", 3, {"error": "No."}, {"error": ["No."]}, {"error": {"code": 5}},
        {"error": {"@Message.ExtendedInfo": "No."}},
        {"@Message.ExtendedInfo": [{"Message": "No."}]},
        {"error": {"@Message.ExtendedInfo": [None, {"MessageId": 4, "Message": {}}]}},
    ],
    ids=str,
)  # fmt: skip
def test_a_refusal_of_any_shape_is_one(conf, task, machine, body):
    machine.bmc.faults.add(kind="status", status=403, path="Reset", body=body)
    with pytest.raises(errors.BmcRefused, match="may not do that") as refused:
        access.of(conf).change(task, lambda system: reset.send(system, "ForceOff"))
    assert refused.value.facts["http_status"] == 403
    assert ("No." in str(refused.value)) == ("No." in str(body))


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


@pytest.mark.parametrize("status", [412, 428])
def test_an_etag_that_stands_in_the_body_alone_is_sent(conf, task, machine, monkeypatch, status):
    """Source: https://github.com/ansible/ansible/pull/56150 (ETag or @odata.etag)."""
    sent, send = [], wire.Wire._exchange

    def exchange(self, method, url, body, headers):
        if method != "PATCH":
            answer = send(self, method, url, body, headers)
            document = answer.json() | {"@odata.etag": '"own"'} if answer.ok else answer.json()
            return dataclasses.replace(answer, headers={}, content=json.dumps(document).encode())
        sent.append(headers.get("If-Match"))
        if headers.get("If-Match") == '"own"':
            return wire.Answer(url=url, status_code=200, headers={}, content=b"{}")
        return wire.Answer(url=url, status_code=status, headers={}, content=b"{}")

    way = access.of(conf)
    way.read(task, power)
    monkeypatch.setattr(wire.Wire, "_exchange", exchange)
    way.change(task, lambda system: boot_device.set_mode(system, "bios"))
    assert sent == [None, '"own"']
