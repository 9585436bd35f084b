from __future__ import annotations

import contextlib
import dataclasses
import socket
import threading

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.drivers import Redfish
from bloomery.drivers.redfish import access
from tests.kit.machines.driver_task import FakeTask


def power(system):
    return system.power_state.value


def test_one_login_serves_all_calls(conf, task, machine):
    way = access.of(conf)
    for _ in range(5):
        assert way.read(task, power) == "Off"
    assert len(machine.bmc.sessions) == 1


def test_another_password_is_another_login(conf, task, machine):
    way = access.of(conf)
    way.read(task, power)
    stranger = FakeTask(machine.driver_info | {"redfish_password": "guess"})
    with pytest.raises(errors.BmcRefused, match="the user name or the password"):
        way.read(stranger, power)
    assert way.read(task, power) == "Off"


def test_keys_of_logins_hold_no_password(conf, task):
    way = access.of(conf)
    way.read(task, power)
    assert "password" not in repr(list(way._logins))


def test_the_oldest_login_is_dropped_when_there_are_too_many(machine):
    way = access.of(conf := dataclasses.replace(Conf(), redfish=Redfish(connection_cache_size=2)))
    for auth in ("basic", "session", "auto"):
        way.read(FakeTask(machine.driver_info | {"redfish_auth_type": auth}), power)
    assert len(way._logins) == 2
    assert access.of(conf) is way


def test_without_a_cache_each_call_logs_in_and_out(task, machine):
    way = access.of(conf := dataclasses.replace(Conf(), redfish=Redfish(connection_cache_size=0)))
    way.read(task, power)
    way.read(task, power)
    assert machine.bmc.logins == 2
    way.close()
    assert machine.bmc.sessions == {}
    assert conf.redfish.connection_cache_size == 0


def test_basic_authentication_keeps_no_session(conf, machine):
    task = FakeTask(machine.driver_info | {"redfish_auth_type": "basic"})
    assert access.of(conf).read(task, power) == "Off"
    assert machine.bmc.sessions == {}


def test_without_a_user_name_nothing_is_shown_to_the_bmc(conf, machine):
    info = {k: v for k, v in machine.driver_info.items() if "name" not in k and "word" not in k}
    with pytest.raises(errors.BmcRefused, match="the user name or the password"):
        access.of(conf).read(FakeTask(info), power)
    assert machine.bmc.sessions == {}


def test_a_change_is_asked_once(conf, task, machine):
    machine.bmc.faults.add(kind="status", status=500, method="PATCH", times=-1)
    import sushy

    with pytest.raises(errors.BmcRefused, match="HTTP 500"):
        access.of(conf).change(
            task, lambda system: system.set_indicator_led(sushy.IndicatorLED.LIT)
        )
    assert [fault["hits"] for fault in machine.bmc.faults.shown()] == [1]


def test_many_systems_and_no_id_is_told_with_the_way_out(conf):
    from bloomery.lab.rack import Rack

    with Rack(2) as rack:
        info = rack.machines[0].driver_info
        del info["redfish_system_id"]
        with pytest.raises(errors.BmcRefused, match="set driver_info/redfish_system_id"):
            access.of(conf).read(FakeTask(info), power)


def test_an_answer_that_leads_elsewhere_is_not_followed(conf, task, machine):
    headers = {"Location": "http://elsewhere.invalid/redfish/v1/"}
    machine.bmc.faults.add(kind="status", status=302, headers=headers, path="/Systems/", times=-1)
    with pytest.raises(errors.BmcUnreachable, match=r"redirected to http://elsewhere\.invalid"):
        access.of(conf).read(task, power)


def test_a_redirect_within_the_bmc_is_followed(conf, task, machine):
    headers = {"Location": machine.system_id}
    machine.bmc.faults.add(kind="status", status=308, headers=headers, path="/moved", times=-1)

    def follow(system):
        return system.root._conn.get("/moved").json()["@odata.id"]

    assert access.of(conf).read(task, follow) == machine.system_id


