"""Orders for one machine by buttons, the operator's checks, and what a plan leaves free."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from selenium.webdriver.remote.webdriver import WebDriver

from bloomery.cli.client import Client
from bloomery.cli.fleet import Fleet, Machine
from bloomery.cli.fleet import create as create_node
from tests.kit.clients.browser import browser  # noqa: F401  a fixture
from tests.kit.clients.window import PATIENCE_S, Window
from tests.kit.servers.served import Served
from tests.kit.waiting import wait_for
from tests.pages.conftest import stacks_client
from tests.pages.test_access import SCREENS
from tests.pages.test_stacks import create, find

ROWS = "/ext/v1/nodes"
NODES = ("n-1", "n-2", "n-3")
IMAGES = {name: f"http://127.0.0.1:9/{name}.img" for name in ("old", "new")}


def template(image: str) -> dict[str, Any]:
    checksum = {"os_hash_algo": "sha256", "os_hash_value": "0" * 64}
    properties = {
        "selector": {"resource_class": "bm.plan"},
        "image": {"source": IMAGES[image]} | checksum,
    }
    web = {"type": "OS::Ironic::Instance", "properties": properties | {"name": "web"}}
    return {"heat_template_version": "2021-04-16", "resources": {"web": web}}


@pytest.fixture(scope="module")
def careful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service whose operator lets no machine lose its data in an update."""
    groups = {
        "conductor": {"preflight_timeout": "0"},  # nobody hands out the images
        "engine": {"max_data_loss_percent": "0"},
    }
    with Served(tmp_path_factory.mktemp("careful") / "state", **groups) as served:
        served.wait_until_it_answers()
        client = Client(served.url)
        for name in NODES:
            create_node(client, Machine(
                name=name, driver="fake-hardware", driver_info={}, ports=[],
                more={"resource_class": "bm.plan"},
            ))  # fmt: skip
        fleet = Fleet(client, [*NODES])
        fleet.take("manage", "manageable")
        fleet.take("provide", "available")
        for name in NODES:  # a fake machine has no power that could be read
            served.api("PUT", f"/v1/nodes/{name}/states/power", {"target": "power off"})
        powers = lambda: {node["power_state"] for node in served.api("GET", ROWS)["nodes"]}  # noqa: E731
        wait_for(lambda: powers() == {"power off"}, "their power", timeout_s=PATIENCE_S)
        yield served


@pytest.fixture
def page(browser: WebDriver, careful: Served) -> Iterator[Window]:  # noqa: F811
    window = Window(browser, careful.url or "")
    window.emulate()
    window.complaints()
    yield window
    assert window.complaints() == []
    browser.get("about:blank")


@pytest.fixture
def stack(careful: Served) -> Iterator[str]:
    client = stacks_client(careful)
    yield create(client, "web", template("old"))
    client.delete(f"/stacks/web/{find(client, 'web')['id']}")
    wait_for(lambda: find(client, "web") is None, "its end", timeout_s=PATIENCE_S)


def node_of(served: Served) -> str:
    [node] = [
        each for each in served.api("GET", "/v1/nodes")["nodes"]
        if each["provision_state"] == "active"
    ]  # fmt: skip
    return str(node["name"])


BUTTONS = {"replace": "Replace the machine", "rebuild": "Rebuild the machine"}


@pytest.mark.parametrize("action", BUTTONS)
def test_a_machine_is_replaced_or_rebuilt_by_its_button_past_the_checks(
    page: Window, careful: Served, stack: str, action: str
) -> None:
    before = node_of(careful)
    page.open(stack)
    page.click("web, create complete")
    page.see("bloomery stack act web reboot --resource web")
    page.click(BUTTONS[action])
    page.see("Refused by the operator's checks", "dialog")
    page.see("1 of 1 machines would lose their data", "dialog")
    assert ("bm.plan" in page.text("dialog")) is (action == "replace"), "what it leaves free"
    assert [page.violations(*screen) for screen in SCREENS] == [[]] * len(SCREENS)
    page.emulate()
    page.fill("To confirm, type web", "web")
    page.click("Apply the update")
    assert page.shows("Cancel"), "the box that gets past the checks is not ticked"
    assert find(stacks_client(careful), "web")["stack_status"] == "CREATE_COMPLETE"
    page.click("Get past the checks")
    page.click("Apply the update")
    page.see("web: update ordered")
    page.see("update complete")
    assert (node_of(careful) == before) is (action == "rebuild")


def test_a_plan_shows_what_it_leaves_free_and_which_checks_refuse_it(
    page: Window, careful: Served, stack: str
) -> None:
    page.open(f"{stack}/update")
    field = page.find("Template", "textarea")
    script = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change'))"
    page.driver.execute_script(script, field, json.dumps(template("new")))
    page.click("Show the plan")
    page.see("[engine]max_data_loss_percent allows 0 %", ".notice.loss")
    page.emulate(400)
    wide = "const [each] = arguments; return each.scrollWidth > each.clientWidth"
    steps = page.driver.find_element("css selector", ".plan-steps .scroll")
    assert not page.driver.execute_script(wide, steps), "no part of it is out of sight"
    page.emulate()
    page.fill("Number of resources that lose data", "1")
    assert not page.find("Apply the update").is_enabled()
    page.click("Get past the checks")
    page.click("Apply the update")
    page.see("update complete")
    page.open("/stacks/new")
    page.fill("Name", "more")
    page.driver.execute_script(
        script, page.find("Template", "textarea"), json.dumps(template("old"))
    )
    page.click("Show the plan")
    page.see("Class Traits Machines Reserved Free Needed Given back Left free", "main")
    states = [node["provision_state"] for node in careful.api("GET", ROWS)["nodes"]]
    free = states.count("available")
    page.see(f"bm.plan \u2013 {len(NODES)} 1 {free} 1 0 {free - 1}", "main")
