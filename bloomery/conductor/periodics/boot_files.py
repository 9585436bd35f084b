"""Remove boot files on this host that no node needs, such as those of a crashed conductor.

A node needs boot files only in transient states.  The files are listed before the states are read:
a later flow builds files with other names.  Links keep their names and stay.
"""

from __future__ import annotations

import logging
from typing import Final

from bloomery import boot_files
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.conductor.states import HOLD_STATES, UNSTABLE_STATES
from bloomery.db import nodes

LOG = logging.getLogger(__name__)

_NEED: Final = UNSTABLE_STATES | HOLD_STATES
_AT_ONCE: Final = 500  # nodes in one statement


def run(runtime: ConductorRuntime) -> None:
    paths = boot_files.list_files(runtime.conf.deploy.http_root)
    needed = _needed(runtime, sorted({boot_files.owner(path) for path in paths}))
    for path in paths:
        if boot_files.owner(path) not in needed:
            LOG.info("node %s: removing a %s that it does not need", boot_files.owner(path),
                     path.suffix.lstrip("."))  # fmt: skip
            path.unlink(missing_ok=True)


def _needed(runtime: ConductorRuntime, owners: list[str]) -> set[str]:
    moving: set[str] = set()
    for at in range(0, len(owners), _AT_ONCE):
        among: dict[str, list[str]] = {
            "uuid": owners[at : at + _AT_ONCE],
            "provision_state": sorted(_NEED),
        }
        with runtime.db.read() as conn:
            rows = nodes.list_rows(conn, nodes.Query(columns=("uuid",), among=among))
        moving |= {row.uuid for row in rows}
    return moving