def test_a_write_that_would_become_a_read_is_not_redirected(conf, task, machine):
    headers = {"Location": machine.system_id}
    machine.bmc.faults.add(kind="status", status=303, headers=headers, path="/moved", times=-1)
    with pytest.raises(errors.BmcUnreachable, match="redirected to"):
        access.of(conf).change(task, lambda system: system.root._conn.post("/moved", data={}))


def test_a_link_that_leads_elsewhere_is_not_followed(conf, task, machine):
    def follow(system):
        return system.root._conn.get("http://elsewhere.invalid/x")

    with pytest.raises(
        errors.BmcUnreachable, match=r"leads away from this BMC.*elsewhere\.invalid"
    ):
        access.of(conf).read(task, follow)


def test_an_answer_without_end_is_given_up(conf, task, machine, monkeypatch):
    from bloomery.drivers.redfish import wire

    monkeypatch.setattr(wire, "_MOST_BYTES", 100)
    with pytest.raises(errors.BmcUnreachable, match="an answer of more than"):
        access.of(conf).read(task, power)


@pytest.mark.parametrize("body", [[], "text", {"PowerState": 5, "Id": []}, {"@odata.id": None}, 7])
def test_an_answer_that_makes_no_sense_is_an_error_of_the_bmc(conf, task, machine, body):
    machine.bmc.faults.add(kind="status", status=200, body=body, path="/Systems/", times=-1)
    with pytest.raises((errors.BmcUnreachable, errors.BmcRefused)):
        access.of(conf).read(task, power)


@pytest.mark.parametrize("body", [[], "Id", {"PowerState": "On"}, 7])
def test_a_document_that_is_no_system_is_an_error_of_the_bmc(conf, task, machine, body):
    machine.bmc.faults.add(kind="status", status=200, body=body, path="/Systems/", times=-1)
    with pytest.raises((errors.BmcUnreachable, errors.BmcRefused)):
        access.of(conf).document(task)


def test_a_turn_reads_the_document_of_a_system_once_until_it_writes(conf, task, machine):
    way, task.reads = access.of(conf), {}
    document = way.document(task)
    assert document["PowerState"] == "Off"
    before = machine.bmc.requests
    assert way.document(task) is document, "parsed once"
    assert machine.bmc.requests == before
    machine.system._on = True
    way.change(task, boot_pxe)
    assert way.document(task)["PowerState"] == "On"


def test_an_account_is_read_again_when_the_node_has_another(conf, task):
    way, task.reads = access.of(conf), {}
    first = way.account(task)
    assert way.account(task) is first
    task.driver_info = task.driver_info | {"redfish_username": "other"}
    assert way.account(task).username == "other"


def boot_pxe(system):
    import sushy

    system.set_system_boot_options(sushy.BootSource.PXE)


@pytest.mark.parametrize("kind", ["status", "reset", "truncate", "after"])
def test_a_repeatable_change_bears_one_bad_answer(conf, task, machine, kind):
    machine.bmc.faults.add(kind=kind, method="PATCH")
    access.of(conf).change(task, boot_pxe, repeatable=True)
    assert machine.system.boot["target"] == "Pxe"


def test_a_repeatable_change_that_is_refused_is_asked_once(conf, task, machine):
    machine.bmc.faults.add(kind="status", status=400, method="PATCH", times=-1)
    with pytest.raises(errors.BmcRefused, match="HTTP 400"):
        access.of(conf).change(task, boot_pxe, repeatable=True)
    assert [fault["hits"] for fault in machine.bmc.faults.shown()] == [1]


def test_a_suspect_is_asked_once(conf, task, machine):
    way = access.of(conf)
    machine.bmc.faults.add(kind="status", status=503, path="/Systems/", times=-1)
    for asked in (2, 3):
        with pytest.raises(errors.BmcUnreachable):
            way.read(task, power)
        assert [fault["hits"] for fault in machine.bmc.faults.shown()] == [asked]


