"""A flow whose worker died is taken up again: soon where only the database was busy, and not
for ever where it dies each time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bloomery import errors
from bloomery.conductor import recovery
from bloomery.db import locks, steps
from bloomery.db.engine import Database
from bloomery.outcome import Again
from tests.kit.machines.scripted import Script
from tests.kit.probes import crash_probes
from tests.kit.servers import site as kit
from tests.kit.servers.site import Site
from tests.kit.waiting import wait_for

MakeSite = Callable[..., Site]


def _dies(_held: object) -> None:
    raise SystemExit


def test_a_flow_whose_worker_dies_each_time_is_given_up(make_site: MakeSite) -> None:
    script = Script()
    script.add("deploy", "write", _dies)
    site = make_site(registry=script.registry())
    node = site.enrol(provision_state="available")
    site.provision(node, "active")
    wait_for(lambda: site.is_free(node), "the worker to die")
    while site.node(node).provision_state == "deploying":
        recovery.adopt(site.service.runtime, node)
        wait_for(lambda: site.is_free(node), "the worker to die")
    found = site.node(node)
    assert found.provision_state == "deploy failed"
    assert "died 4 times at step deploy.write" in found.last_error
    assert script.calls.count("write") == 4


def _slow(make_site: MakeSite) -> tuple[Site, str, threading.Event]:
    """A deployment in the middle of a long step, and what lets that step end."""
    script, over = Script(), threading.Event()
    script.add(
        "deploy", "long", lambda task: None if over.is_set() else Again(after_s=60, reason="slow")
    )
    site = make_site(registry=script.registry())
    node = site.enrol(provision_state="available")
    site.deploy(node)
    _wait_for_the_pause(site, node)
    return site, node, over


def _wait_for_the_pause(site: Site, node: str) -> None:
    wait_for(lambda: "again" in [run["state"] for run in site.runs(node)], "the pause")


def _stopped(site: Site) -> None:
    site.service.stop(grace_s=0)


def _killed(site: Site) -> None:
    """Nothing is written any more."""


@pytest.mark.parametrize("end", [_stopped, _killed])
def test_restarts_within_one_step_fail_no_flow(make_site: MakeSite, end: Any) -> None:
    site, node, over = _slow(make_site)
    for _ in range(6):
        end(site)
        site = site.restarted()
        _wait_for_the_pause(site, node)
    over.set()
    end(site)
    site = site.restarted()
    try:
        assert site.wait_for_state(node, "active").last_error is None
    finally:
        site.close()


def test_a_graceful_stop_counts_for_nothing(tmp_path: Path) -> None:
    crash_probes.a_graceful_stop_counts_for_nothing(tmp_path / "stops.sqlite")


def test_a_step_that_its_conductors_never_survive_is_given_up(
    make_site: MakeSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert recovery._MOST_WEIGHT == 12 * recovery.CRASH
    monkeypatch.setattr(recovery, "_MOST_WEIGHT", 3 * recovery.CRASH)
    site, node, _ = _slow(make_site)
    restarts = 0
    while site.node(node).provision_state == "deploying" and restarts < 20:
        site, restarts = site.restarted(), restarts + 1
        wait_for(
            lambda s=site, n=restarts: (
                s.node(node).provision_state != "deploying"
                or ("again", n) in [(run["state"], run["recovery_weight"]) for run in s.runs(node)]
            ),
            "the flow to be taken up",
        )
    try:
        found = site.wait_for_state(node, "deploy failed")
        assert "its conductor died too often at step deploy.long" in found.last_error
        assert restarts == 4
    finally:
        site.close()


def test_a_step_that_may_not_be_repeated_is_told_as_stopped(make_site: MakeSite) -> None:
    script, go_on = Script(), threading.Event()
    script.add("deploy", "once", lambda task: go_on.wait(20) and None, resumable=False)
    site = make_site(registry=script.registry())
    node = site.enrol(provision_state="available")
    site.deploy(node)
    wait_for(lambda: "once" in script.calls, "the step")
    site.db.transact(lambda conn: steps.release(conn, site.runtime.host))
    site.db.transact(locks.void_all)
    go_on.set()
    site = site.restarted()
    try:
        found = site.wait_for_state(node, "deploy failed")
        assert "its conductor was stopped while step deploy.once was running" in found.last_error
    finally:
        site.close()


class Balky(Database):
    """Gives up on one transaction, as where another program holds it or the server is lost."""

    give_up_at: int | None = None
    has_committed = False  # before it gives up: its caller cannot know
    seen = 0

    def transact(self, work: Any) -> Any:
        self.seen += 1
        if self.seen != self.give_up_at:
            return super().transact(work)
        if self.has_committed:
            super().transact(work)
        raise errors.DatabaseBusy(reason="another program holds a lock on it")


@pytest.mark.parametrize("has_committed", [False, True])
@pytest.mark.parametrize("point", range(2, 5))  # prepare to one, one to two, two to the end
def test_a_flow_that_met_a_busy_database_goes_on_by_itself(
    tmp_path: Path, point: int, has_committed: bool
) -> None:
    db = kit.database(tmp_path / "balky.sqlite", Balky)
    script = Script()
    script.add("deploy", "one")
    script.add("deploy", "two")
    site = Site(tmp_path / "balky.sqlite", db=db, registry=script.registry())
    try:
        node = site.enrol(provision_state="available")
        db.give_up_at, db.has_committed = db.seen + point, has_committed
        site.provision(node, "active")
        assert site.wait_for_state(node, "active").last_error is None
        wait_for(lambda: site.is_free(node), "the worker to end")
        assert site.node(node).last_error is None
        assert db.seen >= db.give_up_at
    finally:
        site.close()
