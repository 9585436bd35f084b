"""The BMC's own log: which log is read, its newest entries in bounded requests, its clearing."""

from __future__ import annotations

import time

import pytest

from bloomery import errors
from bloomery.drivers.bmc import logs
from bloomery.drivers.redfish import bmc_log
from bloomery.drivers.redfish.management import RedfishManagement
from bloomery.lab.rack import Rack
from bloomery.outcome import DONE
from tests.kit.machines.driver_task import FakeTask, walk

ROOT = "/redfish/v1"
SYSTEM = {"LogServices": {"@odata.id": "S"}, "Links": {"ManagedBy": [{"@odata.id": "M"}]}}


def links(*paths):
    return {"Members": [{"@odata.id": path} for path in paths]}


def service(name, **more):
    return {"Id": name, "Entries": {"@odata.id": f"{name}/Entries"}} | more


def entry(number, **more):
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_800_000_000 + number))
    return {
        "Id": str(number),
        "Created": at,
        "Severity": "Critical",
        "Message": f"m{number}",
    } | more


def read(documents, system=SYSTEM):
    """Return the log of these documents, and the paths that were asked for."""
    asked, reader = [], bmc_log.read(system)
    try:
        path = next(reader)
        while True:
            asked.append(path)
            path = reader.send(documents.get(path))
    except StopIteration as end:
        return end.value, asked


@pytest.fixture
def management(conf):
    return RedfishManagement(conf)


@pytest.mark.parametrize(
    ("of_system", "of_manager", "name"),
    [
        (["S/Sel"], ["M/Sel2"], "Sel"),  # the manager is not asked
        (["S/IML", "S/SL"], ["M/IEL"], "IML"),
        (["S/AuditLog", "S/PlatformLog"], [], "PlatformLog"),
        ([], ["M/Lclog", "M/Sel", "M/FaultList"], "Sel"),
        (["S/EventLog", "S/PostCodes", "S/Crashdump"], ["M/Journal"], "EventLog"),
        (["S/BIOS"], ["M/AuditLog", "M/SEL"], "SEL"),
        (["S/Off", "S/Odd"], [], "Odd"),
        (["S/AuditLog"], ["M/SecurityLog"], None),
        ([], [], None),
    ],
)
def test_the_log_of_hardware_is_read(of_system, of_manager, name) -> None:
    documents = {"S": links(*of_system), "M": {"LogServices": {"@odata.id": "ML"}}}
    documents["ML"] = links(*of_manager)
    documents |= {path: service(path.partition("/")[2]) for path in (*of_system, *of_manager)}
    documents["S/Off"] = service("Off", ServiceEnabled=False)
    log, asked = read(documents)
    assert log["name"] == name
    assert ("M" in asked) == ("S/Sel" not in of_system)


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("has_skip", [False, True])
def test_the_newest_entries_come_first_in_few_requests(newest_first, has_skip) -> None:
    numbers = list(range(1000, 0, -1)) if newest_first else list(range(1, 1001))
    documents = {"S": links("S/Sel"), "S/Sel": service("Sel")}
    for start in range(0, 1000, 50):
        path = "Sel/Entries" + (
            f"?$skip={start}" if start and has_skip else f"/{start}" * bool(start)
        )
        end = start + 50
        following = f"Sel/Entries?$skip={end}" if has_skip else f"Sel/Entries/{end}"
        documents[path] = {
            "Members@odata.count": 1000, "Members": [entry(n) for n in numbers[start:end]],
            **({"Members@odata.nextLink": following} if end < 1000 else {}),
        }  # fmt: skip
    log, asked = read(documents)
    assert log["total"] == 1000
    assert [each["id"] for each in log["entries"]] == [str(n) for n in range(1000, 900, -1)]
    assert len([path for path in asked if "Entries" in path]) == (
        2 if newest_first else 3 if has_skip else 20
    )


@pytest.mark.parametrize("newest_first", [False, True])
def test_entries_that_are_mere_links_are_followed_up_to_a_limit(newest_first) -> None:
    numbers = list(range(400, 0, -1)) if newest_first else list(range(1, 401))
    documents = {"S": links("S/Sel"), "S/Sel": service("Sel")}
    documents["Sel/Entries"] = links(*(f"e{n}" for n in numbers))
    documents |= {f"e{n}": entry(n) for n in numbers}
    log, asked = read(documents)
    assert [each["id"] for each in log["entries"]] == [str(n) for n in range(400, 350, -1)]
    assert len(asked) == 3 + 2 + 50


