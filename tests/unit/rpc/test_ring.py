"""The ring: who serves which node, and when that is looked up again."""

from __future__ import annotations

import hashlib
import itertools
import uuid as uuids

import pytest
from tooz.hashring import HashRing

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.conductor import Conductor
from bloomery.conf.default import Default
from bloomery.db import conductors
from bloomery.db.engine import Meter
from bloomery.model.conductor import EnabledInterface
from bloomery.model.node import RING_BITS, RingKey, RingShare
from bloomery.rpc import ring as ring_module
from bloomery.rpc.ring import Ring
from tests.kit.clock import HandClock
from tests.kit.servers import databases, peers
from tests.kit.waiting import wait_for

NODES = [str(uuids.UUID(int=n)) for n in range(300)]


@pytest.fixture
def db(tmp_path):
    db = databases.open_at(tmp_path / "ring.sqlite")
    yield db
    db.close()


def register(db, host, group="", drivers=("fake-hardware",), interfaces=()):
    db.transact(
        lambda conn: conductors.register(
            conn,
            hostname=host,
            group=group,
            drivers=list(drivers),
            interfaces=list(interfaces),
        ),
    )


def host(ring, uuid=NODES[0], group="", driver="fake-hardware"):
    return ring.host_of_node(driver=driver, group=group, uuid=uuid)


def test_nobody_on_line_is_a_temporary_failure(db):
    with pytest.raises(errors.TemporaryFailure):
        host(Ring(db))


def test_nobody_for_the_driver_or_group_is_told_what_is_served(db):
    register(db, "a")
    for more in ({"driver": "redfish"}, {"driver": "no-such"}, {"group": "east"}):
        with pytest.raises(errors.NoValidHost, match="fake-hardware"):
            host(Ring(db), **more)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "redfish",
            r"'redfish' is installed, but no .* name it in \[DEFAULT\]enabled_hardware_types",
        ),
        ("no-such", "'no-such' is unknown; .* served: fake-hardware; installed, .*: idrac, ipmi"),
        ("n" * 500, r"'n{100}\.\.\.' is unknown"),
    ],
)
def test_an_unknown_driver_is_told_apart_from_one_that_is_not_enabled(db, name, sentence):
    register(db, "a")
    with pytest.raises(errors.NoValidHost, match=sentence):
        host(Ring(db), driver=name)
    with pytest.raises(errors.DriverNotFound, match=sentence):
        Ring(db).get_driver(name)


def test_a_group_without_the_driver_is_told_which_groups_have_it(db):
    register(db, "a", group="west")
    with pytest.raises(errors.NoValidHost, match="group 'east'; it is served in 'west'"):
        host(Ring(db), group="east")


def test_nodes_are_shared_out(db):
    for name in "abc":
        register(db, name)
    ring = Ring(db)
    found = [host(ring, node) for node in NODES]
    assert {name: found.count(name) > 30 for name in "abc"} == dict.fromkeys("abc", True)
    assert found == [host(Ring(db), node) for node in NODES]


def test_death_moves_only_the_nodes_of_the_dead(db):
    for name in "abc":
        register(db, name)
    ring = Ring(db)
    before = {node: host(ring, node) for node in NODES}
    peers.leave(db, "b")
    ring.forget()
    after = {node: host(ring, node) for node in NODES}
    assert {node for node in NODES if before[node] != after[node]} == {
        node for node in NODES if before[node] == "b"
    }


def test_groups_are_apart(db):
    register(db, "a")
    register(db, "b", group="east")
    ring = Ring(db)
    assert {host(ring, node, group="east") for node in NODES} == {"b"}
    assert {host(ring, node) for node in NODES} == {"a"}


def test_one_look_is_good_for_fifteen_seconds(db):
    register(db, "a")
    now = [0.0]
    ring = Ring(db, clock=lambda: now[0])
    meter = Meter(db)
    for now[0] in (0.0, 5.0, 15.0):
        host(ring)
    assert len(meter.statements) == 2
    now[0] = 15.1
    host(ring)
    assert len(meter.statements) == 4


def test_failed_look_up_looks_again(db):
    register(db, "a")
    ring = Ring(db)
    host(ring)
    register(db, "b", drivers=["redfish"])
    assert host(ring, driver="redfish") == "b"
    register(db, "c", drivers=["ipmi"])
    assert ring.hosts_of_driver("ipmi") == ("c",)


def test_unknown_driver_is_not_found(db):
    register(db, "a")
    with pytest.raises(errors.DriverNotFound, match="redfish"):
        Ring(db).hosts_of_driver("redfish")


def test_drivers_tell_their_interfaces_over_all_hosts(db):
    def one(name, default):
        return EnabledInterface(
            hardware_type="fake-hardware", kind="power", name=name, default=default
        )

    register(db, "a", interfaces=[one("fake", True), one("other", False)])
    register(db, "b", interfaces=[one("fake", True), one("third", False)])
    found = Ring(db).list_drivers()
    assert [facts.name for facts in found] == ["fake-hardware"]
    assert found[0].hosts == ("a", "b")
    assert found[0].enabled == {"power": ("fake", "other", "third")}
    assert found[0].defaults == {"power": "fake"}


