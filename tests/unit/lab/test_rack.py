from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request

import pytest

from bloomery import errors
from bloomery.lab import models
from bloomery.lab.bmc import ROOT, Rules
from bloomery.lab.rack import Rack
from bloomery.lab.tls import certificate
from tests.kit.waiting import wait_for


class Client:
    """The least that asks a BMC."""

    def __init__(self, machine, ca=None) -> None:
        self.machine = machine
        self.context = ssl.create_default_context(cafile=ca) if ca else None
        self.headers = {"Authorization": "Basic YWRtaW46cGFzc3dvcmQ="}

    def __call__(self, method, path, body=None, **headers):
        request = urllib.request.Request(
            self.machine.address + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers=self.headers | headers,
        )
        try:
            with urllib.request.urlopen(request, timeout=10, context=self.context) as answer:
                return answer.status, json.loads(answer.read() or b"{}"), answer.headers
        except urllib.error.HTTPError as no:
            with no:
                return no.code, json.loads(no.read() or b"{}"), no.headers


@pytest.fixture
def make():
    racks = []

    def made(nodes=1, **more):
        racks.append(Rack(nodes, **more).start())
        return racks[-1]

    yield made
    for rack in racks:
        rack.stop()


@pytest.fixture
def machine(make):
    return make().machines[0]


@pytest.fixture
def ask(machine):
    return Client(machine)


def reset(ask, kind):
    target = f"{ask.machine.system_id}/Actions/ComputerSystem.Reset"
    return ask("POST", target, {"ResetType": kind})[0]


def wait_until(machine, power):
    wait_for(lambda: machine.system.power == power, f"power {power}")


def test_machines_are_the_same_at_every_start(make):
    first, again = ([(m.uuid, m.name, m.mac) for m in make(nodes=3).machines] for _ in range(2))
    assert first == again
    assert len({mac for _, _, mac in first}) == 3


def test_one_bmc_has_all_machines_unless_they_stand_apart(make):
    assert len({m.address for m in make(nodes=3).machines}) == 1
    assert len({m.address for m in make(nodes=3, apart=True).machines}) == 3


def test_bmcs_at_one_port_are_told_apart_by_their_addresses(make, tmp_path):
    machines = make(nodes=3, apart=True, first="127.1.0.254", tls=certificate(tmp_path)).machines
    hosts = [m.address.removeprefix("https://").rpartition(":")[0] for m in machines]
    [port] = {m.address.rpartition(":")[2] for m in machines}
    assert hosts == ["127.1.0.254", "127.1.0.255", "127.1.1.0"]
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    for machine in machines:
        ask = Client(machine)
        ask.context = trusting
        assert ask("GET", machine.system_id)[1]["UUID"] == machine.uuid
    with pytest.raises((OSError, http.client.HTTPException)):
        root_over(http.client.HTTPSConnection("127.1.1.1", int(port), context=trusting))


def test_a_port_that_is_taken_is_told_with_the_way_out(make):
    port = int(make().address.rpartition(":")[2])
    with pytest.raises(errors.CannotStart, match=f"port {port}.*choose another --port"):
        Rack(1, port=port)


def test_who_shows_no_password_sees_the_root_only(ask):
    ask.headers = {}
    assert ask("GET", "/redfish/v1/")[0] == 200
    assert ask("GET", "/redfish/v1/Systems")[0] == 401


def test_a_session_lets_in_until_it_is_ended(ask):
    ask.headers = {}
    sessions = "/redfish/v1/SessionService/Sessions"
    login = {"UserName": "admin", "Password": "password"}
    assert ask("POST", sessions, login | {"Password": "x"})[0] == 401
    status, _, headers = ask("POST", sessions, login)
    assert status == 201
    ask.headers = {"X-Auth-Token": headers["X-Auth-Token"]}
    assert ask("GET", "/redfish/v1/Systems")[0] == 200
    assert ask("DELETE", headers["Location"])[0] == 204
    assert ask("GET", "/redfish/v1/Systems")[0] == 401


def test_power_takes_its_time(make):
    machine = make(power_s=0.2).machines[0]
    ask = Client(machine)
    assert reset(ask, "On") == 204
    assert machine.system.power == "Off"
    wait_until(machine, "On")


def test_power_that_is_there_is_refused(ask):
    assert reset(ask, "On") == 204
    wait_until(ask.machine, "On")
    assert reset(ask, "On") == 409
    assert reset(ask, "Jump") == 400


