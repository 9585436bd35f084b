"""Software configurations and deployments: rows, callers, and the seam of kinds."""

from __future__ import annotations

import dataclasses
import uuid
from pathlib import Path
from typing import Any

import pytest

from bloomery import errors
from bloomery.db import software as db
from bloomery.db.tables import EVENTS, SOFTWARE_CONFIGS, SOFTWARE_DEPLOYMENTS
from bloomery.orchestration.orders.software import RowSoftware
from bloomery.orchestration.resources.software import SoftwareStore
from tests.kit.clients.stack_calls import StackCalls, caller
from tests.kit.stacks import trees

OTHER = caller("member", "reader", project="p2")
CONFIG = {
    "name": "deploy",
    "group": "script",
    "config": "#!/bin/sh\necho hunter2",
    "inputs": [{"name": "size"}],
    "outputs": [{"name": "fault", "error_output": True}, {"name": "result"}],
    "options": {"big": 2**70},
}


@pytest.fixture
def calls(tmp_path: Path) -> StackCalls:
    return StackCalls(tmp_path)


def config(calls: StackCalls, **values: Any) -> Any:
    return calls.operations.create_software_config(calls.member, CONFIG | values)


def deployment(calls: StackCalls, **values: Any) -> Any:
    made = {"config_id": values.pop("config_id", None) or config(calls).uuid, "server_id": "s1"}
    return calls.operations.create_software_deployment(calls.member, made | values)


def limited(calls: StackCalls, **options: int) -> StackCalls:
    conf = calls.services.conf
    orchestration = dataclasses.replace(conf.orchestration, **options)
    calls.operations._services = dataclasses.replace(
        calls.services, conf=dataclasses.replace(conf, orchestration=orchestration)
    )
    return calls


# ---------------------------------------------------------------------------------------- configs


def test_config_is_kept_as_it_came_with_defaults_of_its_lists(calls: StackCalls) -> None:
    made = config(calls)
    assert calls.operations.show_software_config(calls.member, made.uuid) == made
    assert made.options == {"big": 2**70}
    (entry,) = made.inputs
    assert (entry["name"], entry["type"], entry["replace_on_change"]) == ("size", "String", False)
    assert [output["error_output"] for output in made.outputs] == [True, False]


def test_inputs_of_who_deploys_have_values(calls: StackCalls) -> None:
    """Heat's client makes such a config for each deployment."""
    given = {"name": "size", "type": "String", "value": {"big": 2**70}}
    (entry,) = config(calls, inputs=[given]).inputs
    assert entry["value"] == {"big": 2**70}


def test_empty_config_is_one(calls: StackCalls) -> None:
    made = calls.operations.create_software_config(calls.member, {})
    assert (made.name, made.group, made.config) == (None, None, None)
    assert (made.inputs, made.outputs, made.options) == ([], [], {})


@pytest.mark.parametrize(
    "values",
    [
        {"inputs": 4},
        {"inputs": [4]},
        {"inputs": [{}]},
        {"inputs": [{"name": "a", "kind": "b"}]},
        {"outputs": [{"name": "a", "type": "text"}]},
        {"options": [1]},
        {"name": "x" * 256},
        {"name": 4},
        {"group": {}},
    ],
)
def test_config_of_the_wrong_shape_is_refused(calls: StackCalls, values: Any) -> None:
    with pytest.raises(errors.StackValidationFailed):
        config(calls, **values)
    assert calls.rows(SOFTWARE_CONFIGS) == []


def test_text_of_a_config_and_values_of_a_deployment_are_sealed_at_rest(calls: StackCalls) -> None:
    deployment(calls, input_values={"password": "hunter2"})
    assert "hunter2" not in repr(calls.rows(SOFTWARE_CONFIGS) + calls.rows(SOFTWARE_DEPLOYMENTS))


def test_configs_are_listed_page_by_page_the_newest_first(calls: StackCalls) -> None:
    made = [config(calls, name=str(at)).uuid for at in range(5)][::-1]
    listed = calls.operations.list_software_configs
    assert [each.uuid for each in listed(calls.member)] == made
    assert [each.uuid for each in listed(calls.member, limit=2)] == made[:2]
    assert [each.uuid for each in listed(calls.member, limit=2, marker=made[1])] == made[2:4]
    assert [each.uuid for each in listed(calls.member, marker="nobody")] == made
    assert listed(calls.member, limit=0) == []


def test_config_in_use_cannot_be_deleted(calls: StackCalls) -> None:
    used = config(calls)
    made = deployment(calls, config_id=used.uuid)
    with pytest.raises(errors.SoftwareConfigInUse) as info:
        calls.operations.delete_software_config(calls.member, used.uuid)
    assert info.value.status == 409
    calls.operations.delete_software_deployment(calls.member, made.uuid)
    calls.operations.delete_software_config(calls.member, used.uuid)
    with pytest.raises(errors.SoftwareConfigNotFound):
        calls.operations.delete_software_config(calls.member, used.uuid)


