"""Each protection is switched off in turn, and the probe that should notice goes red.

MUTANTS is the table: what is switched off, how, and the probe, which the suites use, too.  Each
probe is first seen to pass with the protection on: a probe that is always red proves nothing.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa

from bloomery.conductor import allocator, recovery, row_updates, runner, task_manager
from bloomery.conductor.lease import Lease
from bloomery.conductor.manager import ConductorManager
from bloomery.conductor.node_lock import NodeLocks, Places
from bloomery.conductor.periodics import timeouts
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.conductor.task_manager import TaskManager
from bloomery.db import conductors, locks, nodes, steps
from bloomery.db.engine import Database
from bloomery.db.tables import CONDUCTORS, NODES
from bloomery.drivers.bmc.gateway import BmcCall, Gateway
from bloomery.drivers.bmc.state import Breaker
from bloomery.state_dir import StateDir
from tests.kit.probes import bmc_probes, crash_probes, life_probes, probes
from tests.kit.servers.site import Site

Patch = pytest.MonkeyPatch
_T = NODES.c


# ------------------------------------------------------------------------- protections, off


def node_gate_off(patch: Patch) -> None:
    """Everybody is let in at once; who meets a reservation polls."""
    patch.setattr(NodeLocks, "enter", lambda *_args, **_more: True)
    patch.setattr(NodeLocks, "leave", lambda *_args: None)


def places_off(patch: Patch) -> None:
    """As many threads of the API as like may wait."""
    patch.setattr(Places, "take", lambda _self: True)
    patch.setattr(Places, "give_back", lambda _self: None)


def reservation_off(patch: Patch) -> None:
    """The UPDATE that reserves a node does not ask whether it is free."""
    anyhow = sa.update(NODES).where(_T.uuid == sa.bindparam("ident")).values(
        reservation=sa.bindparam("holder"), reserved_for=sa.bindparam("purpose"),
        reserved_at=sa.bindparam("at"), lock_generation=_T.lock_generation + 1,
    )  # fmt: skip
    patch.setattr(locks, "_RESERVE", anyhow)
    patch.setattr(locks, "_OF_A_LIFE", anyhow)


def comparison_off(patch: Patch) -> None:
    """A late reservation does not ask whether the node is as it was read."""
    patch.setattr(nodes, "is_same", lambda _row, _other: True)


def fence_off(patch: Patch) -> None:
    """The guard compares the holder's name, and no generation."""
    task = sa.update(NODES).where(*locks._HELD[:2])
    patch.setattr(locks, "_proof", _proof_without_generation)
    patch.setattr(locks, "_RELEASE", task.values(locks.FREE))
    patch.setattr(locks, "_CHECK", task.values(lock_generation=_T.lock_generation))
    same = _T.driver_internal_info == sa.bindparam("guard_info")
    patch.setattr(locks, "_UNDER_LOCK", task)
    patch.setattr(locks, "_WITH_SAME_INFO", task.where(same))


def _proof_without_generation(guard: locks.Guard) -> dict[str, Any]:
    return {"guard_node": guard.node_uuid, "guard_holder": guard.holder}


def guard_off(patch: Patch) -> None:
    """Whoever writes under a lock just writes."""
    patch.setattr(locks, "_require", lambda rowcount, guard: None)
    patch.setattr(
        locks, "update_guarded",
        lambda conn, guard, values, **_: nodes.update(
            conn, guard.node_uuid, _without_time(values)
        ),
    )  # fmt: skip


def _without_time(values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != "updated_at"}


def row_lock_off(patch: Patch) -> None:
    """A short operation reads the row before its transaction, as Ironic does."""

    def change(context: Any, uuid: str, work: Any) -> Any:
        with context.runtime.db.read() as conn:
            node = nodes.get(conn, uuid)
        return context.runtime.db.transact(lambda conn: work(conn, node))

    patch.setattr(row_updates, "change", change)


