"""Sensors of a machine and its chassis, in the reference's shape."""

from __future__ import annotations

from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]


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
            found["Fan"] |= _parts(chassis.thermal.fans, where)
            found["Temperature"] |= _parts(chassis.thermal.temperatures, where)
        if power:
            found["Power"] |= _supplies(chassis.power, where)
    return found


def _parts(parts: Any, where: str) -> Json:
    return {f"{part['identity']}@{where}": _plain(part) for part in parts or ()}


def _supplies(power: Any, where: str) -> Json:
    return {
        f"{number}:{power.identity}@{where}": _plain(supply)
        for number, supply in enumerate(power.power_supplies or ())
    }


def _drives(system: Any) -> Json:
    found = {}
    for storage in system.storage.get_members() if system.json.get("Storage") else ():
        for drive in storage.drives:
            key = f"{drive.name}:{storage.identity}@{system.identity}"
            found[key] = {
                "name": drive.name, "model": drive.model, "capacity_bytes": drive.capacity_bytes,
                "state": _word(getattr(drive.status, "state", None)),
                "health": _word(getattr(drive.status, "health", None)),
            }  # fmt: skip
    return found


def _plain(part: Any) -> Json:
    """A sushy composite as plain JSON."""
    shown: Json = {}
    for key, value in part.items():
        if key == "status":
            shown |= {k: _word(value[k]) for k in ("state", "health")} if value else {}
        elif not key.startswith("_"):
            shown[key] = _word(value)
    return shown


def _word(value: Any) -> Any:
    value = getattr(value, "value", value)
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)
