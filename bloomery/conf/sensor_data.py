"""[sensor_data]: the sensors of machines, for /metrics and notifications."""

from __future__ import annotations

from dataclasses import dataclass

from bloomery.conf.declare import option


@dataclass(frozen=True, slots=True, kw_only=True)
class SensorData:
    send_sensor_data: bool = option(
        False, "read the sensors of machines, show them in /metrics, and send notifications"
    )
    interval: int = option(600, "seconds between two reads of one machine's sensors", least=1)
    workers: int = option(4, "concurrent reads; more where BMCs are slow", least=1)
    wait_timeout: int = option(300, "seconds for the read of one machine's sensors", least=1)
    enable_for_undeployed_nodes: bool = option(
        False, "read the sensors of machines without an instance, too"
    )
    data_types: tuple[str, ...] = option(
        ("ALL",), "types of sensors that are shown and sent, such as Temperature,Fan; ALL: all"
    )