def busy_check_off(patch: Patch) -> None:
    """A short operation does not ask whether somebody holds the node."""

    def change(context: Any, uuid: str, work: Any) -> Any:
        return context.runtime.db.transact(
            lambda conn: work(conn, nodes.get_for_update(conn, uuid)),
        )

    patch.setattr(row_updates, "change", change)


def void_at_start_off(patch: Patch) -> None:
    """A conductor that starts leaves the reservations of its former life."""
    patch.setattr(recovery, "void_reservations", lambda runtime, alone: 0)


def lease_off(patch: Patch) -> None:
    """A conductor that died keeps its nodes."""
    patch.setattr(conductors, "list_all", lambda conn: [])


def revocation_off(patch: Patch) -> None:
    """A conductor whose grace is over keeps its lease."""
    patch.setattr(Lease, "revoke", lambda self: None)


def database_lock_off(patch: Patch) -> None:
    """The lock file alone keeps a second process away."""
    patch.setattr(StateDir, "_lock_database", lambda self, path: None)


def handover_off(patch: Patch) -> None:
    """Who stops keeps the flows that pause, although a peer would go on with them."""
    patch.setattr(ConductorRuntime, "has_successor", lambda _self, _node: False)


def void_own_only_off(patch: Patch) -> None:
    """A conductor that starts frees everybody's nodes."""
    patch.setattr(
        recovery, "void_reservations",
        lambda runtime, alone: len(runtime.db.transact(locks.void_all)),
    )  # fmt: skip


def incarnation_off(patch: Patch) -> None:
    """Who was declared dead beats on under its name, as if nothing had been."""

    def beat(conn: sa.Connection, hostname: str, _incarnation: Any, *, online: bool = True) -> bool:
        here = CONDUCTORS.c.hostname == hostname
        values = {"heartbeat": CONDUCTORS.c.heartbeat + 1, "online": online}
        return bool(conn.execute(sa.update(CONDUCTORS).where(here).values(values)).rowcount)

    patch.setattr(conductors, "beat", beat)
    patch.setattr(locks, "_OF_A_LIFE", locks._RESERVE)


def look_before_a_write_off(patch: Patch) -> None:
    """The lease alone says whether a BMC may be told something."""
    patch.setattr(task_manager, "_CONFIRMED_FOR_S", math.inf)


def counter_of_the_buried_off(patch: Patch) -> None:
    """A conductor is declared dead although it has stirred since it was seen."""

    def fence_out(conn: sa.Connection, seen: Any) -> bool:
        here = CONDUCTORS.c.hostname == seen.hostname
        values = {"online": False, "incarnation": None}
        return bool(conn.execute(sa.update(CONDUCTORS).where(here).values(values)).rowcount)

    patch.setattr(conductors, "fence_out", fence_out)


def letting_go_off(patch: Patch) -> None:
    """A conductor that stops leaves the rows of its flows as one that dies."""
    patch.setattr(steps, "release", lambda conn, conductor: None)


def own_clock_off(patch: Patch) -> None:
    """A wait ends when the clock on the wall says so."""

    def overdue(self: timeouts.Watch, kind: str, waits: Sequence[timeouts.Wait]) -> list[str]:
        return [wait.node for wait in waits if wait.ends < self._wall()]

    patch.setattr(timeouts.Watch, "overdue", overdue)


def journal_off(patch: Patch) -> None:
    """Flows leave no rows."""
    patch.setattr(steps, "insert", lambda conn, encoded: None)


def adoption_off(patch: Patch) -> None:
    """Nobody takes up what was left."""
    patch.setattr(recovery, "adopt_all", lambda runtime, weight=0: 0)


def adoption_of_allocations_off(patch: Patch) -> None:
    """Nobody looks for the nodes of allocations that were left."""
    patch.setattr(allocator, "adopt", lambda _runtime: 0)


