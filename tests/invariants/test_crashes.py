"""The process dies after any commit of a machine's life; the next one brings it to its end.

Nobody helps: what was ordered and acknowledged happens, or the node says which step could not
be repeated.  The death is a database that commits no more; the next life is a new conductor on
the same file.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor import states
from bloomery.db.engine import Database
from bloomery.db.tables import NODES
from bloomery.model.node import Node
from bloomery.outcome import Again, WaitForCall
from tests.kit.machines.scripted import Script, failing, in_turn
from tests.kit.sampling import some
from tests.kit.servers.dying import Dead, Mortal
from tests.kit.servers.site import Site, database
from tests.kit.waiting import wait_for


class Order(NamedTuple):
    method: str
    args: tuple[Any, ...]
    begins_in: str
    ends_in: str


LIFE = (
    Order("do_provisioning_action", ("manage", {}), "enroll", "manageable"),
    Order("do_provisioning_action", ("provide", {}), "manageable", "available"),
    Order("do_provisioning_action", ("active", {}), "available", "active"),
    Order("change_node_power_state", ("rebooting", None), "active", "active"),
    Order("do_provisioning_action", ("rebuild", {}), "active", "active"),
    Order("do_provisioning_action", ("deleted", {}), "active", "available"),
)


ERASE = [{"interface": "deploy", "step": "erase"}]
UPDATE = [{"interface": "deploy", "step": "update"}]
OTHER_VERBS = (
    Order("do_provisioning_action", ("inspect", {}), "manageable", "manageable"),
    Order("do_provisioning_action", ("clean", {"steps": ERASE}),
          "manageable", "manageable"),
    Order("do_provisioning_action", ("adopt", {}), "manageable", "active"),
    Order("do_provisioning_action", ("service", {"steps": UPDATE}),
          "active", "active"),
    Order("do_provisioning_action", ("rescue", {"rescue_password": "secret"}),
          "active", "rescue"),
    Order("do_provisioning_action", ("unrescue", {}), "rescue", "active"),
    Order("set_console_mode", (True,), "active", "active"),
    Order("do_provisioning_action", ("deleted", {}), "active", "available"),
)  # fmt: skip


def script_of_life() -> Script:
    """Two steps a phase; one of them takes a pause, one verify step is broken."""
    script = Script()
    script.add("verify", "broken", failing(LookupError("no such sensor")))
    script.add("clean", "erase")
    script.add("service", "update")
    script.add("deploy", "write", in_turn(Again(after_s=0.001, reason="writing"), None))
    script.add("deploy", "boot")
    return script


class Life:
    """A node, what was ordered for it, and which orders were acknowledged."""

    def __init__(
        self, path: Path, script: Script, orders: Sequence[Order], **conductor: Any
    ) -> None:
        self.path, self.script, self.conductor = path, script, conductor
        self.orders = orders
        self.acknowledged: list[str] = []
        self.given = ""
        self.site = self._begin(database(path, Mortal))
        self.node = self.site.enrol(provision_state=orders[0].begins_in)

    def _begin(self, db: Any) -> Site:
        registry = self.script.registry()
        return Site(self.path, db=db, registry=registry, patience_s=5, **self.conductor)

    def dies_after(self, commits: int) -> None:
        db = self.site.db
        assert isinstance(db, Mortal)
        db.lives = db.commits + commits

    def die(self) -> None:
        self.site.close()

    def live_again(self, *, mortal: bool = False) -> None:
        self.site = self._begin(database(self.path, Mortal if mortal else Database))

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
            self.call_back(node)
            there = node.provision_state == order.ends_in and node.target_power_state is None
            return there and node.reservation is None

        wait_for(ended, f"{order.method} to end in {order.ends_in}")

    def call_back(self, node: Node) -> None:
        """What the agent does, where the flow waits for it."""
        if node.provision_state in states.WAIT_STATES and node.reservation is None:
            with contextlib.suppress(errors.NodeLocked):
                self.site.agent_calls(self.node)


def commits_of(
    tmp_path: Path, make: Callable[[], Script], orders: Sequence[Order], **conductor: Any
) -> int:
    """How many commits a life without a crash takes."""
    life = Life(tmp_path / "whole.sqlite", make(), orders, **conductor)
    db = life.site.db
    assert isinstance(db, Mortal)
    began = db.commits
    for order in orders:
        life.obey(order)
    life.die()
    return db.commits - began


def crash_and_recover(life: Life, *deaths: int) -> Life:
    """Live, dying after so many commits each time, and once more until the end."""
    left = list(life.orders)
    for number, lives in enumerate(deaths, start=1):
        life.dies_after(lives)
        with contextlib.suppress(Dead):
            if left and was_ordered(life):
                life.see(left[0])
                left.pop(0)
            while left:
                life.given = ""
                life.obey(left[0])
                left.pop(0)
        life.die()
        life.live_again(mortal=number < len(deaths))
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
    wait_for(lambda: site.runtime.node_locks.in_use == 0, "the gates to open")
    found = site.node(node)
    assert found.provision_state == life.orders[-1].ends_in
    assert found.reservation is None
    assert (found.target_provision_state, found.target_power_state) == (None, None)
    assert (found.last_error, found.maintenance, found.fault) == (None, False, None)
    assert {run["state"] for run in site.runs(node)} <= {"done", "failed", "skipped"}
    failed = {run["step"] for run in site.runs(node) if run["state"] == "failed"}
    assert failed <= {"broken"}
    assert set(life.acknowledged) <= life.told()


def try_every_commit(
    tmp_path: Path,
    make: Callable[[], Script] = script_of_life,
    orders: Sequence[Order] = LIFE,
    check: Callable[[Life], None] = assert_clean,
    **conductor: Any,
) -> None:
    whole = commits_of(tmp_path, make, orders, **conductor)
    for lives in some(range(whole + 1)):
        life = Life(tmp_path / f"{lives}.sqlite", make(), orders, **conductor)
        try:
            check(crash_and_recover(life, lives))
        except AssertionError as exc:
            exc.add_note(f"the process died after commit {lives} of {whole}")
            raise
        finally:
            life.die()


def test_a_life_goes_on_after_a_crash_at_any_commit(tmp_path: Path):
    try_every_commit(tmp_path)


def test_every_other_verb_goes_on_after_a_crash_at_any_commit(tmp_path: Path):
    try_every_commit(tmp_path, orders=OTHER_VERBS)


def test_a_life_goes_on_after_two_crashes(tmp_path: Path, lots: random.Random):
    """The second one comes while the first is being recovered from, or later."""
    for number in some(range(20)):
        deaths = lots.randrange(30), lots.randrange(12)
        life = Life(tmp_path / f"{number}.sqlite", script_of_life(), LIFE)
        try:
            assert_clean(crash_and_recover(life, *deaths))
        except AssertionError as exc:
            exc.add_note(f"the process died after {deaths} commits")
            raise
        finally:
            life.die()


@pytest.mark.parametrize(("step", "then"), [("write", "same"), ("write", "next"), ("boot", "next")])
def test_a_flow_that_waits_for_its_agent_goes_on_waiting(tmp_path: Path, step: str, then: Any):
    """The last step, too, may wait for a call that is its end."""

    def make() -> Script:
        script = script_of_life()
        said = WaitForCall(reason="the agent boots", then=then)
        script.when(step, lambda task: None if task.turn else said)
        script.when("prepare_cleaning", lambda task: None if task.turn else said)
        return script

    try_every_commit(tmp_path, make, LIFE[:3])


DEPLOY = LIFE[2:3]


def test_a_step_that_may_not_be_repeated_is_named(tmp_path: Path):
    """Cut off in the middle of it the deployment fails with a sentence; elsewhere it goes on."""
    seen: set[str | None] = set()

    def make() -> Script:
        script = Script()
        script.add("deploy", "before")
        script.add("deploy", "burn", resumable=False)
        script.add("deploy", "after")
        return script

    def check(life: Life) -> None:
        node = life.site.node(life.node)
        seen.add(node.provision_state)
        if node.provision_state == "deploy failed":
            assert "step deploy.burn was running since" in node.last_error
            assert "conductor host-a died" in node.last_error
            assert life.site.history(life.node)[-1]["event"] == node.last_error
        assert node.reservation is None
        assert {run["state"] for run in life.site.runs(life.node)} <= {"done", "failed", "skipped"}
        assert life.script.calls.count("burn") <= 1

    whole = commits_of(tmp_path, make, DEPLOY)
    for lives in range(whole + 1):
        life = Life(tmp_path / f"{lives}.sqlite", make(), DEPLOY)
        life.dies_after(lives)
        with contextlib.suppress(Dead):
            life.obey(DEPLOY[0])
        life.die()
        life.live_again()
        if not was_ordered(life):
            life.obey(DEPLOY[0])
        life.site.wait_for_state(life.node, "active", "deploy failed")
        check(life)
        life.die()
    assert seen == {"active", "deploy failed"}


FAILING = [
    (LIFE[0], "get_power_state", "enroll"),
    (LIFE[1], "erase", "clean failed"),
    (LIFE[1], "tear_down_cleaning", "clean failed"),
    (LIFE[2], "prepare", "deploy failed"),
    (LIFE[2], "boot", "deploy failed"),
    (LIFE[5], "tear_down", "error"),
]


@pytest.mark.parametrize(("order", "step", "ends_in"), FAILING, ids=str)
def test_a_failure_is_told_once_more_after_a_crash(
    tmp_path: Path, order: Order, step: str, ends_in: str
):
    def make() -> Script:
        script = script_of_life()
        script.when(step, failing(errors.BmcRefused(node="n", address="bmc", reason="no")))
        return script

    def check(life: Life) -> None:
        node = life.site.node(life.node)
        assert node.reservation is None
        assert "bmc" in node.last_error
        assert {run["state"] for run in life.site.runs(life.node)} <= {"done", "failed", "skipped"}
        assert set(life.acknowledged) <= life.told()

    fails = (order._replace(ends_in=ends_in),)
    try_every_commit(tmp_path, make, fails, check)


def test_a_small_pool_takes_up_many_flows(tmp_path: Path):
    """More flows were left than there are workers: they are taken up as workers are free."""
    script = Script()
    script.add(
        "deploy", "slow", lambda task: Again(after_s=0.01, reason="slow") if not task.turn else None
    )
    path = tmp_path / "site.sqlite"
    site = Site(path, db=database(path, Mortal), registry=script.registry(), workers_pool_size=30)
    nodes = [site.enrol(provision_state="available") for _ in range(30)]
    site.db.lives = site.db.commits + 60
    with contextlib.suppress(Dead):
        for node in nodes:
            site.deploy(node)
    left = [node for node in nodes if site.runs(node)]
    assert len(left) > 8
    site = site.restarted(workers_pool_size=3)
    for node in left:
        site.wait_for_state(node, "active", timeout_s=30)
    site.close()


ABORTED = [
    (LIFE[1], "prepare_cleaning", "clean wait", "clean failed", "tear_down_cleaning"),
    (LIFE[2], "prepare", "wait call-back", "deploy failed", "clean_up"),
    (OTHER_VERBS[3], "prepare_service", "service wait", "active", "tear_down_service"),
]


@pytest.mark.parametrize(
    ("order", "step", "waits_in", "ends_in", "clean_up"), ABORTED, ids=lambda each: str(each)[:40]
)
def test_an_abort_cleans_up_after_a_crash_at_any_commit(
    tmp_path: Path, order: Order, step: str, waits_in: str, ends_in: str, clean_up: str
):
    """What the flow has prepared is taken away, and its traces on the node with it."""
    abort = Order("do_provisioning_action", ("abort", {}), waits_in, ends_in)
    for lives in range(5):
        script = script_of_life()
        script.when(step, lambda _task: WaitForCall(reason="the agent boots"))
        life = Life(tmp_path / f"{lives}.sqlite", script, [order])
        life.site.order(order.method, life.node, *order.args)
        life.site.wait_for_state(life.node, waits_in)
        life.site.set(life.node, driver_internal_info='{"agent_url": "http://agent"}')
        life.dies_after(lives)
        with contextlib.suppress(Dead):
            life.obey(abort)
        life.die()
        life.live_again()
        if not was_ordered(life):
            life.obey(abort)
        life.see(abort)
        node = life.site.node(life.node)
        assert clean_up in life.script.calls, f"the process died after commit {lives}"
        assert "agent_url" not in node.driver_internal_info
        assert f"aborted on request in {waits_in}" in node.last_error
        assert {run["state"] for run in life.site.runs(life.node)} <= {"done", "failed", "skipped"}
        life.die()


def test_an_abort_leaves_a_node_alone_that_another_order_has_got(tmp_path: Path):
    """The conductor died over the clean-up, and the node was deployed before it was taken up."""
    script = script_of_life()
    script.when("prepare_cleaning", lambda _task: WaitForCall(reason="the agent boots"))
    life = Life(tmp_path / "site.sqlite", script, [LIFE[1]])
    life.site.order(*LIFE[1][:1], life.node, *LIFE[1].args)
    life.site.wait_for_state(life.node, "clean wait")
    life.dies_after(2)
    with contextlib.suppress(Dead):
        life.obey(Order("do_provisioning_action", ("abort", {}), "clean wait", "clean failed"))
    life.die()
    script.calls.clear()
    rows = database(life.path, Database)
    active = sa.update(NODES).values(provision_state="active", last_error=None)
    rows.transact(lambda conn: conn.execute(active))
    rows.close()
    life.live_again()
    wait_for(
        lambda: (
            {run["state"] for run in life.site.runs(life.node)} <= {"done", "failed", "skipped"}
        ),
        "the flow of the abort to end",
    )
    assert "tear_down_cleaning" not in script.calls
    node = life.site.node(life.node)
    assert (node.provision_state, node.last_error, node.reservation) == ("active", None, None)
    life.die()


def test_a_deletion_that_stops_a_console_is_whole_or_nothing_after_a_crash(tmp_path: Path):
    """Nobody takes it up: either it was done and told, or the node is there to be deleted again."""
    for lives in range(4):
        life = Life(tmp_path / f"{lives}.sqlite", script_of_life(), LIFE)
        life.site.set(life.node, console_enabled=True)
        before = len(life.site.events(life.node))
        life.dies_after(lives)
        with contextlib.suppress(Dead):
            life.site.order("destroy_node", life.node)
        life.die()
        life.live_again()
        told = [row["action"] for row in life.site.events(life.node)[before:]]
        told = [action for action in told if action != "console_restore"]  # of the next life
        gone = not life.site.rows(NODES, uuid=life.node)
        assert told == (["delete", "console_set", "console_set", "delete"] if gone else [])
        assert gone == (lives == 3)
        if not gone:
            found = life.site.node(life.node)
            assert (found.console_enabled, found.reservation) == (True, None)
            life.site.order("destroy_node", life.node)
        life.die()


def forget_and_die(life: Life, lives: int) -> bool:
    """Order the removal in a process that dies after so many commits; was it accepted?"""
    db = life.site.db
    assert isinstance(db, Mortal)
    accepted = False
    life.dies_after(lives)
    with contextlib.suppress(Dead):
        life.site.order("forget_node", life.node, False)
        accepted = True
        wait_for(lambda: db.died.is_set() or not life.site.rows(NODES), "the end of either")
    life.die()
    return accepted


@pytest.mark.parametrize("lives", range(6))
@pytest.mark.parametrize("state", ["manageable", "clean wait"])
def test_an_accepted_removal_outlives_a_crash_at_each_commit(
    tmp_path: Path, state: str, lives: int
):
    """Its node goes in the next life; a removal that was not accepted leaves the node's work."""
    script = Script()
    script.add("clean", "erase", in_turn(WaitForCall(reason="erasing")))
    life = Life(tmp_path / "site.sqlite", script, LIFE)
    life.site.set(life.node, console_enabled=True, provision_state="manageable")
    if state == "clean wait":
        life.site.order("do_provisioning_action", life.node, "provide", {})
        life.site.wait_for_state(life.node, state)
    accepted = forget_and_die(life, lives)
    life.live_again()
    if accepted:
        wait_for(lambda: not life.site.rows(NODES), "the node to be forgotten")
    else:
        wait_for(lambda: life.site.is_free(life.node), "the node to be free")
        assert life.site.node(life.node).provision_state == state
    assert accepted or lives < 3
    life.die()
