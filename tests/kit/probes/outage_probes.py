"""Requests to a service whose database is refused, mute or slow, and their right answers.

    assert outage_probes.wrong_answers(url, "mute", most_s=4.0, queued_s=60.0) == []

The probes of those who watch the service are answered within ``most_s`` in any outage, also beside
``CROWD`` lists of nodes.  Reads and orders wait for a thread and for the time-out of a statement.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Final

import urllib3

OUTAGES: Final = ("refused", "mute", "slow")
CROWD: Final = 40  # clients that ask for lists of nodes meanwhile


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """``away``, ``slow``: the status without a database, and with a slow one."""

    name: str
    path: str
    away: int
    slow: int
    method: str = "GET"
    body: dict[str, str] | None = None
    queued: bool = False  # behind the crowd
    says: str = ""  # without a database


PROBES: Final = (
    Probe(name="alive", path="/healthz", away=200, slow=200, says='"alive":true'),
    Probe(name="ready", path="/readyz", away=503, slow=200, says="the database"),
    Probe(name="metrics", path="/metrics", away=200, slow=200,
          says="bloomery_database_answers 0.0"),
    Probe(name="read", path="/v1/nodes", away=503, slow=200, queued=True),
    Probe(name="order", path="/v1/nodes", away=503, slow=201, queued=True, method="POST",
          body={"driver": "fake-hardware"}),
)  # fmt: skip


def wrong_answers(url: str, outage: str, *, most_s: float, queued_s: float) -> list[str]:
    """Return what is wrong with the answers, in words."""
    wrong = []
    for probe in PROBES:
        within_s = queued_s if probe.queued else most_s
        began = time.monotonic()
        try:
            answer = urllib3.request(
                probe.method, f"{url}{probe.path}", json=probe.body, timeout=within_s,
                retries=False,
            )  # fmt: skip
        except urllib3.exceptions.HTTPError as exc:
            took_s = time.monotonic() - began
            wrong.append(f"{probe.name}: no answer within {took_s:.1f} s: {type(exc).__name__}")
            continue
        right = probe.slow if outage == "slow" else probe.away
        if answer.status != right:
            wrong.append(f"{probe.name}: {answer.status} in place of {right}: {answer.data!r}")
        elif outage != "slow" and probe.says.encode() not in answer.data:
            wrong.append(f"{probe.name}: {probe.says!r} is not in {answer.data!r}")
    return wrong
