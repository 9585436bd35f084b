"""The process dies after any commit of a machine's life; the next one brings it to its end.

Nobody helps: what was ordered and acknowledged happens, or the node says which step could not
be repeated.  The death is a database that commits no more; the next life is a new conductor on
the same file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bloomery import errors
from bloomery.outcome import Again, WaitForCall
from tests.kit.dying import Dead, Mortal
from tests.kit.scripted import Script, failing, in_turn
from tests.kit.site import Site, database
from tests.kit.waiting import wait_for


class Order(NamedTuple):
    method: str
    args: tuple[Any, ...]
    begins_in: str
    ends_in: str


LIFE = (
    Order("do_provisioning_action", ("manage",), "enroll", "manageable"),
    Order("do_provisioning_action", ("provide",), "manageable", "available"),
    Order("do_node_deploy", (False, None, None), "available", "active"),
    Order("change_node_power_state", ("rebooting", None), "active", "active"),
    Order("do_node_deploy", (True, None, None), "active", "active"),
    Order("do_node_tear_down", (), "active", "available"),
)


def script_of_life() -> Script:
    """Two steps a phase; one of them takes a pause, one verify step is broken."""
    script = Script()
    script.add("verify", "broken", failing(LookupError("no such sensor")))
    script.add("clean", "erase")
    script.add("deploy", "write", in_turn(Again(after_s=0.001, reason="writing"), None))
    script.add("deploy", "boot")
    return script


class Life:
    """A node, what was ordered for it, and which orders were acknowledged."""

    def __init__(self, path: Path, script: Script, **conductor: Any) -> None:
        self.path, self.script, self.conductor = path, script, conductor
        self.acknowledged: list[str] = []
        self.given = ""
        self.site = self._begin(database(path, Mortal))
        self.node = self.site.enrol()

    def _begin(self, db: Any) -> Site:
        registry = self.script.registry()
        return Site(self.path, db=db, registry=registry, patience_s=5, **self.conductor)

    def dies_after(self, commits: int) -> None:
        db = self.site.db
        assert isinstance(db, Mortal)
        db.lives = db.commits + commits

    def die(self) -> None:
        self.site.close()

    def live_again(self) -> None:
        self.site = self._begin(database(self.path))

    def obey(self, order: Order) -> None:
        """Give the order and see it done; raises Dead when the process dies meanwhile."""
        request = self.site.request()
        self.given = request.request_id
        self.site.order(order.method, self.node, *order.args, request=request)
        self.acknowledged.append(request.request_id)
        self.see(order)

    def told(self) -> set[str | None]:
        """The requests that some history row or step row names."""
        found = [*self.site.history(self.node), *self.site.runs(self.node)]
        return {row["request_id"] for row in found}

    def see(self, order: Order) -> None:
        db = self.site.db

        def ended() -> bool:
            if isinstance(db, Mortal) and db.died.is_set():
                raise Dead
            node = self.site.node(self.node)
            there = node.provision_state == order.ends_in and node.target_power_state is None
            return there and node.reservation is None

        wait_for(ended, f"{order.method} to end in {order.ends_in}")


def commits_of(tmp_path: Path, make: Callable[[], Script], **conductor: Any) -> int:
    """How many commits a life without a crash takes."""
    life = Life(tmp_path / "whole.sqlite", make(), **conductor)
    db = life.site.db
    assert isinstance(db, Mortal)
    began = db.commits
    for order in LIFE:
        life.obey(order)
    life.die()
    return db.commits - began


def crash_and_recover(path: Path, lives: int, script: Script, **conductor: Any) -> Life:
    """Live until the process dies after ``lives`` commits, and once more until the end."""
    life = Life(path, script, **conductor)
    life.dies_after(lives)
    left = list(LIFE)
    with contextlib.suppress(Dead):
        while left:
            life.obey(left[0])
            left.pop(0)
    life.die()
    life.live_again()
    if left and was_ordered(life):
        life.see(left.pop(0))
    for order in left:
        life.obey(order)
    return life


def was_ordered(life: Life) -> bool:
    """Did the last order reach the rows before the death?  Then nobody gives it again."""
    return life.given in life.told()


def assert_clean(life: Life) -> None:
    site, node = life.site, life.node
    wait_for(lambda: site.house.gates.held == 0, "the gates to open")
    found = site.node(node)
    assert found.provision_state == "available"
    assert found.reservation is None
    assert (found.target_provision_state, found.target_power_state) == (None, None)
    assert (found.last_error, found.maintenance, found.fault) == (None, False, None)
    assert {run["state"] for run in site.runs(node)} <= {"done", "failed", "skipped"}
    failed = {run["step"] for run in site.runs(node) if run["state"] == "failed"}
    assert failed <= {"broken"}
    assert set(life.acknowledged) <= life.told()


def try_every_commit(tmp_path: Path, make: Callable[[], Script], **conductor: Any) -> None:
    whole = commits_of(tmp_path, make, **conductor)
    assert whole > 15
    for lives in range(whole + 1):
        life = crash_and_recover(tmp_path / f"{lives}.sqlite", lives, make(), **conductor)
        try:
            assert_clean(life)
        except AssertionError as exc:
            exc.add_note(f"the process died after commit {lives} of {whole}")
            raise
        finally:
            life.die()


def test_a_life_goes_on_after_a_crash_at_any_commit(tmp_path: Path):
    try_every_commit(tmp_path, script_of_life)


def test_a_life_without_cleaning_goes_on_after_a_crash_at_any_commit(tmp_path: Path):
    try_every_commit(tmp_path, script_of_life, automated_clean=False)