def test_an_override_for_once_is_spent_by_one_boot(ask):
    boot = {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}
    assert ask("PATCH", ask.machine.system_id, {"Boot": boot})[0] == 204
    reset(ask, "On")
    wait_until(ask.machine, "On")
    assert ask.machine.system.booted["target"] == "Pxe"
    reset(ask, "ForceRestart")
    wait_for(lambda: ask.machine.system.booted["target"] == "None", "the second boot")


def test_bios_settings_apply_at_the_next_boot(ask):
    path = f"{ask.machine.system_id}/Bios"
    assert ask("PATCH", f"{path}/Settings", {"Attributes": {"NumCores": 4}})[0] == 204
    assert ask("GET", path)[1]["Attributes"]["NumCores"] == 2
    reset(ask, "On")
    wait_until(ask.machine, "On")
    assert ask("GET", path)[1]["Attributes"]["NumCores"] == 4


def test_what_is_unknown_or_wrong_is_refused(ask):
    path = ask.machine.system_id
    assert ask("PATCH", path, {"Colour": "red"})[0] == 400
    assert ask("PATCH", path, {"IndicatorLED": "Red"})[0] == 400
    assert ask("PATCH", path, [])[0] == 400
    assert ask("DELETE", path)[0] == 405
    assert ask("GET", "/redfish/v1/Systems/none")[0] == 404


def test_an_etag_that_does_not_match_is_refused(ask):
    path = ask.machine.system_id
    tag = ask("GET", path)[2]["ETag"]
    assert ask("PATCH", path, {"AssetTag": "a"}, **{"If-Match": tag})[0] == 204
    assert ask("PATCH", path, {"AssetTag": "b"}, **{"If-Match": tag})[0] == 412


def test_media_are_fetched_where_the_rack_is_told_so(make):
    machine = make(fetch=True).machines[0]
    ask = Client(machine)
    insert = f"/redfish/v1/Managers/{machine.uuid}/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia"
    assert ask("POST", insert, {"Image": "http://127.0.0.1:1/x.iso"})[0] == 500
    assert ask("POST", insert, {"Image": f"{machine.address}/redfish/v1/"})[0] == 204
    assert "fetched" in machine.system.happened[0]
    assert ask("POST", insert, {"Image": f"{machine.address}/redfish/v1/"})[0] == 409


def test_the_lab_hands_out_an_iso_for_a_deployment(machine):
    with urllib.request.urlopen(f"{machine.address}/lab/any.iso", timeout=10) as answer:
        assert (answer.status, len(answer.read())) == (200, 2048)


def test_faults_hit_as_often_as_told(ask):
    fault = {"kind": "status", "status": 503, "path": "Systems", "skip": 1, "times": 1}
    assert ask("POST", "/lab/faults", fault)[0] == 200
    said = [ask("GET", "/redfish/v1/Systems")[0] for _ in range(3)]
    assert said == [200, 503, 200]
    assert ask("GET", "/lab/faults")[1]["faults"][0]["hits"] == 1
    assert ask("DELETE", "/lab/faults")[1] == {"faults": []}
    assert ask("POST", "/lab/faults", {"kind": "magic"})[0] == 400


def test_an_update_is_a_task_that_ends(make):
    machine = make(rules=Rules(update_s=0.05)).machines[0]
    ask = Client(machine)
    update = "/redfish/v1/UpdateService/Actions/UpdateService.SimpleUpdate"
    status, _, headers = ask("POST", update, {"ImageURI": "http://x/bios-3.0"})
    assert status == 202
    wait_for(lambda: ask("GET", headers["Location"])[0] == 200, "the task to end")
    assert machine.system.firmware["BIOS"] == "bios-3.0"


def test_a_volume_may_be_made_and_removed(ask):
    path = f"{ask.machine.system_id}/Storage/1/Volumes"
    status, made, headers = ask("POST", path, {"RAIDType": "RAID1", "Name": "root"})
    assert (status, made["Name"]) == (201, "root")
    assert ask("DELETE", headers["Location"])[0] == 204
    assert ask("GET", path)[1]["Members"] == []


def test_what_really_happened_is_told_without_a_password(ask):
    ask.headers = {}
    told = ask("GET", f"/lab/systems/{ask.machine.uuid}")[1]
    assert (told["power"], told["media"]) == ("Off", {"Cd": None})


SLOT = "Integrated.1-1"
DELL_RAID = f"/Systems/System.Embedded.1/Storage/RAID.{SLOT}"
LACKING = {  # what the makes link to and do not have
    "hpe-ilo6": {f"{ROOT}/registrystore/registries/en/biosattributeregistryu54.v1_40"},
    "supermicro-x10": {f"{ROOT}/Systems/1/Storage", f"{ROOT}/Registries"},
    "dell-idrac": {f"{ROOT}{DELL_RAID}/Drives/Disk.Bay.1:Enclosure.Internal.0-1:RAID.{SLOT}"},
    "lenovo-xcc": {f"{ROOT}/Chassis/3"},
}


