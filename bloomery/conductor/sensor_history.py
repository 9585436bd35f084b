"""What the sensors of a node measured in the last hours, in the memory of its conductor.

Numbers alone are kept: temperatures, fans, watts.  States, such as those of leak detectors and
drives, are in the gauges and in the node's history.

    history = SensorHistory()
    history.add(list_measurements(data), read_at)
    history.describe(now)       # {"kept_since": "2026-...", "sensors": [{"name": "CPU 1@1", ...}]}
"""

from __future__ import annotations

import bisect
import math
import re
import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, TypeAlias

Json = dict[str, Any]
Sensors: TypeAlias = Mapping[str, Mapping[str, Mapping[str, Any]]]

KEPT_FOR: Final = timedelta(hours=3)
MOST_READINGS: Final = 36  # of a sensor
MOST_SENSORS: Final = 64  # of a node
_MOST_CHARS: Final = 64  # of a text that the BMC chooses
_LARGEST: Final = 3.4e38  # of array("f")
_METRICS: Final = {  # field: unit, and what is measured, of sensors that measure several things
    "power_watts": ("watts", "power"),
    "energy_kwh": ("kwh", "energy"),
    "power_load_percent": ("percent", "load"),
    "temperature_celsius": ("celsius", "temperature"),
    "humidity_percent": ("percent", "humidity"),
}
_FIELDS: Final[Mapping[str, Mapping[str, tuple[str | None, str]]]] = {
    "Temperature": {"reading_celsius": ("celsius", "")},
    "Fan": {"reading": (None, "")},  # its unit is a field
    "Power": {"last_power_output_watts": ("watts", "")},
    "Environment": _METRICS,
    "PowerShelf": _METRICS,
}
_IPMI: Final = re.compile(
    r"(-?\d+(?:\.\d+)?)(?:\s+\(\+/-[^)]*\))?(?:\s+(\S.*))?"
)  # not 0h: a state
_UNITS: Final = {"degrees c": "celsius", "cel": "celsius", "%": "percent", "{rev}/min": "rpm"}


class Measurement(NamedTuple):
    kind: str
    name: str
    unit: str | None
    status: str | None
    value: float


def list_measurements(data: Sensors) -> list[Measurement]:
    """Return the numbers of a read, in the order of the BMC."""
    return [
        each
        for kind, sensors in data.items()
        for name, fields in sensors.items()
        for each in _measurements(kind, name, fields)
        if abs(each.value) <= _LARGEST
    ]


def _measurements(kind: str, name: str, fields: Mapping[str, Any]) -> Iterator[Measurement]:
    if "Sensor Reading" in fields:
        if number := _IPMI.fullmatch(str(fields["Sensor Reading"])):
            unit, status = _unit(number[2]), _short(fields.get("Status"))
            yield Measurement(kind, _short(name) or "", unit, status, float(number[1]))
        return
    place = fields.get("physical_context")
    for field, (unit, aspect) in _FIELDS.get(kind, {}).items():
        value = fields.get(field)
        if isinstance(value, int | float) and not isinstance(value, bool):
            parts = (place if isinstance(place, str) else "", name, aspect)
            yield Measurement(
                kind, _short(" ".join(filter(None, parts))) or "",
                unit or _unit(fields.get("reading_units")), _short(fields.get("health")),
                float(value),
            )  # fmt: skip


def _unit(text: Any) -> str | None:
    unit = (_short(text) or "unspecified").lower()
    return None if unit == "unspecified" else sys.intern(_UNITS.get(unit, unit))


def _short(text: Any) -> str | None:
    """Return a text of the BMC; machines of one model share it."""
    return None if text is None else sys.intern(str(text)[:_MOST_CHARS])


class _Sensor:
    """One sensor: the values at the node's times, NaN where it was not read."""

    __slots__ = ("status", "unit", "values")

    def __init__(self, unit: str | None, status: str | None, values: array[float]) -> None:
        self.unit, self.status, self.values = unit, status, values


class SensorHistory:
    """The readings of a node's sensors: bounded, with one array of times for all sensors.

    Not thread-safe.  A machine with 20 sensors of 36 readings costs 9,800 bytes (tracemalloc), and
    8,300 where other machines have sensors of the same names.  The values are 2,880 of them.
    """

    __slots__ = ("_sensors", "_times")

    def __init__(self) -> None:
        self._times = array("I")  # seconds since 1970
        self._sensors: dict[tuple[str, str], _Sensor] = {}  # kind, name

    def add(self, measurements: Iterable[Measurement], read_at: datetime) -> None:
        """Append a read, and forget what is too old or too much.

        Sensors beyond the limit are left out, as is the second one of a name.
        """
        now = int(read_at.timestamp())
        self._times.append(now)
        count, sensors = len(self._times), self._sensors
        for kind, name, unit, status, value in measurements:
            sensor = sensors.get((kind, name))
            if sensor is None:
                if len(sensors) >= MOST_SENSORS:
                    continue
                gaps = array("f", (math.nan,)) * (count - 1)
                sensor = sensors[kind, name] = _Sensor(unit, status, gaps)
            if len(sensor.values) < count:
                sensor.unit, sensor.status = unit, status
                sensor.values.append(value)
        oldest = now - int(KEPT_FOR.total_seconds())
        first = max(count - MOST_READINGS, bisect.bisect_left(self._times, oldest))
        del self._times[:first]
        for key, sensor in list(sensors.items()):
            if len(sensor.values) < count:
                sensor.values.append(math.nan)
            del sensor.values[:first]
            if math.isnan(sensor.values[-1]) and all(map(math.isnan, sensor.values)):
                del sensors[key]

    def copy(self) -> SensorHistory:
        """Return a copy for another thread, in a tenth of the time of ``describe``."""
        copied = SensorHistory()
        copied._times = self._times[:]
        copied._sensors = {
            key: _Sensor(each.unit, each.status, each.values[:])
            for key, each in self._sensors.items()
        }
        return copied

    def describe(self, now: datetime) -> Json:
        """Return ``kept_since``, the oldest time of a reading, and ``sensors`` with readings."""
        first = bisect.bisect_left(self._times, int((now - KEPT_FOR).timestamp()))
        times = [datetime.fromtimestamp(each, UTC).isoformat() for each in self._times[first:]]
        sensors = []
        for (kind, name), sensor in self._sensors.items():
            readings = [
                [at, float(f"{value:.7g}")]  # the digits that a float of 32 bits has
                for at, value in zip(times, sensor.values[first:], strict=True)
                if not math.isnan(value)
            ]
            if readings:
                facts = {"name": name, "kind": kind, "unit": sensor.unit, "status": sensor.status}
                sensors.append(facts | {"readings": readings})
        return {"kept_since": times[0] if sensors else None, "sensors": sensors}