def test_project_has_so_many_configs_and_deployments_and_no_more(calls: StackCalls) -> None:
    limited(calls, max_software_configs_per_tenant=1, max_software_deployments_per_tenant=0)
    first = config(calls)
    with pytest.raises(errors.RequestLimitExceeded, match="max_software_configs_per_tenant"):
        config(calls)
    with pytest.raises(errors.RequestLimitExceeded, match="max_software_deployments_per_tenant"):
        deployment(calls, config_id=first.uuid)
    calls.operations.create_software_config(OTHER, {})


# ------------------------------------------------------------------------------------- deployments


def test_deployment_is_kept_and_changed(calls: StackCalls) -> None:
    made = deployment(calls, input_values={"big": 2**70}, status="IN_PROGRESS", action="CREATE")
    assert calls.operations.show_software_deployment(calls.member, made.uuid) == made
    assert made.input_values == {"big": 2**70}
    changes = {"status": "COMPLETE", "output_values": {"result": 1}, "server_id": "s2"}
    after = calls.operations.update_software_deployment(calls.member, made.uuid, changes)
    assert (after.status, after.output_values, after.action) == (
        "COMPLETE",
        {"result": 1},
        "CREATE",
    )
    assert after.server_id == "s1"  # never changed
    assert calls.operations.show_software_deployment(calls.member, made.uuid) == after


def test_change_of_a_deployment_is_told_to_who_waits_for_it(calls: StackCalls) -> None:
    made = deployment(calls)
    calls.operations.update_software_deployment(calls.member, made.uuid, {"status": "FAILED"})
    (event,) = calls.rows(EVENTS)
    assert (event.object, event.object_uuid) == ("software_deployment", made.uuid)


def test_deployments_are_listed_by_server(calls: StackCalls) -> None:
    first, second = deployment(calls), deployment(calls, server_id="s2")
    listed = calls.operations.list_software_deployments
    assert [each.uuid for each in listed(calls.member)] == [first.uuid, second.uuid]
    assert [each.uuid for each in listed(calls.member, server_id="s2")] == [second.uuid]


def test_server_learns_its_configs_by_name(calls: StackCalls) -> None:
    for name in ("b", None, "a"):
        deployment(calls, config_id=config(calls, name=name).uuid)
    deployment(calls, config_id=config(calls, name="c").uuid, server_id="s2")
    found = calls.operations.metadata_software_deployments(calls.member, "s1")
    assert [each.name for each in found] == [None, "a", "b"]


@pytest.mark.parametrize(
    "values",
    [
        {"input_values": [1]},
        {"input_values": "x"},
        {"server_id": 4},
        {"server_id": "x" * 256},
        {"status": "x" * 17},
        {"action": {}},
        {"stack_user_project_id": "x" * 65},
    ],
)
def test_deployment_of_the_wrong_shape_is_refused(calls: StackCalls, values: Any) -> None:
    with pytest.raises(errors.StackValidationFailed):
        deployment(calls, **values)


def test_deployment_needs_a_config_that_is_there(calls: StackCalls) -> None:
    with pytest.raises(errors.StackValidationFailed, match="config_id"):
        calls.operations.create_software_deployment(calls.member, {"server_id": "s1"})
    for ident in (str(uuid.uuid4()), "nobody"):
        with pytest.raises(errors.SoftwareConfigNotFound):
            deployment(calls, config_id=ident)
    made = deployment(calls)
    with pytest.raises(errors.SoftwareConfigNotFound):
        calls.operations.update_software_deployment(
            calls.member, made.uuid, {"config_id": "nobody"}
        )


# ----------------------------------------------------------------------------------- who may what


def test_other_project_sees_and_changes_nothing(calls: StackCalls) -> None:
    one, made = config(calls), deployment(calls)
    engine = calls.operations
    assert engine.list_software_configs(OTHER) == []
    assert engine.list_software_deployments(OTHER) == []
    assert engine.metadata_software_deployments(OTHER, "s1") == []
    for ask in (engine.show_software_config, engine.delete_software_config):
        with pytest.raises(errors.SoftwareConfigNotFound):
            ask(OTHER, one.uuid)
    with pytest.raises(errors.SoftwareConfigNotFound):
        engine.create_software_deployment(OTHER, {"config_id": one.uuid})
    for ask in (engine.show_software_deployment, engine.delete_software_deployment):
        with pytest.raises(errors.SoftwareDeploymentNotFound):
            ask(OTHER, made.uuid)
    with pytest.raises(errors.SoftwareDeploymentNotFound):
        engine.update_software_deployment(OTHER, made.uuid, {"status": "FAILED"})