def test_list_of_nodes_is_cheap_where_there_is_one_host(db):
    register(db, "a")
    ring = Ring(db)
    meter = Meter(db)
    assert {ring.find_host(driver="fake-hardware", group="", uuid=node) for node in NODES} == {"a"}
    assert len(meter.statements) == 2
    assert "_ring" not in vars(ring._current().hosts["", "fake-hardware"]), "no point was hashed"


def test_only_those_on_line_are_alive(db):
    register(db, "a")
    register(db, "b")
    peers.leave(db, "a")
    assert [each.hostname for each in Ring(db).list_conductors() if each.alive] == ["b"]


# ------------------------------------------------------------------------- those that fell silent


@pytest.fixture
def clock():
    return HandClock()


def watch(ring, clock, seconds, step_s=10.0, beating=(), db=None):
    """Let time pass while the ring looks; return whether the hosts of nodes ever changed."""
    changed = False
    for _ in range(int(seconds / step_s)):
        clock.now += step_s
        for name in beating:
            peers.beat(db, name)
        changed |= ring.refresh()
    return changed


def test_who_fell_silent_is_off_the_ring(db, clock):
    for name in "ab":
        register(db, name)
    ring = Ring(db, clock=clock)
    assert {host(ring, node) for node in NODES} == {"a", "b"}
    assert not watch(ring, clock, 50, beating="a", db=db)
    assert watch(ring, clock, 10, beating="a", db=db)
    assert {host(ring, node) for node in NODES} == {"a"}
    assert [each.hostname for each in ring.list_conductors() if not each.alive] == ["b"]
    assert [facts.hosts for facts in ring.list_drivers()] == [("a",)]


def test_who_beats_again_is_back(db, clock):
    for name in "ab":
        register(db, name)
    ring = Ring(db, clock=clock)
    ring.refresh()
    watch(ring, clock, 60, beating="a", db=db)
    assert watch(ring, clock, 10, beating="ab", db=db)
    assert {host(ring, node) for node in NODES} == {"a", "b"}
    assert all(each.alive for each in ring.list_conductors())


def test_all_silent_is_told_at_once_with_who_and_since_when(db, clock):
    register(db, "a")
    ring = Ring(db, clock=clock)
    ring.refresh()
    watch(ring, clock, 70)
    with pytest.raises(errors.TemporaryFailure, match="a sent no heartbeat for 70 s"):
        host(ring)
    with pytest.raises(errors.TemporaryFailure, match="no conductor is alive"):
        ring.living_hosts()


def test_silent_conductor_of_a_group_is_not_replaced_by_another_group(db, clock):
    register(db, "a")
    register(db, "b", group="east")
    ring = Ring(db, clock=clock)
    ring.refresh()
    watch(ring, clock, 60, beating="a", db=db)
    with pytest.raises(errors.TemporaryFailure, match="group 'east' is alive: b sent no heartbeat"):
        host(ring, group="east")


def test_driver_of_a_silent_conductor_is_told_apart_from_one_that_is_not_enabled(db, clock):
    register(db, "a")
    register(db, "b", drivers=["redfish"])
    ring = Ring(db, clock=clock)
    ring.refresh()
    watch(ring, clock, 60, beating="a", db=db)
    with pytest.raises(errors.DriverNotFound, match="b sent no heartbeat for 60 s"):
        ring.get_driver("redfish")


def test_same_members_keep_what_was_hashed(db, clock):
    for name in "ab":
        register(db, name)
    ring = Ring(db, clock=clock)
    for node in NODES:
        host(ring, node)
    before = ring._current().hosts
    assert not ring.refresh()
    assert ring._current().hosts is before
    register(db, "c")
    assert ring.refresh()
    assert ring._current().hosts is not before


def keys(nodes=NODES, group="", driver="fake-hardware"):
    return [RingKey(node, driver, group) for node in nodes]


def test_each_node_is_served_by_one_host(db):
    for name in "abc":
        register(db, name)
    register(db, "d", group="east")
    ring = Ring(db)
    served = [ring.list_served(name, keys()) for name in "abcd"]
    assert sorted(itertools.chain(*served)) == sorted(NODES)
    assert served[3] == []
    assert ring.list_served("d", keys(group="east")) == NODES
    assert ring.list_served("a", keys(driver="redfish")) == []


def test_first_of_the_living_leads(db, clock):
    for name in "ab":
        register(db, name)
    ring = Ring(db, clock=clock)
    assert [name for name in "ab" if ring.leads(name)] == ["a"]
    watch(ring, clock, 60, beating="b", db=db)
    assert [name for name in "ab" if ring.leads(name)] == ["b"]


@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha256", "sha512"])
def test_options_of_the_ring_are_obeyed(db, algorithm):
    for name in "ab":
        register(db, name)
    options = {"hash_partition_exponent": 8, "hash_ring_algorithm": algorithm}
    ring = Ring(db, Conf(default=Default(**options)))
    found = [host(ring, node) for node in NODES]
    assert min(found.count("a"), found.count("b")) > 100
    assert len(ring._current().hosts["", "fake-hardware"]._ring[0]) == 2 * 2**8


