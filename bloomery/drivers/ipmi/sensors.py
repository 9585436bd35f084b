"""The sensors of ``ipmitool -v sdr`` in Ironic's form: {type: {Sensor ID: {name: value}}}."""

from __future__ import annotations

import re
from typing import Final

from bloomery import errors

_BLANK: Final = re.compile(r"\n\s*\n")
_TYPE: Final = "Sensor Type ("  # it ends with Analog, Threshold or Discrete)


def parse(output: str) -> dict[str, dict[str, dict[str, str]]]:
    """Return the sensors with a reading.  Raises FailedToParseSensorData where there is none."""
    data: dict[str, dict[str, dict[str, str]]] = {}
    for block in _BLANK.split(output):
        fields = {name: value for name, value in _fields(block).items() if value}
        kind = next((fields[name] for name in fields if name.startswith(_TYPE)), None)
        if kind is not None and "Sensor ID" in fields and "Sensor Reading" in fields:
            data.setdefault(kind.split()[0], {})[fields["Sensor ID"]] = fields
    if output.strip() and not data:
        raise errors.FailedToParseSensorData(reason="its output names no sensor with a reading")
    return data


def _fields(block: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in block.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}
