from __future__ import annotations

from datetime import UTC, datetime

from bloomery import metrics
from bloomery.conductor.sensor_board import SensorBoard, list_leaks
from bloomery.db.nodes import SensorRow
from bloomery.model.node import RingKey

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NODE = SensorRow(RingKey("u-1", "redfish", ""), None, "web-1", "i-1")
REDFISH = {
    "Extra": {"System": {"Model": "R750"}},
    "Temperature": {
        "1@c": {"identity": "1", "reading_celsius": 42, "physical_context": "CPU",
                "sensor_number": 7, "health": "OK"},
        "2@c": {"identity": "2", "reading_celsius": None, "physical_context": "CPU"},
    },
    "Fan": {"0@c": {"identity": "0", "physical_context": "SystemBoard", "health": "Warning"}},
    "Power": {"0:Power@c": {"health": "OK"}},
    "Drive": {"Drive 0:1@s": {"health": None}},
}  # fmt: skip
TRAY = {
    "LeakDetector": {
        "Manifold@c": {"detector_state": "Critical", "health": "OK"},
        "ColdPlate@c": {"detector_state": None, "health": "Critical"},
        "Floor@c": {"detector_state": "Warning", "physical_context": "Rack"},
        "Mute@c": {"detector_state": None, "health": None},
    },
    "Environment": {"c": {"power_watts": 240, "energy_kwh": None}},
    "PowerShelf": {"1": {"health": "Warning", "power_watts": 5200.0, "power_load_percent": 16}},
}
IPMI = {
    "Temperature": {
        "Temp 2 (0x2)": {"Sensor ID": "Temp 2 (0x2)", "Entity ID": "3.2",
                         "Sensor Reading": "40 (+/- 1) degrees C", "Status": "ok"},
        "Off (0x3)": {"Sensor ID": "Off (0x3)", "Sensor Reading": "No Reading"},
    },
    "Fan": {"Fan1A (0x30)": {"Sensor ID": "Fan1A (0x30)", "Entity ID": "7.1",
                             "Sensor Reading": "3000 (+/- 120) RPM", "Status": "ok"}},
    "Power": {"PS Redundancy (0x77)": {"Sensor ID": "PS Redundancy (0x77)", "Entity ID": "7.1",
                                       "Sensor Reading": "0h"}},
    "Memory": {"ECC Corr (0x1)": {"Sensor ID": "ECC Corr (0x1)", "Sensor Reading": "4000h"}},
    "Voltage": {"VCORE (0x9)": {"Sensor ID": "VCORE (0x9)", "Sensor Reading": "1 Volts"}},
}  # fmt: skip


def rows(data):
    board = SensorBoard()
    board.put(NODE, data, AT)
    return {(each.name, *each.labels[3:]): each.value for each in board.collect()}


STAMP = ("baremetal_last_payload_timestamp_seconds",)


def test_redfish_sensors_have_the_names_of_the_exporter():
    assert rows(REDFISH) == {
        STAMP: AT.timestamp(),
        ("baremetal_temp_cpu_celsius", "CPU", "7", ""): 42.0,
        ("baremetal_fan_status", "SystemBoard", "0", ""): 1.0,
        ("baremetal_power_status", "PSU", "0:Power@c", ""): 0.0,
    }


def test_sensors_of_a_tray_have_names_of_our_own():
    assert rows(TRAY) == {
        STAMP: AT.timestamp(),
        ("baremetal_leak_detector_status", "unknown", "Manifold@c", "Critical"): 1.0,
        ("baremetal_leak_detector_status", "unknown", "ColdPlate@c", "Critical"): 1.0,
        ("baremetal_leak_detector_status", "Rack", "Floor@c", "Warning"): 1.0,
        ("baremetal_environment_power_watts", "Environment", "c", ""): 240.0,
        ("baremetal_power_shelf_power_watts", "PowerShelf", "1", ""): 5200.0,
        ("baremetal_power_shelf_power_load_percent", "PowerShelf", "1", ""): 16.0,
        ("baremetal_power_shelf_status", "PowerShelf", "1", ""): 1.0,
    }
    assert list_leaks(TRAY) == ["ColdPlate@c", "Manifold@c"]
    assert list_leaks(REDFISH) == list_leaks({}) == []


def test_ipmi_sensors_have_the_names_of_the_exporter():
    assert rows(IPMI) == {
        STAMP: AT.timestamp(),
        ("baremetal_temp_celsius", "3.2", "Temp 2 (0x2)", "ok"): 40.0,
        ("baremetal_fan_rpm", "7.1", "Fan1A (0x30)", "ok"): 3000.0,
        ("baremetal_power_ps_redundancy", "7.1", "PS Redundancy (0x77)", ""): 0.0,
        ("baremetal_memory_ecc_corr", "", "ECC Corr (0x1)", ""): 1.0,
    }


def test_a_node_has_a_limited_number_of_series_with_limited_names():
    sensor = {"Sensor Reading": "1 degrees C", "Entity ID": "x" * 999, "Status": "ok"}
    many = {f"{n}": sensor | {"Sensor ID": f"Temp {n} {'y' * 99}"} for n in range(999)}
    shown = rows({"Temperature": many})
    assert len(shown) == 256
    assert max(len(part) for row in shown for part in row) <= 64 + len("baremetal_")


def test_a_scrape_shows_the_nodes_that_are_left():
    board = SensorBoard()
    board.put(NODE, REDFISH, AT)
    board.put(SensorRow(RingKey("u-2", "redfish", ""), None, None, None), REDFISH, AT)
    board.keep_only(["u-1"])
    text = metrics.render((metrics.SeriesGauges("Sensor of a machine.", board.collect),)).decode()
    assert (
        'baremetal_temp_cpu_celsius{entity_id="CPU",instance_uuid="i-1",node_name="web-1",'
        'node_uuid="u-1",sensor_id="7",status=""} 42.0' in text
    )
    assert "u-2" not in text
    board.drop("u-1")
    assert board.collect() == []
