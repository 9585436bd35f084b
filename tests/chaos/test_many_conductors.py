"""Three conductors and two APIs on PostgreSQL; now one is killed, now one stands still.

Callers deploy, clean, inspect and undeploy meanwhile.  In the end every node is at rest, every
order that was acknowledged has come to its end or says why it failed, everything was told in
order, and nobody wrote to a row or a machine that was another one's by then.

    make chaos-long                        # ten minutes, 200 nodes, over RabbitMQ
    make chaos-long SEED=2
    make chaos-long BLOOMERY_CHAOS_S=60    # a minute of it
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

import pytest

from tests.chaos import oracles
from tests.chaos.members import Member
from tests.chaos.site import TIMEOUT_S, Site, in_use, on_servers_of_the_test
from tests.kit.waiting import wait_for

LONG_S: Final = float(os.environ.get("BLOOMERY_CHAOS_S", "600"))
STARTS_WITHIN_S: Final = 90  # a start outlasts who stands still inside a transaction
PAUSE: Final = threading.Event()  # never set: the course of things draws the time between two


def trouble(site: Site, lasts_s: float, lots: random.Random) -> None:
    """Every few seconds kill somebody, who starts again, or let a conductor stand still."""
    ends_at = time.monotonic() + lasts_s
    still: dict[Member, float] = {}  # and until when
    while (now := time.monotonic()) < ends_at:
        for member in [member for member, until in still.items() if until <= now]:
            del still[member]
            member.go_on()
        PAUSE.wait(lots.uniform(2, 5))
        conductor = lots.choice(site.conductors)
        if not still and lots.random() < 0.4:
            conductor.stand_still()
            still[conductor] = now + lots.uniform(5, TIMEOUT_S + 12)
        elif conductor not in still:
            victim = lots.choice([conductor, conductor, site.apis[0]])
            victim.kill()
            victim.start()
    for member in still:
        member.go_on()
    wait_for(lambda: everybody_serves(site), "all to serve", timeout_s=STARTS_WITHIN_S)


def everybody_serves(site: Site) -> bool:
    return all(member.is_serving for member in site.members)


def live(site: Site, seed: int, record: Any, *, nodes: int, lasts_s: float) -> None:
    listener, stuck = oracles.Listener(site), oracles.StuckNodes(site)
    oracles.watch_rows(site)
    with listener.listening():
        site.start()
        site.enrol(nodes)
        with stuck.watching(), in_use(site, f"{seed}"):
            trouble(site, lasts_s, random.Random(f"trouble {seed}"))
        oracles.check(site, listener)
    assert stuck.faults == []
    facts = {
        "orders": len(site.acknowledged), "told": len(listener.messages),
        "lives": sum(member.lives for member in site.members),
        "to_machines": site.witness.count, "late": site.witness.late,
        "unavailable": len(site.unavailable), "still_s": round(stuck.longest_s, 1),
    }  # fmt: skip
    for name, fact in facts.items():
        record(name, fact)
    sys.stdout.write(f"{facts}\n")
    assert facts["lives"] > len(site.members), "nobody was killed"
    assert facts["orders"] > nodes / 2
    assert facts["to_machines"] > nodes / 2
    assert facts["late"] * 10 < facts["to_machines"]


@pytest.mark.timeout(360)
def test_nothing_is_lost_when_conductors_die_and_stand_still(
    tmp_path: Path, seed: int, record_property: Any
) -> None:
    with on_servers_of_the_test(tmp_path, "json-rpc") as site:
        live(site, seed, record_property, nodes=40, lasts_s=45.0)


@pytest.mark.long
@pytest.mark.timeout(LONG_S + 600)
def test_nothing_is_lost_at_length(tmp_path: Path, seed: int, record_property: Any) -> None:
    with on_servers_of_the_test(tmp_path, "oslo") as site:
        live(site, seed, record_property, nodes=200, lasts_s=LONG_S)
