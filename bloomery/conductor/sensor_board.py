"""The last sensor readings of this conductor's nodes: gauges of /metrics, and the last hours.

Names and labels are those of ironic-prometheus-exporter: ``baremetal_temp_cpu_celsius`` for
Redfish, ``baremetal_inlet_temp_celsius`` for IPMI.  Leak detectors, power shelves and the metrics
of a chassis have names of our own.  A node has a limited number of series.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from bloomery.conductor import sensor_history
from bloomery.conductor.sensor_history import SensorHistory, Sensors
from bloomery.db.nodes import SensorRow
from bloomery.metrics import Series

LABELS: Final = ("node_name", "node_uuid", "instance_uuid", "entity_id", "sensor_id", "status")
_MOST: Final = 256  # series of one node
_MOST_CHARS: Final = 64  # of a part of a name or label that the BMC chooses
_TIMESTAMP: Final = "baremetal_last_payload_timestamp_seconds"
_HEALTHY: Final = "OK"
CRITICAL: Final = "Critical"
_METRICS: Final = (  # of a chassis and of a power shelf
    "power_watts", "energy_kwh", "power_load_percent", "temperature_celsius", "humidity_percent",
)  # fmt: skip
_WORDS: Final = {"Environment": "environment", "PowerShelf": "power_shelf"}
_NO_READING: Final = ("No Reading", "Disabled")
_WORD: Final = re.compile(r"\W")


class _IpmiKind(NamedTuple):
    """How readings of one IPMI type are named; ``is_number``: states are left out."""

    prefix: str = "baremetal_"
    suffix: str = ""
    is_number: bool = False


_IPMI: Final[Mapping[str, _IpmiKind]] = {
    "management": _IpmiKind(),
    "temperature": _IpmiKind(suffix="_celsius", is_number=True),
    "system": _IpmiKind(prefix="baremetal_system_"),
    "current": _IpmiKind(is_number=True),
    "version": _IpmiKind(),
    "memory": _IpmiKind(),
    "power": _IpmiKind(prefix="baremetal_power_"),
    "watchdog2": _IpmiKind(),
    "fan": _IpmiKind(),
}


class _Reading(NamedTuple):
    name: str
    entity: Any
    sensor: Any
    value: float
    status: Any = ""


def list_leaks(data: Sensors) -> list[str]:
    """Return the names of the leak detectors that say Critical, sorted."""
    detectors = data.get("LeakDetector") or {}
    return sorted(
        name for name, fields in detectors.items()
        if CRITICAL in (fields.get("detector_state"), fields.get("health"))
    )  # fmt: skip


class SensorBoard:
    """The series and the last hours of each node; ``collect`` is called at each scrape.

    The hours are memory of this process: they begin anew when it starts, and when a node comes back
    from another conductor.  A node that cannot be read loses its series and keeps its hours.
    ``leaking``: the nodes whose rows have leaks, as the last pass listed them.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._by_node: dict[str, list[Series]] = {}
        self._histories: dict[str, SensorHistory] = {}
        self.leaking: frozenset[str] = frozenset()

    def put(self, row: SensorRow, data: Sensors, read_at: datetime) -> None:
        """Replace the series of a node, and append to its hours."""
        uuid = row.key.uuid
        own = (row.name or "", uuid, row.instance_uuid or "")
        series: dict[tuple[str, tuple[str, ...]], Series] = {
            (_TIMESTAMP, own): Series(_TIMESTAMP, LABELS[:3], own, float(int(read_at.timestamp())))
        }
        readings = (
            reading
            for kind, sensors in data.items()
            for name, fields in sensors.items()
            for reading in _readings(kind, name, fields)
        )
        for each in readings:
            if len(series) >= _MOST:
                break
            parts = (each.entity, each.sensor, each.status)
            labels = (*own, *(str(part or "")[:_MOST_CHARS] for part in parts))
            if math.isfinite(each.value):
                series[each.name, labels] = Series(each.name, LABELS, labels, each.value)
        measurements = sensor_history.list_measurements(data)
        with self._mutex:
            self._by_node[uuid] = list(series.values())
            if measurements and uuid not in self._histories:
                self._histories[uuid] = SensorHistory()
            if uuid in self._histories:
                self._histories[uuid].add(measurements, read_at)

    def drop(self, uuid: str) -> None:
        """Drop the series of a node that was not read."""
        with self._mutex:
            self._by_node.pop(uuid, None)

    def keep_only(self, uuids: Iterable[str]) -> None:
        """Drop all other nodes, with their hours."""
        listed = set(uuids)
        with self._mutex:
            self._by_node = {u: rows for u, rows in self._by_node.items() if u in listed}
            self._histories = {u: each for u, each in self._histories.items() if u in listed}

    def describe_hours(self, uuid: str) -> dict[str, Any]:
        """Return the last hours of a node (``SensorHistory.describe``).

        The pulse waits for the copy alone.
        """
        with self._mutex:
            history = self._histories.get(uuid)
            history = SensorHistory() if history is None else history.copy()
        return history.describe(datetime.now(UTC))

    def collect(self) -> list[Series]:
        with self._mutex:
            return [each for rows in self._by_node.values() for each in rows]