def test_agent_reads_what_is_deployed_for_its_project_and_deletes_nothing(
    calls: StackCalls,
) -> None:
    made = deployment(calls, stack_user_project_id="p2")
    assert calls.operations.show_software_deployment(OTHER, made.uuid).uuid == made.uuid
    assert len(calls.operations.metadata_software_deployments(OTHER, "s1")) == 1
    with pytest.raises(errors.SoftwareDeploymentNotFound):
        calls.operations.delete_software_deployment(OTHER, made.uuid)


def test_nobody_deploys_to_servers_of_another_project(calls: StackCalls, tmp_path: Path) -> None:
    asked = StackCalls.over(calls, tmp_path)
    made = config(asked)
    values = {"config_id": made.uuid, "server_id": "s1", "stack_user_project_id": "p2"}
    with pytest.raises(errors.StackValidationFailed, match="another project"):
        asked.operations.create_software_deployment(asked.member, values)
    assert calls.operations.metadata_software_deployments(OTHER, "s1") == []
    own = values | {"stack_user_project_id": "p1"}
    assert asked.operations.create_software_deployment(asked.member, own).stack_user_project == "p1"


def test_reader_may_not_write_and_nobody_lists_every_project(tmp_path: Path) -> None:
    calls = StackCalls(tmp_path, enforced=True)
    reader = caller("reader")
    calls.operations.list_software_configs(reader)
    for ask in (
        lambda: calls.operations.create_software_config(reader, {}),
        lambda: calls.operations.list_software_configs(calls.member, everybody=True),
        lambda: calls.operations.list_software_configs(caller()),
        lambda: calls.operations.delete_software_deployment(reader, "x"),
    ):
        with pytest.raises(errors.Forbidden):
            ask()


def test_whoever_may_lists_every_project(calls: StackCalls) -> None:
    config(calls)
    calls.operations.create_software_config(OTHER, {})
    found = calls.operations.list_software_configs(calls.member, everybody=True)
    assert {each.project for each in found} == {"p1", "p2"}


# ------------------------------------------------------------------------------- the seam of kinds


@pytest.fixture
def store(calls: StackCalls) -> SoftwareStore:
    return RowSoftware(calls.db, trees.SEALER, "p1")


IN_PROGRESS = {"config_id": "c1", "server_id": "s1", "action": "CREATE", "status": "IN_PROGRESS"}


def test_what_is_asked_twice_lands_in_the_same_place(
    calls: StackCalls, store: SoftwareStore
) -> None:
    for _again in range(2):
        store.create_config("c1", **CONFIG)
        store.create_deployment("d1", **IN_PROGRESS)
    assert len(calls.rows(SOFTWARE_CONFIGS)) == len(calls.rows(SOFTWARE_DEPLOYMENTS)) == 1
    with pytest.raises(errors.Conflict):
        store.delete_config("c1")
    for _again in range(2):
        store.delete_deployment("d1")
        store.delete_config("c1")
    assert store.show_config("c1") is store.show_deployment("d1") is None


@pytest.mark.parametrize(
    ("details", "status", "reason"),
    [
        ({"result": 1}, "COMPLETE", "Outputs received"),
        ({"deploy_status_code": 0}, "COMPLETE", "Outputs received"),
        ({"deploy_status_code": 3}, "FAILED", "non-zero status code: 3"),
        ({"fault": "disk"}, "FAILED", "fault : disk"),
    ],
)
def test_signal_says_how_it_went(
    store: SoftwareStore, details: Any, status: str, reason: str
) -> None:
    store.create_config("c1", **CONFIG)
    store.create_deployment("d1", **IN_PROGRESS)
    assert store.signal_deployment("d1", details)
    shown = store.show_deployment("d1")
    assert shown is not None
    assert shown["status"] == status
    assert reason in shown["status_reason"]
    assert store.signal_deployment("d1", {"deploy_status_code": 9}) is None  # nobody waits
    assert store.show_deployment("d1") == shown


def test_signal_to_nobody_is_nothing(store: SoftwareStore) -> None:
    assert store.signal_deployment("d1", {}) is None


def test_change_that_was_overtaken_is_made_of_what_is_there_now(
    calls: StackCalls, store: RowSoftware
) -> None:
    store.create_config("c1", **CONFIG)
    store.create_deployment("d1", **IN_PROGRESS)
    seen = []

    def changes_of(before: Any) -> dict[str, Any]:
        seen.append(before.status)
        if len(seen) == 1:
            store.update_deployment("d1", status="FAILED")
        return {"status_reason": f"it was {before.status}"}

    store.change("d1", changes_of)
    assert seen == ["IN_PROGRESS", "FAILED"]
    with calls.db.read() as conn:
        found = db.find_deployment(conn, "p1", "d1", trees.SEALER)
    assert found is not None
    assert (found.status, found.status_reason) == ("FAILED", "it was FAILED")