def test_pages_that_lead_in_a_circle_end() -> None:
    page = {"Members": [entry(1)], "Members@odata.nextLink": "Sel/Entries"}
    documents = {"S": links("S/Sel"), "S/Sel": service("Sel"), "Sel/Entries": page}
    log, asked = read(documents)
    assert (len(log["entries"]), asked.count("Sel/Entries")) == (1, 1)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"Message": "Fan %1 at %2", "MessageArgs": ["3"]}, {"message": "Fan 3 at %2"}),
        ({"Message": None, "SensorType": "Memory", "EntryCode": "Assert"},
         {"message": "Memory: Assert"}),
        ({"Message": "a\nb\x00" + "x" * 999}, {"message": "a b " + "x" * 296}),
        ({"Message": "login password=hunter2 ok"}, {"message": "login password=****** ok"}),
        ({"Severity": "Informational"}, {"severity": None}),
        ({"Created": "0000-00-00T00:00:00"}, {"created_at": None}),
        ({"Created": "2026-11-29T06:04:00"}, {"created_at": "2026-11-29T12:04:00+00:00"}),
        ({"Created": "2026-11-29T06:04:00-05:00"}, {"created_at": "2026-11-29T11:04:00+00:00"}),
    ],
)  # fmt: skip
def test_odd_entries_are_made_plain(document, expected) -> None:
    clock = {"DateTime": "2026-11-29T06:04:05", "DateTimeLocalOffset": "-06:00"}
    documents = {"S": links("S/Sel"), "S/Sel": service("Sel", **clock)}
    documents["Sel/Entries"] = {"Members": [entry(1, **document), "odd", None]}
    (shown,) = read(documents)[0]["entries"]
    assert {name: shown[name] for name in expected} == expected


@pytest.mark.parametrize("model", ["generic", "dell-idrac"])
def test_a_bmc_is_read_and_its_clock_is_remembered(conf, model) -> None:
    management = RedfishManagement(conf)
    with Rack(1, model=model) as rack:
        machine = rack.machines[0]
        task = FakeTask(machine.driver_info)
        machine.system.clock_s = 3600
        for number in range(130):
            machine.system.log_event(f"DIMM A{number}")
        log = management.read_bmc_log(task)
        assert (log["name"], log["total"], len(log["entries"])) == ("Sel", 130, logs.MOST_ENTRIES)
        assert (log["entries"][0]["message"], log["entries"][0]["severity"]) == (
            "DIMM A129",
            "Critical",
        )
        assert log["clock_difference_s"] == pytest.approx(3600, abs=5)
        bmc = management.access.bmc(task).describe()
        assert bmc["clock_difference_s"] == log["clock_difference_s"]


def test_the_log_is_cleared_and_read_back(management, task, machine) -> None:
    for number in range(3):
        machine.system.log_event(f"DIMM A{number}", at=1_800_000_000 + number)
    assert management.clear_bmc_log(task) == DONE
    assert [each["message"] for each in management.read_bmc_log(task)["entries"]] == ["Log cleared"]
    assert task.node.driver_internal_info == {}


def test_an_empty_log_is_not_cleared(management, task, machine) -> None:
    machine.bmc.faults.add(kind="status", path="ClearLog", method="POST", status=400)
    assert management.clear_bmc_log(task) == DONE


def test_a_log_that_stays_fails_its_clearing(management, task, machine, clock) -> None:
    machine.system.log_event("DIMM A1", at=1_800_000_000)
    machine.system.log_event("DIMM A2", at=1_800_000_001)
    machine.system.clear_log = lambda: None
    management.clear_bmc_log(task)
    memory = task.node.driver_internal_info["redfish_write"]
    memory["until"] = "2026-01-01T00:00:00+00:00"
    memory.pop("is_fresh", None)
    task.turn = 1
    with pytest.raises(
        errors.StepFailure, match="accepted the order to clear its log, and does not"
    ):
        management.clear_bmc_log(task)


def test_a_log_that_is_cleared_late_is_waited_for(management, task, machine) -> None:
    machine.system.log_event("DIMM A1", at=1_800_000_000)
    machine.system.log_event("DIMM A2", at=1_800_000_001)
    machine.bmc.faults.add(kind="later", path="ClearLog", method="POST", seconds=0.01)
    walk(task, lambda: management.clear_bmc_log(task))
    assert [each.message for each in machine.system.log] == ["Log cleared"]


def test_a_log_without_the_action_names_the_way_out(management, task, machine) -> None:
    machine.system.log_event("DIMM A1")
    machine.bmc.faults.add(
        kind="shows", path="LogServices/Sel$", times=-1, document={"Actions": None}
    )
    with pytest.raises(
        errors.InvalidParameterValue, match="offers no ClearLog; clear it in the BMC's"
    ):
        management.clear_bmc_log(task)
