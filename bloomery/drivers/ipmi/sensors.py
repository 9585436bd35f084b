"""Sensors, as ``ipmitool sdr -v`` prints them: records of ``name : value`` lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

COMMAND: Final = ("sdr", "-v")
_ID: Final = "Sensor ID"
_TYPE: Final = "Sensor Type"


def parse(said: str) -> dict[str, dict[str, dict[str, str]]]:
    """Return {first word of the type: {sensor id: {name: value}}}.

    Records of other kinds (FRU locators, event-only ones without a type) are left out.
    """
    found: dict[str, dict[str, dict[str, str]]] = {}
    for record in _records(said):
        kind = next((v for name, v in record.items() if name.startswith(_TYPE)), "").split()
        if _ID in record and kind:
            found.setdefault(kind[0], {})[record[_ID]] = record
    return found


def _records(said: str) -> Iterator[dict[str, str]]:
    for block in said.replace("\r\n", "\n").split("\n\n"):
        pairs = (line.partition(":") for line in block.splitlines() if ":" in line)
        yield {name.strip(): value.strip() for name, _, value in pairs}
