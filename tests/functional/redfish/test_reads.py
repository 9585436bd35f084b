"""How many requests an operation costs a BMC: exact, so that none comes unnoticed."""

from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.conductor import hardware, tasks
from bloomery.conductor.periodics.power_sync import PowerSync
from bloomery.db.engine import Meter
from bloomery.lab import models, routing
from bloomery.lab.routing import Ask
from tests.functional.redfish.conftest import enrol, manageable
from tests.kit.waiting import wait_for


@pytest.fixture(autouse=True)
def quiet(stage):
    """Let no periodic ask in between, as one would on a busy machine."""
    stage.site.service.periodics.stop()


LOGIN = ["GET /", "POST /SessionService/Sessions"]
VERIFY = [
    "GET /Systems/ID",
    "GET /Systems/ID/SecureBoot",
    "GET /Systems/ID/Bios",
    "GET /Managers/ID",
]
REGISTRY = ["GET /Registries/LabBios.1.0", "GET /Registries/LabBios.1.0/en"]
ADAPTERS = [f"GET /Chassis/ID{path}" for path in ("", "/NetworkAdapters", "/NetworkAdapters/0")]
NOTHING = {"interface": "bios", "step": "wait", "args": {"seconds": 0}}


def taken(asked, machine):
    """What was asked so far; the list is empty afterwards."""
    found = [one.replace(machine.uuid, "ID") for one in asked]
    asked.clear()
    return found


def test_verify_asks_for_each_document_once(stage, machine, asked) -> None:
    node = manageable(stage, machine)
    assert taken(asked, machine) == [*LOGIN, *VERIFY]
    assert stage.show(node)["boot_mode"] is not None
    assert machine.bmc.connections == 1


def clean(stage, node):
    """Clean without doing anything; return the settings of its BIOS."""
    stage.ask(node, "clean", clean_steps=[NOTHING], disable_ramdisk=True)
    stage.wait_for(node, "manageable")
    stage.wait_until_free(node)
    return stage.api.get(f"/v1/nodes/{node}/bios?detail=true").json["bios"]


def test_what_explains_a_bios_is_read_by_the_first_cleaning_of_a_model(
    stage, make_rack, asked
) -> None:
    one, other = make_rack(2).machines
    node = manageable(stage, one)
    settings = stage.api.get(f"/v1/nodes/{node}/bios?detail=true").json["bios"]
    assert {each["attribute_type"] for each in settings} == {None}
    asked.clear()
    explained = clean(stage, node)
    assert taken(asked, one) == [*VERIFY[::2], *REGISTRY, "GET /Managers/ID", *ADAPTERS]
    assert all(each["attribute_type"] for each in explained)
    assert {each["name"]: each["value"] for each in explained} == {
        each["name"]: each["value"] for each in settings
    }
    node = manageable(stage, other)
    assert taken(asked, other) == [*LOGIN, *VERIFY]
    settings = stage.api.get(f"/v1/nodes/{node}/bios?detail=true").json["bios"]
    assert all(each["attribute_type"] for each in settings)


def explained(stage, node):
    settings = stage.api.get(f"/v1/nodes/{node}/bios?detail=true").json["bios"]
    return all(each["attribute_type"] for each in settings)


def test_what_explains_a_bios_is_read_after_manage_once_for_a_model(
    stage, make_rack, asked
) -> None:
    machines = make_rack(3).machines
    nodes = [manageable(stage, machine) for machine in machines]
    assert not any(explained(stage, node) for node in nodes)
    asked.clear()
    hardware.explain_bios(stage.site.runtime)
    assert all(explained(stage, node) for node in nodes)
    assert [path for path in asked if "Registries" in path] == REGISTRY
    asked.clear()
    hardware.explain_bios(stage.site.runtime)
    assert asked == []
    settings = {each["name"]: each for each in stage.api.get(
        f"/v1/nodes/{nodes[0]}/bios?detail=true").json["bios"]}  # fmt: skip
    assert settings["BootMode"]["allowable_values"] == ["Uefi", "Bios"]
    assert settings["BootMode"]["value"] == "Uefi"


def test_what_was_set_meanwhile_is_not_overwritten(stage, machine) -> None:
    node = manageable(stage, machine)
    apply = [{"name": "BootMode", "value": "Bios"}]
    step = {"interface": "bios", "step": "apply_configuration", "args": {"settings": apply}}
    stage.ask(node, "clean", clean_steps=[step], disable_ramdisk=True)
    stage.wait_for(node, "manageable")
    stage.wait_until_free(node)
    machine.system.bios["BootMode"] = "Uefi"  # nothing but a cleaning reads values
    hardware.explain_bios(stage.site.runtime)
    shown = stage.api.get(f"/v1/nodes/{node}/bios/BootMode").json["BootMode"]
    assert shown["value"] == "Bios"
    assert explained(stage, node)


def test_a_database_that_is_busy_leaves_nodes_to_the_next_round(
    stage, make_rack, monkeypatch
) -> None:
    nodes = {manageable(stage, machine) for machine in make_rack(2).machines}

    def busy(*args: object) -> None:
        raise errors.DatabaseBusy(reason="no turn")

    monkeypatch.setattr(tasks, "shared", busy)
    with pytest.raises(errors.DatabaseBusy):
        hardware.explain_bios(stage.site.runtime)
    assert stage.site.runtime.unexplained == nodes


