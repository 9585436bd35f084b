"""Delete what nothing needs any more, in batches: old rows, and boot files on this host.

Rows are deleted by one conductor for all.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Final

from bloomery import boot_files, errors
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.conductor.states import HOLD_STATES, UNSTABLE_STATES
from bloomery.db import commit_tokens, conductors, history, node_counts, nodes, rows, steps

LOG = logging.getLogger(__name__)

_FLOWS_AT_ONCE: Final = 50  # in one transaction
_LEAST_TIMEOUTS: Final = 3  # heartbeat_timeouts after which a conductor may be deleted
_NEED_BOOT_FILES: Final = UNSTABLE_STATES | HOLD_STATES
_LEAST_FOLDED: Final = 100  # rows of counts: a commit for fewer saves no reader anything
_COUNTS_FOLDED: Final = 5000  # in one transaction
_NODES_AT_ONCE: Final = 500  # in one statement


def trim_history(runtime: ConductorRuntime) -> None:
    """Delete all entries that are too many; each batch of a node is a transaction."""
    keep = runtime.conf.conductor.node_history_max_entries
    at_most = runtime.conf.conductor.node_history_cleanup_batch_count
    if not keep or not runtime.ring.leads(runtime.host):
        return
    with runtime.db.read() as conn:
        crowded = history.list_crowded(conn, keep=keep)
    for node in crowded:
        trim = partial(history.trim, node_uuid=node, keep=keep, at_most=at_most)
        while runtime.db.transact(trim) == at_most:
            pass


def trim_steps(runtime: ConductorRuntime) -> None:
    """Delete the rows of ended flows; an ended flow never continues, so none is locked."""
    keep = runtime.conf.conductor.step_flows_max_entries
    if not keep or not runtime.ring.leads(runtime.host):
        return
    last: str | None = ""
    while last is not None:
        with runtime.db.read() as conn:
            old, last = steps.list_old_flows(
                conn, keep=keep, after=last, nodes_at_once=_NODES_AT_ONCE
            )
        for at in range(0, len(old), _FLOWS_AT_ONCE):
            runtime.db.transact(partial(steps.delete_flows, flows=old[at : at + _FLOWS_AT_ONCE]))


def trim_tokens(runtime: ConductorRuntime) -> None:
    """Delete commit tokens that no transaction checks any more; SQLite has none."""
    if runtime.db.is_sqlite or not runtime.ring.leads(runtime.host):
        return
    while runtime.db.transact(commit_tokens.trim):
        pass


def fold_counts(runtime: ConductorRuntime) -> None:
    """Replace the rows of changed counts of nodes by their sums."""
    if not runtime.ring.leads(runtime.host):
        return
    with runtime.db.read() as conn:
        if node_counts.count_surplus(conn) < _LEAST_FOLDED:
            return
    with suppress(errors.Conflict):  # two lead for a moment
        fold = partial(node_counts.fold, at_most=_COUNTS_FOLDED)
        while runtime.db.transact(fold) >= _COUNTS_FOLDED:
            pass


def check_counts(runtime: ConductorRuntime) -> None:
    """Compare the counts of nodes with the nodes; correct and log what differs.

    Nothing should differ, unless triggers were lost, as by a restore of single tables.
    """
    if not runtime.ring.leads(runtime.host):
        return
    with runtime.db.snapshot() as conn:
        lacking = node_counts.compare(conn)
    if lacking:
        runtime.db.transact(partial(node_counts.mend, lacking=lacking))
        differences = "; ".join(f"{number:+} of {each}" for each, number in lacking.items())
        LOG.warning("the counts of nodes differed, and are corrected: %s", differences)


def trim_conductors(runtime: ConductorRuntime) -> None:
    """Delete the rows in batches; the first conductor of the ring does it for all.

    Wall clocks decide, as the limit is in days.  A conductor that still holds a node, a flow or an
    allocation stays.
    """
    ours = runtime.conf.conductor
    if not runtime.ring.leads(runtime.host):
        return
    if ours.conductor_cleanup_timeout < _LEAST_TIMEOUTS * ours.heartbeat_timeout:
        LOG.warning(
            "cannot clean up conductors: [conductor]conductor_cleanup_timeout is less than %d "
            "times heartbeat_timeout", _LEAST_TIMEOUTS,
        )  # fmt: skip
        return
    before = rows.now() - timedelta(seconds=ours.conductor_cleanup_timeout)
    while True:
        with runtime.db.read() as conn:
            gone = conductors.list_gone(conn, before, at_most=ours.conductor_cleanup_batch_size)
        deleted = [
            conductor.hostname
            for conductor in gone
            if runtime.db.transact(partial(conductors.delete_gone, conductor=conductor))
        ]
        for hostname in deleted:
            LOG.warning("conductor %s is off line for long: row deleted", hostname)
        if not deleted:  # what is left came back meanwhile
            return


def remove_boot_files(runtime: ConductorRuntime) -> None:
    """Remove boot files that no node needs, such as those of a crashed conductor.

    A node needs boot files only in transient states.  The files are listed before the states are
    read: a later flow builds files with other names.  Links keep their names and stay.
    """
    paths = boot_files.list_files(runtime.conf.deploy.http_root)
    owners = sorted({boot_files.owner(path) for path in paths})
    needed: set[str] = set()
    for at in range(0, len(owners), _NODES_AT_ONCE):
        among: dict[str, list[str]] = {
            "uuid": owners[at : at + _NODES_AT_ONCE],
            "provision_state": sorted(_NEED_BOOT_FILES),
        }
        with runtime.db.read() as conn:
            moving = nodes.list_rows(conn, nodes.Query(columns=("uuid",), among=among))
        needed |= {row.uuid for row in moving}
    for path in paths:
        if boot_files.owner(path) not in needed:
            LOG.info("node %s: removing a %s that it does not need", boot_files.owner(path),
                     path.suffix.lstrip("."))  # fmt: skip
            path.unlink(missing_ok=True)
