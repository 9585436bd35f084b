"""Groups, wait conditions and nested stacks."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.kit.clients.stacks_api import StacksApi, document, test_resource, value
from tests.kit.waiting import wait_for

INNER = """
heat_template_version: 2021-04-16
resources: {in: {type: OS::Heat::TestResource, properties: {fail: FAIL}}}
"""


def group(count: int, member: Any = None, **properties: Any) -> dict[str, Any]:
    properties = {"count": count, "resource_def": member or value("v-%index%"), **properties}
    return {"g": {"type": "OS::Heat::ResourceGroup", "properties": properties}}


def members(api: StacksApi, path: str) -> dict[str, str]:
    """Physical ids of the members by their names."""
    listed = api.get(f"{path}/resources?nested_depth=1")["resources"]
    return {
        each["resource_name"]: each["physical_resource_id"]
        for each in listed
        if each.get("parent_resource") == "g"
    }


def test_a_member_that_was_removed_is_skipped_for_good(api: StacksApi) -> None:
    path = api.create(group(3))
    removed = [{"resource_list": ["1"]}]
    api.update(path, group(3, removal_policies=removed))
    assert set(members(api, path)) == {"0", "2", "3"}
    api.update(path, group(3))
    assert set(members(api, path)) == {"0", "2", "3"}
    fresh = [{"resource_list": ["0"]}]
    api.update(path, group(3, removal_policies=fresh, removal_policies_mode="update"))
    assert set(members(api, path)) == {"1", "2", "3"}


def test_members_are_listed_in_the_order_of_their_numbers(api: StacksApi) -> None:
    outputs = {
        "values": {"value": {"get_attr": ["g", "value"]}},
        "map": {"value": {"get_attr": ["g", "attributes", "value"]}},
    }
    path = api.create(group(12, value({"%index%": "v-%index%"})), outputs=outputs)
    shown = api.outputs(path)
    assert shown["values"] == [{"%index%": f"v-{number}"} for number in range(12)]
    assert shown["map"]["11"] == {"%index%": "v-11"}
    assert api.output({"get_attr": ["g", "value"]}, group(0)) == []


def test_the_highest_numbers_leave_first_and_the_others_stay(api: StacksApi) -> None:
    path = api.create(group(3))
    before = members(api, path)
    api.update(path, group(2))
    assert members(api, path) == {name: before[name] for name in ("0", "1")}


def test_a_child_is_hidden_from_lists_and_named_after_its_parent(api: StacksApi) -> None:
    path = api.create(group(1))
    _, name, ident = path.split("/")
    listed = {each["stack_name"]: each for each in api.get("stacks")["stacks"]}
    assert name in listed
    nested = {each["stack_name"]: each for each in api.get("stacks?show_nested=True")["stacks"]}
    [child] = [each for each in nested.values() if each["parent"] == ident]
    assert child["stack_name"] not in listed
    assert re.fullmatch(rf"{name}-g-[a-z2-7]{{12}}", child["stack_name"])


def test_reasons_of_failures_name_the_whole_way(api: StacksApi) -> None:
    path = api.begin(
        document({"n": {"type": "inner.yaml"}}),
        files={"inner.yaml": INNER.replace("FAIL", "true")},
    )
    stack = api.settle(path, "CREATE_FAILED")
    assert "resources.n.resources.in: " in stack["stack_status_reason"]


def test_a_child_may_be_deleted_and_its_parent_keeps_its_state(api: StacksApi) -> None:
    path = api.create(
        {"n": {"type": "inner.yaml"}}, files={"inner.yaml": INNER.replace("FAIL", "false")}
    )
    [item] = [r for r in api.get(f"{path}/resources?nested_depth=1")["resources"]
              if r["resource_name"] == "in"]  # fmt: skip
    [link] = [link["href"] for link in item["links"] if link["rel"] == "stack"]
    child = "stacks/" + link.rpartition("/stacks/")[2]
    api.delete(child)
    assert api.status(path) == "CREATE_COMPLETE"


def test_a_wait_handle_counts_signals_by_their_ids(api: StacksApi) -> None:
    resources = {
        "h": {"type": "OS::Heat::WaitConditionHandle"},
        "w": {
            "type": "OS::Heat::WaitCondition",
            "properties": {"handle": {"get_resource": "h"}, "timeout": 60, "count": 2},
        },
    }
    path = api.begin(document(resources, outputs={"o": {"value": {"get_attr": ["w", "data"]}}}))
    api.wait_resource(path, "w", "CREATE_IN_PROGRESS")

    def signal(**details: Any) -> None:
        answer = api.ask("POST", f"{path}/resources/h/signal", details)
        assert (answer.status, answer.document) == (200, None)

    def count() -> int:
        return api.events(path, "h").count("SIGNAL_COMPLETE")

    signal(status="WRONG")
    signal(status="SUCCESS", id="a", data="first", reason="r")
    wait_for(lambda: count() >= 1, "the first signal", timeout_s=60, every_s=0.05)
    signal(status="SUCCESS", id="a", data="again", reason="r")
    wait_for(lambda: count() >= 2, "the second signal", timeout_s=60, every_s=0.05)
    assert api.states(path)["w"] == "CREATE_IN_PROGRESS"
    signal(status="SUCCESS", data="unnamed", reason="r")
    api.settle(path, "CREATE_COMPLETE")
    data = api.outputs(path)["o"]
    assert json.loads(data) == {"a": "again", "2": "unnamed"}


def test_an_update_of_a_member_is_not_a_new_member(api: StacksApi) -> None:
    path = api.create(group(2, test_resource(value="1")))
    before = members(api, path)
    api.update(path, group(2, test_resource(value="2")))
    assert members(api, path) == before
