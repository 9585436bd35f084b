from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.drivers.ipmi import management

OUTPUT = """\
Sensor ID              : Inlet Temp (0x5)
 Entity ID             : 7.1 (System Board)
 Sensor Type (Threshold)  : Temperature (0x01)
 Sensor Reading        : 21 (+/- 1) degrees C
 Status                : ok
 Upper critical        : 47.000

Sensor ID              : Fan1A (0x30)
 Entity ID             : 7.1 (System Board)
 Sensor Type (Threshold)  : Fan (0x04)
 Sensor Reading        : 3000 (+/- 120) RPM
 Status                : ok

Sensor ID              : PS Redundancy (0x77)
 Entity ID             : 7.1 (System Board)
 Sensor Type (Discrete): Power Supply (0x08)
 Sensor Reading        : 1h
 States Asserted       : Redundancy State

Device ID              : a record without a reading
"""


def test_sensors_are_grouped_by_the_first_word_of_their_type():
    data = management.parse_sensors(OUTPUT)
    assert {kind: list(each) for kind, each in data.items()} == {
        "Temperature": ["Inlet Temp (0x5)"],
        "Fan": ["Fan1A (0x30)"],
        "Power": ["PS Redundancy (0x77)"],
    }
    assert data["Temperature"]["Inlet Temp (0x5)"] == {
        "Sensor ID": "Inlet Temp (0x5)",
        "Entity ID": "7.1 (System Board)",
        "Sensor Type (Threshold)": "Temperature (0x01)",
        "Sensor Reading": "21 (+/- 1) degrees C",
        "Status": "ok",
        "Upper critical": "47.000",
    }


def test_output_without_sensors_is_refused_and_no_output_is_none():
    assert management.parse_sensors("\n") == {}
    with pytest.raises(errors.FailedToParseSensorData, match="names no sensor"):
        management.parse_sensors("Err in cmd get sensor sdr info")
