"""The ring: who serves which node, and when that is looked up again."""

from __future__ import annotations

import uuid as uuids

import pytest

from bloomery import errors
from bloomery.db import conductors
from bloomery.db.engine import Database, Meter
from bloomery.db.tables import METADATA
from bloomery.model.conductor import EnabledInterface
from bloomery.rpc import ring as rings
from bloomery.rpc.ring import Ring

NODES = [str(uuids.UUID(int=n)) for n in range(300)]


@pytest.fixture
def db(tmp_path):
    db = Database(f"sqlite:///{tmp_path}/ring.sqlite")
    db.alter(METADATA.create_all)
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
        ("redfish", r"'redfish' is known, but no .* name it in \[DEFAULT\]enabled_hardware_types"),
        ("no-such", "'no-such' is unknown; .* served: fake-hardware; known, .*: ipmi, redfish"),
        ("n" * 500, r"'n{100}\.\.\.' is unknown"),
    ],
)
def test_an_unknown_driver_is_told_apart_from_one_that_is_not_enabled(db, name, sentence):
    register(db, "a")
    with pytest.raises(errors.NoValidHost, match=sentence):
        host(Ring(db), driver=name)
    with pytest.raises(errors.DriverNotFound, match=sentence):
        Ring(db).driver(name)


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
    db.transact(lambda conn: conductors.unregister(conn, "b"))
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
    found = Ring(db).drivers()
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
    assert not ring._current().rings


def test_only_those_on_line_are_alive(db):
    register(db, "a")
    register(db, "b")
    db.transact(lambda conn: conductors.unregister(conn, "a"))
    with db.read() as conn:
        known = conductors.list_all(conn)
    assert [one.hostname for one in rings.alive(known)] == ["b"]
