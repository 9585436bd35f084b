"""Stacks from their example to their deletion, as somebody does it who has only the pages."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bloomery.cli.client import ApiError, Client
from tests.kit.clients.window import Window
from tests.kit.servers.served import Served
from tests.kit.waiting import wait_for
from tests.pages import conftest

GROUP = {
    "heat_template_version": "2021-04-16",
    "parameters": {"image": {"type": "string", "default": conftest.ISO}},
    "resources": {
        "workers": {
            "type": "OS::Ironic::InstanceGroup",
            "update_policy": {"rolling_update": {"max_unavailable": 1, "batch_size": 1,
                                                   "health_gate": {"settle_seconds": 5}}},
            "properties": {
                "count": 2,
                "member": {
                    "name": "worker-%index%", "selector": {"resource_class": "bm.test"},
                    "image": {"boot_iso": {"get_param": "image"}},
                },
            },
        },
    },
}  # fmt: skip
FAILING = {
    "heat_template_version": "2021-04-16",
    "resources": {
        "bad": {"type": "OS::Heat::TestResource", "properties": {"value": "x", "fail": True}},
        "next": {"type": "OS::Heat::Value", "depends_on": "bad", "properties": {"value": 1}},
    },
}


@pytest.fixture
def stacks(service: Served):
    client = conftest.stacks_client(service)
    yield client
    for each in client.get("/stacks")["stacks"]:
        if each["stack_name"] != conftest.STACK:
            client.delete(f"/stacks/{each['stack_name']}/{each['id']}")
            wait_for(
                lambda name=each["stack_name"]: not find(client, name), "no stack", timeout_s=60
            )


def find(client: Client, name: str) -> Any:
    """Return the stack, or None."""
    try:
        return client.get(f"/stacks/{name}")["stack"]
    except ApiError:
        return None


def create(client: Client, name: str, template: Any, status: str = "CREATE_COMPLETE") -> str:
    """Create a stack and return the path of its page."""
    order = {"stack_name": name, "disable_rollback": True, "template": template}
    stack = client.post("/stacks", order)["stack"]
    wait_for(lambda: find(client, name)["stack_status"] == status, status, timeout_s=60)
    return f"/stacks/{name}/{stack['id']}"


def test_a_stack_is_made_of_an_example_changed_by_its_plan_and_deleted(window, stacks) -> None:
    window.open("/stacks")
    window.click("New stack")
    window.see("How the sentence begins")
    window.fill("greeting", "Ahoy")
    window.click("Show the plan")
    window.see("2 to create")
    assert find(stacks, "hello") is None
    window.click("Create the stack")
    window.see("create complete")
    window.click("Outputs")
    window.see("Ahoy, rack")

    window.click("Plan an update")
    window.see("How the sentence begins")
    window.fill("greeting", "Moin")
    window.click("Show the plan")
    window.see("1 to update")
    assert find(stacks, "hello")["stack_status"] == "CREATE_COMPLETE"
    window.click("Apply the update")
    window.see("update complete")
    window.click("Outputs")
    window.see("Moin, rack")

    window.click("Delete")
    window.see("2 to delete", "dialog")
    window.fill("To confirm, type hello", "hello")
    window.driver.find_element("css selector", "dialog button.danger").click()
    window.see("This stack is gone.")
    assert find(stacks, "hello") is None


def test_constraints_are_checked_before_a_plan_is_asked_for(window: Window) -> None:
    window.open("/stacks/new?example=machine")
    window.see("Seconds until it is to have come up")
    window.fill("first_boot_timeout", "43201")
    window.click("Show the plan")
    assert "43200" in window.find("first_boot_timeout", "input").get_property("validationMessage")
    assert window.text("section[aria-label=Plan]") == ""


def test_a_template_that_cannot_be_read_is_refused_and_kept(window: Window) -> None:
    window.open("/stacks/new")
    window.see("How the sentence begins")
    window.fill("Template", "heat_template_version: 2021-04-16\nresources: {a: {type: No::Such}}")
    window.click("Show the plan")
    window.see("No::Such")
    window.see("Failed:")
    assert "No::Such" in window.find("Template", "textarea").get_property("value")


def test_an_update_that_loses_data_asks_for_the_number(window, stacks) -> None:
    before = find(stacks, conftest.STACK)
    window.open(f"/stacks/{conftest.STACK}/{before['id']}/update")
    window.see("empty keeps the stored value")
    template = {key: value for key, value in conftest.TEMPLATE.items() if key != "outputs"}
    without = {"sentence": template["resources"]["sentence"]}
    text = json.dumps(template | {"resources": without})
    window.driver.execute_script(
        "arguments[0].value = arguments[1]", window.find("Template", "textarea"), text
    )
    window.click("Show the plan")
    window.see("1 lose data: server")
    apply = window.find("Apply the update")
    assert not apply.is_enabled()
    window.fill("Number of resources that lose data", "1")
    assert apply.is_enabled()
    assert find(stacks, conftest.STACK)["stack_status"] == before["stack_status"]


def test_the_history_plans_the_way_back(window, stacks) -> None:
    def document(value: str) -> dict[str, Any]:
        thing = {"type": "OS::Heat::TestResource", "properties": {"value": value}}
        return {"heat_template_version": "2021-04-16", "resources": {"a": thing}}

    page = create(stacks, "web", document("first"))
    stacks.put(page, {"template": document("second")})
    wait_for(
        lambda: find(stacks, "web")["stack_status"] == "UPDATE_COMPLETE", "update", timeout_s=60
    )
    window.open(page)
    window.click("History")
    window.see("2 (current)")
    window.see("1 updated")
    window.click("Compare")
    window.see("template.resources.a.properties.value", "dialog")
    window.see("bloomery stack diff web 1 2", "dialog")
    window.driver.find_element("css selector", "dialog button.primary").click()
    window.emulate(400)
    way_back = window.find("Plan the way back")
    right = window.driver.execute_script(
        "return arguments[0].getBoundingClientRect().right", way_back
    )
    assert right <= 400, "it is in sight on a telephone"
    window.emulate()
    window.click("Plan the way back")
    window.see("1 to update", "dialog")
    window.driver.find_element("css selector", "dialog button.primary").click()
    window.see("3 (current)")
    value = stacks.get(f"{page}/template")["resources"]["a"]["properties"]["value"]
    assert value == "first"


def test_a_template_is_shown_as_it_was_written_and_a_fault_leads_to_its_line(
    window, stacks
) -> None:
    written = "heat_template_version: 2021-04-16\n# why: a test\nresources:\n" + "\n".join(
        f"  r{number}: {{type: OS::Heat::Value, properties: {{value: {number}}}}}"
        for number in range(60)
    )
    page = create(stacks, "written", written + "\n")
    window.open(f"{page}?tab=template")
    window.see("# why: a test")
    shown = "return document.querySelector('.numbered').textContent"
    assert window.driver.execute_script(shown) == written + "\n"
    window.open(f"{page}/update")
    window.see("Show the plan")
    area = window.find("Template", "textarea")
    assert area.get_property("value") == written + "\n"
    window.fill("Template", written + "\n   bad: 1\n")
    window.click("Show the plan")
    window.click("Go to line 64")
    chosen = (
        "const a = document.activeElement; return a.value.slice(a.selectionStart, a.selectionEnd)"
    )
    assert window.driver.execute_script(chosen) == "   bad: 1"


def test_hidden_values_are_on_no_page(window, stacks) -> None:
    stack = find(stacks, conftest.STACK)
    for tab in ("parameters", "template", "outputs"):
        window.open(f"/stacks/{conftest.STACK}/{stack['id']}?tab={tab}")
        window.see("Plan an update")
        assert ("hush-hush" in window.main()) is (tab == "template")  # the default, as written
    window.open(f"/stacks/{conftest.STACK}/{stack['id']}/update")
    window.see("empty keeps the stored value")
    assert window.find("secret", "input").get_property("value") == ""


def test_a_failure_is_explained_and_what_depends_on_it_is_still_to_come(window, stacks) -> None:
    path = create(stacks, "failing", FAILING, "CREATE_FAILED")
    window.open(path)
    window.see("Failed: 1")
    window.see("read the reasons of the resources that failed")
    graph = "return [...document.querySelectorAll('.resource')].map(e => e.getAttribute('class'))"
    assert window.driver.execute_script(graph) == ["resource k-failed", "resource k-idle later"]
    window.go("/stacks?kind=failed")
    window.see("failing")


def test_a_roll_out_is_paused_and_resumed_and_members_are_folded(window, stacks) -> None:
    path = create(stacks, "group", GROUP)
    window.open(path)
    window.see("\N{MULTIPLICATION SIGN} 2")
    stacks.patch(path, {"parameters": {"image": f"{conftest.ISO}?2"}})
    window.see("update in progress")
    window.driver.find_element("css selector", "[data-id=workers]").click()
    window.see("Roll-out: running")
    window.click("Pause")
    window.see("Roll-out: paused")
    window.see("waits for roll-out paused", ".why .cause")
    window.see("2 members")
    window.click("Resume")
    window.see("update complete")


def test_a_window_and_a_drain_are_ended_by_their_buttons(window, stacks) -> None:
    template = copy.deepcopy(GROUP)
    workers = template["resources"]["workers"]
    opens = datetime.now(UTC) + timedelta(hours=12)
    closed = {"begin": f"{opens:%H:%M}", "end": f"{opens + timedelta(hours=1):%H:%M}"}
    workers["update_policy"]["rolling_update"]["window"] = closed
    drain = {"url": "http://balancer.invalid/", "secret": "whsec_" + "A" * 32}
    workers["properties"] |= {"count": 1, "drain": drain}
    path = create(stacks, "night", template)
    window.open(path)
    stacks.patch(path, {"parameters": {"image": f"{conftest.ISO}?2"}})
    window.see("waits for its window, which opens", ".why .cause")
    window.driver.find_element("css selector", "[data-id=workers]").click()
    window.see("Roll-out: waiting")
    window.click("Resume")
    window.see("waits for its drain before rebuild", ".why .cause")
    window.click("Open the nested stack")
    wait_for(lambda: window.driver.find_elements("css selector", "[data-id='0']"), "the member")
    window.driver.find_element("css selector", "[data-id='0']").click()
    window.see("has failed: the name of the server is not known")
    window.click("Clear the drain")
    window.see("update complete")
    del workers["properties"]["drain"], workers["update_policy"]["rolling_update"]["window"]
    stacks.patch(path, {"template": template})  # so that its deletion is not drained
    wait_for(lambda: stacks.get(path)["stack"]["stack_status"] == "UPDATE_COMPLETE", "the update")


def test_resources_are_coloured_by_their_events(window, stacks) -> None:
    """The page reads nothing of the stack once the resource waits."""
    waiting = {"handle": {"get_resource": "handle"}, "timeout": 600}
    resources = {
        "handle": {"type": "OS::Heat::WaitConditionHandle"},
        "slow": {"type": "OS::Heat::WaitCondition", "properties": waiting},
    }
    template = {"heat_template_version": "2021-04-16", "resources": resources}
    path = create(stacks, "coloured", template, "CREATE_IN_PROGRESS")
    window.open(path)
    window.see("in progress 1", ".counts")
    window.driver.execute_script(
        "const before = fetch; fetch = (url, more) =>"
        " String(url).includes('stacks') ? new Promise(() => {}) : before(url, more)"
    )
    stacks.post(f"{path}/resources/handle/signal", {"status": "SUCCESS"})
    window.see("complete 2", ".counts")
    classes = "return [...document.querySelectorAll('.resource')].map(e => e.getAttribute('class'))"
    assert window.driver.execute_script(classes) == ["resource k-ok"] * 2
    window.see("create in progress")
    window.open("/events?type=orchestration.resource")
    window.see("coloured/slow")