def test_a_node_that_is_gone_or_mute_keeps_no_other_from_it(stage, make_rack) -> None:
    gone, mute, well = make_rack(3).machines
    nodes = [manageable(stage, machine) for machine in (gone, mute, well)]
    stage.api.delete(f"/v1/nodes/{nodes[0]}")
    mute.bmc.faults.add(kind="reset", times=-1)
    hardware.explain_bios(stage.site.runtime)
    assert explained(stage, nodes[2])
    assert stage.site.runtime.unexplained == set()


MOST_OF_A_VERIFY = 8


@pytest.mark.parametrize(
    ("model", "verify", "first_cleaning", "another"),
    [
        ("generic", 6, 8, 6),
        ("dmtf-rackmount1", 6, 8, 6),
        ("hpe-ilo6", 6, 8, 8),  # what would explain its BIOS is missing, and is looked for again
        ("hpe-ilo5", 6, 8, 6),
        ("supermicro-x10", 5, 8, 8),  # likewise
        ("openbmc-gb300", 6, 6, 6),
        ("nvidia-gb200", 6, 6, 6),
        ("dell-idrac", 6, 10, 6),  # not under its name: the list of explanations is asked for
        ("lenovo-xcc", 6, 9, 7),  # a chassis is missing
    ],
)
def test_verify_and_cleaning_cost_each_make_of_bmc_as_much_as_here(
    stage, make_rack, asked, model, verify, first_cleaning, another
) -> None:
    assert verify < MOST_OF_A_VERIFY  # one more where the system is looked for
    per_bmc = models.of(model).per_bmc
    machines = make_rack(2 * per_bmc, model=model).machines[::per_bmc]
    for machine, count in zip(machines, (first_cleaning, another), strict=True):
        node = manageable(stage, machine)
        assert len(taken(asked, machine)) == verify
        assert clean(stage, node)
        assert len(taken(asked, machine)) == count


@pytest.mark.parametrize("model", [name for name in models.ALL if name != "nvidia-gb200"])
def test_a_verify_that_looks_for_the_system_asks_once_more(stage, make_rack, asked, model) -> None:
    one, other = make_rack(2, model=model).machines
    manageable(stage, one)
    with_id = len(taken(asked, one))
    manageable(stage, other, redfish_system_id=None)
    assert len(taken(asked, other)) == with_id + 1 <= MOST_OF_A_VERIFY


def test_where_several_hosts_share_a_bmc_the_system_has_to_be_named(stage, make_rack) -> None:
    machine = make_rack(2, model="nvidia-gb200").machines[0]
    node = enrol(stage, machine, redfish_system_id=None)
    stage.ask(node, "manage")
    error = stage.wait_for(node, "enroll")["last_error"]
    assert "set driver_info/redfish_system_id; there are:" in error
    assert "/redfish/v1/Systems/System_0, /redfish/v1/Systems/System_1" in error


def test_every_make_of_bmc_is_in_the_table() -> None:
    [marker] = test_verify_and_cleaning_cost_each_make_of_bmc_as_much_as_here.pytestmark
    assert [row[0] for row in marker.args[1]] == list(models.ALL)


def test_power_on_looks_once_before_it_asks(stage, machine, asked) -> None:
    node = manageable(stage, machine)
    asked.clear()
    assert stage.power(node, "power on")["last_error"] is None
    first, order, look, *_ = taken(asked, machine)
    assert (first, look) == ("GET /Systems/ID", "GET /Systems/ID")
    assert order == "POST /Systems/ID/Actions/ComputerSystem.Reset"


def test_a_system_without_an_id_is_looked_for_once(stage, machine, asked) -> None:
    node = manageable(stage, machine, redfish_system_id=None)
    assert taken(asked, machine) == [*LOGIN, "GET /Systems", *VERIFY]
    stage.power(node, "power on")
    assert "GET /Systems" not in taken(asked, machine)


def test_a_look_of_power_sync_tells_the_health_as_well(stage, machine, asked) -> None:
    node = manageable(stage, machine)
    asked.clear()
    sync = PowerSync(stage.site.runtime)
    sync.run()
    wait_for(lambda: sync.is_idle, "the look to end")
    assert stage.show(node)["health"] == "OK"
    stage.wait_until_free(node)
    assert taken(asked, machine) == ["GET /Systems/ID"]


def test_a_look_of_power_sync_is_one_request_and_no_task(
    stage, machine, asked, monkeypatch
) -> None:
    """Also of a BMC that links to pending settings, which sushy's system would read, too."""
    import sushy

    manageable(stage, machine)
    sync = PowerSync(stage.site.runtime)
    for _ in range(2):  # the first pass records the health, by a task
        sync.run()
        wait_for(lambda: sync.is_idle, "the looks to end")
    before = machine.bmc.counted()
    path = f"/redfish/v1/Systems/{machine.uuid}"
    pending = {"@Redfish.Settings": {"SettingsObject": {"@odata.id": f"{path}/Settings"}}}
    body = routing.serve(machine.bmc, Ask(method="GET", path=path)).document | pending
    machine.bmc.faults.add(kind="status", status=200, body=body, path="Systems", times=-1)
    monkeypatch.setattr(sushy.Sushy, "get_system", lambda *_: pytest.fail("it was parsed whole"))
    meter = Meter(stage.site.db)
    asked.clear()
    sync.run()
    wait_for(lambda: sync.is_idle, "the look to end")
    assert taken(asked, machine) == ["GET /Systems/ID"]
    assert machine.bmc.counted() == before | {"requests": before["requests"] + 1}
    assert (meter.commits, len(meter.statements)) == (0, 1), "the nodes to look at"
