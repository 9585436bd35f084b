"""What a request costs the database, counted through HTTP and the real conductor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bloomery.cli.client import Client
from bloomery.cmd.service import Service
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.conductor import Conductor
from bloomery.db.engine import Meter
from bloomery.state_dir import StateDir
from tests.kit.waiting import wait_for

NODE = "/v1/nodes/web-1"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    quiet = Conductor(heartbeat_interval=3600, heartbeat_timeout=7220)  # no commit of its own
    conf = Conf(api=Api(port=0), conductor=quiet)
    with StateDir(tmp_path / "state") as home, Service(conf, home) as running:
        yield running


@pytest.fixture
def api(service: Service) -> Client:
    client = Client(service.url)
    client.post("/v1/nodes", {"name": "web-1", "driver": "fake-hardware"})
    client.get(NODE)  # the ring is known now
    return client


@pytest.fixture
def meter(api: Client, service: Service) -> Meter:
    return Meter(service.db)


def test_a_page_of_short_rows_is_the_last_event_the_marker_and_the_rows(
    api: Client, meter: Meter
) -> None:
    marker = api.post("/v1/nodes", {"driver": "fake-hardware"})["uuid"]
    for query, statements in (("", 2), (f"?marker={marker}", 3)):
        meter.reset()
        api.get(f"/ext/v1/nodes{query}")
        assert (meter.commits, len(meter.statements)) == (0, statements)


def test_firmware_of_any_number_of_machines_costs_the_same(api: Client, meter: Meter) -> None:
    """The catalogue, the nodes, and their components."""
    for _ in range(2):
        meter.reset()
        api.get("/ext/v1/firmware")
        assert (meter.commits, len(meter.statements)) == (0, 3)
        api.post("/ext/v1/nodes:batch", {"nodes": [{"driver": "fake-hardware"}] * 5})


def test_the_fleet_costs_the_same_however_many_nodes_there_are(api: Client, meter: Meter) -> None:
    """The last event, the counts, and the reserved nodes."""
    for _ in range(2):
        meter.reset()
        api.get("/ext/v1/fleet")
        assert (meter.commits, len(meter.statements)) == (0, 3)
        api.post("/ext/v1/nodes:batch", {"nodes": [{"driver": "fake-hardware"}] * 5})


def test_a_machine_of_a_batch_costs_what_a_single_one_does_and_its_lookup(
    api: Client, meter: Meter
) -> None:
    fields = {"driver": "fake-hardware"}
    api.post("/v1/nodes", fields | {"name": "single"})
    alone = len(meter.statements), meter.commits
    costs = []
    for count in (1, 5):
        nodes = [fields | {"name": f"of-{count}-{number}"} for number in range(count)]
        meter.reset()
        api.post("/ext/v1/nodes:batch", {"nodes": nodes})
        costs.append((len(meter.statements), meter.commits))
    assert costs[1] == (5 * costs[0][0], 5)
    assert costs[0][0] <= alone[0]  # the lookup by its key, and no read of the answer
    meter.reset()
    api.post("/ext/v1/nodes:batch", {"nodes": nodes})
    assert (len(meter.statements), meter.commits) == (5, 0)


def test_an_order_of_many_costs_what_single_ones_do(api: Client, meter: Meter) -> None:
    names = ["many-1", "many-2", "many-3"]
    for name in ["alone", *names]:
        api.post("/v1/nodes", {"name": name, "driver": "fake-hardware"})
    meter.reset()
    api.put("/v1/nodes/alone/maintenance", {})
    alone = len(meter.statements), meter.commits
    meter.reset()
    api.post("/ext/v1/nodes:act", {"nodes": names, "maintenance": {"on": True}})
    assert (len(meter.statements), meter.commits) == (3 * alone[0], 3 * alone[1])


def test_a_post_and_a_patch_are_one_commit_each(api: Client, meter: Meter) -> None:
    api.post("/v1/nodes", {"name": "web-2", "driver": "fake-hardware"})
    assert meter.commits == 1
    meter.reset()
    api.patch(NODE, [{"op": "add", "path": "/extra/rack", "value": "4"}])
    assert meter.commits == 1


@pytest.fixture
def records(api: Client) -> tuple[str, ...]:
    """Collections with one record each."""
    node = api.get(NODE)["uuid"]
    api.post("/v1/portgroups", {"node_uuid": node, "name": "bond0"})
    api.post("/v1/ports", {"node_uuid": node, "address": "52:54:00:00:00:01", "name": "eth0"})
    chassis = api.post("/v1/chassis", {})["uuid"]
    return "/v1/ports/eth0", "/v1/portgroups/bond0", f"/v1/chassis/{chassis}"


def test_a_look_at_a_record_is_one_select_and_a_patch_one_commit(
    api: Client, meter: Meter, records: tuple[str, ...]
) -> None:
    for path in records:
        for look in (path, path.rpartition("/")[0]):
            meter.reset()
            api.get(look)
            assert (meter.commits, len(meter.statements)) == (0, 1)
        meter.reset()
        api.patch(path, [{"op": "add", "path": "/extra/rack", "value": "4"}])
        assert meter.commits == 1


def test_a_whole_cycle_is_at_most_14_commits(api: Client, meter: Meter) -> None:
    """Fewer where two threads write at once, and so in one group."""
    cycle = {"manage": "manageable", "provide": "available", "active": "active"}
    for verb, state in [*cycle.items(), ("deleted", "available")]:
        api.put(f"{NODE}/states/provision", {"target": verb})
        wait_for(lambda state=state: _rests_in(api, state), f"the node to be {state}")
    assert 12 <= meter.commits <= 14


def _rests_in(api: Client, state: str) -> bool:
    node = api.get(NODE)
    return node["provision_state"] == state and node["reservation"] is None