def transaction_off(patch: Patch) -> None:
    """Each statement commits by itself: what was read may be old by the time of the write."""

    def transact(self: Database, work: Callable[[sa.Connection], Any]) -> Any:
        with self.read() as conn:
            return work(conn)

    patch.setattr(Database, "transact", transact)


def breaker_off(patch: Patch) -> None:
    """A BMC that is silent is asked each time."""
    patch.setattr(Breaker, "admit", lambda self, **_more: 0.0)


def login_pause_off(patch: Patch) -> None:
    """A login that was refused is tried each time."""
    patch.setattr(Gateway, "login", lambda self, *_args, **_more: contextlib.nullcontext())


def outage_budget_off(patch: Patch) -> None:
    """A BMC that is silent fails the step."""
    patch.setattr(runner, "_postpone", lambda flow, run, exc: False)


def lease_check_off(patch: Patch) -> None:
    """Nobody asks whether the lease is ours still before a BMC is told something."""
    patch.setattr(TaskManager, "assert_lease", lambda self: None)


def lease_check_in_calls_off(patch: Patch) -> None:
    """The lease is looked at once for a call, however long that lasts."""
    patch.setattr(BmcCall, "assert_lease", lambda self: None)


# --------------------------------------------------------------------------------- the probes


def _available(site: Site) -> str:
    return site.enrol(provision_state="available")


def order_of_waiters(site: Site) -> None:
    with ThreadPoolExecutor(8) as pool:
        probes.waiters_are_served_in_order(site, _available(site), pool)


def row_excludes(site: Site) -> None:
    probes.reservation_excludes_without_gates(site, _available(site))


def change_before_an_order(site: Site) -> None:
    probes.an_order_loses_no_change_of_another_process(site, _available(site))


def voided_holder_saves(site: Site) -> None:
    probes.a_holder_that_was_voided_writes_nothing(site, _available(site), "save")


def voided_holder_writes_history(site: Site) -> None:
    probes.a_holder_that_was_voided_writes_nothing(site, _available(site), "journal")


def voided_holder_moves(site: Site) -> None:
    probes.a_holder_that_was_voided_writes_nothing(site, _available(site), "process_event")


def patches_are_kept(site: Site) -> None:
    site.patience_s = 20
    probes.no_acknowledged_patch_is_lost(site, _available(site), clients=16, rounds=8)


def patches_of_many_processes_are_kept(site: Site) -> None:
    manager = ConductorManager(probes.without_gates(site.runtime))
    node = _available(site)
    probes.no_acknowledged_patch_is_lost(site, node, clients=16, rounds=8, manager=manager)


def held_node_is_not_patched(site: Site) -> None:
    probes.a_held_node_is_not_patched(site, _available(site))


def crash_in_a_step(site: Site) -> None:
    crash_probes.a_deployment_goes_on_after_a_crash(site.path.with_name("crash.sqlite"))


def crash_of_an_allocator(site: Site) -> None:
    crash_probes.an_allocation_gets_its_node_after_a_crash(site.path.with_name("crash.sqlite"))


def crash_of_a_holder(site: Site) -> None:
    crash_probes.no_reservation_outlives_its_process(site.path.with_name("crash.sqlite"))


def death_of_a_peer(site: Site) -> None:
    crash_probes.a_dead_peer_loses_its_nodes(site)


def waiting_threads_are_bounded(_site: Site) -> None:
    probes.no_more_than_so_many_threads_wait()


def stop_in_a_pause(site: Site) -> None:
    life_probes.who_stops_leaves_a_flow_that_pauses(site.path.with_name("two.sqlite"))


def start_beside_another(site: Site) -> None:
    life_probes.a_start_frees_its_own_name_only(site)


def return_of_the_buried(site: Site) -> None:
    life_probes.who_was_declared_dead_begins_anew(site)


def burial_of_one_that_stirs(site: Site) -> None:
    life_probes.who_stirs_is_not_buried(site)


def write_to_a_node_that_was_taken(site: Site) -> None:
    bmc_probes.nothing_is_written_to_a_node_that_was_taken(site, _available(site))


