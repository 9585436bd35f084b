"""Machines that are drained before their system goes, whatever the webhook does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bloomery import errors
from bloomery.db.tables import STACK_EVENTS
from bloomery.model.stacks import Order, OrderKind, Template
from bloomery.orchestration.resources import drains
from bloomery.orchestration.resources.base import Answer
from tests.kit.stacks import machine_sites, trees
from tests.kit.stacks.machine_kills import DRAIN
from tests.kit.stacks.machine_sites import Site, make_site
from tests.kit.stacks.memory_machines import MemoryMachines
from tests.kit.stacks.row_engines import Engine

OLD, NEW = "http://images/a", "http://images/b"
BUSY, TAKEN, DRAINED = Answer(fault="the server answers 503"), Answer(), Answer(is_drained=True)
HANGS = None


class Timed(MemoryMachines):
    """Notes the time of each rebuild."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.times: list[float] = []

    def set_provision_state(self, uuid: str, verb: str, **arguments: Any) -> None:
        super().set_provision_state(uuid, verb, **arguments)
        if verb == "rebuild":
            self.times.append(self._utc())


def web(
    image: str = OLD, drain: dict[str, Any] | None = None, key: str = "source", **more: Any
) -> Template:
    properties = {"selector": {"resource_class": "pool"}, "image": {key: image},
                  "drain": DRAIN | (drain or {})} | more  # fmt: skip
    resources = {"web": {"type": "OS::Ironic::Instance", "properties": properties}}
    return machine_sites.template(resources, f"web {image} {more}")


def run(site: Site, observe: Callable[[int], Any] = bool) -> None:
    Engine(site.db, site.runtime(), None, observe).run(site.root)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return make_site(trees.database(tmp_path), Timed, pool=2)


def create(site: Site, **more: Any) -> None:
    site.create(web(**more))
    run(site)
    assert site.webhooks.calls == []  # a deployment is no loss


def row(site: Site) -> Any:
    return next((each for each in site.tree().resources if each.name == "web"), None)


def signal(site: Site, details: dict[str, Any] | None) -> None:
    payload = {"resource": row(site).uuid, "details": details}
    order = Order(root_uuid=site.root, stack_uuid=site.root, kind=OrderKind.SIGNAL, payload=payload)
    trees.accept(site.db, order)


def verbs(site: Site) -> list[str]:
    return [verb for _, verb in site.machines.orders]


def drain_events(site: Site) -> list[str]:
    query = sa.select(STACK_EVENTS.c.reason).where(STACK_EVENTS.c.reason.startswith("drain before"))
    with site.db.read() as conn:
        return [text.partition(";")[0] for text in conn.execute(query).scalars()]


ACCEPTS = "drain before rebuild: its webhook has accepted it, and it waits to be cleared"
NOT_CLEARED = "drain before rebuild: not cleared in time"


@pytest.mark.parametrize(
    ("answers", "waits_s", "calls", "events"),
    [
        ([DRAINED], 0, 1, ["drain before rebuild: cleared by its webhook"]),
        ([HANGS, HANGS, DRAINED], 2, 3, ["drain before rebuild: cleared by its webhook"]),
        ([TAKEN], 90, 1, [ACCEPTS, NOT_CLEARED]),
        ([BUSY, DRAINED], 2, 2, ["drain before rebuild: its webhook is called",
                                 "drain before rebuild: cleared by its webhook"]),
        ([BUSY, BUSY, TAKEN], 90, 3, ["drain before rebuild: its webhook is called", ACCEPTS,
                                      NOT_CLEARED]),
        ([BUSY] * 99, 90, 6, ["drain before rebuild: its webhook is called", NOT_CLEARED]),
        ([HANGS] * 99, 90, 90, [NOT_CLEARED]),
    ],
)  # fmt: skip
def test_a_rebuild_waits_for_what_its_webhook_says(
    site: Site, answers, waits_s, calls, events
) -> None:
    create(site)
    site.webhooks.answers = list(answers)
    site.update(web(NEW))
    before = site.now_s
    run(site)
    assert (site.stack().status, verbs(site).count("rebuild")) == ("COMPLETE", 1)
    assert drain_events(site) == events
    assert len(site.webhooks.calls) == calls
    assert site.webhooks.drains() == [("rebuild", "p1")]
    [rebuilt_s] = site.machines.times
    assert waits_s <= rebuilt_s - before < waits_s + 2