@pytest.mark.parametrize("model", models.ALL)
def test_every_resource_that_is_linked_can_be_read(make, model):
    ask = Client(make(model=model).machines[0])
    seen, lacking, todo = set(), set(), [ROOT]
    while todo:
        path = todo.pop()
        seen.add(path)
        status, document, _ = ask("GET", path)
        if status == 404:
            lacking.add(path)
        else:
            assert status == 200, path
            todo += {link for link in links(document) if link not in seen} - set(todo)
    assert len(seen) > 25
    assert lacking == LACKING.get(model, set())


@pytest.mark.parametrize("model", models.ALL)
def test_machines_of_every_make_are_the_same(make, model):
    machine = make(model=model).machines[0]
    status, system, _ = Client(machine)("GET", machine.system_id)
    assert (status, system["UUID"]) == (200, machine.uuid)
    assert system["@odata.id"].rstrip("/") == machine.system_id.rstrip("/")
    assert system["Id"] == machine.system_id.rstrip("/").rpartition("/")[2]


def test_a_make_that_is_unknown_is_told_with_those_that_are(make):
    with pytest.raises(errors.InvalidParameterValue, match="no model 'vax': it has generic, dmtf"):
        make(model="vax")


def test_paths_in_other_cases_are_taken_by_the_make_that_does(make):
    ilo, x10 = (Client(make(model=m).machines[0]) for m in ("hpe-ilo6", "supermicro-x10"))
    paths = ["/redfish/v1/SYSTEMS/1/", "/redfish/v1/Systems/1/BIOS"]
    assert [ilo("GET", path)[0] for path in paths] == [200, 200]
    assert [x10("GET", path)[0] for path in paths] == [404, 404]


def test_media_without_actions_are_written_to(make):
    machine = make(model="dmtf-rackmount1").machines[0]
    ask, path = Client(machine), "/redfish/v1/Managers/BMC/VirtualMedia/CD1"
    assert "Actions" not in ask("GET", path)[1]
    assert (
        ask("POST", f"{path}/Actions/VirtualMedia.InsertMedia", {"Image": "http://x/y"})[0] == 404
    )
    assert ask("PATCH", path, {"Image": "http://x/y", "Inserted": True})[0] == 204
    assert machine.system.media == {"CD1": "http://x/y", "Floppy1": None}
    assert ask("PATCH", path, {"Image": None})[0] == 204
    assert machine.system.media["CD1"] is None


def test_a_weak_etag_is_taken_without_its_mark_only(make):
    ask = Client(make(model="lenovo-xcc").machines[0])
    tag = ask("GET", "/redfish/v1/Systems/1")[2]["ETag"]
    body = {"AssetTag": "a"}
    assert tag.startswith('W/"')
    assert ask("PATCH", "/redfish/v1/Systems/1", body, **{"If-Match": tag})[0] == 412
    assert ask("PATCH", "/redfish/v1/Systems/1", body, **{"If-Match": tag[2:]})[0] == 204


def links(value):
    if isinstance(value, dict):
        yield from (v for k, v in value.items() if k in ("@odata.id", "Uri"))
        for inner in value.values():
            yield from links(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from links(inner)


def raw(machine):
    """One connection that is kept."""
    host, _, port = machine.address.removeprefix("http://").partition(":")
    return http.client.HTTPConnection(host, int(port), timeout=10)


def root_over(connection):
    connection.request("GET", "/redfish/v1/")
    with connection.getresponse() as answer:
        return answer.status, len(answer.read()) > 0


def test_requests_and_connections_are_counted(machine):
    with contextlib.closing(raw(machine)) as kept:
        assert [root_over(kept) for _ in range(3)] == [(200, True)] * 3
    with contextlib.closing(raw(machine)) as another:
        root_over(another)
    counted = machine.bmc.counted()
    assert (counted["requests"], counted["connections"], counted["handshakes"]) == (4, 2, 0)


def test_open_connections_and_late_answers_cost_no_thread(make):
    machine = make(rules=Rules(late_s=0.2)).machines[0]
    before = threading.active_count()
    with contextlib.ExitStack() as stack:
        kept = [stack.enter_context(contextlib.closing(raw(machine))) for _ in range(50)]
        for connection in kept:
            connection.request("GET", "/redfish/v1/")
        wait_for(lambda: machine.bmc.counted()["requests"] == 50, "the requests")
        assert threading.active_count() == before
        assert [connection.getresponse().status for connection in kept] == [200] * 50


def test_requests_that_come_at_once_are_answered_one_after_another(machine):
    host, _, port = machine.address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=10) as client:
        client.sendall(b"GET /redfish HTTP/1.1\r\n\r\n" * 2 + b"GET /redfish HTTP/1.0\r\n\r\n")
        answers = b"".join(iter(lambda: client.recv(65536), b""))
    assert answers.count(b"HTTP/1.1 200 OK") == 3


