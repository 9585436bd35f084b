"""Every process of a site is started anew, one after the other, while nodes are deployed.

No deployment fails, and callers are told nothing worse than to come again in a while.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
import sqlalchemy as sa

from bloomery.db import schema
from bloomery.db.tables import EVENTS, NODES
from tests.chaos import newer_release, older_release
from tests.chaos.members import Member
from tests.chaos.site import Site, in_use, on_servers_of_the_test, opened
from tests.functional.cli.test_packages import ROOT
from tests.kit.waiting import wait_for

VERBS: Final = {"available": ("active",), "active": ("rebuild", "deleted")}
RESTS_WITHIN_S: Final = 120
OPTIONS: Final = {
    # A conductor may take long to start anew: calls over a broker wait for it, as by default.
    "DEFAULT": {"hash_ring_reset_interval": 2, "rpc_response_timeout": 60},
    "conductor": {"graceful_shutdown_timeout": 2},  # less than some deployments take
    "fake": {"deploy_delay": "0.1,4"},
}


def restart_warm(member: Member) -> None:
    """Its peers leave its nodes to its successor."""
    signals = (signal.SIGUSR1,) if member.role == "conductor" else ()
    member.end(*signals, signal.SIGTERM)
    member.start()
    member.wait_until_it_serves()


def restart_drained(member: Member) -> None:
    """It ends its work, and its peers get what is new."""
    member.end(signal.SIGUSR2 if member.role == "conductor" else signal.SIGTERM)
    member.start()
    member.wait_until_it_serves()


WAYS: Final = {"warm": restart_warm, "drained": restart_drained}


def wait_for_orders(site: Site, count: int) -> None:
    """Let callers come to something between two restarts."""
    before = len(site.acknowledged)
    wait_for(lambda: len(site.acknowledged) >= before + count, "orders", timeout_s=60)


def check(site: Site) -> None:
    wait_for(lambda: not site.unrest(), "rest", timeout_s=RESTS_WITHIN_S, every_s=0.5)
    assert site.faults == []
    assert [refusal for refusal in site.unavailable if not refusal.says_when] == []
    events = site.rows(sa.select(EVENTS).where(EVENTS.c.action == "provision_set"))
    assert [event for event in events if event["status"] == "error"] == []
    ended = {event["request_id"] for event in events if event["status"] != "start"}
    assert {order.request_id for order in site.acknowledged} <= ended
    nodes = site.rows(sa.select(NODES))
    assert {node["provision_state"] for node in nodes} <= {"available", "active"}
    assert {node["last_error"] for node in nodes} == {None}
    assert site.witness.faults == []


def restart_all(site: Site, restart: Callable[[Member], None]) -> None:
    with in_use(site, "restart", VERBS):
        for member in site.members:
            wait_for_orders(site, 10)
            restart(member)
        wait_for_orders(site, 10)


@pytest.mark.timeout(240)
def test_a_rolling_restart_fails_no_deployment(tmp_path: Path) -> None:
    """One conductor comes back at once, the other drains before."""
    with on_servers_of_the_test(tmp_path, "json-rpc", **OPTIONS) as site:
        site.start(conductors=2, apis=1)
        site.enrol(20)
        with in_use(site, "restart", VERBS):
            for restart, conductor in zip(WAYS.values(), site.conductors, strict=True):
                wait_for_orders(site, 10)
                restart(conductor)
            wait_for_orders(site, 10)
        check(site)


@pytest.mark.timeout(240)
def test_the_release_before_the_newest_schema_is_replaced_process_by_process(
    tmp_path: Path,
) -> None:
    """The schema is the newest from the start; old and new processes work side by side."""
    with on_servers_of_the_test(tmp_path, "json-rpc", **OPTIONS) as site:
        site.code = older_release.unpack(tmp_path)
        site.start(conductors=2, apis=1)
        site.enrol(20)

        def replace(member: Member) -> None:
            assert member.runs_code_in(site.code), "it runs another release"
            member.code = ROOT
            restart_warm(member)
            assert member.runs_code_in(ROOT)

        restart_all(site, replace)
        check(site)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("transport", ["json-rpc", "oslo"])
def test_a_rolling_restart_of_everything_fails_no_deployment(
    tmp_path: Path, transport: str, way: str
) -> None:
    with on_servers_of_the_test(tmp_path, transport, **OPTIONS) as site:
        site.start()
        site.enrol(40)
        restart_all(site, WAYS[way])
        check(site)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("transport", ["json-rpc", "oslo"])
def test_an_upgrade_fails_no_deployment(tmp_path: Path, transport: str) -> None:
    """The schema first, then every process, pinned to the release before; then the pin goes."""
    line = newer_release.write_revisions(tmp_path / "revisions")

    def upgrade(member: Member) -> None:
        member.env[newer_release.VARIABLE] = line.scripts
        member.set_option("DEFAULT", "pin_release_version", newer_release.OURS)
        restart_warm(member)

    def unpin(member: Member) -> None:
        member.set_option("DEFAULT", "pin_release_version", None)
        restart_warm(member)

    with on_servers_of_the_test(tmp_path, transport, **OPTIONS) as site:
        site.start()
        site.enrol(40)
        with in_use(site, "schema", VERBS), opened(site.url) as database:
            wait_for_orders(site, 10)
            schema.upgrade(database, line=line)
            restart_warm(site.conductors[0])  # the old release goes on, on the new schema
            wait_for_orders(site, 10)
        restart_all(site, upgrade)
        restart_all(site, unpin)
        check(site)
