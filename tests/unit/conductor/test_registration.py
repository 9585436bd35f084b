"""One process lives under a name, each life has an incarnation, and the end frees what is held."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from bloomery import errors
from bloomery.conductor import process_identity
from bloomery.conductor.process_identity import ProcessIdentity
from bloomery.conductor.registration import STILL_FOR_BEATS, Registration
from bloomery.db import conductors, locks
from bloomery.outcome import Again
from bloomery.rpc import ring
from tests.kit.clock import HandClock
from tests.kit.machines.scripted import Script, in_turn
from tests.kit.probes import bmc_probes, life_probes
from tests.kit.servers import peers
from tests.kit.servers.site import HOST, Site
from tests.kit.waiting import wait_for

MakeSite = Callable[..., Site]
NAME = "host-b"


@pytest.mark.parametrize(
    "probe",
    [
        life_probes.a_start_frees_its_own_name_only,
        life_probes.who_was_declared_dead_begins_anew,
        life_probes.who_stirs_is_not_buried,
        lambda site: bmc_probes.nothing_is_written_to_a_node_that_was_taken(
            site, site.enrol(provision_state="available")
        ),
    ],
)
def test_probe(site: Site, probe: Callable[[Site], None]) -> None:
    probe(site)


# ------------------------------------------------------------------------- who has the name


class Newcomer:
    """Registers ``host-b`` while another process lives, or not, under that name."""

    def __init__(self, site: Site, at_each_look: Callable[[], object] = lambda: None) -> None:
        self.clock = HandClock()
        self.runtime = site.another_host(NAME)
        self.at_each_look = at_each_look
        self.registration = Registration(self.runtime, clock=self.clock, pause=self._pause)

    def _pause(self, pause_s: float) -> None:
        self.clock.turn(pause_s)
        self.at_each_look()

    def begin(self) -> None:
        self.registration.begin(alone=False)


def with_ring(newcomer: Newcomer, **default: Any) -> Newcomer:
    conf = newcomer.runtime.conf
    changed = dataclasses.replace(conf, default=dataclasses.replace(conf.default, **default))
    object.__setattr__(newcomer.runtime, "conf", changed)
    return newcomer


def test_another_ring_beside_living_conductors_is_refused(site: Site) -> None:
    newcomer = with_ring(
        Newcomer(site, lambda: peers.beat(site.db, HOST)), hash_partition_exponent=6
    )
    with pytest.raises(errors.CannotStart) as refused:
        newcomer.begin()
    sentence = str(refused.value)
    assert f"conductor {NAME} beside {HOST}: [DEFAULT]hash_partition_exponent is 6 here" in sentence
    assert "and 5 for the conductors of this site" in sentence
    assert "stop all conductors" in sentence
    with pytest.raises(errors.ConductorNotFound):
        peers.look(site.db, NAME)


def test_another_ring_after_the_dead_becomes_that_of_the_site(site: Site) -> None:
    """They were killed, and nobody is left to fence_out them."""
    site.service._heart.stop()
    newcomer = with_ring(Newcomer(site), hash_ring_algorithm="sha256")
    began = newcomer.clock()
    newcomer.begin()
    assert peers.look(site.db, NAME).online
    waited_s = STILL_FOR_BEATS * site.runtime.conf.conductor.heartbeat_interval
    assert newcomer.clock() - began == pytest.approx(waited_s)
    with site.db.read() as conn:
        assert ring.option_differences(conn, newcomer.runtime.conf) == []
        assert "is md5 here and sha256" in ring.option_differences(conn, site.runtime.conf)[0]


def test_other_times_of_the_ring_are_warned_of(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    newcomer = with_ring(Newcomer(site), hash_ring_reset_interval=30)
    newcomer.begin()
    assert "[DEFAULT]hash_ring_reset_interval is 30 here and 15 for the" in caplog.text
    assert peers.look(site.db, NAME).online


def test_a_name_that_was_never_used_is_taken_at_once(site: Site) -> None:
    newcomer = Newcomer(site)
    began = newcomer.clock()
    newcomer.begin()
    row = peers.look(site.db, NAME)
    assert (row.online, row.incarnation) == (True, newcomer.runtime.lease.incarnation)
    assert row.started_at is not None
    assert newcomer.clock() == began


def test_a_second_living_process_of_a_name_is_refused(site: Site) -> None:
    incarnation = peers.join(site.db, NAME)
    newcomer = Newcomer(site, lambda: peers.beat(site.db, NAME))
    with pytest.raises(errors.ConductorLives) as refused:
        newcomer.begin()
    said = str(refused.value)
    assert f"named {NAME}: process 7 on elsewhere lives under that name since 20" in said
    assert "its heartbeat changed while this conductor waited" in said
    assert "[DEFAULT]host" in said
    assert peers.look(site.db, NAME).incarnation == incarnation


def test_a_name_whose_counter_stands_still_is_taken_over(site: Site) -> None:
    incarnation = peers.join(site.db, NAME)
    newcomer = Newcomer(site)
    began = newcomer.clock()
    newcomer.begin()
    assert peers.look(site.db, NAME).incarnation not in (None, incarnation)
    interval_s = site.runtime.conf.conductor.heartbeat_interval
    assert newcomer.clock() - began >= STILL_FOR_BEATS * interval_s
    assert not site.db.transact(lambda conn: conductors.beat(conn, NAME, incarnation))


def test_a_name_that_is_signed_off_meanwhile_is_taken_at_once(site: Site) -> None:
    peers.join(site.db, NAME)
    newcomer = Newcomer(site, lambda: peers.leave(site.db, NAME))
    newcomer.begin()
    assert peers.look(site.db, NAME).online


def test_of_two_newcomers_one_gets_the_name(site: Site) -> None:
    """Both have seen the former life stand still; the second to write finds another one."""
    peers.join(site.db, NAME)
    both = [Newcomer(site).registration for _ in range(2)]
    formers = [each._former() for each in both]
    first, second = (
        each._take(former, alone=False) for each, former in zip(both, formers, strict=True)
    )
    assert peers.look(site.db, NAME).incarnation == first is not None
    assert second is None


def test_a_process_that_has_ended_is_waited_for_by_nobody(site: Site) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        mine = process_identity.ours()
        ticks = process_identity._ticks(child.pid)
        identity = ProcessIdentity(
            pid=child.pid, machine=mine.machine, boot=mine.boot, namespace=mine.namespace,
            ticks=ticks,
        )  # fmt: skip
        assert not identity.has_ended()
        child.communicate(b"\n")
    assert identity.has_ended()
    assert process_identity.decoded(identity.encoded()) == identity


def test_a_number_of_another_machine_says_nothing() -> None:
    assert not peers.ELSEWHERE.has_ended()
    assert process_identity.decoded("") is None
    assert process_identity.decoded('{"pid": 1, "unheard": 2}') is None


def test_whose_name_another_process_has_taken_ends(site: Site) -> None:
    told: list[str] = []
    site.service._on_superseded = lambda: told.append("over")
    seen = peers.look(site.db, HOST)
    row = {"hostname": HOST, "group": "", "drivers": [], "interfaces": []}
    other = site.db.transact(lambda conn: conductors.register(conn, former=seen, **row))
    site.service._beat()
    assert told == ["over"]
    with pytest.raises(errors.LockLost):
        site.runtime.lease.require("node", HOST)
    assert peers.look(site.db, HOST).incarnation == other


def test_an_operator_who_wants_it_to_drain_is_heard_once(site: Site) -> None:
    told: list[str] = []
    site.service._on_drain = lambda: told.append("drain")
    assert site.db.transact(lambda conn: conductors.order_drain(conn, HOST))
    for _ in range(2):
        site.service._beat()
    assert told == ["drain"]
    peers.leave(site.db, HOST)
    assert not site.db.transact(lambda conn: conductors.order_drain(conn, HOST))


# -------------------------------------------------------------------------------- the end


def slow_site(make_site: MakeSite, after_s: float) -> tuple[Site, str]:
    """A site with a deployment that pauses, and holds its node meanwhile."""
    script = Script()
    script.add("deploy", "slow", in_turn(Again(after_s=after_s, reason="slow"), None))
    site = make_site(registry=script.registry())
    node = site.enrol(provision_state="available")
    site.deploy(node)
    wait_for(lambda: any(run["state"] == "again" for run in site.runs(node)), "the pause")
    return site, node


def test_a_stop_that_runs_out_of_time_frees_what_is_left(make_site: MakeSite) -> None:
    site, node = slow_site(make_site, after_s=600)
    generation = site.node(node).lock_generation
    site.service.stop(grace_s=0)
    left = site.node(node)
    assert (left.reservation, left.lock_generation) == (None, generation + 1)
    assert {run["conductor"] for run in site.runs(node) if run["state"] == "again"} == {None}
    row = peers.look(site.db, HOST)
    assert (row.online, row.incarnation, row.fenced_out_at) == (False, None, None)


def test_who_ends_its_work_is_off_line_and_beats(make_site: MakeSite) -> None:
    site, node = slow_site(make_site, after_s=0.3)
    site.service.begin_stop()
    ending = peers.look(site.db, HOST)
    assert not ending.online
    site.service._beat()
    row = peers.look(site.db, HOST)
    assert (row.online, row.incarnation) == (False, ending.incarnation)
    assert row.heartbeat > ending.heartbeat
    site.service.stop()
    assert site.node(node).provision_state == "active"


def test_who_restarts_stays_on_line_for_the_next(make_site: MakeSite) -> None:
    site = make_site()
    site.service.stop(grace_s=0, stays_online=True)
    row = peers.look(site.db, HOST)
    assert (row.online, row.incarnation) == (True, None)
    again = site.restarted()
    assert peers.look(site.db, HOST).incarnation is not None
    again.close()


def test_the_heir_stands_in_the_rows(make_site: MakeSite) -> None:
    site, node = slow_site(make_site, after_s=600)
    site.service.stop(grace_s=0)
    heir = Site(site.path, host="heir", registry=site.runtime.registry)
    try:
        heir.wait_for_state(node, "active")
        by = {run["step"]: run["conductor"] for run in heir.runs(node)}
        assert by["slow"] == "heir"
    finally:
        heir.close()


def test_a_reservation_of_ours_without_a_task_is_freed_at_the_second_look(site: Site) -> None:
    from bloomery.conductor.periodics.leases import Strays

    stray, busy = (site.enrol(provision_state="available") for _ in range(2))
    site.acquire(stray)
    site.runtime.node_locks.leave(stray)  # the task is gone, its release never came
    with site.acquire(busy):
        strays = Strays(site.runtime)
        strays.run()
        assert site.node(stray).reservation == HOST, "it may be on its way"
        strays.run()
        assert site.node(stray).reservation is None
        assert site.node(busy).reservation == HOST


def test_a_reservation_that_changes_hands_is_left_alone(site: Site) -> None:
    from bloomery.conductor.periodics.leases import Strays

    node, strays = site.enrol(provision_state="available"), Strays(site.runtime)
    for _ in range(3):
        site.acquire(node)
        site.runtime.node_locks.leave(node)
        strays.run()
        assert site.node(node).reservation == HOST
        site.set(node, reservation=None)


def test_a_lease_that_runs_out_during_the_look_at_the_row_forbids_the_order(
    site: Site, monkeypatch: Any
) -> None:
    now = [site.runtime.lease.now()]
    site.runtime.lease.now = lambda: now[0]
    plain = locks.require_held

    def slowly(*args: Any) -> None:
        plain(*args)
        now[0] += 50

    with site.acquire(site.enrol(provision_state="available")) as task:
        now[0] += 2
        monkeypatch.setattr(locks, "require_held", slowly)
        with pytest.raises(errors.LockLost):
            task.assert_lease()


def test_a_lease_counts_from_before_its_sign_of_life(site: Site, monkeypatch: Any) -> None:
    """A pause between the commit and its reply: peers count from the commit."""
    now = [site.runtime.lease.now()]
    site.runtime.lease.now = lambda: now[0]
    plain = conductors.beat

    def slowly(*args: Any, **more: Any) -> bool:
        now[0] += 50
        return plain(*args, **more)

    monkeypatch.setattr(conductors, "beat", slowly)
    site.service._beat()
    with pytest.raises(errors.LockLost):
        site.runtime.lease.require("node", HOST)
