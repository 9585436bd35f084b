"""Sensors of machines: read in turn, shown in /metrics, and sent as Ironic sends them."""

from __future__ import annotations

import dataclasses

import pytest

from bloomery.conductor.periodics.power_sync import PowerSync
from bloomery.conductor.periodics.sensors import SendSensors
from bloomery.conf.drivers import SensorData
from tests.functional.redfish.conftest import manageable
from tests.kit.waiting import wait_for


@pytest.fixture
def sent():
    return []


@pytest.fixture
def poll(stage, sent):
    """Read all sensors once; ``options`` of [sensor_data]."""
    stage.site.service.periodics.stop()

    def poll(**options):
        runtime = stage.site.runtime
        options = {"enable_for_undeployed_nodes": True, "interval": 1} | options
        conf = dataclasses.replace(runtime.conf, sensor_data=SensorData(**options))
        runtime = dataclasses.replace(
            runtime, conf=conf, send_sensors=lambda driver, one: sent.append((driver, one))
        )
        job = SendSensors(runtime)
        job()
        wait_for(lambda: job.is_idle, "the sensors to be read")
        return job

    return poll


COLD_PLATE = "Chassis_0_LeakDetector_0_ColdPlate"
MANIFOLD = "Chassis_0_LeakDetector_1_Manifold"


def collect(stage):
    return [each for each in stage.site.runtime.sensors.collect() if len(each.labels) > 3]


def gauges(stage):
    return {each.name: each.value for each in stage.site.runtime.sensors.collect()}


@pytest.mark.parametrize("model", ["generic", "openbmc-gb300", "nvidia-gb200"])
def test_sensors_are_shown_and_sent(stage, make_rack, poll, sent, model) -> None:
    machine = make_rack(model=model).machines[0]
    node = manageable(stage, machine)
    poll()
    shown = gauges(stage)
    assert shown["baremetal_temp_cpu_celsius"] == 24.0
    assert shown["baremetal_fan_status"] == 0.0
    ((driver, message),) = sent
    assert (driver, message["node_uuid"]) == ("redfish", node)
    assert message["event_type"] == "hardware.redfish.metrics.update"
    kinds = {"Extra", "Fan", "Temperature", "Drive", "Environment"}
    of_model = {"generic": {"Power"}, "nvidia-gb200": {"LeakDetector", "PowerShelf"}}
    assert set(message["payload"]) == kinds | of_model.get(model, set())


def test_the_payload_has_the_fields_of_ironic(stage, machine, poll, sent) -> None:
    manageable(stage, machine)
    poll(data_types=("temperature", "power"))
    (_, message) = sent[0]
    assert set(message) == {
        "message_id", "instance_uuid", "node_uuid", "node_name", "timestamp", "event_type",
        "payload",
    }  # fmt: skip
    assert message["payload"]["Temperature"][f"1@{machine.uuid}"] == {
        "identity": "1", "reading_celsius": 24, "physical_context": "CPU", "sensor_number": 1,
        "max_reading_range_temp": 120, "min_reading_range_temp": 0, "state": "Enabled",
        "health": "OK",
    }  # fmt: skip
    assert list(message["payload"]["Power"]) == [f"0:Power@{machine.uuid}"]
    assert set(message["payload"]) == {"Temperature", "Power"}


def test_leak_detectors_power_shelves_and_metrics_of_a_tray_are_read(
    stage, make_rack, poll, sent
) -> None:
    machine = make_rack(2, model="nvidia-gb200").machines[1]
    manageable(stage, machine)
    machine.system.leaks[MANIFOLD] = "Warning"
    poll()
    (_, message) = sent[0]
    assert message["payload"]["LeakDetector"][f"{MANIFOLD}@Chassis_1"] == {
        "identity": MANIFOLD, "name": MANIFOLD.replace("_", " "), "detector_state": "Warning",
        "leak_detector_type": "Moisture", "physical_context": None, "state": "Enabled",
        "health": "Warning",
    }  # fmt: skip
    shelf = message["payload"]["PowerShelf"]["PowerShelf_0"]
    assert (shelf["power_watts"], shelf["power_load_percent"], shelf["health"]) == (5200, 16, "OK")
    assert message["payload"]["Environment"]["Chassis_1"]["power_watts"] == 12
    shown = {(each.name, each.labels[4]): each.value for each in collect(stage)}
    assert shown["baremetal_leak_detector_status", f"{MANIFOLD}@Chassis_1"] == 1.0
    assert shown["baremetal_leak_detector_status", f"{COLD_PLATE}@Chassis_1"] == 0.0
    assert shown["baremetal_power_shelf_power_watts", "PowerShelf_0"] == 5200.0
    assert shown["baremetal_power_shelf_status", "PowerShelf_0"] == 0.0
    assert shown["baremetal_environment_power_watts", "Chassis_1"] == 12.0


