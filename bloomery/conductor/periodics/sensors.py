"""Sensor data: read the sensors of each node once in an interval, show and send them.

A pass is spread over the interval.  A node that cannot be read has no series until the next pass.
"""

from __future__ import annotations

import logging
import time
import uuid as uuids
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from bloomery import errors, secrets
from bloomery.conductor import lanes, tasks
from bloomery.conductor.lanes import Lane
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.conductor.task_manager import TaskManager
from bloomery.db import nodes
from bloomery.model.node import Node

LOG = logging.getLogger(__name__)

Json = dict[str, Any]


class SendSensors:
    """Remembers when each node was read, and which nodes failed."""

    def __init__(
        self, runtime: ConductorRuntime, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._runtime, self._clock, self._options = runtime, clock, runtime.conf.sensor_data
        self._types = {kind.lower() for kind in self._options.data_types}
        self._read_at: dict[str, float] = {}
        self._failed: set[str] = set()
        size = runtime.conf.conductor.workers_pool_size
        self._lane = Lane(
            runtime.workers, self._look,
            most=min(self._options.workers, max(size // 2, 1)), most_slow=size // 8,
        )  # fmt: skip

    def __call__(self) -> None:
        """Read every node of ours once."""
        shares, also_free = self._runtime.list_shares(), self._options.enable_for_undeployed_nodes
        with self._runtime.db.read() as conn:
            keys = nodes.list_for_sensors(conn, shares, also_free=also_free)
        served = self._runtime.list_served(keys)
        self._runtime.sensors.keep_only(served)
        self._failed.intersection_update(served)
        now = self._clock()
        self._read_at = {uuid: self._read_at.get(uuid, now) for uuid in served}
        spread_s = self._options.interval * lanes.PART_OF_INTERVAL
        self._lane.walk(served, spread_s / max(len(served), 1))

    def stop(self) -> None:
        self._lane.stop()

    def lag_s(self) -> float:
        oldest = min(self._read_at.copy().values(), default=None)
        late_s = 0.0 if oldest is None else self._clock() - oldest - self._options.interval
        return max(late_s, 0.0)

    def suspects(self) -> int:
        return len(self._failed)

    def _look(self, uuid: str) -> None:
        with tasks.skipping(uuid):
            context = tasks.background_context(self._runtime)
            with tasks.shared(context, uuid, float(self._options.wait_timeout)) as task:
                self._read(task)
        self._read_at[uuid] = self._clock()

    def _read(self, task: TaskManager) -> None:
        node = task.node
        try:
            task.driver.management.validate(task)
            data = task.driver.management.get_sensors_data(task)
        except errors.Failure as exc:
            self._runtime.sensors.drop(node.uuid)
            if not isinstance(exc, errors.UnsupportedDriverExtension):
                self._failed.add(node.uuid)
                LOG.warning("node %s: no sensor data: %s", node.uuid, secrets.brief(exc))
            return
        self._failed.discard(node.uuid)
        chosen = {
            kind: readings
            for kind, readings in data.items()
            if readings and self._types & {"all", kind.lower()}
        }
        read_at = datetime.now(UTC)
        self._runtime.sensors.put(node, chosen, read_at)
        if chosen:
            self._runtime.send_sensors(node.driver, message(node, chosen, read_at))


def message(node: Node, data: Json, read_at: datetime) -> Json:
    """Return the payload of Ironic's notification."""
    return {
        "message_id": str(uuids.uuid4()),
        "instance_uuid": node.instance_uuid,
        "node_uuid": node.uuid,
        "node_name": node.name,
        "timestamp": f"{read_at:%Y-%m-%dT%H:%M:%S.%f}",
        "event_type": f"hardware.{node.driver}.metrics.update",
        "payload": data,
    }
