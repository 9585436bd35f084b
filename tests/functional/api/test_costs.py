"""What a request costs, in statements and commits: exact, and not to grow unnoticed."""

from __future__ import annotations

import pytest


@pytest.fixture
def node(world):
    uuid = world.node(name="web-1", provision_state="manageable")
    world.api.get("/v1/nodes")  # the ring has been read
    world.meter.reset()
    return uuid


@pytest.mark.parametrize(
    "path",
    [
        "/v1/nodes/{node}", "/v1/nodes/web-1", "/v1/nodes/{node}?fields=uuid,conductor,traits",
        "/v1/nodes/{node}/states", "/v1/nodes", "/v1/nodes/detail", "/v1/nodes?detail=true&limit=1",
        "/v1/ports", "/v1/conductors",
    ],
)  # fmt: skip
def test_reading_takes_one_statement(world, node, path):
    assert world.api.get(path.format(node=node)).status == 200
    assert (len(world.meter.statements), world.meter.commits) == (1, 0)


@pytest.mark.parametrize(("path"), ["/", "/v1", "/v1/drivers", "/v1/drivers/redfish", "/healthz"])
def test_documents_take_no_statement(world, node, path):
    assert world.api.get(path).status == 200
    assert (len(world.meter.statements), world.meter.commits) == (0, 0)


@pytest.mark.parametrize(
    ("method", "path", "body", "selects"),
    [
        ("POST", "/v1/nodes", {"driver": "fake-hardware"}, 1),
        ("PUT", "/v1/nodes/{node}/states/provision", {"target": "provide"}, 2),
        ("PATCH", "/v1/nodes/{node}", [{"op": "add", "path": "/extra/a", "value": 1}], 3),
    ],
)
def test_writing_is_one_commit(world, node, method, path, body, selects):
    """The API reads the row once before the conductor, and once for the answer; the fake
    conductor reads it itself."""
    answer = world.api.ask(method, path.format(node=node), body)
    assert answer.status in (200, 201, 202)
    assert world.meter.commits == 1
    read = [statement for statement in world.meter.statements if statement.startswith("SELECT")]
    assert len(read) <= selects + 1
