"""Network data of a node: what creation and patches take."""

from __future__ import annotations

import pytest

EMPTY = {"links": [], "networks": [], "services": []}
DNS = {"type": "dns", "address": "8.8.8.8"}


@pytest.mark.parametrize(
    ("value", "status"), [({}, 201), (None, 201), (EMPTY, 201), ({"links": []}, 400), ([], 400)]
)
def test_creation_takes_nothing_or_all_of_it(stage, value, status):
    body = {"driver": "fake-hardware", "network_data": value}
    answer = stage.api.post("/v1/nodes", body)
    assert answer.status == status
    assert status == 400 or answer.json["network_data"] == (value or {})


@pytest.mark.parametrize(
    ("operation", "status"),
    [
        ({"op": "add", "path": "/network_data", "value": EMPTY}, 200),
        ({"op": "add", "path": "/network_data", "value": {}}, 400),
        ({"op": "add", "path": "/network_data", "value": None}, 400),
        ({"op": "add", "path": "/network_data/services/-", "value": DNS}, 200),
        ({"op": "add", "path": "/network_data/services/-", "value": DNS | {"type": "ntp"}}, 400),
        ({"op": "remove", "path": "/network_data/services"}, 400),
        ({"op": "remove", "path": "/network_data"}, 200),
    ],
)
def test_a_patch_leaves_nothing_that_could_not_be_followed(stage, operation, status):
    node = stage.enrol(network_data=EMPTY)
    answer = stage.api.patch(f"/v1/nodes/{node}", [operation])
    assert answer.status == status, answer.body
    assert status == 200 or "network_data" in answer.said
    assert status == 200 or stage.show(node)["network_data"] == EMPTY