def test_the_body_names_the_machine_and_what_comes(site: Site) -> None:
    create(site, name="web-1")
    site.webhooks.answers = [DRAINED]
    site.update(web(NEW, name="web-1"))
    run(site)
    [(webhook_id, body)] = site.webhooks.calls
    data = dict(body["data"])
    url = data.pop("clear_url")
    assert url.partition("?")[0] == f"/p/stacks/S/{site.root}/resources/web/signal"
    [node] = (each for each in site.machines.nodes.values() if each["name"] == "p1")
    assert (body["type"], webhook_id) == ("drain.requested", row(site).data["drain"]["id"])
    assert data == {
        "project_id": "p", "stack_name": "S", "stack_id": site.root, "resource": "web",
        "node_uuid": node["uuid"], "node_name": "p1", "instance_name": "web-1",
        "comes": "rebuild", "loses_data": True, "on_timeout": "continue", "until": data["until"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("change", "comes", "loses_data"),
    [
        ({"image": NEW}, ["rebuild"], [True]),
        ({"image": NEW, "key": "boot_iso"}, ["rebuild"], [False]),
        ({"power": "off"}, ["power off"], [False]),
        ({"hardware": {"bios": {"settings": {"Turbo": "on"}}}}, ["service"], [False]),
        ({"hardware": {"extra_steps": [{"interface": "raid", "step": "delete_configuration"}]}},
         ["service"], [True]),
        ({"image": NEW, "image_update_policy": "replace", "replace_order": "delete_first"},
         ["replace"], [True]),
        ({"image": NEW, "image_update_policy": "replace"}, ["delete"], [True]),
        ({"name": "other"}, [], []),
        ({"drain": {"timeout": 5}}, [], []),
    ],
)  # fmt: skip
def test_what_takes_the_system_away_is_drained_and_nothing_else(
    site: Site, change, comes, loses_data
) -> None:
    create(site)
    site.update(web(**change))
    run(site)
    assert site.stack().status == "COMPLETE", site.stack().reason
    assert [each for each, _ in site.webhooks.drains()] == comes
    bodies = dict(site.webhooks.calls)  # a call may be repeated
    assert [body["data"]["loses_data"] for body in bodies.values()] == loses_data


def test_a_deletion_is_drained_and_another_deletion_goes_on_with_it(site: Site) -> None:
    create(site)
    site.delete()
    orders = [site.delete]

    def observe(_commits: int) -> None:
        if orders and drain_events(site):
            orders.pop()()

    run(site, observe)
    assert not orders
    assert site.webhooks.drains() == [("delete", "p1")]
    assert len(site.webhooks.calls) == 1
    assert verbs(site).count("deleted") == 1


PAUSE = {"on_timeout": "pause"}


@pytest.mark.parametrize(
    ("details", "drain", "status", "rebuilds"),
    [
        ({"drain": "clear"}, {}, "COMPLETE", 1),
        ({"drain": "clear"}, PAUSE, "COMPLETE", 1),
        (None, PAUSE, "COMPLETE", 1),  # a POST without a body
        ({"drain": "abort"}, PAUSE, "FAILED", 0),
    ],
)
@pytest.mark.parametrize("late", [False, True])
def test_a_signal_ends_a_drain(site: Site, details, drain, status, rebuilds, late) -> None:
    """``late``: after the end of its time, and twice."""
    if late and drain != PAUSE:
        pytest.skip("it has gone on")
    create(site)
    site.update(web(NEW, drain=drain))
    before, sent = site.now_s, []

    def observe(_commits: int) -> None:
        state = (row(site).data.get("drain") or {}).get("state")
        if state == ("paused" if late else "accepted") and not sent:
            signal(site, details)
            signal(site, details)  # the second one is dropped
            sent.append(details)

    run(site, observe)
    assert (site.stack().status, verbs(site).count("rebuild")) == (status, rebuilds)
    assert (site.now_s - before >= 90) is (late or rebuilds == 1)
    assert len(site.webhooks.calls) == 1
    if status == "FAILED":
        assert row(site).reason.endswith("drain before rebuild: aborted by a signal")


@pytest.mark.parametrize("goal", [OLD, NEW])
def test_another_order_ends_a_drain_and_a_cancel_rebuilds_nothing(site: Site, goal: str) -> None:
    create(site)
    site.update(web("http://images/c", drain=PAUSE))
    orders = [lambda: site.update(web(goal))]

    def observe(_commits: int) -> None:
        if orders and drain_events(site):
            orders.pop()()

    run(site, observe)
    assert site.stack().status == "COMPLETE", site.stack().reason
    assert verbs(site).count("rebuild") == (goal == NEW)
    assert len(site.webhooks.drains()) == 1 + (goal == NEW)

    site.update(web("http://images/d", drain=PAUSE))
    orders = [site.stop]
    rebuilds = verbs(site).count("rebuild")
    before = len(drain_events(site))

    def stop(_commits: int) -> None:
        if orders and len(drain_events(site)) > before:
            orders.pop()()

    run(site, stop)
    assert (site.stack().status, row(site).status) == ("FAILED", "FAILED")
    assert row(site).reason.endswith("drain before rebuild: ended by another order")
    assert verbs(site).count("rebuild") == rebuilds


@pytest.mark.parametrize(
    ("details", "state", "reason"),
    [
        (
            {"drain": "off"},
            "accepted",
            "drain is .off.; no drain waits, the last one was accepted",
        ),
        ({"rollout": "continue"}, "accepted", "drain is None"),
        ({"drain": "clear"}, "cleared by a signal", "no drain waits, the last one was cleared by"),
        (None, None, "no drain waits; a drain takes"),
    ],
)
def test_a_signal_that_ends_no_drain_is_refused(site: Site, details, state, reason) -> None:
    create(site)
    record = row(site)
    record.status = "IN_PROGRESS"
    record.data["drain"] = state and {"state": state}
    with pytest.raises(errors.SignalRefused, match=reason):
        drains.Drained.check_signal(record, details)


def test_the_token_of_a_drain_clears_no_later_one(site: Site) -> None:
    create(site)
    tokens = set()
    for image in (NEW, OLD):
        site.webhooks.answers = [DRAINED]
        site.update(web(image))
        run(site)
        tokens.add(row(site).data["token"])
    assert len({webhook_id for webhook_id, _ in site.webhooks.calls}) == 2
