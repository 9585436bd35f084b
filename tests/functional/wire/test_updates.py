"""Updates, what is replaced, what is deleted, and what an update may follow."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.clients.stacks_api import StacksApi, document, test_resource, value
from tests.kit.waiting import wait_for

PARAMETER = {"p": {"type": "string", "default": "default"}}
OUTPUT = {"o": {"value": {"get_param": "p"}}}
LONG_S = 20


def slow(text: str, **seconds: int) -> dict[str, Any]:
    return test_resource(value=text, action_wait_secs=seconds or {"update": LONG_S})


def test_put_takes_everything_from_the_request_and_patch_keeps_what_is_there(
    api: StacksApi,
) -> None:
    path = _with_parameter(api)
    api.patch(path)
    shown = api.show(path)
    assert (shown["tags"], api.outputs(path)) == (["a", "b"], {"o": "given"})
    template = document({}, parameters=PARAMETER, outputs=OUTPUT)
    assert api.ask("PUT", path, {"template": template}).status == 202
    shown = api.settle(path, "UPDATE_COMPLETE")
    assert (shown["tags"], api.outputs(path)) == ([], {"o": "default"})
    assert (shown["timeout_mins"], shown["disable_rollback"]) == (7, False)


def _with_parameter(api: StacksApi) -> str:
    template = document({}, parameters=PARAMETER, outputs=OUTPUT)
    path = api.begin(
        template, parameters={"p": "given"}, tags="a,b", timeout_mins=7, disable_rollback=False
    )
    api.settle(path, "CREATE_COMPLETE")
    return path


def test_an_empty_patch_runs_the_stack_again(api: StacksApi) -> None:
    path = api.create({"a": value(1)})
    before = api.events(path)
    api.patch(path)
    assert api.events(path)[len(before) :] == ["S UPDATE_IN_PROGRESS", "S UPDATE_COMPLETE"]
    assert api.ask("PATCH", path).status == 400
    assert api.ask("PUT", path, {}).refusal == (400, "HTTPBadRequest")


def test_a_replacement_is_made_before_the_old_one_is_deleted(api: StacksApi) -> None:
    def resources(text: str) -> dict[str, Any]:
        user = test_resource(value={"get_resource": "a"})
        return {"a": test_resource(value=text, update_replace=True), "b": user}

    path = api.create(resources("1"))
    old = api.resource(path, "a")["physical_resource_id"]
    count = len(api.events(path))
    api.update(path, resources("2"))
    assert api.resource(path, "a")["physical_resource_id"] != old
    events = api.events(path)[count:]
    assert [line for line in events if line.startswith("a ")] == [
        "a UPDATE_IN_PROGRESS",
        "a UPDATE_COMPLETE",
        "a CREATE_IN_PROGRESS",
        "a CREATE_COMPLETE",
        "a DELETE_IN_PROGRESS",
        "a DELETE_COMPLETE",
    ]
    assert events.index("b UPDATE_COMPLETE") < events.index("a DELETE_IN_PROGRESS")
    assert events.index("a CREATE_COMPLETE") < events.index("b UPDATE_IN_PROGRESS")
    assert any("requires replacement" in reason for reason in api.reasons(path, "a"))


def test_a_failed_resource_is_replaced_without_an_update(api: StacksApi) -> None:
    path = api.begin(document({"a": test_resource(fail=True)}))
    api.settle(path, "CREATE_FAILED")
    api.update(path, {"a": test_resource(fail=False)})
    assert "UPDATE_IN_PROGRESS" not in api.events(path, "a")
    assert api.events(path, "a")[-2:] == ["DELETE_IN_PROGRESS", "DELETE_COMPLETE"]
    assert api.states(path) == {"a": "CREATE_COMPLETE"}


def test_another_type_is_a_replacement_and_what_stays_has_no_events(api: StacksApi) -> None:
    path = api.create({"a": value("1"), "b": value(2), "c": value(3, depends_on="b")})
    count = len(api.events(path))
    api.update(path, {"a": test_resource(value="1"), "b": value(2)})
    events = api.events(path)[count:]
    assert not [line for line in events if line.startswith("b ")]
    assert api.states(path) == {"a": "CREATE_COMPLETE", "b": "CREATE_COMPLETE"}
    assert {"a CREATE_COMPLETE", "a DELETE_COMPLETE", "c DELETE_COMPLETE"} <= set(events)


def test_what_is_retained_is_told_as_deleted(api: StacksApi) -> None:
    path = api.create({"a": value(1, deletion_policy="retain")})
    api.update(path, {})
    assert api.events(path, "a")[-2:] == ["DELETE_IN_PROGRESS", "DELETE_COMPLETE"]


def test_an_update_supersedes_the_one_that_runs(api: StacksApi) -> None:
    path = api.create({"a": slow("0", update=3), "b": value("0", depends_on="a")})
    api.put(path, {"a": slow("1", update=3), "b": value("1", depends_on="a")})
    api.wait_resource(path, "a", "UPDATE_IN_PROGRESS")
    api.put(path, {"a": slow("2", update=3), "b": value("2", depends_on="a")})
    api.settle(path, "UPDATE_COMPLETE")
    twice = ["UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"] * 2
    assert api.events(path, "a")[-4:] == twice
    assert api.events(path, "b")[-2:] == twice[:2]
    assert api.events(path, "b").count("UPDATE_IN_PROGRESS") == 1
    assert api.events(path, "S")[-3:] == [
        "UPDATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"
    ]  # fmt: skip


def test_what_a_resource_in_flight_needed_is_deleted_after_it(api: StacksApi) -> None:
    def changing(text: str) -> dict[str, Any]:
        return test_resource(value=text, action_wait_secs={"update": 3})

    path = api.create({"a": value(1), "b": {**changing("0"), "depends_on": "a"}})
    api.put(path, {"b": changing("1")})
    api.wait_resource(path, "b", "UPDATE_IN_PROGRESS")
    api.put(path, {"b": changing("2")})
    api.settle(path, "UPDATE_COMPLETE")
    events = api.events(path)
    last = len(events) - 1 - events[::-1].index("b UPDATE_COMPLETE")
    assert last < events.index("a DELETE_IN_PROGRESS")


def test_a_stack_may_be_updated_while_it_is_created_but_not_while_it_is_deleted(
    api: StacksApi,
) -> None:
    path = api.begin(document({"a": slow("0", create=3, delete=LONG_S), "b": value(1)}))
    api.wait_resource(path, "a", "CREATE_IN_PROGRESS")
    api.put(path, {"a": slow("0", create=3, delete=LONG_S), "c": value(1)})
    api.settle(path, "UPDATE_COMPLETE")
    assert set(api.states(path)) == {"a", "c"}
    assert api.ask("DELETE", path).status == 204
    refused = (400, "NotSupported")
    assert api.ask("PUT", path, {"template": document({})}).refusal == refused
    assert api.ask("PATCH", path, {}).refusal == refused


def test_a_suspended_stack_refuses_updates_and_nothing_else(api: StacksApi) -> None:
    path = api.create({"a": value(1)})
    assert api.act(path, "suspend").status == 200
    api.settle(path, "SUSPEND_COMPLETE")
    body = {"template": document({"a": value(2)})}
    assert api.ask("PUT", path, body).refusal == (400, "NotSupported")
    assert api.ask("PATCH", path, body).refusal == (400, "NotSupported")
    assert api.ask("PUT", f"{path}/preview", body).status == 200
    assert api.ask("POST", f"{path}/snapshots", {}).status == 200
    api.settle(path, "SNAPSHOT_COMPLETE")
    api.delete(path)


def test_after_a_failed_update_the_next_one_replaces_what_failed(api: StacksApi) -> None:
    def resources(text: str, *, fail: bool) -> dict[str, Any]:
        after = {"needs": ["b"]}
        return {
            "b": test_resource(value=text, fail=fail),
            "c": test_resource(value=text, **after),
            "d": test_resource(value="d", **after) if text != "0" else value(0, depends_on="b"),
            **({"e": value(text, depends_on="b")} if text != "0" else {}),
        }

    path = api.create(resources("0", fail=False))
    api.put(path, resources("1", fail=True))
    api.settle(path, "UPDATE_FAILED")
    listed = api.resources(path)
    assert listed["b"]["resource_status"] == "UPDATE_FAILED"
    assert listed["c"]["resource_status"] == "CREATE_COMPLETE"
    new = listed["e"]
    assert (new["resource_status"], new["physical_resource_id"]) == ("INIT_COMPLETE", "")
    old = listed["b"]["physical_resource_id"]
    api.update(path, resources("2", fail=False))
    assert api.resource(path, "b")["physical_resource_id"] != old
    assert api.states(path)["c"] == "UPDATE_COMPLETE"


def test_a_deleted_stack_is_still_shown_by_its_id(api: StacksApi) -> None:
    path = api.create({"a": value(1)}, outputs={"o": {"value": 1}})
    _, name, ident = path.split("/")
    api.delete(path)
    shown = api.show(path)
    assert shown["deletion_time"]
    assert "outputs" not in shown
    assert api.ask("GET", f"stacks/{ident}").status == 302
    wait_for(lambda: api.ask("GET", f"stacks/{name}").status == 404, "the name to be free")
    for part in ("events", "template", "environment", "files", "resources"):
        assert api.ask("GET", f"{path}/{part}").status == 200, part
    template = {"template": document({})}
    for method, part, body in (
        ("GET", "/outputs", None),
        ("POST", "/actions", {"check": None}),
        ("PUT", "", template),
        ("PATCH", "", {}),
        ("DELETE", "", None),
    ):
        assert api.ask(method, path + part, body).status == 404, (method, part)


def test_a_delete_may_be_sent_again_until_it_has_ended(api: StacksApi) -> None:
    path = api.create({"a": slow("0", delete=3)})
    for _ in range(2):
        answer = api.ask("DELETE", path)
        assert (answer.status, answer.document) == (204, None)
    api.settle(path, "DELETE_COMPLETE")
    assert api.ask("DELETE", path).status == 404
    name = path.split("/")[1]
    template = document({})
    wait_for(lambda: api.post(template, name).status == 201, "the name to be free again")


@pytest.mark.parametrize("rollback", [True, False])
def test_a_failed_create_keeps_its_name(api: StacksApi, rollback: bool) -> None:
    resources = {"a": test_resource(fail=True), "b": value(1, depends_on="a")}
    path = api.begin(document(resources), disable_rollback=not rollback)
    api.settle(path, "ROLLBACK_COMPLETE" if rollback else "CREATE_FAILED")
    name = path.split("/")[1]
    assert api.post(document({}), name).refusal == (409, "StackExists")
    if rollback:
        assert api.events(path, "S") == [
            "CREATE_IN_PROGRESS", "CREATE_FAILED", "ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE"
        ]  # fmt: skip
        assert api.resources(path) == {}
    else:
        assert api.states(path) == {"a": "CREATE_FAILED", "b": "INIT_COMPLETE"}
    api.update(path, {"b": value(2)})