# --------------------------------------------------------------------------------- Redfish


def _readings(kind: str, name: str, fields: Mapping[str, Any]) -> Iterator[_Reading]:
    """Yield the reading of a sensor, if it has one."""
    if "Sensor Reading" in fields:
        yield from _of_ipmi(kind, fields)
        return
    place = str(fields.get("physical_context") or "unknown")
    if kind == "Temperature":
        value = fields.get("reading_celsius")
        number = fields.get("sensor_number")
        sensor = fields.get("identity") if number is None else number
        if isinstance(value, int | float):
            yield _Reading(f"baremetal_temp_{_plain(place)}_celsius", place, sensor, float(value))
        return
    if kind in ("Environment", "PowerShelf"):
        for reading in _METRICS:
            value = fields.get(reading)
            if isinstance(value, int | float):
                metric = f"baremetal_{_WORDS[kind]}_{reading}"
                yield _Reading(metric, kind, name, float(value))
    if kind == "LeakDetector":
        state = fields.get("detector_state") or fields.get("health")
        if state is not None:
            value = float(state != _HEALTHY)
            yield _Reading("baremetal_leak_detector_status", place, name, value, state)
        return
    health = fields.get("health")
    entity = {"Power": "PSU", "Drive": "HDD", "Fan": place, "PowerShelf": kind}.get(kind)
    if entity is not None and health is not None:
        sensor = fields.get("identity") if kind == "Fan" else name
        value = float(health != _HEALTHY)
        yield _Reading(f"baremetal_{_WORDS.get(kind, kind.lower())}_status", entity, sensor, value)


def _plain(text: str) -> str:
    """Return a part of a metric's name."""
    return _WORD.sub("_", text.lower(), re.ASCII)[:_MOST_CHARS]


# ------------------------------------------------------------------------------------ IPMI


def _of_ipmi(kind: str, fields: Mapping[str, Any]) -> Iterator[_Reading]:
    """Yield a number, or 0 and 1 for the states 0h and others."""
    naming, reading = _IPMI.get(kind.lower()), str(fields["Sensor Reading"])
    parts = reading.split()
    if naming is None or reading in _NO_READING or not parts:
        return
    try:
        value = float(parts[0])
    except ValueError:
        if naming.is_number or len(parts) > 1:
            return
        value = float(parts[0] != "0h")
    # the sensor's name without numbers: temp for "Temp 2 (0x2)"
    label = str(fields.get("Sensor ID", "")).partition("(")[0].lower()
    numbers, rest = (r"fan\d*[a-z]*", "fan") if kind.lower() == "fan" else (r"\d+", "")
    label = "_".join(re.sub(numbers, rest, label).split())
    if kind.lower() == "memory" and "mem" not in label:
        label = f"memory_{label}"
    unit = reading.rsplit(maxsplit=1)[-1].lower() if kind == "Fan" and " " in reading else ""
    name = _plain("_".join(part for part in (label + naming.suffix, unit) if part))
    yield _Reading(
        naming.prefix + name, fields.get("Entity ID"), fields.get("Sensor ID"), value,
        fields.get("Status"),
    )  # fmt: skip