def test_a_leak_stands_in_health_history_and_why_until_its_end(stage, make_rack, poll) -> None:
    machine, other = make_rack(2, model="nvidia-gb200").machines
    node, neighbour = manageable(stage, machine), manageable(stage, other)
    stage.configure("sensor_data", send_sensor_data=True)
    sync = PowerSync(stage.site.runtime)

    def settle(**options) -> tuple[str, str, str]:
        poll(**options)
        sync.run()
        wait_for(lambda: sync.is_idle, "power sync to end")
        why = stage.api.get(f"/ext/v1/nodes/{node}/why").json
        return stage.show(node)["health"], why["cause_code"], why["cause"]

    assert settle()[:2] == ("OK", None)
    machine.system.leaks[MANIFOLD] = "Critical"
    for _ in range(2):
        health, code, cause = settle()
        assert (health, code) == ("Critical", "leak")
        assert f"its leak detectors say Critical: {MANIFOLD}@Chassis_0" in cause
    assert stage.show(neighbour)["health"] == "OK"
    stage.api.put(f"/v1/nodes/{node}/maintenance", {})
    assert settle(enable_for_undeployed_nodes=False)[:2] == ("Critical", "leak")
    stage.api.delete(f"/v1/nodes/{node}/maintenance")
    machine.system.leaks[MANIFOLD] = "OK"
    assert settle(enable_for_undeployed_nodes=False)[:2] == ("OK", None)
    events = [
        each["event"] for each in stage.api.get(f"/v1/nodes/{node}/history?detail=true").json[
            "history"
        ] if "leak" in each["event"]
    ]  # fmt: skip
    assert events == [
        f"leak detectors say Critical: {MANIFOLD}@Chassis_0",
        "leak detectors say Critical no longer",
    ]
    assert "leaks" not in stage.site.node(node).driver_internal_info


def test_only_active_nodes_out_of_maintenance_are_read(stage, machine, poll, sent) -> None:
    node = manageable(stage, machine)
    poll(enable_for_undeployed_nodes=False)
    stage.api.put(f"/v1/nodes/{node}/maintenance", {})
    poll()
    assert (sent, gauges(stage)) == ([], {})


def test_a_silent_bmc_loses_its_gauges_and_is_counted(stage, machine, poll, sent) -> None:
    manageable(stage, machine)
    poll()
    machine.bmc.faults.add(kind="status", status=503, times=-1, path="/Chassis")
    assert poll().suspects() == 1
    assert (len(sent), gauges(stage)) == (1, {})


def hours(stage, node):
    answer = stage.api.get(f"/ext/v1/nodes/{node}/sensors")
    assert answer.status == 200, answer.body
    return answer.json


@pytest.fixture
def is_sent(stage):
    """The service reads sensors, of machines without an instance, too."""
    stage.configure("sensor_data", send_sensor_data=True, enable_for_undeployed_nodes=True)


def test_the_last_hours_are_in_the_api(stage, machine, poll, is_sent) -> None:
    node = manageable(stage, machine)
    before = hours(stage, node)
    assert before == {
        "node": node, "interval_s": 600, "is_read": True, "reason": None, "kept_since": None,
        "sensors": [],
    }  # fmt: skip
    poll(), poll()
    document = hours(stage, node)
    sensors = {each["name"]: each for each in document["sensors"]}
    cpu, place = sensors[f"CPU 1@{machine.uuid}"], machine.uuid
    assert (cpu["kind"], cpu["unit"], cpu["status"]) == ("Temperature", "celsius", "OK")
    assert [value for _, value in cpu["readings"]] == [24, 24]
    assert document["kept_since"] == cpu["readings"][0][0]
    assert {(each["name"], each["unit"]) for each in sensors.values()} == {
        (f"CPU 1@{place}", "celsius"), (f"Intake 2@{place}", "celsius"),
        (f"SystemBoard 0@{place}", "rpm"), (f"0:Power@{place}", "watts"),
        (f"{place} power", "watts"),
    }  # fmt: skip


def test_a_silent_bmc_keeps_the_hours_until_its_node_leaves(stage, machine, poll, is_sent) -> None:
    node = manageable(stage, machine)
    poll()
    machine.bmc.faults.add(kind="status", status=503, times=-1, path="/Chassis")
    poll()
    silent = hours(stage, node)
    assert {len(each["readings"]) for each in silent["sensors"]} == {1}
    stage.api.put(f"/v1/nodes/{node}/maintenance", {})
    poll()
    document = hours(stage, node)
    assert (document["sensors"], document["kept_since"]) == ([], None)
    assert (document["is_read"], document["reason"]) == (
        False, "sensors are not read in maintenance",
    )  # fmt: skip
    stage.api.delete(f"/v1/nodes/{node}/maintenance")
    machine.bmc.faults.clear()
    poll()
    assert hours(stage, node)["kept_since"] >= silent["kept_since"]


def test_the_hours_begin_anew_when_a_node_comes_back_to_its_conductor(
    stage, machine, poll, is_sent
) -> None:
    node = manageable(stage, machine)
    poll(), poll()
    away = dataclasses.replace(stage.site.runtime, host="a-host-that-serves-no-node")
    SendSensors(away)()  # as after the ring has given the node to another conductor
    assert hours(stage, node)["sensors"] == []
    poll()
    assert {len(each["readings"]) for each in hours(stage, node)["sensors"]} == {1}


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({}, "[sensor_data]send_sensor_data"),
        ({"send_sensor_data": True}, "[sensor_data]enable_for_undeployed_nodes"),
    ],
)
def test_the_option_is_named_where_sensors_are_not_read(stage, machine, options, option) -> None:
    node = manageable(stage, machine)
    stage.configure("sensor_data", **options)
    document = hours(stage, node)
    assert (document["is_read"], document["sensors"]) == (False, [])
    assert option in document["reason"]


def test_a_node_that_leaves_the_list_while_it_is_queued_is_left_out(stage, machine, poll, caplog):
    node = manageable(stage, machine)
    job = poll()
    job._rows.clear()
    job._lane.put(node)
    wait_for(lambda: job.is_idle, "the poll to end")
    assert "poll failed" not in caplog.text


def test_hardware_without_sensors_is_left_alone(make_site) -> None:
    from tests.kit.servers.stories import Stage

    stage = Stage(make_site())
    stage.site.service.periodics.stop()
    stage.bring_to("active")
    job = SendSensors(stage.site.runtime)
    job()
    wait_for(lambda: job.is_idle, "the sensors to be asked for")
    assert (job.suspects(), gauges(stage)) == (0, {})
