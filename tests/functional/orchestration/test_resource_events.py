"""Events of resources: which are written, what they say, and to whom."""

from __future__ import annotations

import pytest

from bloomery.db import events, tables
from bloomery.db import trees as rows
from bloomery.model.stacks import Turn
from tests.functional.orchestration.test_lives import BROKEN, TEST
from tests.kit.clients.stack_calls import VALUE, StackCalls
from tests.kit.stacks import trees

SLOW = {"type": TEST, "properties": {"value": "x", "wait_secs": 1}}


@pytest.fixture
def calls(tmp_path):
    calls = StackCalls(tmp_path)
    yield calls
    calls.db.close()


def all_events(calls):
    with calls.db.read() as conn:
        return events.list_after(conn, 0, 1000)


def of_resources(calls):
    """The resource, action and status of each event of a resource."""
    return [
        (each.facts["resource_name"], each.action, each.status)
        for each in all_events(calls)
        if each.object == events.RESOURCE
    ]


def test_each_action_of_a_resource_has_its_events(calls):
    web = calls.create("web", resources={"slow": SLOW})
    calls.work(web)
    calls.operations.update_stack(
        calls.member, web, calls.arguments(resources={"slow": SLOW, "bad": BROKEN})
    )
    calls.work(web)
    calls.operations.delete_stack(calls.member, web)
    calls.work(web)
    assert [each for each in of_resources(calls) if each[0] == "slow"] == [
        ("slow", "create", "start"),
        ("slow", "create", "end"),
        ("slow", "delete", "start"),
        ("slow", "delete", "end"),
    ]
    assert ("bad", "create", "error") in of_resources(calls)


def test_an_event_of_a_resource_names_it_and_its_stack(calls):
    web = calls.create("web", resources={"bad": BROKEN})
    calls.work(web)
    event = next(each for each in all_events(calls) if each.status == "error")
    assert event.event_type == "orchestration.resource.create.error"
    assert (event.object_uuid, event.owner, event.level) == (web.uuid, "p1", "error")
    reason = event.facts["state_reason"]
    assert "Test Resource failed bad" in reason
    assert event.facts == {
        "stack_name": "web", "project": "p1", "root": web.uuid, "resource_name": "bad",
        "resource_type": TEST, "physical_resource_id": event.facts["physical_resource_id"],
        "state": "CREATE_FAILED", "state_reason": reason,
    }  # fmt: skip


def test_events_of_members_have_their_own_stack_and_name_the_root(calls):
    group = {"count": 2, "resource_def": SLOW}
    web = calls.create(
        "web", resources={"group": {"type": "OS::Heat::ResourceGroup", "properties": group}}
    )
    calls.work(web)
    (inner,) = {each.physical_id for each in calls.rows(tables.RESOURCES) if each.name == "group"}
    members = [each for each in all_events(calls) if each.facts.get("resource_type") == TEST]
    assert {each.facts["resource_name"] for each in members} == {"0", "1"}
    assert {(each.object_uuid, each.facts["root"]) for each in members} == {(inner, web.uuid)}


def test_a_hidden_value_is_in_no_event(calls):
    secret = "correct horse battery"
    broken = {"type": TEST, "properties": {"value": {"get_param": "key"}, "fail": True}}
    web = calls.create(
        declared={"key": {"type": "string", "hidden": True}}, parameters={"key": secret},
        resources={"bad": broken},
    )  # fmt: skip
    calls.work(web)
    assert ("bad", "create", "error") in of_resources(calls)
    assert secret not in repr([each.facts_text for each in all_events(calls)])


def test_a_failure_is_masked_and_a_signal_is_no_event():
    broken = trees.event(
        "FAILED", name="bad", physical_id="7", reason="refused: password=hush-hush " + "x" * 300
    )
    signal = trees.event(name="bad", physical_id="7", action="SIGNAL", reason="Signal: hush-hush")
    turn = rows.encode(Turn(events=[broken, signal]), trees.SEALER, traversals={})
    ((_, row),) = turn.relay
    assert "hush-hush" not in row["facts"]
    assert len(turn.events) == 2


def test_events_of_a_stack_and_of_its_resources_are_one_list(tmp_path, world):
    calls = StackCalls(tmp_path, db=world.site.db)
    web, other = (calls.create(name, resources={"a": VALUE}) for name in ("web", "other"))
    for each in (web, other):
        calls.work(each)
    path = "/ext/v1/events?since=0"
    listed = world.api.get(f"{path}&stack={web.uuid}").json["events"]
    assert [each["event_type"] for each in listed] == [
        "orchestration.stack.create.start",
        "orchestration.resource.create.start",
        "orchestration.resource.create.end",
        "orchestration.stack.create.end",
    ]
    of_kind = world.api.get(f"{path}&type=orchestration.resource").json["events"]
    assert {each["object_uuid"] for each in of_kind} == {web.uuid, other.uuid}
