"""What kinds are asked when a snapshot is restored or deleted."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import pytest

from bloomery import errors
from bloomery.db import snapshots, tables
from bloomery.orchestration.engine.runtime import EngineRuntime
from bloomery.orchestration.properties.schema import Schema, Type
from bloomery.orchestration.resources import base
from bloomery.orchestration.service.operations import StackOperations
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
def face(tmp_path):
    face = StackCalls(tmp_path)
    offered = {**kinds.loaders("bloomery.resources"), "Test::Disk": lambda: Disk}
    runtime = EngineRuntime(kinds=kinds.Kinds(offered))
    face.engine = StackOperations(face.services, runtime, face.accepted.append)
    Disk.backups = ["b-1"]
    return face


@pytest.fixture
def web(face):
    made = face.create(resources={"disk": DISK, "a": VALUE}, declared=SIZE)
    face.finish(made)
    face.add_resource(made, "disk", {"size": 3}, type="Test::Disk", physical_id="d-1")
    face.add_resource(made, "a", {"value": 1})
    return made


@pytest.fixture
def snapshot(face, web):
    """One that an engine has made."""
    made = face.engine.stack_snapshot(face.member, web, None)
    face.finish(web)
    entry = {"type": "Test::Disk", "resource_id": "d-1", "resource_data": KEPT}
    data = {**made.data, "resources": {"disk": entry, "gone": entry}}

    def end(conn):
        snapshots.delete(conn, made.uuid)
        row = dataclasses.replace(made, status="COMPLETE", data=data)
        snapshots.insert(conn, row, trees.SEALER)

    face.db.transact(end)
    return made.uuid


def test_a_kind_rewrites_its_definition_when_a_snapshot_is_restored(face, web, snapshot):
    face.engine.stack_restore(face.member, web, snapshot)
    bodies = face.engine.get_template(face.member, web)["resources"]
    properties = {"size": {"get_param": "size"}, "backup": "b-1"}
    assert bodies == {"disk": {**DISK, "properties": properties}, "a": VALUE}


def test_what_a_kind_kept_is_sealed_in_the_template_too(face, web, snapshot):
    face.engine.stack_restore(face.member, web, snapshot)
    newest = face.rows(tables.RAW_TEMPLATES)[-1]
    assert not any("b-1" in str(value) for value in newest)


def test_what_a_snapshot_has_kept_goes_with_it(face, web, snapshot):
    face.engine.delete_snapshot(face.member, web, snapshot)
    assert Disk.backups == []
    assert face.rows(tables.SNAPSHOTS) == []


def test_a_snapshot_that_a_kind_cannot_clean_up_stays(face, web, snapshot):
    Disk.backups.append("refused")
    with pytest.raises(
        errors.NotSupported, match=r"disk refused \(ValueError: no connection to d-1"
    ):
        face.engine.delete_snapshot(face.member, web, snapshot)
    assert [row.uuid for row in face.rows(tables.SNAPSHOTS)] == [snapshot]
    Disk.backups.remove("refused")
    face.engine.delete_snapshot(face.member, web, snapshot)
    assert Disk.backups == []


def test_with_a_stack_goes_what_its_snapshots_have_kept(face, web, snapshot):
    face.engine.delete_stack(face.member, web)
    assert Disk.backups == []


def test_a_kind_that_is_not_offered_any_more_keeps_nobody_from_deleting(face, web, snapshot):
    face.engine = StackOperations(face.services, EngineRuntime(), face.accepted.append)
    face.engine.delete_snapshot(face.member, web, snapshot)
    assert Disk.backups == ["b-1"]
    face.engine.delete_stack(face.member, web)
    assert face.row(web).action == "DELETE"
