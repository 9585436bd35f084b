"""What a BMC logged while a flow failed: read after the failure, and kept beside it for ``why``.

The failure is committed first, and waits for nothing: a worker that is free reads the log within
[bmc]failure_log_timeout.  A silent BMC is not asked.  After a crash nothing is read.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from bloomery import errors, secrets
from bloomery.conductor import tasks, writes
from bloomery.conductor.runtime import Context
from bloomery.conductor.task_manager import TaskManager
from bloomery.drivers import base
from bloomery.model.node_facts import BMC_LOG

LOG = logging.getLogger(__name__)

MOST_AT_ONCE: Final = 4  # workers that read logs
_RETRY_S: Final = 1.0
_MOST_RETRIES: Final = 60
_MOST_KEPT: Final = 3  # entries
_EARLIER: Final = timedelta(seconds=2)  # a clock in whole seconds, that is read late
_BAD: Final = ("Critical", "Warning")  # the worst first


class _Reading(NamedTuple):
    context: Context
    node_uuid: str
    since: datetime
    tries: int = 0


def read_soon(task: TaskManager, since: datetime) -> None:
    """Read the log of the task's BMC from ``since`` on, as soon as a worker is free."""
    runtime = task.runtime
    offers_log = type(task.driver.management).read_bmc_log is not base.Management.read_bmc_log
    is_kept = runtime.conf.conductor.node_history and runtime.conf.bmc.failure_log_timeout
    if offers_log and is_kept:
        _start(_Reading(tasks.background_context(runtime), task.node.uuid, since))


def _start(reading: _Reading) -> None:
    """Begin a reading, or try again later; a conductor that stops begins none."""
    runtime = reading.context.runtime
    if runtime.leaving.is_set() or runtime.draining.is_set():
        return
    if runtime.log_readers.take():
        try:
            with runtime.workers.slot(allow_reserved=False) as slot:
                slot.spawn(_read, reading)
        except errors.NoFreeConductorWorker:
            runtime.log_readers.give_back()
        else:
            return
    if reading.tries < _MOST_RETRIES:
        runtime.timers.after(_RETRY_S, _start, reading._replace(tries=reading.tries + 1))
    else:
        LOG.info("node %s: the BMC's log is not read: no free worker", reading.node_uuid)


def _read(reading: _Reading) -> None:
    """Read the log, and write its entries into the node's history; errors are logged alone."""
    context, uuid = reading.context, reading.node_uuid
    runtime = context.runtime
    limit_s = float(runtime.conf.bmc.failure_log_timeout)
    try:
        with tasks.shared(context, uuid, limit_s) as task:
            task.driver.management.validate(task)
            bmc = task.driver.power.describe_bmc(task) or {}
            if bmc.get("silent_since") or bmc.get("login_refused"):
                LOG.info("node %s: the BMC's log is not read: %s", uuid, bmc["last_error"])
                return
            log = task.driver.management.read_bmc_log(task)
            if text := describe(log, reading.since):
                runtime.db.transact(
                    writes.history_entry(context, task.node, text, event_type=BMC_LOG, warns=True)
                )
    except (errors.Failure, sa.exc.DBAPIError) as exc:
        LOG.info("node %s: the BMC's log is not read: %s", uuid, secrets.brief(exc))
    except Exception as exc:  # noqa: BLE001  the supervisor of its thread
        LOG.error("node %s: the BMC's log: %s", uuid, secrets.report(exc))  # noqa: TRY400  masked
    finally:
        runtime.log_readers.give_back()


def describe(log: Mapping[str, Any], since: datetime) -> str | None:
    """Return the worst and newest entries of a log from ``since`` on; None without one.

    Times are those of this host, where the BMC shows its clock.
    """
    ahead = timedelta(seconds=log["clock_difference_s"] or 0)
    entries = []
    for entry in log["entries"]:
        at = entry["created_at"] and datetime.fromisoformat(entry["created_at"]) - ahead
        if at and at >= since - _EARLIER and entry["severity"] in _BAD:
            entries.append((_BAD.index(entry["severity"]), -at.timestamp(), at, entry))
    entries.sort(key=lambda each: each[:2])
    if not entries:
        return None
    texts = [
        f"{entry['message']} at {at.astimezone(UTC):%H:%M:%S} UTC"
        f"{' (warning)' if entry['severity'] == 'Warning' else ''}"
        for _, _, at, entry in entries[:_MOST_KEPT]
    ]
    more = len(entries) - _MOST_KEPT
    return "the BMC logged: " + "; ".join(texts) + (f"; and {more} more" if more > 0 else "")