def test_reset_interval_is_the_age_of_what_was_read(db, clock):
    register(db, "a")
    ring = Ring(db, Conf(default=Default(hash_ring_reset_interval=100)), clock=clock)
    host(ring)
    meter = Meter(db)
    clock.now += 100
    host(ring)
    assert not meter.statements
    clock.now += 1
    host(ring)
    assert len(meter.statements) == 2


def test_thread_looks_by_itself(db):
    register(db, "a")
    ring = Ring(db, Conf(conductor=Conductor(heartbeat_interval=1)))
    ring._look_every_s = 0.01
    ring.start()
    try:
        wait_for(lambda: ring._view, "the thread to look")
        register(db, "b")
        wait_for(lambda: len(ring.list_conductors()) == 2, "the thread to look again")
    finally:
        ring.stop()
    assert not ring._thread.is_alive()


@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha512"])
@pytest.mark.parametrize("exponent", [0, 5, 9])
@pytest.mark.parametrize("names", ["a", "ab", "abcdefghij", ["rack-ä", "rack-ä2", "10.0.0.1"]])
def test_nodes_have_the_hosts_that_the_ring_of_tooz_gives_them(db, names, exponent, algorithm):
    for name in names:
        register(db, name)
    options = {"hash_partition_exponent": exponent, "hash_ring_algorithm": algorithm}
    ring = Ring(db, Conf(default=Default(**options)))
    reference = HashRing(names, 2**exponent, algorithm)
    hosts = {node: next(iter(reference.get_nodes(node.encode()))) for node in NODES}
    assert {node: host(ring, node) for node in NODES} == hosts
    for name in names:
        assert ring.list_served(name, keys()) == [node for node in NODES if hosts[node] == name]


def position(node):
    return int(hashlib.md5(node.encode()).hexdigest()[: RING_BITS // 4], 16)


@pytest.mark.parametrize("exponent", [0, 5, 8])
def test_shares_hold_all_nodes_of_a_host_and_hardly_any_other(db, exponent):
    for name in "abc":
        register(db, name)
    ring = Ring(db, Conf(default=Default(hash_partition_exponent=exponent)))
    for name in "abc":
        (share,) = ring.list_shares(name)
        assert share.arcs is not None
        assert sorted(share.arcs) == list(share.arcs)
        inside = [n for n in NODES if any(a <= position(n) <= b for a, b in share.arcs)]
        assert inside == ring.list_served(name, keys()), "none of these is beside a point"
    arcs = sorted(arc for name in "abc" for share in ring.list_shares(name) for arc in share.arcs)
    assert (arcs[0][0], arcs[-1][1]) == (0, 2**RING_BITS - 1)
    assert all(before[1] == after[0] for before, after in itertools.pairwise(arcs))


WHOLE = None
SHARES = {  # conductors by name: group and drivers; the shares of conductor a
    "one host": ({"a": ("", "xy")}, [("", "xy", WHOLE)]),
    "one host of a group": ({"a": ("east", "x"), "b": ("", "x")}, [("east", "x", WHOLE)]),
    "same hosts of two drivers": ({"a": ("", "xy"), "b": ("", "xy")}, [("", "xy", "ab")]),
    "other hosts of another driver": (
        {"a": ("", "xyz"), "b": ("", "yz"), "c": ("", "z")},
        [("", "x", WHOLE), ("", "y", "ab"), ("", "z", "abc")],
    ),
    "a host that is not there": ({"b": ("", "x")}, []),
}  # fmt: skip


@pytest.mark.parametrize(("registered", "shares"), SHARES.values(), ids=SHARES)
def test_shares_are_those_of_groups_and_drivers(db, registered, shares):
    for name, (group, drivers) in registered.items():
        register(db, name, group=group, drivers=list(drivers))
    listed = Ring(db).list_shares("a")
    assert [(group, "".join(drivers)) for group, drivers, _ in listed] == [
        (group, drivers) for group, drivers, _ in shares
    ]
    for (_, _, arcs), (_, _, hosts) in zip(listed, shares, strict=True):
        expected = None if hosts is None else ring_module._Hosts(tuple(hosts), Default()).arcs("a")
        assert arcs == expected


@pytest.mark.parametrize(
    "options", [{"hash_ring_algorithm": "sha256"}, {"hash_partition_exponent": 12}],
    ids=["another hash than that of the rows", "too many arcs for a statement"],
)  # fmt: skip
def test_all_rows_are_candidates_where_arcs_do_not_narrow_them(db, options):
    for name in "ab":
        register(db, name)
    ring = Ring(db, Conf(default=Default(**options)))
    assert ring.list_shares("a") == [RingShare("", ("fake-hardware",), None)]
    served = [ring.list_served(name, keys()) for name in "ab"]
    assert sorted(itertools.chain(*served)) == sorted(NODES)
