"""Sensors of a machine and its chassis, in Ironic's shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from bloomery.drivers.redfish import reading

Json: TypeAlias = dict[str, Any]

_FAN: Final = (
    "identity", "name", "max_reading_range", "reading", "reading_units", "serial_number",
    "physical_context",
)  # fmt: skip
_TEMPERATURE: Final = (
    "identity", "name", "max_reading_range_temp", "min_reading_range_temp", "reading_celsius",
    "physical_context", "sensor_number",
)  # fmt: skip
_SUPPLY: Final = (
    "name", "power_capacity_watts", "line_input_voltage", "last_power_output_watts",
    "serial_number",
)  # fmt: skip
_DRIVE: Final = ("name", "model", "capacity_bytes")


def read(system: Any) -> Json:
    """Return {Extra, Fan, Temperature, Power, Drive}, each {key: readings}.

    What cannot be read is left out.  Newer BMCs have ThermalSubsystem and PowerSubsystem in the
    places of Thermal and Power; where a chassis has both, the older one counts if it has any.
    """
    sensors: Json = {
        "Extra": {
            "Manufacturer": system.manufacturer, "Model": system.model, "UUID": system.uuid,
        },
        "Fan": {}, "Temperature": {}, "Power": {}, "Drive": _drives(system),
    }  # fmt: skip
    for chassis in reading.chassis(system):
        where = chassis.uuid or chassis.identity
        parts = (
            reading.optional(_thermal, chassis, where)
            or _thermal_subsystem(system, chassis.json, where),
            reading.optional(_power, chassis, where)
            or _power_subsystem(system, chassis.json, where),
        )  # fmt: skip
        for part in parts:
            for kind, readings in part.items():
                sensors[kind] |= readings
    return sensors


def _thermal(chassis: Any, where: str) -> Json | None:
    if not chassis.json.get("Thermal"):
        return None
    fans = _parts(chassis.thermal.fans, _FAN, where)
    temperatures = _parts(chassis.thermal.temperatures, _TEMPERATURE, where)
    return {"Fan": fans, "Temperature": temperatures} if fans or temperatures else None


def _power(chassis: Any, where: str) -> Json | None:
    supplies = _supplies(chassis.power, where) if chassis.json.get("Power") else {}
    return {"Power": supplies} if supplies else None


def _parts(parts: Any, names: Sequence[str], where: str) -> Json:
    return {f"{part.identity}@{where}": _plain(part, names) for part in parts or ()}


def _supplies(power: Any, where: str) -> Json:
    return {
        f"{number}:{power.identity}@{where}": _plain(supply, _SUPPLY)
        for number, supply in enumerate(power.power_supplies or ())
    }


def _drives(system: Any) -> Json:
    """Return the drives of Storage, by name, controller and system."""
    controllers = reading.optional(lambda: list(reading.each(system.storage))) or ()
    return {
        f"{drive.name}:{storage.identity}@{system.identity}": _plain(drive, _DRIVE)
        for storage in controllers
        for drive in reading.drives([storage])
    }


def _thermal_subsystem(system: Any, chassis: Json, where: str) -> Json:
    """Return fans and temperatures in the shape that Thermal has."""
    thermal = reading.follow(system, chassis, "ThermalSubsystem")
    metrics = reading.follow(system, thermal, "ThermalMetrics")
    fans = reading.members(system, thermal, "Fans")
    return {
        "Fan": {f"{fan.get('Id')}@{where}": _fan(fan) for fan in fans},
        "Temperature": {
            f"{place.get('DeviceName')}@{where}": _temperature(place)
            for place in metrics.get("TemperatureReadingsCelsius") or ()
        },
    }


def _fan(fan: Json) -> Json:
    """Its speed in RPM where it tells that, else in percent."""
    speed = fan.get("SpeedPercent") or {}
    rpm = speed.get("SpeedRPM")
    return dict.fromkeys(_FAN) | _condition(fan) | {
        "identity": fan.get("Id"), "name": fan.get("Name"),
        "reading": speed.get("Reading") if rpm is None else rpm,
        "reading_units": "Percent" if rpm is None else "RPM",
        "serial_number": fan.get("SerialNumber"), "physical_context": fan.get("PhysicalContext"),
    }  # fmt: skip


def _temperature(place: Json) -> Json:
    return dict.fromkeys(_TEMPERATURE) | {"state": None, "health": None} | {
        "identity": place.get("DeviceName"), "name": place.get("DeviceName"),
        "reading_celsius": place.get("Reading"), "physical_context": place.get("PhysicalContext"),
    }  # fmt: skip


def _power_subsystem(system: Any, chassis: Json, where: str) -> Json:
    """Return the power supplies in the shape that Power has."""
    power = reading.follow(system, chassis, "PowerSubsystem")
    supplies = reading.members(system, power, "PowerSupplies")
    return {
        "Power": {
            f"{number}:{power.get('Id')}@{where}": dict.fromkeys(_SUPPLY) | _condition(supply) | {
                "name": supply.get("Name"), "serial_number": supply.get("SerialNumber"),
                "power_capacity_watts": supply.get("PowerCapacityWatts"),
            }
            for number, supply in enumerate(supplies)
        },
    }  # fmt: skip


def _condition(part: Json) -> Json:
    status = part.get("Status") or {}
    return {"state": status.get("State"), "health": status.get("Health")}


def _plain(part: Any, names: Sequence[str]) -> Json:
    """What is known of a part, and its state and health, as plain JSON."""
    values = {name: _word(getattr(part, name, None)) for name in names}
    return values | {name: _word(getattr(part.status, name, None)) for name in ("state", "health")}


def _word(value: Any) -> Any:
    """Redfish's word for an enumeration of sushy's."""
    return getattr(value, "value", value)
