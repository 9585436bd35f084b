"""Nodes with one BMC have one host, which the database computes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery.db import engine, nodes
from bloomery.drivers.ipmi import info
from bloomery.drivers.redfish import driver_info

ADDRESSES: list[tuple[str, Any, str]] = [  # driver, address, host
    ("redfish", "bmc-1.test", "bmc-1.test"),
    ("redfish", "https://BMC-1.test", "bmc-1.test"),
    ("redfish", "HTTPS://bmc-1.test:443/", "bmc-1.test"),
    ("idrac", "http://bmc-1.test:80/redfish/v1", "bmc-1.test"),
    ("redfish", " https://bmc-1.test:8443?q", "bmc-1.test"),
    ("redfish", "https://bmc-1.test:0443", "bmc-1.test"),
    ("redfish", "bmc-11.test", "bmc-11.test"),
    ("redfish", "https://[FE80::1]", "fe80::1"),
    ("redfish", "[fe80::1]:443/redfish", "fe80::1"),
    ("redfish", "https://[fe80::2]:8443", "fe80::2"),
    ("redfish", "https://é.test/\"'", "é.test"),
    ("redfish", "a" * 70_000, "a" * 255),
    ("redfish", "", ""),
    ("redfish", 443, "443"),
    ("redfish", None, ""),
    ("ipmi", "10.0.0.1", "10.0.0.1"),
    ("ipmi", "BMC-1.test", "bmc-1.test"),
    ("ipmi", "bmc-1.TEST", "bmc-1.test"),
    ("ipmi", "fe80::1", "fe80::1"),
    ("ipmi", None, ""),
    ("fake-hardware", "bmc-1.test", ""),
]
KEYS = {"ipmi": "ipmi_address"}
SYSTEMS = {"ipmi": info.bmc_system, "redfish": driver_info.bmc_system,
           "idrac": driver_info.bmc_system}  # fmt: skip


def node_of(driver: str, address: Any) -> dict[str, Any]:
    """Return a node whose driver_info names another BMC in the key of another driver."""
    named = {"ipmi_address": "10.9.9.9", "redfish_address": "10.9.9.9"}
    named[KEYS.get(driver, "redfish_address")] = address
    return {"driver": driver, "driver_info": {k: v for k, v in named.items() if v is not None}}


def check_hosts(db: engine.Database, add_node: Callable[..., str]) -> None:
    def fill(conn: sa.Connection) -> None:
        for driver, address, _ in ADDRESSES:
            add_node(conn, **node_of(driver, address))

    db.transact(fill)
    with db.read() as conn:
        hosts = conn.exec_driver_sql("SELECT bmc_host FROM nodes ORDER BY id").scalars().all()
    assert hosts == [host for _, _, host in ADDRESSES]


def test_the_database_computes_the_host_of_a_bmc(db: engine.Database, add_node: Any):
    check_hosts(db, add_node)


def test_nodes_with_one_bmc_have_one_host():
    """Whatever their drivers are."""
    bmcs = [
        ((system.host, system.port), host)
        for driver, address, host in ADDRESSES
        if driver in SYSTEMS
        and (system := SYSTEMS[driver](node_of(driver, address)["driver_info"]))
    ]
    same = [(a, b) for (one, a), (other, b) in itertools.combinations(bmcs, 2) if one == other]
    assert len(same) > 5
    assert [pair for pair in same if pair[0] != pair[1]] == []


def test_a_node_moves_to_the_host_of_its_new_driver_info(db: engine.Database, add_node: Any):
    uuid = db.transact(lambda conn: add_node(conn, **node_of("redfish", "bmc-1.test")))

    def list_beside(address: str) -> list[str]:
        other = db.transact(lambda conn: add_node(conn, **node_of("redfish", address)))
        with db.read() as conn:
            return [row.uuid for row in nodes.list_with_bmc_of(conn, other, "redfish", "bmc")]

    assert uuid in list_beside("bmc-1.test")
    change = {"driver_info": '{"redfish_address":"http://bmc-2.test"}'}
    db.transact(lambda conn: nodes.update(conn, uuid, change))
    assert uuid not in list_beside("bmc-1.test")
    assert uuid in list_beside("bmc-2.test")


@pytest.mark.parametrize(
    ("driver", "other_driver"),
    [("redfish", "redfish"), ("acme", "acme"), ("redfish", "acme"), ("acme", "redfish"),
     ("redfish", "ipmi")],
)  # fmt: skip
def test_nodes_of_any_driver_find_the_others_with_their_bmc(
    db: engine.Database, add_node: Any, driver: str, other_driver: str
):
    """The database knows no host of a driver that is not ours, and searches its nodes."""

    def fill(conn: sa.Connection) -> tuple[str, str]:
        node = add_node(conn, **node_of(driver, "bmc-1"))
        add_node(conn, **node_of(other_driver, "bmc-2"))
        add_node(conn, **node_of("fake-hardware", "bmc-1"))
        return node, add_node(conn, **node_of(other_driver, "BMC-1"))

    node, sharer = db.transact(fill)
    with db.read() as conn:
        rows = nodes.list_with_bmc_of(conn, node, other_driver, "bmc-1")
    assert [row.uuid for row in rows] == [sharer]