def test_a_connection_that_says_nothing_is_closed(make):
    machine = make(rules=Rules(idle_s=0.05)).machines[0]
    with contextlib.closing(raw(machine)) as kept:
        assert root_over(kept) == (200, True)
        assert kept.sock.recv(1) == b""  # returns when the BMC has closed it


def test_a_bmc_that_is_gone_answers_no_more_on_connections_that_were_kept(make):
    rack = make()
    with contextlib.closing(raw(rack.machines[0])) as kept:
        assert root_over(kept) == (200, True)
        rack.stop()
        with pytest.raises((OSError, http.client.HTTPException)):
            root_over(kept)


def test_handshakes_logins_and_refusals_are_counted(make, tmp_path):
    tls = certificate(tmp_path)
    machine = make(tls=tls, rules=Rules(max_sessions=1)).machines[0]
    ask = Client(machine, tls[0])
    sessions = "/redfish/v1/SessionService/Sessions"
    login = {"UserName": "admin", "Password": "password"}
    wrong = login | {"Password": "wrong"}
    told = [ask("POST", sessions, body)[0] for body in (wrong, login, login)]
    assert told == [401, 201, 503]
    counted = machine.bmc.counted()
    assert counted == {
        "requests": 3, "connections": 3, "handshakes": 3, "logins": 3, "refused": 1,
    }  # fmt: skip


def test_a_collection_comes_with_its_members_where_that_is_asked_for(make, ask):
    path = "/redfish/v1/Systems?$expand=.($levels=1)"
    assert ask("GET", "/redfish/v1/")[1]["ProtocolFeaturesSupported"]["ExpandQuery"]["Levels"]
    system = ask("GET", path)[1]["Members"][0]
    assert system["@odata.id"] == ask.machine.system_id
    assert system["PowerState"] == "Off"
    assert list(system["Storage"]) == ["@odata.id"], "one level"
    plain = Client(make(rules=Rules(expands=False)).machines[0])
    assert plain("GET", path)[0] == 501
    offered = plain("GET", "/redfish/v1/")[1]["ProtocolFeaturesSupported"]["ExpandQuery"]
    assert set(offered.values()) == {False}


def test_every_answer_is_late_where_the_rules_say_so(make):
    machine = make(rules=Rules(late_s=0.05)).machines[0]
    began = time.monotonic()
    with contextlib.closing(raw(machine)) as kept:
        assert root_over(kept) == (200, True)
    assert time.monotonic() - began >= 0.05


@pytest.mark.parametrize(
    ("fault", "status", "state"),
    [
        ({"kind": "later", "seconds": 0.05}, 204, "Completed"),
        ({"kind": "task", "seconds": 0.05}, 202, "Completed"),
        ({"kind": "task", "seconds": 0.05, "message": "no such host"}, 202, "Exception"),
    ],
    ids=["later", "task", "failing task"],
)
def test_a_bmc_may_act_after_its_answer_or_not_at_all(make, fault, status, state):
    machine = make().machines[0]
    ask, media = Client(machine), f"/redfish/v1/Managers/{machine.uuid}/VirtualMedia/Cd"
    machine.bmc.faults.add(**fault)
    insert = f"{media}/Actions/VirtualMedia.InsertMedia"
    assert ask("POST", insert, {"Image": "http://x/y.iso"})[0] == status
    assert ask("GET", media)[1]["Inserted"] is False
    [task] = machine.bmc.tasks.values()
    wait_for(lambda: task["state"] == state, "the task to end")
    assert ask("GET", media)[1]["Inserted"] is (state == "Completed")


def test_a_bmc_may_show_another_document_under_the_tag_of_the_true_one(ask):
    path = ask.machine.system_id
    ask.machine.bmc.faults.add(kind="shows", document={"Model": "X", "Status": None}, times=-1)
    _, document, headers = ask("GET", path)
    assert (document["Model"], "Status" in document) == ("X", False)
    assert ask("PATCH", path, {"AssetTag": "a"}, **{"If-Match": headers["ETag"]})[0] == 204
