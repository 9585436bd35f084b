"""What holds for the records of every noun: one table, one test for each sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pytest

MAC: Final = "52:54:00:12:34:56"
OTHER_MAC: Final = "52:54:00:12:34:57"
INSTANCE: Final = "0c56d1c8-1d2a-4a83-a1a5-5d4d1d4c0b3a"
DEPLOY_STEP: Final = {
    "interface": "bios", "step": "apply_configuration", "args": {}, "priority": 150,
}  # fmt: skip
STEP: Final = {"interface": "bios", "step": "apply_configuration", "order": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """``first`` and ``second``: bodies that go together; ``unique``: what no two may share."""

    plural: str
    first: Mapping[str, Any]
    second: Mapping[str, Any]
    unique: tuple[str, ...]
    of_a_node: bool = False
    has_names: bool = True

    def body(self, world: Any, values: Mapping[str, Any]) -> dict[str, Any]:
        return dict(values) | ({"node_uuid": world.node()} if self.of_a_node else {})


TABLE: Final = (
    Records(
        plural="allocations", first={"name": "one", "resource_class": "large"},
        second={"resource_class": "large"}, unique=("uuid", "name"),
    ),
    Records(
        plural="chassis", first={"description": "row B"}, second={}, unique=("uuid",),
        has_names=False,
    ),
    Records(
        plural="deploy_templates", first={"name": "CUSTOM_A", "steps": [DEPLOY_STEP]},
        second={"name": "CUSTOM_B", "steps": [DEPLOY_STEP]}, unique=("uuid", "name"),
    ),
    Records(
        plural="nodes",
        first={"driver": "fake-hardware", "name": "web-1", "instance_uuid": INSTANCE},
        second={"driver": "fake-hardware"}, unique=("uuid", "name", "instance_uuid"),
    ),
    Records(
        plural="portgroups", first={"address": MAC, "name": "bond0"},
        second={"address": OTHER_MAC}, unique=("uuid", "name", "address"), of_a_node=True,
    ),
    Records(
        plural="ports", first={"address": MAC, "name": "first"},
        second={"address": OTHER_MAC}, unique=("uuid", "name", "address"), of_a_node=True,
    ),
    Records(
        plural="runbooks", first={"name": "bios-reset", "steps": [STEP]},
        second={"name": "b", "steps": [STEP]}, unique=("uuid", "name"),
    ),
)  # fmt: skip


@pytest.fixture
def record(world, records: Records) -> dict[str, Any]:
    answer = world.api.post(f"/v1/{records.plural}", records.body(world, records.first))
    assert answer.status == 201, answer.body
    return answer.json


EVERY: Final = pytest.mark.parametrize("records", TABLE, ids=lambda records: records.plural)


@pytest.mark.parametrize(
    ("records", "field"),
    [
        pytest.param(records, field, id=f"{records.plural}-{field}")
        for records in TABLE
        for field in records.unique
    ],
)
def test_duplicates_are_conflicts(world, records: Records, record, field: str):
    body = records.body(world, records.second)
    answer = world.api.post(f"/v1/{records.plural}", body | {field: record[field]})
    assert (answer.status, answer.form) == (409, "first")
    assert record[field] in answer.said
    assert world.api.post(f"/v1/{records.plural}", body).status == 201


@EVERY
def test_location_and_links_lead_to_the_record(world, records: Records):
    path = f"/v1/{records.plural}"
    answer = world.api.post(path, records.body(world, records.first))
    own = f"http://localhost{path}/{answer.json['uuid']}"
    assert (answer.headers["location"], answer.json["links"][0]["href"]) == (own, own)


@EVERY
def test_a_record_is_found_by_uuid_and_name(world, records: Records, record):
    idents = [record["uuid"], record["name"]] if records.has_names else [record["uuid"]]
    for ident in idents:
        assert world.api.get(f"/v1/{records.plural}/{ident}").json == record


@EVERY
def test_a_deleted_record_is_gone(world, records: Records):
    path = f"/v1/{records.plural}"
    path += f"/{world.api.post(path, records.body(world, records.second)).json['uuid']}"
    answer = world.api.delete(path)
    assert (answer.status, answer.body) == (204, b"")
    assert [world.api.ask(method, path).status for method in ("GET", "DELETE")] == [404, 404]
