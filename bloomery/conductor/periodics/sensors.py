"""Sensor data: read the sensors of each node once in an interval, show and send them.

A pass is spread over the interval.  A node that cannot be read has no series until the next pass.
Leak detectors that say Critical are noted in the node's row, its health and its history; such a
node is read in whatever state until they say something else.
"""

from __future__ import annotations

import contextlib
import logging
import time
import uuid as uuids
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from bloomery import errors, secrets
from bloomery.conductor import pulse, sensor_board, tasks, writes
from bloomery.conductor.pulse import Lane
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.conductor.sensor_board import CRITICAL
from bloomery.db import nodes
from bloomery.db.nodes import SensorRow
from bloomery.drivers.looks import NeedsTask
from bloomery.model.node import LEAKS
from bloomery.model.node_facts import ALARM

LOG = logging.getLogger(__name__)

Json = dict[str, Any]


class SendSensors:
    """Remembers when each node was read, and which nodes failed."""

    def __init__(
        self, runtime: ConductorRuntime, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._runtime, self._clock, self._options = runtime, clock, runtime.conf.sensor_data
        self._types = {kind.lower() for kind in self._options.data_types}
        self._rows: dict[str, SensorRow] = {}  # as the pass has read them
        self._read_at: dict[str, float] = {}
        self._failed: set[str] = set()
        size = runtime.conf.conductor.workers_pool_size
        self._lane = Lane(
            runtime.pulse, self._look,
            most=min(self._options.workers, max(size // 2, 1)), most_slow=size // 8,
        )  # fmt: skip

    def __call__(self) -> None:
        """Begin to read every node of ours once."""
        shares, also_free = self._runtime.list_shares(), self._options.enable_for_undeployed_nodes
        with self._runtime.db.read() as conn:
            rows = nodes.list_for_sensors(conn, shares, also_free=also_free)
        served = self._runtime.list_served(row.key for row in rows)
        self._rows = {row.key.uuid: row for row in rows}
        self._runtime.sensors.keep_only(served)
        self._runtime.sensors.leaking = frozenset(row.key.uuid for row in rows if row.has_leaks)
        self._failed.intersection_update(served)
        now = self._clock()
        self._read_at = {uuid: self._read_at.get(uuid, now) for uuid in served}
        self._lane.walk(
            served, self._options.interval * pulse.PART_OF_INTERVAL / max(len(served), 1)
        )

    def stop(self) -> None:
        self._lane.stop()

    @property
    def is_idle(self) -> bool:
        return self._lane.is_idle

    def lag_s(self) -> float:
        oldest = min(self._read_at.copy().values(), default=None)
        late_s = 0.0 if oldest is None else self._clock() - oldest - self._options.interval
        return max(late_s, 0.0)

    def suspects(self) -> int:
        return len(self._failed)

    async def _look(self, uuid: str) -> None:
        row, limit_s = self._rows.get(uuid), float(self._options.wait_timeout)
        if row is None:  # it left the list while it was queued
            return
        look = self._runtime.pulse.look(uuid, row.changed_at)
        try:
            data = None
            if look is not None:
                with contextlib.suppress(NeedsTask):
                    data = await look.read_sensors(limit_s)
            if data is None:
                data = await self._lane.in_worker(self._read_in_task, uuid, limit_s)
        except (errors.BmcQueueTimeout, errors.NoFreeConductorWorker) as queued:
            LOG.debug("node %s: left to the next pass: %s", uuid, queued)
            return
        except (errors.NodeNotFound, errors.NodeLocked, errors.UnsupportedDriverExtension) as no:
            self._runtime.sensors.drop(uuid)
            LOG.debug("node %s: no sensor data: %s", uuid, no)
        except errors.Failure as exc:
            self._runtime.sensors.drop(uuid)
            self._failed.add(uuid)
            LOG.warning("node %s: no sensor data: %s", uuid, secrets.brief(exc))
        else:
            self._failed.discard(uuid)
            chosen = {
                kind: readings
                for kind, readings in data.items()
                if readings and self._types & {"all", kind.lower()}
            }
            read_at = datetime.now(UTC)
            self._runtime.sensors.put(row, chosen, read_at)
            if chosen:
                self._runtime.send_sensors(row.key.driver, message(row, chosen, read_at))
            leaks = sensor_board.list_leaks(data)
            if leaks or row.has_leaks:
                await self._lane.in_worker(self._note_leaks, uuid, leaks)
        self._read_at[uuid] = self._clock()

    def _read_in_task(self, uuid: str, limit_s: float) -> Json:
        context = tasks.background_context(self._runtime)
        with tasks.shared(context, uuid, limit_s) as task:
            task.driver.management.validate(task)
            return task.driver.management.get_sensors_data(task)

    def _note_leaks(self, uuid: str, leaks: list[str]) -> None:
        """Record a change of the detectors that say Critical; a locked node has to wait for it."""
        context = tasks.background_context(self._runtime)
        with tasks.skipping(uuid), tasks.shared(context, uuid) as task:
            noted = task.node.driver_internal_info.get(LEAKS) or {}
            if noted.get("detectors", []) == leaks:
                return
            task.upgrade_lock(purpose="leaks", retry=False)
            node, entries = task.node, []
            if leaks:
                since = noted.get("since") or datetime.now(UTC).isoformat()
                node.driver_internal_info[LEAKS] = {"since": since, "detectors": leaks}
                sentence = f"leak detectors say Critical: {', '.join(leaks)}"
                if self._runtime.conf.conductor.enable_health_monitoring:
                    was, node.health = node.health, CRITICAL
                    if was != CRITICAL:
                        entries.append(writes.health_entry(context, node, was))
            else:
                node.driver_internal_info.pop(LEAKS, None)
                sentence = "leak detectors say Critical no longer"
            task.log("%s", sentence, level=logging.WARNING)
            entry = writes.history_entry(
                context, node, sentence, event_type=ALARM, failed=bool(leaks)
            )
            task.save(entry, *entries)
            board = self._runtime.sensors
            board.leaking = board.leaking | {uuid} if leaks else board.leaking - {uuid}


def message(row: SensorRow, data: Json, read_at: datetime) -> Json:
    """Return the payload of Ironic's notification."""
    return {
        "message_id": str(uuids.uuid4()),
        "instance_uuid": row.instance_uuid,
        "node_uuid": row.key.uuid,
        "node_name": row.name,
        "timestamp": f"{read_at:%Y-%m-%dT%H:%M:%S.%f}",
        "event_type": f"hardware.{row.key.driver}.metrics.update",
        "payload": data,
    }
