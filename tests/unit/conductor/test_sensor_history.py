"""The last hours of sensors: what is kept, for how long, and what goes with the node."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from bloomery.conductor import sensor_history
from bloomery.conductor.sensor_board import SensorBoard
from bloomery.conductor.sensor_history import SensorHistory, list_measurements
from bloomery.db.nodes import SensorRow
from bloomery.model.node import RingKey
from tests.unit.conductor.test_sensor_board import IPMI, NODE, REDFISH, TRAY

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def temperatures(*values, health="OK"):
    sensors = {
        f"{number}@c": {"reading_celsius": value, "physical_context": "CPU", "health": health}
        for number, value in enumerate(values, 1)
    }
    return {"Temperature": sensors}


def read(history, *data, every=MINUTE, begin=AT):
    """Add reads one after the other, and return the document at the time of the last."""
    times = [begin + every * number for number in range(len(data))]
    for at, each in zip(times, data, strict=True):
        history.add(list_measurements(each), at)
    return history.describe(times[-1])


def values(document):
    return {each["name"]: [value for _, value in each["readings"]] for each in document["sensors"]}


def test_numbers_of_redfish_have_unit_and_status():
    fan = {"reading": 3000, "reading_units": "RPM", "physical_context": "SystemBoard"}
    supply = {"last_power_output_watts": 120.5, "line_input_voltage": 230, "health": "OK"}
    others = {"Fan": {"0@c": fan}, "Power": {"0:Power@c": supply}}
    assert list_measurements(REDFISH | others) == [
        ("Temperature", "CPU 1@c", "celsius", "OK", 42.0),
        ("Fan", "SystemBoard 0@c", "rpm", None, 3000.0),
        ("Power", "0:Power@c", "watts", "OK", 120.5),
    ]
    assert list_measurements(TRAY) == [
        ("Environment", "c power", "watts", None, 240.0),
        ("PowerShelf", "1 power", "watts", "Warning", 5200.0),
        ("PowerShelf", "1 load", "percent", "Warning", 16.0),
    ]


def test_numbers_of_ipmi_have_unit_and_status_and_states_are_left_out():
    assert list_measurements(IPMI) == [
        ("Temperature", "Temp 2 (0x2)", "celsius", "ok", 40.0),
        ("Fan", "Fan1A (0x30)", "rpm", "ok", 3000.0),
        ("Voltage", "VCORE (0x9)", "volts", None, 1.0),
    ]


@pytest.mark.parametrize(
    ("reading", "value", "unit"),
    [("-1.5 (+/- 0) Amps", -1.5, "amps"), ("35 percent", 35, "percent"), ("7", 7, None),
     ("5 unspecified", 5, None)],
)  # fmt: skip
def test_a_reading_of_ipmi_is_a_number_and_a_unit(reading, value, unit):
    [each] = list_measurements({"X": {"x": {"Sensor ID": "x", "Sensor Reading": reading}}})
    assert (each.value, each.unit) == (value, unit)


@pytest.mark.parametrize("value", [None, True, "42", float("nan"), float("inf"), 1e39, -1e39])
def test_what_is_no_number_of_32_bits_is_left_out(value):
    assert list_measurements(temperatures(value)) == []


@pytest.mark.parametrize("data", [REDFISH, IPMI])
def test_machines_of_one_model_share_their_texts(data):
    first, second = (list_measurements(json.loads(json.dumps(data))) for _ in range(2))
    assert all(
        getattr(one, text) is getattr(other, text)
        for one, other in zip(first, second, strict=True) for text in ("name", "unit", "status")
    )  # fmt: skip


def test_readings_have_their_times_and_the_newest_status():
    history = SensorHistory()
    document = read(history, temperatures(20.1), temperatures(21, health="Warning"))
    assert document == {
        "kept_since": "2026-01-02T03:04:05+00:00",
        "sensors": [{
            "name": "CPU 1@c", "kind": "Temperature", "unit": "celsius", "status": "Warning",
            "readings": [
                ["2026-01-02T03:04:05+00:00", 20.1], ["2026-01-02T03:05:05+00:00", 21.0],
            ],
        }],
    }  # fmt: skip


def test_the_newest_36_readings_are_kept():
    history = SensorHistory()
    document = read(history, *(temperatures(value) for value in range(100)))
    assert values(document) == {"CPU 1@c": list(range(64, 100))}
    assert document["kept_since"] == (AT + 64 * MINUTE).isoformat()
    assert len(history._times) == 36
    assert {len(each.values) for each in history._sensors.values()} == {36}


def test_readings_of_three_hours_are_kept():
    history = SensorHistory()
    document = read(history, *(temperatures(value) for value in range(9)), every=60 * MINUTE)
    assert values(document) == {"CPU 1@c": [5, 6, 7, 8]}
    later = AT + timedelta(hours=8 + 2)  # nothing was read since
    assert values(history.describe(later)) == {"CPU 1@c": [7, 8]}
    empty = {"kept_since": None, "sensors": []}
    assert history.describe(later + timedelta(hours=2)) == empty


def test_a_node_has_64_sensors_at_most_with_limited_texts():
    history = SensorHistory()
    document = read(history, *[temperatures(*range(999))] * 2)
    assert [each["name"] for each in document["sensors"]] == [f"CPU {n}@c" for n in range(1, 65)]
    fields = {"Sensor Reading": "1 " + "u" * 999, "Status": "s" * 999}
    [sensor] = read(SensorHistory(), {"X": {"n" * 999: fields}})["sensors"]
    assert {len(sensor[name]) for name in ("name", "unit", "status")} == {64}


def test_a_sensor_has_readings_of_the_times_at_which_it_was_read():
    history = SensorHistory()
    document = read(
        history, temperatures(20), temperatures(21, 40), temperatures(22), temperatures(23, 41)
    )
    assert values(document) == {"CPU 1@c": [20, 21, 22, 23], "CPU 2@c": [40, 41]}
    second = document["sensors"][1]["readings"]
    assert [at for at, _ in second] == [(AT + n * MINUTE).isoformat() for n in (1, 3)]


def test_a_sensor_that_is_read_no_longer_gives_its_place_away():
    history = SensorHistory()
    read(history, temperatures(20, 40), *[temperatures(20)] * 36)
    assert [name for _, name in history._sensors] == ["CPU 1@c"]


def test_two_sensors_of_one_name_are_one():
    sensors = {f"{'n' * 64}{number}": {"reading": number} for number in range(3)}
    assert values(read(SensorHistory(), {"Fan": sensors}, {"Fan": sensors})) == {"n" * 64: [0, 0]}


# --------------------------------------------------------------------------------- the board


OTHER = SensorRow(RingKey("u-2", "redfish", ""), None, None, None)


@pytest.fixture
def board(monkeypatch):
    """A board at the time of the last read, with two nodes."""

    class Clock(datetime):
        @classmethod
        def now(cls, tz=None):
            return AT + MINUTE

    monkeypatch.setattr("bloomery.conductor.sensor_board.datetime", Clock)
    board = SensorBoard()
    for node in (NODE, OTHER):
        board.put(node, temperatures(20), AT)
    return board


def test_a_node_that_was_not_read_keeps_its_hours(board):
    board.drop("u-1")
    assert {each.labels[1] for each in board.collect()} == {"u-2"}
    board.put(NODE, temperatures(21), AT + MINUTE)
    assert values(board.describe_hours("u-1")) == {"CPU 1@c": [20, 21]}


def test_a_node_that_leaves_begins_anew(board):
    board.keep_only(["u-2"])
    assert board.describe_hours("u-1") == {"kept_since": None, "sensors": []}
    board.put(NODE, temperatures(21), AT + MINUTE)
    document = board.describe_hours("u-1")
    assert values(document) == {"CPU 1@c": [21]}
    assert document["kept_since"] == (AT + MINUTE).isoformat()
    assert values(board.describe_hours("u-2")) == {"CPU 1@c": [20]}


def test_a_node_without_numbers_costs_nothing(board):
    board.keep_only([])
    board.put(NODE, {"Drive": {"d": {"health": "OK"}}}, AT)
    assert board._histories == {}


def test_the_pulse_does_not_wait_for_the_document(board, monkeypatch):
    describe = SensorHistory.describe

    def watched(history, now):
        assert not board._mutex.locked()
        board.put(NODE, temperatures(99), AT + MINUTE)
        return describe(history, now)

    monkeypatch.setattr(sensor_history.SensorHistory, "describe", watched)
    assert values(board.describe_hours("u-1")) == {"CPU 1@c": [20]}
