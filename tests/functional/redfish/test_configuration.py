"""BIOS settings and firmware by Redfish: from the steps that a user asks for to the machine."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
from datetime import timedelta

import pytest

from bloomery import clock, errors
from bloomery.conductor import recovery
from bloomery.conf.drivers import BmcOptions, Redfish
from bloomery.drivers import registry
from bloomery.drivers.redfish import firmware
from bloomery.drivers.redfish.power import RedfishPower
from bloomery.drivers.redfish.wire import Wire
from bloomery.lab import models
from bloomery.lab.bmc import Rules
from bloomery.outcome import Again
from tests.functional.redfish import conftest
from tests.functional.redfish.conftest import ISO, available, manageable
from tests.kit.servers.stories import Stage
from tests.kit.waiting import wait_for

RESET = {"interface": "bios", "step": "factory_reset"}


def apply(**values):
    settings = [{"name": name, "value": value} for name, value in values.items()]
    return {"interface": "bios", "step": "apply_configuration", "args": {"settings": settings}}


def clean(stage, node, *steps):
    """Run steps in a cleaning without an agent; return the node."""
    stage.ask(node, "clean", clean_steps=list(steps), disable_ramdisk=True)
    stage.site.wait_for_state(node, "manageable", "clean failed")
    stage.wait_until_free(node)
    return stage.show(node)


def shown(stage, node):
    return {
        each["name"]: each["value"] for each in stage.api.get(f"/v1/nodes/{node}/bios").json["bios"]
    }


@pytest.fixture
def node(stage, machine):
    return manageable(stage, machine)


# --------------------------------------------------------------------------------------- BIOS


@pytest.mark.sampled
@pytest.mark.parametrize("model", models.ALL)
@pytest.mark.parametrize("runs", [True, False])
def test_settings_are_applied_behind_any_make_by_one_restart(stage, make_rack, model, runs) -> None:
    machine = make_rack(model=model).machines[0]
    machine.system._on = runs
    node = manageable(stage, machine)
    ended = clean(stage, node, apply(ProcTurboMode="Disabled", NumCores="4", QuietBoot="false"))
    assert (ended["provision_state"], ended["last_error"]) == ("manageable", None)
    bios = machine.system.bios
    assert (bios["ProcTurboMode"], bios["NumCores"], bios["QuietBoot"]) == ("Disabled", 4, False)
    assert sum(what.startswith("boots from") for what in machine.system.happened) == 1
    assert machine.system.power == ("On" if runs else "Off")
    assert ended["power_state"] == f"power {machine.system.power.lower()}"
    assert shown(stage, node)["NumCores"] == "4"
    assert not [key for key in ended["driver_internal_info"] if key.startswith("redfish_write")]


def test_settings_that_are_so_restart_nothing(stage, machine, node) -> None:
    ended = clean(stage, node, apply(ProcTurboMode="Enabled", NumCores=2))
    assert ended["last_error"] is None
    assert machine.system.happened == []


def test_settings_that_another_change_would_undo_are_set_again(stage, machine, node) -> None:
    machine.system.bios_next = {"ProcTurboMode": "Disabled"}
    assert clean(stage, node, apply(ProcTurboMode="Enabled"))["last_error"] is None
    assert machine.system.bios_next == {"ProcTurboMode": "Enabled"}
    assert machine.system.happened == []


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("ProcTurboMode", "Maybe", "it takes one of Enabled, Disabled"),
        ("NumCores", "many", "it takes a whole number"),
        ("QuietBoot", "perhaps", "it takes true or false"),
        ("Turbo", "Enabled", "the BIOS has no such setting"),
    ],
)
def test_a_setting_that_cannot_be_is_named_before_anything_is_set(
    stage, machine, node, name, value, told
) -> None:
    ended = clean(stage, node, apply(SriovGlobalEnable="Enabled", **{name: value}))
    assert ended["provision_state"] == "clean failed"
    assert f"cannot set {name} of the BIOS: {told}" in ended["last_error"]
    assert (machine.system.bios_next, machine.system.happened) == ({}, [])


def test_the_factory_settings_come_back_once_the_bios_has_started(stage, make_rack) -> None:
    machine = make_rack(post_s=0.5).machines[0]
    machine.system.bios["NumCores"] = 8
    node = manageable(stage, machine)
    ended = clean(stage, node, RESET, apply(ProcTurboMode="Disabled"))
    assert (ended["provision_state"], ended["last_error"]) == ("manageable", None)
    assert (machine.system.bios["NumCores"], machine.system.bios["ProcTurboMode"]) == (
        2,
        "Disabled",
    )
    assert (shown(stage, node)["NumCores"], machine.system.power) == ("2", "Off")


def test_an_instance_is_restarted_to_get_its_settings(stage, machine, node) -> None:
    stage.site.set(node, provision_state="active", power_state="power on")
    machine.system._on = True
    stage.ask(node, "service", service_steps=[apply(ProcTurboMode="Disabled")])
    assert stage.wait_for(node, "active")["last_error"] is None
    assert (machine.system.bios["ProcTurboMode"], machine.system.power) == ("Disabled", "On")


def test_an_instance_that_was_switched_on_since_a_failure_stays_on(stage, machine, node) -> None:
    stage.site.set(node, provision_state="active", power_state="power off")
    machine.bmc.faults.add(method="POST", path="Reset$", kind="status", status=400)
    steps = [apply(ProcTurboMode="Disabled")]
    stage.ask(node, "service", service_steps=steps)
    stage.wait_for(node, "service failed")
    stage.wait_until_free(node)
    stage.api.delete(f"/v1/nodes/{node}/maintenance")
    stage.power(node, "power on")
    stage.ask(node, "service", service_steps=steps)
    assert stage.wait_for(node, "active")["last_error"] is None
    assert (machine.system.bios["ProcTurboMode"], machine.system.power) == ("Disabled", "On")


def test_a_deployment_sets_the_bios_before_it_boots(stage, machine) -> None:
    node = available(stage, machine)
    machine.system.history.clear()
    stage.ask(node, "active", deploy_steps=[apply(NumCores=4) | {"priority": 150}])
    shown_node = stage.wait_for(node, "active")
    assert (shown_node["last_error"], shown_node["power_state"]) == (None, "power on")
    assert (machine.system.bios["NumCores"], machine.system.booted["image"]) == (4, ISO)
    boots = [what for what in machine.system.happened if what.startswith("boots from")]
    assert [what.split()[2] for what in boots] == ["None", "Cd"]


@pytest.mark.parametrize("step", [apply(NumCores=4), RESET])
def test_a_machine_without_bios_settings_is_told_so(stage, machine, node, step) -> None:
    machine.bmc.faults.add(kind="status", status=404, path="/Bios$", times=-1)
    ended = clean(stage, node, step)
    assert "its BMC shows no BIOS settings" in ended["last_error"]


# ----------------------------------------------------------------------------------- firmware

QUICK = Rules(update_s=0.1, restart_s=0.2)
FILES = "http://files.test"


@pytest.fixture
def flashing(make_site):
    """A site that looks soon at a BMC that updates firmware, and at one that was silent."""
    conf = dataclasses.replace(
        conftest.conf(),
        redfish=Redfish(
            connect_timeout=1, read_timeout=1, firmware_update_status_interval=1,
            firmware_update_reboot_delay=1, firmware_update_validation_interval=0,
            power_on_conflict_retry_interval=1,
        ),
        bmc=BmcOptions(call_timeout=3, breaker_failures=3, breaker_pause=1),
    )  # fmt: skip
    made = Stage(make_site(registry=registry.load(conf), bmc_outage_budget=10))
    yield made
    assert made.nothing_is_left(), "a reservation is left"


@pytest.fixture
def target(make_rack):
    return make_rack(rules=QUICK).machines[0]


def update(*entries):
    settings = [
        {"component": component, "url": url} | (more[0] if more else {})
        for component, url, *more in entries
    ]
    return {"interface": "firmware", "step": "update", "args": {"settings": settings}}


def versions(stage, node):
    listed = stage.api.get(f"/v1/nodes/{node}/firmware").json["firmware"]
    return {each["component"]: each for each in listed}


def test_components_are_updated_one_after_another(flashing, target) -> None:
    node = manageable(flashing, target)
    step = update(("bmc", f"{FILES}/bmc-1.1"), ("bios", f"{FILES}/bios-2.1", {"wait": 0.1}))
    ended = clean(flashing, node, step)
    assert (ended["provision_state"], ended["last_error"]) == ("manageable", None)
    assert target.system.firmware == {"BMC": "bmc-1.1", "BIOS": "bios-2.1", "NIC": "3.0.0"}
    assert [what for what in target.system.happened if "firmware" in what] == [
        "BMC firmware is bmc-1.1", "BIOS firmware is bios-2.1",
    ]  # fmt: skip
    for name, initial, current in (("bmc", "1.0.0", "bmc-1.1"), ("bios", "2.0.0", "bios-2.1")):
        row = versions(flashing, node)[name]
        assert (row["initial_version"], row["current_version"]) == (initial, current)
        assert row["last_version_flashed"] == current
    assert "redfish_firmware" not in ended["driver_internal_info"]
    assert clean(flashing, node, apply(NumCores=2))["last_error"] is None
    assert versions(flashing, node)["bmc"]["last_version_flashed"] == "bmc-1.1"


def test_a_network_adapter_is_updated_by_its_serial_number(flashing, target) -> None:
    node = manageable(flashing, target)
    name = f"nic:N{target.system.serial}"
    assert set(versions(flashing, node)) == {"bios", "bmc"}  # manage leaves adapters to cleaning
    ended = clean(flashing, node, update((name, f"{FILES}/boot-nic-3.1")))
    assert (ended["provision_state"], ended["last_error"]) == ("manageable", None)
    assert target.system.firmware == {"BMC": "1.0.0", "BIOS": "2.0.0", "NIC": "boot-nic-3.1"}
    row = versions(flashing, node)[name]
    assert (row["initial_version"], row["last_version_flashed"]) == ("3.0.0", "boot-nic-3.1")
    assert sum(what.startswith("boots from") for what in target.system.happened) == 1


@pytest.mark.parametrize(
    ("name", "reason"),
    [("nic:none", "shows no version of nic:none"), ("nic:", "not nic:"), ("cpu", "not cpu")],
)
def test_a_component_that_the_bmc_does_not_show_is_refused(flashing, target, name, reason) -> None:
    node = manageable(flashing, target)
    ended = clean(flashing, node, update((name, f"{FILES}/nic-3.1")))
    assert reason in ended["last_error"]
    assert target.system.firmware["NIC"] == "3.0.0"


@pytest.mark.parametrize("runs", [True, False])
def test_firmware_that_a_restart_makes_run_gets_one(flashing, target, runs) -> None:
    target.system._on = runs
    node = manageable(flashing, target)
    ended = clean(flashing, node, update(("bios", f"{FILES}/boot-2.1")))
    assert ended["last_error"] is None
    assert target.system.firmware["BIOS"] == "boot-2.1"
    assert sum(what.startswith("boots from") for what in target.system.happened) == 1
    assert target.system.power == ("On" if runs else "Off")
    assert versions(flashing, node)["bios"]["current_version"] == "boot-2.1"


@pytest.mark.sampled
@pytest.mark.parametrize("model", models.ALL)
def test_any_make_is_updated(flashing, make_rack, model) -> None:
    machine = make_rack(model=model, rules=QUICK).machines[0]
    node = manageable(flashing, machine)
    assert clean(flashing, node, update(("bios", f"{FILES}/2.1")))["last_error"] is None
    assert machine.system.firmware["BIOS"] == "2.1"


def test_a_bmc_of_many_machines_updates_the_one_that_is_meant(flashing, make_rack) -> None:
    one, other = make_rack(2, apart=False, rules=QUICK).machines
    node = manageable(flashing, other)
    assert clean(flashing, node, update(("bios", f"{FILES}/2.1")))["last_error"] is None
    assert (one.system.firmware["BIOS"], other.system.firmware["BIOS"]) == ("2.0.0", "2.1")


@pytest.mark.parametrize(
    "fault",
    [{"kind": "after", "status": 503}, {"kind": "truncate"}, {"kind": "reset"}, {"kind": "hang"}],
)
def test_an_answer_that_is_lost_flashes_nothing_twice(flashing, target, fault) -> None:
    node = manageable(flashing, target)
    target.bmc.faults.add(method="POST", path="SimpleUpdate", seconds=2, **fault)
    assert clean(flashing, node, update(("bios", f"{FILES}/2.1")))["last_error"] is None
    assert [what for what in target.system.happened if "firmware" in what] == [
        "BIOS firmware is 2.1"
    ]


def test_an_instance_keeps_running_while_its_bmc_is_updated(flashing, target) -> None:
    node = manageable(flashing, target)
    flashing.site.set(node, provision_state="active", power_state="power on")
    target.system._on = True
    flashing.ask(node, "service", service_steps=[update(("bmc", f"{FILES}/bmc-1.1"))])
    assert flashing.wait_for(node, "active")["last_error"] is None
    assert (target.system.firmware["BMC"], target.system.power) == ("bmc-1.1", "On")
    assert [what for what in target.system.happened if not what.startswith("BMC")] == []


def test_an_update_waits_for_a_bmc_that_is_silent_when_it_begins(flashing, target) -> None:
    node = manageable(flashing, target)
    path = "/Managers/[^/]+$|/Systems/[^/]+$"
    target.bmc.faults.add(method="GET", path=path, kind="status", status=503, times=8)
    assert clean(flashing, node, update(("bios", f"{FILES}/2.1")))["last_error"] is None
    assert target.system.firmware["BIOS"] == "2.1"


@pytest.mark.parametrize(("machines", "tells"), [(1, False), (2, True), (2, False)])
def test_an_update_that_a_crash_cut_off_goes_on(flashing, make_rack, machines, tells) -> None:
    rules = Rules(update_s=60, tells_payload=tells)
    machine = make_rack(machines, apart=False, rules=rules).machines[0]
    node = manageable(flashing, machine)
    settings = [{"component": "bios", "url": f"{FILES}/2.1"}]
    saved = []
    with flashing.site.acquire(node) as task:
        task.save = lambda: saved.append(copy.deepcopy(task.node.driver_internal_info))
        for memory in (None, 1, -1):  # from the start; as saved before the order, and after it
            if memory is not None:
                task.node.driver_internal_info = copy.deepcopy(saved[memory])
            task.turn = 0
            assert isinstance(task.driver.firmware.update(task, settings), Again)
        del task.save
    assert len(machine.bmc.tasks) == 1


@pytest.mark.parametrize("tells", [True, False])
def test_a_task_of_a_neighbour_is_not_taken_for_ones_own(flashing, make_rack, tells) -> None:
    one, other = make_rack(2, apart=False, rules=Rules(update_s=60, tells_payload=tells)).machines
    tasks, settings = one.bmc.tasks, [{"component": "bios", "url": f"{FILES}/2.1"}]
    nodes = [manageable(flashing, machine) for machine in (one, other)]
    with flashing.site.acquire(nodes[0]) as own, flashing.site.acquire(nodes[1]) as neighbour:
        one.bmc.faults.add(method="POST", path="SimpleUpdate", kind="reset")
        with pytest.raises(errors.BmcUnreachable):
            own.driver.firmware.update(own, settings)
        neighbour.driver.firmware.update(neighbour, settings)
        outcome = own.driver.firmware.update(own, settings)
        assert ("may be its task, and does not say" in outcome.reason) is not tells
        assert len(tasks) == (2 if tells else 1)
        tasks["1"]["state"] = "Completed"
        own.driver.firmware.update(own, settings)
        monitors = [monitor_of(each) for each in (neighbour, own)]
    assert [path.rpartition("/")[2] for path in monitors] == ["1", "2"]


def monitor_of(task):
    return task.node.driver_internal_info["redfish_firmware"]["now"]["monitor"]


def test_an_update_that_may_have_begun_is_waited_for_so_long(
    flashing, make_rack, monkeypatch
) -> None:
    rules = Rules(update_s=60, tells_payload=False)
    machine = make_rack(2, apart=False, rules=rules).machines[0]
    settings = [{"component": "bios", "url": f"{FILES}/2.1"}]
    with flashing.site.acquire(manageable(flashing, machine)) as task:
        machine.bmc.faults.add(method="POST", path="SimpleUpdate", kind="after")
        assert "HTTP 500" in task.driver.firmware.update(task, settings).reason
        now = clock.now
        monkeypatch.setattr(clock, "now", lambda: now() + timedelta(seconds=8000))
        with pytest.raises(errors.StepFailure, match="cannot tell whether the BMC updates"):
            task.driver.firmware.update(task, settings)


def test_a_rest_that_a_crash_cut_off_flashes_nothing_again(flashing, target, monkeypatch) -> None:
    node = manageable(flashing, target)
    settings = [{"component": "bios", "url": f"{FILES}/2.1", "wait": 9000}]
    with flashing.site.acquire(node) as task:

        def rests():
            reason = task.driver.firmware.update(task, settings).reason
            task.turn += 1
            return reason == "bios is updated; it is to rest"

        wait_for(rests, "the update to be done")
        now = clock.now
        monkeypatch.setattr(clock, "now", lambda: now() + timedelta(seconds=8000))
        task.turn = 0
        assert rests()
        monkeypatch.setattr(task.node, "provision_updated_at", now())  # by another flow
        assert not rests()


@pytest.mark.parametrize(
    ("path", "status", "skip"), [("TaskMonitors/", 410, 0), ("/Systems/[^/]+$", 404, 3)]
)
def test_a_bmc_that_starts_anew_may_lack_documents(flashing, target, path, status, skip) -> None:
    node = manageable(flashing, target)
    target.bmc.faults.add(method="GET", path=path, kind="status", status=status, skip=skip, times=2)
    assert clean(flashing, node, update(("bmc", f"{FILES}/bmc-1.1")))["last_error"] is None
    assert target.system.firmware["BMC"] == "bmc-1.1"
    assert all(fault["hits"] for fault in target.bmc.faults.shown())


def test_a_file_is_flashed_that_has_its_checksum(flashing, target, files) -> None:
    right = hashlib.sha512(b"firmware").hexdigest().upper()
    node = manageable(flashing, target)
    step = update(("bios", f"{files}/2.1", {"checksum": right}))
    assert clean(flashing, node, step)["last_error"] is None
    assert target.system.firmware["BIOS"] == "2.1"


def test_a_file_with_another_checksum_reaches_no_machine(flashing, target, files) -> None:
    wrong = hashlib.sha256(b"another").hexdigest()
    node = manageable(flashing, target)
    ended = clean(flashing, node, update(("bios", f"{files}/2.1", {"checksum": wrong})))
    assert f"{files}/2.1 does not match its checksum: its sha256 is" in ended["last_error"]
    assert target.bmc.tasks == {}


def test_a_task_that_fails_is_told_without_the_login_of_the_address(flashing, target) -> None:
    node = manageable(flashing, target)
    address = "http://alice:correct-horse@files.test/bad-2.1"
    ended = clean(flashing, node, update(("bios", address)))
    assert "the BMC could not update bios: cannot verify http" in ended["last_error"]
    assert "redfish_firmware" not in ended["driver_internal_info"]
    assert "http://******@files.test/bad-2.1" in ended["last_error"]


def test_a_bmc_without_updates_says_so(flashing, target) -> None:
    node = manageable(flashing, target)
    target.bmc.faults.add(kind="status", status=404, path="/UpdateService$", times=-1)
    ended = clean(flashing, node, update(("bios", f"{FILES}/2.1")))
    assert "its BMC offers no update of firmware from an address" in ended["last_error"]


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("2.1", None),
        ("2.1-ignored", "and bios is still 2.0.0, not 2.1"),
        ("2.2", "and bios is 2.2, not 2.1"),
    ],
)
def test_a_version_is_believed_once_the_bmc_shows_it(flashing, target, file, reason) -> None:
    node = manageable(flashing, target)
    ended = clean(flashing, node, update(("bios", f"{FILES}/{file}", {"version": "2.1"})))
    assert (ended["last_error"] is None) == (reason is None)
    assert (reason or "") in (ended["last_error"] or "")
    assert "redfish_firmware" not in ended["driver_internal_info"]


def rollback(component="bios", **more):
    return {"interface": "firmware", "step": "rollback", "args": {"component": component} | more}


@pytest.mark.parametrize(
    ("component", "former", "more"),
    [
        ("bios", "2.0.0", {}),
        ("bios", "2.0.0", {"restarts_for_image": False}),
        ("bmc", "1.0.0", {}),
        ("bmc", "1.0.0", {"restarts_for_image": False}),
        ("bmc", "1.0.0", {"model": "openbmc-gb300"}),
        ("bios", "2.0.0", {"model": "dell-idrac"}),
        ("bmc", "7.10.30.00", {"model": "dell-idrac"}),
    ],
    ids=str,
)
def test_a_component_returns_to_the_image_that_its_bmc_keeps(
    flashing, make_rack, monkeypatch, component, former, more
) -> None:
    monkeypatch.setattr(firmware, "_START_S", 0.5)
    machine = make_rack(rules=QUICK, keeps_images=True, **more).machines[0]
    node = manageable(flashing, machine)
    step = update((component, f"{FILES}/{component}-9"))
    assert clean(flashing, node, step)["last_error"] is None
    for version in (former, f"{component}-9"):  # and there again
        assert clean(flashing, node, rollback(component))["last_error"] is None
        assert machine.system.firmware[component.upper()] == version
        assert versions(flashing, node)[component]["current_version"] == version
    assert machine.system.power == "Off"


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (rollback(), "its BMC keeps no other image of bios"),
        (rollback("bmc"), "its BMC keeps no other image of bmc"),
        (rollback("nic:1"), "component takes bios or bmc"),
        (rollback(version=2), "version takes a text"),
    ],
)
def test_a_bmc_that_keeps_no_image_is_left_as_it_is(flashing, target, step, reason) -> None:
    node = manageable(flashing, target)
    ended = clean(flashing, node, step)
    assert reason in ended["last_error"]
    assert "redfish_firmware" not in ended["driver_internal_info"]


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"kind": "status", "status": 405, "times": -1}, "405"),
        ({"kind": "stuck"}, None),
        ({"kind": "reset"}, None),
        ({"kind": "after", "status": 503}, None),
    ],
    ids=str,
)
def test_an_image_is_chosen_as_far_as_the_bmc_lets_it(flashing, make_rack, fault, reason) -> None:
    machine = make_rack(rules=QUICK, keeps_images=True).machines[0]
    node = manageable(flashing, machine)
    assert clean(flashing, node, update(("bios", f"{FILES}/bios-9")))["last_error"] is None
    machine.bmc.faults.add(method="PATCH", path="/Bios$", **fault)
    ended = clean(flashing, node, rollback())
    assert (reason or "") in (ended["last_error"] or "")
    assert machine.system.firmware["BIOS"] == ("bios-9" if reason else "2.0.0")


def test_a_version_names_the_image(flashing, make_rack) -> None:
    machine = make_rack(rules=QUICK, keeps_images=True).machines[0]
    node = manageable(flashing, machine)
    assert clean(flashing, node, update(("bios", f"{FILES}/bios-9")))["last_error"] is None
    assert clean(flashing, node, rollback(version="2.0.0"))["last_error"] is None
    assert machine.system.firmware["BIOS"] == "2.0.0"
    ended = clean(flashing, node, rollback(version="1.9"))
    assert "keeps these images of bios: bios-9; name one as version" in ended["last_error"]


def test_a_version_that_runs_already_is_not_written_again(flashing, target) -> None:
    node = manageable(flashing, target)
    entries = [(name, f"{FILES}/{name}-9", {"version": v}) for name, v in
               (("bmc", "1.0.0"), ("bios", "2.0.0"))]  # fmt: skip
    ended = clean(flashing, node, update(*entries))
    assert (ended["last_error"], target.bmc.tasks) == (None, {})
    bios = versions(flashing, node)["bios"]
    assert (bios["vendor"], bios["model"]) == ("Lab", "Simulated")
    assert bios["last_version_flashed"] is None


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (("nic", f"{FILES}/2.1"), "redfish updates bios, bmc and nic:NAME, not nic"),
        (("bios", "ftp://files.test/2.1"), "url takes an address of http or https"),
        (("bios", "http://["), "url takes an address of http or https"),
        (("bios", f"{FILES}/2.1", {"checksum": "md5:1"}), "checksum takes the digits of md5"),
        (("bios", f"{FILES}/2.1", {"wait": -1}), "wait takes seconds"),
        (("bios", f"{FILES}/2.1", {"wait": "1"}), "wait takes seconds"),
        (("bios", f"{FILES}/2.1", {"version": 2.1}), "version takes a text"),
        (("bios", f"{FILES}/2.1", {"version": ""}), "version takes a text"),
        (("bios", f"{FILES}/2.1", {"verison": "2.1"}), "and no verison"),
    ],
)
def test_what_cannot_be_flashed_is_refused(flashing, target, entry, told) -> None:
    node = manageable(flashing, target)
    assert told in clean(flashing, node, update(entry))["last_error"]
    assert target.bmc.tasks == {}


# ----------------------------------------------------------------------- workers that die


@pytest.mark.sampled
@pytest.mark.parametrize("dies_at", range(4))
@pytest.mark.parametrize(
    ("model", "step", "order"),
    [
        ("generic", apply(NumCores=4), "PATCH Settings"),
        ("generic", update(("bios", f"{FILES}/boot-2.1")), "POST SimpleUpdate"),
        ("generic", rollback(), "PATCH Bios"),
        ("dell-idrac", rollback(), "POST SimpleUpdate"),
    ],
    ids=["bios", "firmware", "rollback", "rollback of an iDRAC"],
)
def test_a_step_goes_on_whose_worker_died_right_after_any_order(
    flashing, make_rack, monkeypatch, model, step, order, dies_at
) -> None:
    """The last of the places is one that it does not come to: nobody dies."""
    orders = [order, "POST On", "POST ForceOff"]
    target = make_rack(rules=QUICK, keeps_images=True, model=model).machines[0]
    target.system.install("BIOS", "former-2.1")
    node, seen, request = manageable(flashing, target), [], Wire.request

    def deadly(self, method, url, **more):
        answer = request(self, method, url, **more)
        if method != "GET" and not url.endswith("/Sessions"):
            what = more.get("json", {}).get("ResetType") or url.rpartition("/")[2]
            seen.append(f"{method} {what.rpartition('.')[2]}")
            if len(seen) == dies_at + 1:
                raise SystemExit
        return answer

    monkeypatch.setattr(Wire, "request", deadly)
    flashing.ask(node, "clean", clean_steps=[step], disable_ramdisk=True)
    wait_for(lambda: flashing.site.is_free(node), "the cleaning, or its worker, to end")
    if dies_at < len(orders):
        assert flashing.site.node(node).provision_state == "cleaning"
        recovery.adopt(flashing.site.runtime, node)
    ended = flashing.wait_for(node, "manageable")
    flashing.wait_until_free(node)
    assert (ended["last_error"], ended["power_state"]) == (None, "power off")
    assert seen[: dies_at + 1] == orders[: dies_at + 1]
    assert len(target.bmc.tasks) == seen.count("POST SimpleUpdate") <= 1
    # no flash is cut off by a restart; what is repeated changes nothing
    assert seen == orders or step["step"] != "update"
    system = target.system
    assert system.power == "Off"
    result = system.bios["NumCores"], system.firmware["BIOS"]
    assert result in ((4, "former-2.1"), (2, "boot-2.1"), (2, "2.0.0"))
    assert result != (2, "former-2.1")


@pytest.mark.parametrize("runs", [True, False])
def test_a_restart_that_a_worker_died_before_is_made_later(
    flashing, target, monkeypatch, runs
) -> None:
    target.system._on = runs
    node, deaths, reboot = manageable(flashing, target), [SystemExit], RedfishPower.reboot

    def deadly(self, task, timeout_s=None):
        if deaths:
            raise deaths.pop()
        return reboot(self, task, timeout_s)

    monkeypatch.setattr(RedfishPower, "reboot", deadly)
    step = update(("bios", f"{FILES}/boot-2.1"))
    flashing.ask(node, "clean", clean_steps=[step], disable_ramdisk=True)
    wait_for(lambda: flashing.site.is_free(node), "the worker to end")
    recovery.adopt(flashing.site.runtime, node)
    assert flashing.wait_for(node, "manageable")["last_error"] is None
    flashing.wait_until_free(node)
    assert target.system.firmware["BIOS"] == "boot-2.1"
    assert target.system.power == ("On" if runs else "Off")