def test_a_bmc_that_is_left_alone_says_until_when(conf, task, machine):
    way = access.of(conf)
    machine.bmc.faults.add(kind="status", status=503, path="/Systems/", times=-1)
    for _ in range(conf.bmc.breaker_failures):
        with pytest.raises(errors.BmcUnreachable):
            way.read(task, power)
    with pytest.raises(errors.BmcLeftAlone) as told:
        way.read(task, power)
    assert 0 < told.value.facts["retry_after_s"] <= conf.bmc.breaker_pause


def test_one_read_serves_all_questions_of_a_turn_until_something_is_changed(conf, task, machine):
    way = access.of(conf)
    way.read(task, power)
    before, task.reads = machine.bmc.requests, {}
    for _ in range(5):
        way.read(task, power)
    assert machine.bmc.requests == before + 1
    way.change(task, boot_pxe)
    assert machine.bmc.requests == before + 2
    assert way.read(task, lambda system: system.boot.target.value) == "Pxe"
    assert machine.bmc.requests == before + 3
    task.reads = {}
    way.read(task, power)
    assert machine.bmc.requests == before + 4


def test_an_attempt_has_one_system_until_it_writes_or_logs_in_elsewhere(task):
    way, task.reads = access.of(Conf()), {}
    system = way.read(task, lambda each: each)
    assert way.read(task, lambda each: each) is system
    assert system.root is way.read(task, lambda each: each.root)
    way.change(task, boot_pxe)
    written = way.read(task, lambda each: each)
    assert written is not system
    task.reads = {}
    assert way.read(task, lambda each: each) is not written


def test_a_system_is_never_that_of_a_login_that_ended(task, machine):
    unkept = dataclasses.replace(Conf(), redfish=Redfish(connection_cache_size=0))
    way, task.reads = access.of(unkept), {}
    system = way.read(task, lambda each: each)
    assert way.read(task, lambda each: each) is not system
    assert machine.bmc.refused == 0


def test_what_went_wrong_in_a_turn_is_read_again(conf, task, machine):
    way, task.reads = access.of(conf), {}
    machine.bmc.faults.add(kind="status", status=200, body={"Id": 5}, path="/Systems/")
    assert way.read(task, power) == "Off"


def loses_its_lease(task):
    """Let the node's lease be lost from the moment on at which the answer is set."""
    lost = threading.Event()

    def look():
        if lost.is_set():
            raise errors.LockLost(node="n", holder="other")

    task.assert_lease = look
    return lost


def test_the_lease_is_looked_at_before_each_write_of_a_call(conf, task, machine):
    import sushy

    lost = loses_its_lease(task)

    def work(system):
        system.set_system_boot_options(target=sushy.BootSource.PXE)
        lost.set()
        system.reset_system(sushy.ResetType("On"))

    way = access.of(conf)
    with pytest.raises(errors.LockLost):
        way.change(task, work)
    assert machine.system.power == "Off"
    assert not way.bmc(task).is_suspect


def test_logins_and_reads_need_no_lease(conf, task, machine):
    lost, way = loses_its_lease(task), access.of(conf)
    lost.set()
    assert way.read(task, power) == "Off"
    way.close()
    assert (machine.bmc.logins, machine.bmc.sessions) == (1, {})


def test_an_answer_that_drips_is_given_up_with_the_call(conf):
    """No byte is late; all of them together are."""

    def drip(listener, over):
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            while not over.wait(0.05):
                connection.sendall(b" ")

    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=drip, args=(listener, over))
        server.start()
        task = FakeTask({"redfish_address": f"http://127.0.0.1:{listener.getsockname()[1]}"})
        task.budget_s = 0.4
        with pytest.raises(errors.BmcUnreachable, match=r"its answer did not end within 0\.4 s"):
            access.of(conf).read(task, power)
        over.set()
        server.join()


def test_a_link_that_is_no_url_is_a_fault_of_the_documents(conf, task):
    with pytest.raises(errors.Failure, match="is not as Redfish has it"):
        access.of(conf).read(task, lambda system: system.root._conn.get("http://["))
