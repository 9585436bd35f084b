"""Callers, an agent and periodics do whatever they like to flaky machines: every story adds up.

The events of a node are read afterwards as a chain: each move begins where the last one ended,
along an edge of the table, and in the end nothing is left open and nobody holds anything.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from typing import Any

import orjson

from bloomery import errors
from bloomery.conductor import recovery, states
from bloomery.conductor.periodics import housekeeping, timeouts
from bloomery.db.tables import EVENTS
from bloomery.drivers.base import DriverTask
from bloomery.model.step import OPEN_RUNS
from bloomery.outcome import Again, Hold, WaitForCall
from tests.kit.machines.scripted import Script
from tests.kit.probes import probes
from tests.kit.servers.site import Site
from tests.kit.waiting import wait_for

CALLERS, NODES, LASTS_S = 12, 5, 5.0
STEP = [{"interface": "deploy", "step": "service_one"}]
CLEAN = [{"interface": "deploy", "step": "clean_one"}]
Call = tuple[Any, ...]
ARGUMENTS = {
    "clean": {"steps": CLEAN}, "service": {"steps": STEP}, "rescue": {"rescue_password": "secret"},
}  # fmt: skip
BY_EVENT: dict[str, Call] = {
    event: ("do_provisioning_action", verb, ARGUMENTS.get(verb, {}))
    for verb, event in states.VERBS.items()
} | {
    "resume": ("agent_calls",),
}
ANY: list[Call] = [
    *BY_EVENT.values(),
    ("change_node_power_state", "rebooting", None),
    ("set_maintenance", False, None),
    ("update_node", [{"op": "add", "path": "/extra/a", "value": 1}], False),
]


class Moods:
    """Hardware that succeeds mostly, and else fails, dawdles, waits or asks to be held."""

    def __init__(self, lots: random.Random) -> None:
        self._lots, self._mutex = lots, threading.Lock()

    def play(self, task: DriverTask) -> Any:
        with self._mutex:
            drawn = self._lots.random()
        if task.turn or drawn < 0.6:
            return None
        if drawn < 0.75:
            return Again(after_s=0.002, reason="busy")
        if drawn < 0.85:
            return WaitForCall(reason="boots")
        if drawn < 0.9:
            return Hold(reason="look")
        raise errors.BmcRefused(node=task.node.uuid, address="bmc", reason="not now")


def moody(lots: random.Random) -> Script:
    script, moods = Script(), Moods(lots)
    for phase in ("clean", "deploy", "service"):
        for number in ("one", "two"):
            script.add(phase, f"{phase}_{number}", moods.play)
    for name in ("prepare", "tear_down", "prepare_cleaning", "tear_down_cleaning"):
        script.when(name, lambda task: None if task.turn else moods.play(task))
    return script


def test_whatever_is_asked_the_story_of_a_node_adds_up(make_site: Any, seed: int, caplog: Any):
    script = moody(random.Random(f"{seed} hardware"))
    site: Site = make_site(registry=script.registry(), patience_s=0.3, workers_pool_size=30)
    nodes = [site.enrol() for _ in range(NODES)]
    until = time.monotonic() + LASTS_S
    said: Counter[str] = Counter()
    wrong: list[str] = []
    pause = threading.Event()

    def call(number: int) -> None:
        lots = random.Random(f"{seed} caller {number}")
        while time.monotonic() < until:
            node = lots.choice(nodes)
            method, *args = choose(lots, site.node(node).provision_state)
            try:
                if method == "agent_calls":
                    site.agent_calls(node)
                else:
                    site.order(method, node, *args)
                said[method] += 1
            except errors.Failure as refused:
                said[type(refused).__name__] += 1
                if refused.status >= 500 and not isinstance(refused, errors.Unavailable):
                    wrong.append(f"{method}: {refused!r}")
            except Exception as exc:  # noqa: BLE001  whatever else it is, it is wrong
                wrong.append(f"{method} raised {exc!r}")

    def tidy() -> None:
        while time.monotonic() < until:
            recovery.adopt_all(site.runtime)
            timeouts.run(site.runtime)
            housekeeping.fold_counts(site.runtime)
            housekeeping.check_counts(site.runtime)
            pause.wait(0.05)

    threads = [threading.Thread(target=call, args=(n,)) for n in range(CALLERS)]
    probes.run_all([*threads, threading.Thread(target=tidy)])
    wait_for(lambda: site.runtime.node_locks.in_use == 0, "the flows to end", timeout_s=20)

    assert wrong == []
    done = {call[0] for call in ANY}
    assert sum(said[method] for method in done) > 30, said
    assert sum(len(site.history(node)) for node in nodes) > 50
    assert [text for text in caplog.messages if "counts of nodes differed" in text] == []
    for node in nodes:
        check_chain(site, node)
        check_rest(site, node)


def choose(lots: random.Random, state: str | None) -> Call:
    """Mostly what the state admits, sometimes anything."""
    fitting = [BY_EVENT[event] for event in states.events_from(state) if event in BY_EVENT]
    return lots.choice(fitting if fitting and lots.random() < 0.8 else ANY)


def check_chain(site: Site, node: str) -> None:
    """Each move begins where the last one ended, and follows an edge."""
    stands, drawn = "enroll", {(e.source.value, e.event): e.target.value for e in states.EDGES}
    for row in site.rows(EVENTS, object_uuid=node, action="provision_set"):
        facts = orjson.loads(row["facts"])
        assert facts["previous_provision_state"] == stands, facts
        assert drawn[stands, facts["event"]] == facts["provision_state"], facts
        stands = facts["provision_state"]
    assert site.node(node).provision_state == stands
    moves = site.rows(EVENTS, object_uuid=node, action="provision_set")
    kept = [entry for entry in site.history(node) if entry["event_type"] == "transition"]
    assert [entry["state"] for entry in kept] == [
        orjson.loads(row["facts"])["provision_state"] for row in moves
    ]


def check_rest(site: Site, node: str) -> None:
    """Nobody holds the node, and only what waits has rows that are open: those of one flow."""
    found = site.node(node)
    assert found.reservation is None
    assert found.provision_state not in states.STUCK_STATES_TREATED_AS_FAIL
    open_rows = [run for run in site.runs(node) if run["state"] in OPEN_RUNS]
    if found.provision_state in states.WAIT_STATES | states.HOLD_STATES:
        assert len({run["flow"] for run in open_rows}) == 1
        assert [run["state"] for run in open_rows].count("planned") == len(open_rows) - 1
    else:
        assert open_rows == []
