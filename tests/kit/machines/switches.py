"""The file of switches for simulated ones that serve."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bloomery.lab.rack import Rack
from bloomery.lab.switch import SimulatedSwitch


def switch_file(path: Path, switches: Iterable[SimulatedSwitch], **keys: Any) -> Path:
    """Write the file; ``keys`` are those of all switches.  Each knows its ``address``."""
    sections = []
    for switch in switches:
        values = {
            "driver_type": "openconfig", "address": switch.address, "username": "admin",
            "password": "password", "mac_address": switch.mac,
        } | keys  # fmt: skip
        lines = [f"[switch:{switch.name}]", *(f"{key} = {value}" for key, value in values.items())]
        sections.append("\n".join(lines))
    path.write_text("\n\n".join(sections) + "\n")
    return path


def serving(rack: Rack, *switches: SimulatedSwitch) -> tuple[SimulatedSwitch, ...]:
    for switch in switches:
        switch.address = rack.address_of(switch)
    return switches
