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
        if not self.of_a_node:
            return dict(values)
        return dict(values) | {"node_uuid": world.node(power_state="power off")}


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
    Records(
        plural="volume/connectors", first={"type": "iqn", "connector_id": "iqn.a"},
        second={"type": "iqn", "connector_id": "iqn.b"}, unique=("uuid",), of_a_node=True,
        has_names=False,
    ),
    Records(
        plural="volume/targets",
        first={"volume_type": "iscsi", "volume_id": "v", "boot_index": 0},
        second={"volume_type": "iscsi", "volume_id": "v", "boot_index": 1}, unique=("uuid",),
        of_a_node=True, has_names=False,
    ),
)  # fmt: skip


@pytest.fixture
def record(world, records: Records) -> dict[str, Any]:
    answer = world.api.post(f"/v1/{records.plural}", records.body(world, records.first))
    assert answer.status == 201, answer.body
    return answer.json


EVERY: Final = pytest.mark.parametrize("records", TABLE, ids=lambda records: records.plural)
OF_NODES: Final = pytest.mark.parametrize(
    "records", [records for records in TABLE if records.of_a_node], ids=lambda each: each.plural
)


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


@OF_NODES
def test_a_locked_node_locks_its_records_but_not_new_ones(world, records: Records, record):
    world.set(record["node_uuid"], reservation="somebody")
    path = f"/v1/{records.plural}/{record['uuid']}"
    assert world.api.patch(path, [{"op": "add", "path": "/extra/a", "value": 1}]).status == 409
    assert world.api.delete(path).status == 409
    assert world.api.get(path).status == 200
    new = dict(records.second) | {"node_uuid": record["node_uuid"]}
    assert world.api.post(f"/v1/{records.plural}", new).status == 201


@OF_NODES
def test_records_go_with_their_node(world, records: Records, record):
    world.set(record["node_uuid"], provision_state="manageable")
    assert world.api.delete(f"/v1/nodes/{record['node_uuid']}").status == 204
    assert world.api.get(f"/v1/{records.plural}/{record['uuid']}").status == 404


@pytest.mark.parametrize(
    ("plural", "version", "form", "status"),
    [
        ("allocations", 51, "first", 405), ("deploy_templates", 54, "second", 405),
        ("inspection_rules", 95, "first", 405), ("portgroups", 22, "first", 404),
        ("runbooks", 91, "second", 405), ("volume/connectors", 31, "second", 404),
        ("volume/targets", 31, "second", 404),
    ],
)  # fmt: skip
def test_clients_that_are_older_see_none(world, plural: str, version: int, form: str, status: int):
    answer = world.api.get(f"/v1/{plural}", version=version)
    assert (answer.status, answer.form) == (404, form)
    for method, below in (("POST", ""), ("PATCH", "/x"), ("DELETE", "/x")):
        body = [] if method == "PATCH" else {}
        answer = world.api.ask(method, f"/v1/{plural}{below}", body, version=version)
        assert answer.status == status
    noun = plural.partition("/")[0]
    assert noun not in world.api.get("/v1", version=version).json
    assert noun in world.api.get("/v1", version=version + 1).json


@pytest.mark.parametrize(
    ("parent", "plural", "body"),
    [
        ("nodes", "ports", {"address": MAC}), ("nodes", "portgroups", {}),
        ("portgroups", "ports", {"address": MAC}),
        ("chassis", "nodes", {"driver": "fake-hardware"}),
    ],
)  # fmt: skip
def test_single_records_are_not_reached_through_a_parent(world, parent, plural, body):
    records = next(each for each in TABLE if each.plural == parent)
    made = world.api.post(f"/v1/{parent}", records.body(world, records.first)).json
    path = f"/v1/{parent}/{made['uuid']}/{plural}"
    if parent == "portgroups":
        body = body | {"node_uuid": made["node_uuid"]}
    for method, below, sent in (
        ("POST", "", body), ("PATCH", "/x", []), ("DELETE", "/x", None), ("GET", "/x", None),
    ):  # fmt: skip
        answer = world.api.ask(method, f"{path}{below}", sent)
        assert (answer.status, answer.form) == (400, "first")