def end_of_the_grace(site: Site) -> None:
    crash_probes.a_conductor_that_has_stopped_writes_to_no_bmc(site.path.with_name("stop.sqlite"))


def second_state_dir(site: Site) -> None:
    crash_probes.a_second_state_dir_is_refused_the_database(site.path.with_name("dirs"))


def graceful_stops(site: Site) -> None:
    crash_probes.a_graceful_stop_counts_for_nothing(site.path.with_name("stops.sqlite"))


def wall_clock(site: Site) -> None:
    crash_probes.a_wall_clock_that_is_set_back_holds_no_wait(site)


def silent_bmc(_site: Site) -> None:
    bmc_probes.a_silent_bmc_is_left_alone()


def wrong_password(_site: Site) -> None:
    bmc_probes.a_wrong_password_is_shown_once()


def outage(site: Site) -> None:
    bmc_probes.a_deployment_bears_a_silent_bmc(site)


def write_without_lease(site: Site) -> None:
    bmc_probes.nothing_is_written_without_a_lease(site, _available(site))


def write_of_a_long_call(site: Site) -> None:
    bmc_probes.a_lease_that_ends_within_a_call_ends_its_writes(site, _available(site))


class Mutant(NamedTuple):
    off: Callable[[Patch], None]
    probe: Callable[[Site], None]


MUTANTS = (
    Mutant(node_gate_off, order_of_waiters),
    Mutant(places_off, waiting_threads_are_bounded),
    Mutant(reservation_off, row_excludes),
    Mutant(comparison_off, change_before_an_order),
    Mutant(fence_off, voided_holder_saves),
    Mutant(fence_off, voided_holder_writes_history),
    Mutant(fence_off, voided_holder_moves),
    Mutant(guard_off, voided_holder_saves),
    Mutant(guard_off, voided_holder_writes_history),
    Mutant(guard_off, voided_holder_moves),
    Mutant(row_lock_off, patches_are_kept),
    Mutant(busy_check_off, held_node_is_not_patched),
    Mutant(transaction_off, patches_of_many_processes_are_kept),
    Mutant(void_at_start_off, crash_of_a_holder),
    Mutant(void_own_only_off, start_beside_another),
    Mutant(incarnation_off, return_of_the_buried),
    Mutant(handover_off, stop_in_a_pause),
    Mutant(counter_of_the_buried_off, burial_of_one_that_stirs),
    Mutant(look_before_a_write_off, write_to_a_node_that_was_taken),
    Mutant(lease_off, death_of_a_peer),
    Mutant(revocation_off, end_of_the_grace),
    Mutant(database_lock_off, second_state_dir),
    Mutant(letting_go_off, graceful_stops),
    Mutant(own_clock_off, wall_clock),
    Mutant(journal_off, crash_in_a_step),
    Mutant(adoption_off, crash_in_a_step),
    Mutant(adoption_of_allocations_off, crash_of_an_allocator),
    Mutant(breaker_off, silent_bmc),
    Mutant(login_pause_off, wrong_password),
    Mutant(outage_budget_off, outage),
    Mutant(lease_check_off, write_without_lease),
    Mutant(lease_check_in_calls_off, write_of_a_long_call),
)
PROBES = sorted({mutant.probe for mutant in MUTANTS}, key=lambda probe: probe.__name__)


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.__name__)
def test_a_probe_is_green_while_everything_is_on(site: Site, probe: Callable[[Site], None]):
    probe(site)


@pytest.mark.parametrize(
    "mutant", MUTANTS, ids=lambda mutant: f"{mutant.off.__name__}-{mutant.probe.__name__}"
)
def test_a_protection_that_is_off_is_noticed(make_site: Any, tmp_path: Path, mutant: Mutant):
    site = make_site()
    with pytest.MonkeyPatch.context() as patch:
        mutant.off(patch)
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            mutant.probe(site)
