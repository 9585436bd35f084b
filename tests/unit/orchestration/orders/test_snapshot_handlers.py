"""What kinds are asked when a snapshot is restored or deleted."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import pytest

from bloomery import errors, plugins
from bloomery.db import snapshots, tables
from bloomery.orchestration.engine.runtime import EngineRuntime
from bloomery.orchestration.operations import StackOperations
from bloomery.orchestration.properties.schema import Schema, Type
from bloomery.orchestration.resources import base
from bloomery.orchestration.template import kinds
from tests.kit.clients.stack_calls import VALUE, StackCalls
from tests.kit.stacks import trees

DISK = {"type": "Test::Disk", "properties": {"size": {"get_param": "size"}}}
SIZE = {"size": {"type": "number", "default": 3}}
KEPT = {"backup": "b-1"}


class Disk(base.Resource):
    """Keeps a backup for each snapshot, and is made from it again."""

    properties_schema: ClassVar[Any] = {
        "size": Schema(Type.NUMBER),
        "backup": Schema(Type.STRING),
        "name": Schema(Type.ANY),
    }
    backups: ClassVar[list[str]] = []

    def handle_restore(self, definition, data):
        backup = data["resource_data"]["backup"]
        return dataclasses.replace(
            definition, properties={**definition.properties, "backup": backup}
        )

    def handle_delete_snapshot(self, snapshot):
        if "refused" in self.backups:
            raise ValueError(f"no connection to {self.record.physical_id}")
        if snapshot["backup"] in self.backups:
            self.backups.remove(snapshot["backup"])


@pytest.fixture
def calls(tmp_path):
    calls = StackCalls(tmp_path)
    offered = {**plugins.loaders("bloomery.resources"), "Test::Disk": lambda: Disk}
    runtime = EngineRuntime(kinds=kinds.Kinds(offered))
    calls.operations = StackOperations(calls.services, runtime, calls.accepted.append)
    Disk.backups = ["b-1"]
    return calls


@pytest.fixture
def web(calls):
    made = calls.create(resources={"disk": DISK, "a": VALUE}, declared=SIZE)
    calls.finish(made)
    calls.add_resource(made, "disk", {"size": 3}, type="Test::Disk", physical_id="d-1")
    calls.add_resource(made, "a", {"value": 1})
    return made


@pytest.fixture
def snapshot(calls, web):
    """One that an engine has made."""
    made = calls.operations.stack_snapshot(calls.member, web, None)
    calls.finish(web)
    entry = {"type": "Test::Disk", "resource_id": "d-1", "resource_data": KEPT}
    data = {**made.data, "resources": {"disk": entry, "gone": entry}}

    def end(conn):
        snapshots.delete(conn, made.uuid)
        row = dataclasses.replace(made, status="COMPLETE", data=data)
        snapshots.insert(conn, row, trees.SEALER)

    calls.db.transact(end)
    return made.uuid


def test_a_kind_rewrites_its_definition_when_a_snapshot_is_restored(calls, web, snapshot):
    calls.operations.stack_restore(calls.member, web, snapshot)
    bodies = calls.operations.get_template(calls.member, web)["resources"]
    properties = {"size": {"get_param": "size"}, "backup": "b-1"}
    assert bodies == {"disk": {**DISK, "properties": properties}, "a": VALUE}


def test_what_a_kind_kept_is_sealed_in_the_template_too(calls, web, snapshot):
    calls.operations.stack_restore(calls.member, web, snapshot)
    newest = calls.rows(tables.RAW_TEMPLATES)[-1]
    assert not any("b-1" in str(value) for value in newest)


def test_what_a_snapshot_has_kept_goes_with_it(calls, web, snapshot):
    calls.operations.delete_snapshot(calls.member, web, snapshot)
    assert Disk.backups == []
    assert calls.rows(tables.SNAPSHOTS) == []


def test_a_snapshot_that_a_kind_cannot_clean_up_stays(calls, web, snapshot):
    Disk.backups.append("refused")
    with pytest.raises(
        errors.NotSupported, match=r"disk refused \(ValueError: no connection to d-1"
    ):
        calls.operations.delete_snapshot(calls.member, web, snapshot)
    assert [row.uuid for row in calls.rows(tables.SNAPSHOTS)] == [snapshot]
    Disk.backups.remove("refused")
    calls.operations.delete_snapshot(calls.member, web, snapshot)
    assert Disk.backups == []


def test_with_a_stack_goes_what_its_snapshots_have_kept(calls, web, snapshot):
    calls.operations.delete_stack(calls.member, web)
    assert Disk.backups == []


def test_a_kind_that_is_not_offered_any_more_keeps_nobody_from_deleting(calls, web, snapshot):
    calls.operations = StackOperations(calls.services, EngineRuntime(), calls.accepted.append)
    calls.operations.delete_snapshot(calls.member, web, snapshot)
    assert Disk.backups == ["b-1"]
    calls.operations.delete_stack(calls.member, web)
    assert calls.row(web).action == "DELETE"
