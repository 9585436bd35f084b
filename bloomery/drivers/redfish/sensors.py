"""Sensors of a machine and its chassis, in the reference's shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

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
    """Return {Extra, Fan, Temperature, Power, Drive}, each {key: readings}."""
    found: Json = {
        "Extra": {
            "Manufacturer": system.manufacturer, "Model": system.model, "UUID": system.uuid,
        },
        "Fan": {}, "Temperature": {}, "Power": {}, "Drive": _drives(system),
    }  # fmt: skip
    for chassis in system.chassis:
        where = chassis.uuid or chassis.identity
        thermal, power = chassis.json.get("Thermal"), chassis.json.get("Power")
        if thermal:
            found["Fan"] |= _parts(chassis.thermal.fans, _FAN, where)
            found["Temperature"] |= _parts(chassis.thermal.temperatures, _TEMPERATURE, where)
        if power:
            found["Power"] |= _supplies(chassis.power, where)
    return found


def _parts(parts: Any, names: Sequence[str], where: str) -> Json:
    return {f"{part.identity}@{where}": _plain(part, names) for part in parts or ()}


def _supplies(power: Any, where: str) -> Json:
    return {
        f"{number}:{power.identity}@{where}": _plain(supply, _SUPPLY)
        for number, supply in enumerate(power.power_supplies or ())
    }


def _drives(system: Any) -> Json:
    found = {}
    for storage in system.storage.get_members() if system.json.get("Storage") else ():
        for drive in storage.drives:
            key = f"{drive.name}:{storage.identity}@{system.identity}"
            found[key] = _plain(drive, _DRIVE)
    return found


def _plain(part: Any, names: Sequence[str]) -> Json:
    """What is known of a part, and its state and health, as plain JSON."""
    shown = {name: _word(getattr(part, name, None)) for name in names}
    return shown | {name: _word(getattr(part.status, name, None)) for name in ("state", "health")}


def _word(value: Any) -> Any:
    """Redfish's word for an enumeration of sushy's."""
    return getattr(value, "value", value)
