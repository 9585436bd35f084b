"""Events, rollbacks, cancels, time-outs, and the actions on a stack."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.clients.stacks_api import StacksApi, document, test_resource, value
from tests.kit.waiting import wait_for

NOT_SUPPORTED = (400, "NotSupported")


def slow(text: str, seconds: int = 3) -> dict[str, Any]:
    return test_resource(value=text, action_wait_secs={"update": seconds})


def test_a_failed_update_is_rolled_back_to_the_old_resources(api: StacksApi) -> None:
    def resources(text: str, *, fail: bool) -> dict[str, Any]:
        replaced = test_resource(value=text, update_replace=True)
        return {"a": replaced, "b": test_resource(value=text, fail=fail, needs=["a"])}

    path = api.create(resources("1", fail=False))
    old = api.resource(path, "a")["physical_resource_id"]
    api.put(path, resources("2", fail=True), disable_rollback=False)
    api.settle(path, "ROLLBACK_COMPLETE")
    assert api.events(path, "S")[-3:] == [
        "UPDATE_FAILED", "ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE"
    ]  # fmt: skip
    assert api.resource(path, "a")["physical_resource_id"] == old
    template = api.get(f"{path}/template")
    assert template["resources"]["a"]["properties"]["value"] == "1"


def test_siblings_in_flight_end_after_the_failure_and_nothing_new_starts(api: StacksApi) -> None:
    resources = {
        "a": test_resource(wait_secs=3),
        "b": test_resource(fail=True, wait_secs=1),
        "c": value(1, depends_on="b"),
    }
    path = api.begin(document(resources))
    api.settle(path, "CREATE_FAILED")
    api.wait_resource(path, "a", "CREATE_COMPLETE")
    events = api.events(path)
    assert events.index("S CREATE_FAILED") < events.index("a CREATE_COMPLETE")
    assert api.states(path)["c"] == "INIT_COMPLETE"


def test_a_cancelled_update_is_rolled_back_though_rollback_is_off(api: StacksApi) -> None:
    path = api.create({"a": slow("1")})
    api.put(path, {"a": slow("2")})
    api.wait_resource(path, "a", "UPDATE_IN_PROGRESS")
    assert api.act(path, "cancel_update").status == 200
    api.settle(path, "ROLLBACK_COMPLETE")
    assert api.events(path)[-7:] == [
        "S UPDATE_IN_PROGRESS", "a UPDATE_IN_PROGRESS", "S ROLLBACK_IN_PROGRESS",
        "a UPDATE_COMPLETE", "a UPDATE_IN_PROGRESS", "a UPDATE_COMPLETE", "S ROLLBACK_COMPLETE",
    ]  # fmt: skip


def test_an_update_cancelled_without_rollback_fails_at_once(api: StacksApi) -> None:
    path = api.create({"a": slow("1"), "b": value("1", depends_on="a")})
    api.put(path, {"a": slow("2"), "b": value("2", depends_on="a")})
    api.wait_resource(path, "a", "UPDATE_IN_PROGRESS")
    assert api.act(path, "cancel_without_rollback").status == 200
    stack = api.settle(path, "UPDATE_FAILED")
    assert stack["stack_status_reason"] == "Stack UPDATE cancelled"
    api.wait_resource(path, "a", "UPDATE_COMPLETE")
    assert api.states(path)["b"] == "CREATE_COMPLETE"
    for action in ("cancel_update", "cancel_without_rollback"):
        assert api.act(path, action).refusal == NOT_SUPPORTED


def test_events_come_newest_first_and_a_marker_excludes_itself(api: StacksApi) -> None:
    path = api.create({"a": value(1)})
    listed = api.get(f"{path}/events")["events"]
    rising = api.get(f"{path}/events?sort_dir=asc")["events"]
    assert [each["id"] for each in listed] == [each["id"] for each in reversed(rising)]
    after = api.get(f"{path}/events?sort_dir=asc&marker={rising[0]['id']}")["events"]
    assert after == rising[1:]
    _, name, ident = path.split("/")
    assert (rising[0]["resource_name"], rising[0]["physical_resource_id"]) == (name, ident)


def test_one_event_tells_more_than_a_list(api: StacksApi) -> None:
    path = api.create({"a": value(1)})
    item = api.get(f"{path}/resources/a/events")["events"][0]
    assert not {"resource_type", "resource_properties"} & set(item)
    event = api.get(f"{path}/resources/a/events/{item['id']}")["event"]
    assert (event["resource_type"], event["resource_properties"]) == (
        "OS::Heat::Value", {"value": 1}
    )  # fmt: skip
    for missing in (
        f"resources/a/events/{'0' * 8}-0000-0000-0000-{'0' * 12}",
        "resources/b/events",
    ):
        answer = api.ask("GET", f"{path}/{missing}")
        assert answer.status == 404, missing


def test_nested_depth_adds_the_events_of_children(api: StacksApi) -> None:
    group = {"count": 1, "resource_def": value(1)}
    path = api.create({"g": {"type": "OS::Heat::ResourceGroup", "properties": group}})
    top = api.get(f"{path}/events")["events"]
    assert {each["resource_name"] for each in top} == {path.split("/")[1], "g"}
    assert not any(link["rel"] == "root_stack" for each in top for link in each["links"])
    deep = api.get(f"{path}/events?nested_depth=2")["events"]
    assert "0" in {each["resource_name"] for each in deep}
    assert all("root_stack" in {link["rel"] for link in each["links"]} for each in deep)


def test_suspend_goes_backwards_and_again_does_nothing(api: StacksApi) -> None:
    path = api.create({"a": value(1), "b": value(2, depends_on="a")})
    for verb, order in (("suspend", "ba"), ("resume", "ab")):
        api.act(path, verb)
        word = verb.upper()
        api.settle(path, f"{word}_COMPLETE")
        events = api.events(path)
        first, second = order
        assert events.index(f"{first} {word}_COMPLETE") < events.index(f"{second} {word}_COMPLETE")
        assert api.act(path, verb).status == 200
        assert api.events(path) == events


def test_a_stack_that_never_was_suspended_fails_to_resume(api: StacksApi) -> None:
    path = api.create({"a": value(1)})
    assert api.act(path, "resume").status == 200
    api.settle(path, "RESUME_FAILED")
    assert api.states(path) == {"a": "CREATE_COMPLETE"}
    api.act(path, "suspend")
    api.settle(path, "SUSPEND_COMPLETE")


def test_an_action_is_taken_while_another_runs_and_fails_on_what_is_in_flight(
    api: StacksApi,
) -> None:
    path = api.create({"a": slow("1")})
    api.put(path, {"a": slow("2")})
    api.wait_resource(path, "a", "UPDATE_IN_PROGRESS")
    assert api.act(path, "suspend").status == 200
    api.settle(path, "SUSPEND_FAILED")
    api.wait_resource(path, "a", "UPDATE_COMPLETE")


def test_a_type_without_a_check_says_so(api: StacksApi) -> None:
    path = api.create({"a": value(1)})
    api.act(path, "check")
    stack = api.settle(path, "CHECK_COMPLETE")
    assert stack["stack_status_reason"].endswith("'CHECK' not fully supported (see resources)")
    assert api.resource(path, "a")["resource_status_reason"] == (
        "CHECK not supported for OS::Heat::Value"
    )


def test_an_unhealthy_resource_is_replaced_by_the_next_update(api: StacksApi) -> None:
    path = api.create({"a": value(1), "b": value(2)})
    old = api.resource(path, "a")["physical_resource_id"]
    sick = {"mark_unhealthy": True, "resource_status_reason": "tired"}
    assert api.ask("PATCH", f"{path}/resources/a", sick).status == 200
    api.wait_resource(path, "a", "CHECK_FAILED")
    assert api.resource(path, "a")["resource_status_reason"] == "tired"
    assert api.status(path) == "CREATE_COMPLETE"
    assert api.ask("PATCH", f"{path}/resources/b", {"mark_unhealthy": True}).status == 200
    assert api.ask("PATCH", f"{path}/resources/b", {"mark_unhealthy": False}).status == 200
    api.wait_resource(path, "b", "CHECK_COMPLETE")
    assert api.ask("PATCH", f"{path}/resources/a", {**sick, "more": 1}).status == 400
    api.patch(path)
    assert api.resource(path, "a")["physical_resource_id"] != old
    assert "UPDATE_IN_PROGRESS" not in api.events(path, "a")


def test_a_busy_resource_cannot_be_marked_unhealthy(api: StacksApi) -> None:
    path = api.create({"a": slow("1")})
    api.put(path, {"a": slow("2")})
    api.wait_resource(path, "a", "UPDATE_IN_PROGRESS")
    sick = {"mark_unhealthy": True}
    answer = api.ask("PATCH", f"{path}/resources/a", sick)
    assert answer.refusal == (409, "ActionInProgress")


def test_a_signal_needs_a_handler(api: StacksApi) -> None:
    path = api.create({"a": value(1)})
    answer = api.ask("POST", f"{path}/resources/a/signal", {})
    assert answer.refusal == (400, "ResourceActionNotSupported")


def test_what_is_restricted_fails_the_update(api: StacksApi) -> None:
    restricted = {"resource_registry": {"resources": {"a": {"restricted_actions": "update"}}}}
    path = api.create({"a": value(1)}, environment=restricted)
    api.put(path, {"a": value(2)}, environment=restricted)
    stack = api.settle(path, "UPDATE_FAILED")
    reason = "ResourceActionRestricted: resources.a: update is restricted for resource."
    assert reason in stack["stack_status_reason"]


def test_hooks_pause_a_resource_until_they_are_cleared(api: StacksApi) -> None:
    hooked = {"resource_registry": {"resources": {"b": {"hooks": "pre-create"}}}}
    resources = {"a": value(1), "b": value(2), "c": value(3, depends_on="b")}
    path = api.begin(document(resources), environment=hooked)
    paused = "CREATE paused until Hook pre-create is cleared"
    wait_for(lambda: paused in api.reasons(path, "b"), "the pause", timeout_s=60, every_s=0.05)
    api.wait_resource(path, "a", "CREATE_COMPLETE")
    assert (api.states(path)["b"], api.states(path)["c"]) == ("INIT_COMPLETE", "INIT_COMPLETE")
    wrong = api.ask("POST", f"{path}/resources/b/signal", {"unset_hook": "pre-update"})
    assert wrong.refusal == (400, "InvalidBreakPointHook")
    wrong = api.ask("POST", f"{path}/resources/b/signal", {"unset_hook": "nonsense"})
    assert wrong.refusal == (400, "InvalidBreakPointHook")
    cleared = api.ask("POST", f"{path}/resources/b/signal", {"unset_hook": "pre-create"})
    assert cleared.status == 200
    api.settle(path, "CREATE_COMPLETE")
    assert "Hook pre-create is cleared" in api.reasons(path, "b")


def test_a_hook_before_deletion_stops_the_stack_and_not_an_update(api: StacksApi) -> None:
    hooked = {"resource_registry": {"resources": {"b": {"hooks": "pre-delete"}}}}
    path = api.create({"a": value(1), "b": value(2)}, environment=hooked)
    api.update(path, {"a": value(1)}, environment=hooked)
    assert list(api.states(path)) == ["a"]
    path = api.create({"b": value(2)}, environment=hooked)
    assert api.ask("DELETE", path).status == 204
    paused = "DELETE paused until Hook pre-delete is cleared"
    wait_for(lambda: paused in api.reasons(path, "b"), "the pause", timeout_s=60, every_s=0.05)
    api.ask("POST", f"{path}/resources/b/signal", {"unset_hook": "pre-delete"})
    api.settle(path, "DELETE_COMPLETE")


@pytest.mark.long
def test_an_action_that_takes_too_long_is_aborted(api: StacksApi) -> None:
    path = api.begin(document({"a": test_resource(wait_secs=600)}), timeout_mins=1)
    wait_for(lambda: api.status(path) == "CREATE_FAILED", "the end", timeout_s=120, every_s=1)
    assert api.show(path)["stack_status_reason"] == "Timed out"
    assert api.resource(path, "a")["resource_status_reason"].startswith("CREATE aborted")
