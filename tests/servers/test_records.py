"""What a server says of ports, port groups and chassis that clash, or are still needed."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from bloomery import errors
from bloomery.conductor import lifecycle, record_rules
from bloomery.conductor import records as conductor_records
from bloomery.conductor.runtime import Context
from bloomery.db import engine, records
from bloomery.model import nouns
from bloomery.model.noun import Noun
from bloomery.model.nouns import Chassis
from bloomery.model.port import Port
from bloomery.model.portgroup import Portgroup
from bloomery.model.request import Request
from bloomery.secrets import Sealer
from tests.kit.servers import site as kit

MAC = "52:54:00:00:00:01"
SOMEBODY = str(uuid.uuid4())

Add = Callable[..., str]


@pytest.fixture
def add(db: engine.Database) -> Add:
    """Insert a record; return its UUID."""

    def insert(noun: Noun, **values: Any) -> str:
        record = noun.value(**({"uuid": str(uuid.uuid4())} | values))
        db.transact(lambda conn: records.insert(conn, noun, record))
        return str(record.uuid)

    return insert


@pytest.fixture
def node(db: engine.Database, add_node: Any) -> str:
    return str(db.transact(add_node))


def group_of(node: str, **values: Any) -> dict[str, Any]:
    return {"node_uuid": node, "mode": "active-backup"} | values


@pytest.mark.parametrize(
    ("noun", "values", "fault"),
    [
        (nouns.PORT, {"address": MAC}, errors.MACAlreadyExists),
        (nouns.PORT, {"uuid": SOMEBODY, "address": MAC[:-1] + "2"}, errors.PortAlreadyExists),
        (nouns.PORT, {"name": "eth0", "address": MAC[:-1] + "2"}, errors.PortDuplicateName),
        (nouns.PORTGROUP, {"address": MAC}, errors.PortgroupMACAlreadyExists),
        (nouns.PORTGROUP, {"uuid": SOMEBODY}, errors.PortgroupAlreadyExists),
        (nouns.PORTGROUP, {"name": "bond0"}, errors.PortgroupDuplicateName),
    ],
)
def test_what_is_taken_is_named(add: Add, node: str, noun: Noun, values: Any, fault: Any) -> None:
    mode = {"mode": "active-backup"} if noun is nouns.PORTGROUP else {}
    name = "bond0" if noun is nouns.PORTGROUP else "eth0"
    add(noun, uuid=SOMEBODY, node_uuid=node, address=MAC, name=name, **mode)
    with pytest.raises(fault):
        add(noun, **({"node_uuid": node} | mode | values))


def test_a_parent_that_is_not_there_is_named(add: Add, node: str) -> None:
    with pytest.raises(errors.NodeNotFound, match=SOMEBODY):
        add(nouns.PORT, node_uuid=SOMEBODY, address=MAC)
    with pytest.raises(errors.PortgroupNotFound, match=SOMEBODY):
        add(nouns.PORT, node_uuid=node, address=MAC, portgroup_uuid=SOMEBODY)


def test_what_others_belong_to_stays(db: engine.Database, add: Add, add_node: Any) -> None:
    chassis = add(nouns.CHASSIS, description="rack 7")
    node = db.transact(lambda conn: add_node(conn, chassis_uuid=chassis))
    group = add(nouns.PORTGROUP, **group_of(node))
    port = add(nouns.PORT, node_uuid=node, address=MAC, portgroup_uuid=group)
    with pytest.raises(errors.ChassisNotEmpty, match=chassis):
        db.transact(lambda conn: records.delete(conn, nouns.CHASSIS, chassis))
    with pytest.raises(errors.PortgroupNotEmpty, match=group):
        db.transact(lambda conn: records.delete(conn, nouns.PORTGROUP, group))
    assert db.transact(lambda conn: records.delete(conn, nouns.PORT, port))
    assert db.transact(lambda conn: records.delete(conn, nouns.PORTGROUP, group))


@pytest.mark.parametrize(
    ("noun", "value"), [(nouns.CHASSIS, Chassis), (nouns.PORT, Port), (nouns.PORTGROUP, Portgroup)]
)
def test_a_record_comes_back_as_it_was_stored(
    db: engine.Database, add: Add, node: str, noun: Noun, value: Any
) -> None:
    values: dict[str, Any] = {"extra": {"nested": [1, {"ü": None}]}}
    if noun is not nouns.CHASSIS:
        values |= {"node_uuid": node, "address": MAC}
    if noun is nouns.PORTGROUP:
        values |= {"mode": "802.3ad", "properties": {"miimon": 100}}
    ident = add(noun, **values)
    with db.read() as conn:
        record = records.get(conn, noun, ident)
        (row,) = records.list_rows(conn, noun, records.Query(columns=("uuid",)))
    assert isinstance(record, value)
    assert {name: getattr(record, name) for name in values} == values
    assert row.uuid == ident


@pytest.mark.parametrize(("name", "changed"), [("node_uuid", None), ("physical_network", "b")])
def test_a_group_waits_for_the_port_that_joins_it(
    db: engine.Database,
    add: Add,
    add_node: Any,
    name: str,
    changed: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A port is checked against its group and stored: the group changes before or after."""
    node, other = (
        db.transact(lambda conn: add_node(conn, provision_state="enroll")) for _ in range(2)
    )
    group = add(nouns.PORTGROUP, **group_of(node, physical_network="a"))
    port = {"uuid": SOMEBODY, "node_uuid": node, "address": MAC}
    port |= {"portgroup_uuid": group, "physical_network": "a"}
    runtime = lifecycle.build(kit.conf(), db, Sealer(kit.KEY))
    context = Context(runtime=runtime, request=Request.new())
    is_checked, may_store = threading.Event(), threading.Event()

    rules = record_rules.of("port")

    def check_slowly(*args: Any) -> None:
        rules.create(*args)
        is_checked.set()
        assert may_store.wait(20)

    monkeypatch.setitem(record_rules._RULES, "port", replace(rules, create=check_slowly))
    patch = [{"op": "replace", "path": f"/{name}", "value": changed or other}]
    with ThreadPoolExecutor(2) as pool:
        joins = pool.submit(conductor_records.create, context, "port", port)
        assert is_checked.wait(20)
        changes = pool.submit(conductor_records.update, context, "portgroup", group, patch)
        with pytest.raises(TimeoutError):
            changes.result(timeout=0.5)
        may_store.set()
        joins.result(timeout=20)
        if changes.exception(timeout=20) is not None:
            assert isinstance(changes.exception(), errors.PortgroupNotEmpty)
    with db.read() as conn:
        stored = records.get(conn, nouns.PORT, SOMEBODY)
        assert getattr(stored, name) == getattr(records.get(conn, nouns.PORTGROUP, group), name)
