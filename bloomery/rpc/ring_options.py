"""Options of the ring that all processes of a site must share.

A conductor stores its own when it starts and no other one lives; later processes compare.

    ring_options.differences(conn, conf)
    # ["[DEFAULT]hash_partition_exponent is 6 here and 5 for the conductors of this site"]
"""

from __future__ import annotations

import json
from typing import Any, Final

import sqlalchemy as sa

from bloomery.conf import Conf
from bloomery.db import settings

_NAME: Final = "ring_options"
_OPTIONS: Final = (  # group, option: assignment of nodes, and time-outs of liveness
    ("DEFAULT", "hash_partition_exponent"),
    ("DEFAULT", "hash_ring_algorithm"),
    ("conductor", "heartbeat_timeout"),
)
_TIMES: Final = (("DEFAULT", "hash_ring_reset_interval"), ("conductor", "heartbeat_interval"))


def note(conn: sa.Connection, conf: Conf) -> None:
    """Store our options as the site's."""
    settings.put(conn, _NAME, json.dumps(_values(conf), sort_keys=True))


def differences(conn: sa.Connection, conf: Conf) -> list[str]:
    """Return differences that assign a node twice, or declare conductors dead too early."""
    return _differing(conn, conf, _OPTIONS)


def other_times(conn: sa.Connection, conf: Conf) -> list[str]:
    """Return differences that only delay some of the processes."""
    return _differing(conn, conf, _TIMES)


def _differing(conn: sa.Connection, conf: Conf, options: tuple[tuple[str, str], ...]) -> list[str]:
    stored = settings.find(conn, _NAME)
    of_site: dict[str, Any] = {} if stored is None else json.loads(stored)
    ours = _values(conf)
    return [
        f"[{group}]{name} is {ours[name]} here and {of_site[name]} for the conductors of this site"
        for group, name in options
        if name in of_site and of_site[name] != ours[name]
    ]


def _values(conf: Conf) -> dict[str, Any]:
    return {
        name: getattr(getattr(conf, group.lower()), name) for group, name in (*_OPTIONS, *_TIMES)
    }
