"""The sensors of a machine in Ironic's form: {type: {name: {field: value}}}.

Fans and temperatures are in Thermal, power supplies in Power, or all in Sensors where a BMC has
only that.  Types of our own beside Ironic's: LeakDetector, Environment (power and energy of a
chassis) and PowerShelf.  Source: DMTF DSP0268, Thermal, Power, Sensor, Drive, LeakDetector,
EnvironmentMetrics and PowerDistribution.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from bloomery.drivers.redfish import reading

Json: TypeAlias = dict[str, Any]
Sensors: TypeAlias = dict[str, dict[str, Json]]

_MOST: Final = 64  # documents of Sensors that are read one by one
_MOST_PARTS: Final = 32  # leak detectors of a chassis, power supplies of a chassis, power shelves
_ROOT: Final = "/redfish/v1/"
_TEMPERATURE: Final = {
    "identity": "MemberId", "max_reading_range_temp": "MaxReadingRangeTemp",
    "min_reading_range_temp": "MinReadingRangeTemp", "reading_celsius": "ReadingCelsius",
    "physical_context": "PhysicalContext", "sensor_number": "SensorNumber",
}  # fmt: skip
_FAN: Final = {
    "identity": "MemberId", "max_reading_range": "MaxReadingRange",
    "min_reading_range": "MinReadingRange", "reading": "Reading", "reading_units": "ReadingUnits",
    "serial_number": "SerialNumber", "physical_context": "PhysicalContext",
}  # fmt: skip
_SUPPLY: Final = {
    "power_capacity_watts": "PowerCapacityWatts", "line_input_voltage": "LineInputVoltage",
    "last_power_output_watts": "LastPowerOutputWatts", "serial_number": "SerialNumber",
}  # fmt: skip
_NUMBERS: Final = frozenset({
    "MaxReadingRangeTemp", "MinReadingRangeTemp", "ReadingCelsius", "MaxReadingRange",
    "MinReadingRange", "Reading", "PowerCapacityWatts", "LineInputVoltage", "LastPowerOutputWatts",
})  # fmt: skip
_DRIVE: Final = {"name": "Name", "model": "Model", "capacity_bytes": "CapacityBytes"}
_DETECTOR: Final = {
    "identity": "Id", "name": "Name", "detector_state": "DetectorState",
    "leak_detector_type": "LeakDetectorType", "physical_context": "PhysicalContext",
}  # fmt: skip
_SHELF: Final = {
    "identity": "Id",
    "name": "Name",
    "model": "Model",
    "serial_number": "SerialNumber",
}
_METRICS: Final = {  # of EnvironmentMetrics and PowerDistributionMetrics
    "power_watts": "PowerWatts", "energy_kwh": "EnergykWh",
    "power_load_percent": "PowerLoadPercent", "temperature_celsius": "TemperatureCelsius",
    "humidity_percent": "HumidityPercent",
}  # fmt: skip


def read(system: Json) -> reading.Read[Sensors]:
    """Return the sensors that the BMC shows; see ``reading.Read``."""
    data: Sensors = {
        "Extra": {
            "System": {name: system.get(name) for name in ("Manufacturer", "Model", "UUID")},
        },
    }
    for path in reading.links(system.get("Links"), "Chassis"):
        chassis = (yield path) or {}
        for kind, name, fields in (yield from _of_chassis(chassis)):
            data.setdefault(kind, {})[name] = fields
    for controller in (yield from _members(system, "Storage")):
        for path in reading.links(controller, "Drives"):
            drive = (yield path) or {}
            if drive:
                name = f"{drive.get('Name')}:{controller.get('Id')}@{system.get('Id')}"
                data.setdefault("Drive", {})[name] = _fields(drive, _DRIVE)
    root = (yield _ROOT) or {}
    equipment = yield from reading.linked(root, "PowerEquipment")
    for shelf in (yield from _members(equipment, "PowerShelves", _MOST_PARTS)):
        metrics = yield from reading.linked(shelf, "Metrics")
        fields = _fields(shelf, _SHELF) | _metrics(metrics)
        data.setdefault("PowerShelf", {})[str(shelf.get("Id"))] = fields
    return data


def _of_chassis(chassis: Json) -> reading.Read[list[tuple[str, str, Json]]]:
    """Return kind, name and fields of each sensor; from Sensors where there is no Thermal."""
    place = str(chassis.get("Id"))
    thermal = yield from reading.linked(chassis, "Thermal")
    power = yield from reading.linked(chassis, "Power")
    found = [
        ("Temperature", f"{ident}@{place}", _fields(each, _TEMPERATURE))
        for ident, each in _listed(thermal, "Temperatures")
    ]
    found += [
        ("Fan", f"{ident}@{place}", _fields(each, _FAN)) for ident, each in _listed(thermal, "Fans")
    ]
    found += [
        ("Power", f"{ident}:{power.get('Id')}@{place}", _fields(each, _SUPPLY))
        for ident, each in _listed(power, "PowerSupplies")
    ]
    if not power:
        subsystem = yield from reading.linked(chassis, "PowerSubsystem")
        found += [
            ("Power", f"{supply.get('Id')}:PowerSubsystem@{place}", _fields(supply, _SUPPLY))
            for supply in (yield from _members(subsystem, "PowerSupplies", _MOST_PARTS))
            if _status(supply).get("State") != "Absent"
        ]
    subsystem = yield from reading.linked(chassis, "ThermalSubsystem")
    detection = yield from reading.linked(subsystem, "LeakDetection")
    found += [
        ("LeakDetector", f"{detector.get('Id')}@{place}", _fields(detector, _DETECTOR))
        for detector in (yield from _members(detection, "LeakDetectors", _MOST_PARTS))
        if _status(detector).get("State") != "Absent"
    ]
    metrics = _metrics((yield from reading.linked(chassis, "EnvironmentMetrics")))
    if any(value is not None for value in metrics.values()):
        found.append(("Environment", place, metrics))
    for sensor in () if thermal else (yield from _members(chassis, "Sensors", _MOST)):
        name, value = f"{sensor.get('Id')}@{place}", _number(sensor.get("Reading"))
        kind, context = sensor.get("ReadingType"), sensor.get("PhysicalContext")
        common = _fields(sensor, {"identity": "Id", "physical_context": "PhysicalContext"})
        if kind == "Temperature":
            number = {"reading_celsius": value, "sensor_number": sensor.get("Id")}
            found.append(("Temperature", name, common | number))
        elif kind == "Rotational" or (kind == "Percent" and context == "Fan"):
            units = sensor.get("ReadingUnits")
            found.append(("Fan", name, common | {"reading": value, "reading_units": units}))
    return found


def _members(document: Json, name: str, most: int | None = None) -> reading.Read[list[Json]]:
    """Return the documents of the collection that property ``name`` links to."""
    members = (yield from reading.linked(document, name)).get("Members") or ()
    found = []
    for member in members[:most]:
        if isinstance(member, dict) and set(member) != {"@odata.id"}:
            found.append(member)
        else:
            for path in reading.links({name: [member]}, name):
                found += filter(None, [(yield path)])
    return found


def _listed(document: Json, name: str) -> Iterator[tuple[str, Json]]:
    """Yield the parts that a document lists, without absent ones, each with an Id of its own.

    The Id is the MemberId; some BMCs give one to several parts, whose Names differ.
    """
    taken: set[str] = set()
    for at, each in enumerate(document.get(name) or ()):
        if isinstance(each, dict) and _status(each).get("State") != "Absent":
            idents = map(str, filter(None, (each.get("MemberId"), each.get("Name"), f"{name}{at}")))
            ident = next(ident for ident in idents if ident not in taken)
            taken.add(ident)
            yield ident, each


def _fields(document: Json, names: Mapping[str, str]) -> Json:
    status = _status(document)
    fields = {
        name: _number(document.get(source)) if source in _NUMBERS else document.get(source)
        for name, source in names.items()
    }
    return fields | {"state": status.get("State"), "health": status.get("Health")}


def _metrics(document: Json) -> Json:
    """Return the readings of a document of metrics, whose members are excerpts of sensors."""
    excerpts = {name: document.get(source) for name, source in _METRICS.items()}
    return {
        name: _number(excerpt.get("Reading")) if isinstance(excerpt, dict) else None
        for name, excerpt in excerpts.items()
    }


def _number(value: Any) -> float | None:
    """Return a number, None for the texts that BMCs write in place of one, such as N/A."""
    is_number = isinstance(value, int | float) and math.isfinite(value)
    return value if is_number else None


def _status(document: Json) -> Json:
    status = document.get("Status")
    return status if isinstance(status, dict) else {}
