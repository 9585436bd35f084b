"""A flow whose worker died is taken up again: soon where only the database was busy, and not
for ever where it dies each time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bloomery import errors
from bloomery.conductor import recovery
from bloomery.db.engine import Database
from tests.kit import site as kit
from tests.kit.scripted import Script
from tests.kit.site import Site
from tests.kit.waiting import wait_for

MakeSite = Callable[..., Site]


def _dies(_held: object) -> None:
    raise SystemExit


def test_a_flow_whose_worker_dies_each_time_is_given_up(make_site: MakeSite) -> None:
    script = Script()
    script.add("deploy", "write", _dies)
    site = make_site(registry=script.registry())
    node = site.enrol(provision_state="available")
    site.order("do_node_deploy", node, False, None, None)
    wait_for(lambda: site.is_free(node), "the worker to die")
    while site.node(node).provision_state == "deploying":
        recovery.adopt(site.service.house, node)
        wait_for(lambda: site.is_free(node), "the worker to die")
    found = site.node(node)
    assert found.provision_state == "deploy failed"
    assert "died 4 times at step deploy.write" in found.last_error
    assert script.calls.count("write") == 4


class Balky(Database):
    """Refuses one transaction, as a database does that another program holds."""

    refuse_at: int | None = None
    seen = 0

    def transact(self, work: Any) -> Any:
        self.seen += 1
        if self.seen == self.refuse_at:
            raise errors.DatabaseBusy(reason="another program holds a lock on it")
        return super().transact(work)


def test_a_flow_that_met_a_busy_database_goes_on_by_itself(tmp_path: Path) -> None:
    db = kit.database(tmp_path / "balky.sqlite", Balky)
    script = Script()
    script.add("deploy", "one")
    script.add("deploy", "two")
    site = Site(tmp_path / "balky.sqlite", db=db, registry=script.registry())
    try:
        node = site.enrol(provision_state="available")
        db.refuse_at = db.seen + 4  # reserve, move, prepare to one, one to two
        site.order("do_node_deploy", node, False, None, None)
        assert site.wait_for_state(node, "active").last_error is None
        assert script.calls.count("two") == 1
    finally:
        site.close()
