"""Delete old history entries, flow rows and commit tokens in batches.

One conductor does it for all.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from bloomery.conductor.runtime import ConductorRuntime
from bloomery.db import commit_tokens, history, steps

_FLOWS_AT_ONCE: Final = 50  # in one transaction
_FLOWS_LISTED: Final = 20_000  # by one statement, which reads every row


def run(runtime: ConductorRuntime) -> None:
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


def run_steps(runtime: ConductorRuntime) -> None:
    """Delete the rows of ended flows; an ended flow never continues, so none is locked."""
    keep = runtime.conf.conductor.step_flows_max_entries
    if not keep or not runtime.ring.leads(runtime.host):
        return
    old = [""] * _FLOWS_LISTED
    while len(old) == _FLOWS_LISTED:
        with runtime.db.read() as conn:
            old = steps.list_old_flows(conn, keep=keep, at_most=_FLOWS_LISTED)
        for at in range(0, len(old), _FLOWS_AT_ONCE):
            runtime.db.transact(partial(steps.delete_flows, flows=old[at : at + _FLOWS_AT_ONCE]))


def run_tokens(runtime: ConductorRuntime) -> None:
    """Delete commit tokens that no transaction checks any more; SQLite has none."""
    if runtime.db.is_sqlite or not runtime.ring.leads(runtime.host):
        return
    while runtime.db.transact(commit_tokens.trim):
        pass
