"""Orders of the other pages: a runbook run, a webhook that gets events, a conductor drained."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webdriver import WebDriver

from bloomery.cli.client import ApiError, Client
from tests.kit.clients.browser import browser  # noqa: F401  a fixture
from tests.kit.clients.window import PATIENCE_S, Window
from tests.kit.servers import web
from tests.kit.servers.served import Served
from tests.kit.waiting import wait_for
from tests.pages import conftest
from tests.pages.conftest import MARKUP
from tests.pages.test_node import ADD_STEP

STEP = {"interface": "vendor", "step": "log_passthrough", "args": {}, "order": 1}
SECRET = f"whsec_{base64.b64encode(b'k' * 32).decode()}"


@pytest.fixture
def api(service: Served) -> Client:
    return Client(service.url)


def steps_run(api: Client, node: str) -> list[Any]:
    entries = api.get(f"/ext/v1/nodes/{node}/timeline")["timeline"]
    return [each["name"] for each in entries if each["kind"] == "step"]


def test_a_runbook_is_made_of_the_steps_that_a_machine_offers(window: Window, api: Client) -> None:
    window.open("/books")
    window.see("No runbook yet")
    window.click("New runbook")
    window.fill("Name", "CUSTOM_LOG")
    window.fill("Traits", "CUSTOM_LOG CUSTOM_OLD")
    window.see("Add a step", "dialog")
    window.driver.execute_script(ADD_STEP, "management.clear_bmc_log")
    window.see("baremetal runbook create --name CUSTOM_LOG --steps", "dialog")
    window.click("Create")
    window.see("clear_bmc_log", "main")
    book = api.get("/v1/runbooks/CUSTOM_LOG")
    assert book["traits"] == ["CUSTOM_LOG", "CUSTOM_OLD"]
    api.delete(f"/v1/runbooks/{book['uuid']}")


def test_a_runbook_is_run_on_a_machine(window: Window, api: Client, make) -> None:
    node = make("book-1")
    api.put(f"/v1/nodes/{node}/states/provision", {"target": "manage"})
    api.put(f"/v1/nodes/{node}/traits/CUSTOM_TIDY", None)
    book = api.post("/v1/runbooks", {"name": "CUSTOM_TIDY", "steps": [STEP]})
    api.put("/v1/runbooks/CUSTOM_TIDY/traits/CUSTOM_TIDY", None)
    window.open("/books")
    window.click("Run")
    window.fill("Node", node)
    window.see("Steps may erase disks", "dialog")
    window.click("Run")
    window.see("CUSTOM_TIDY: ordered of book-1")
    ran = lambda: "vendor.log_passthrough" in steps_run(api, node)  # noqa: E731
    wait_for(ran, "the step", timeout_s=PATIENCE_S)
    state = lambda: api.get(f"/v1/nodes/{node}")["provision_state"]  # noqa: E731
    wait_for(lambda: state() == "manageable", "its end", timeout_s=PATIENCE_S)
    api.delete(f"/v1/runbooks/{book['uuid']}")


def test_a_webhook_is_added_parked_activated_and_deleted(window: Window, api, make) -> None:
    with web.serving({"/hook": web.text("", 204)}) as site:
        window.open("/webhooks")
        window.click("Add a webhook")
        window.fill("URL", site.url("/hook"))
        window.fill("Secret", SECRET)
        window.fill("Type of event", "baremetal.node")
        window.click("Add")
        window.see(site.url("/hook"), "main")
        make("told-1")
        wait_for(lambda: "/hook" in site.asked, "an event", timeout_s=PATIENCE_S)
        assert SECRET not in window.driver.page_source
        window.click("Park")
        window.see("parked", "main")
        window.click("Activate")
        window.see("active", "main")
        window.click("Delete")
        window.see("No webhook yet.")
    assert api.get("/ext/v1/webhooks")["webhooks"] == []


HOSTILE = ["web-1", f"{MARKUP}", "\ud800"]


def test_who_ordered_what_is_found_and_leads_to_the_machine(window, service, api, make) -> None:
    node = make("ordered-1")
    api.put(f"/v1/nodes/{node}/states/provision", {"target": "manage"})
    with pytest.raises(ApiError):
        api.post("/ext/v1/nodes:act", {"nodes": HOSTILE, "what": MARKUP})
    window.open("/audit")
    window.see("Recorded by host", "main")
    window.fill("Search orders", node)
    window.see(f"PUT /v1/nodes/{node}/states/provision manage", ".vbody")
    window.see("202", ".vbody")
    window.driver.find_element("css selector", ".vbody a").click()
    window.see("ordered-1", "h1")
    window.open("/audit?only=1&q=nodes:act")
    window.see(MARKUP, ".vbody")
    assert "ordered-1" not in window.text(".vbody")


def press_control_k(window: Window) -> None:
    keys = ActionChains(window.driver)
    keys.key_down(Keys.CONTROL).send_keys("k").key_up(Keys.CONTROL).perform()


def test_one_field_finds_pages_stacks_machines_and_orders(window: Window) -> None:
    window.open("/nodes/rack-1-u1")
    window.see("Maintenance", ".actions")
    press_control_k(window)
    window.see("page Audit", "dialog")
    window.see(f"stack {conftest.STACK}", "dialog")
    assert window.violations(1280, "light") == []
    field = window.driver.switch_to.active_element
    field.send_keys("rack-1-u2")
    window.see("machine rack-1-u2,", "dialog")
    field.send_keys(Keys.ENTER)
    window.see("rack-1-u2", "h1")
    press_control_k(window)
    window.driver.switch_to.active_element.send_keys("maintenance", Keys.ENTER)
    window.see("Maintenance: rack-1-u2", "dialog h2")
    window.click("Cancel")
    press_control_k(window)
    keys = ("stacks", Keys.ARROW_DOWN, Keys.ARROW_UP, Keys.ENTER)
    window.driver.switch_to.active_element.send_keys(*keys)
    window.see("Stacks", "h1")


def test_a_tour_of_five_cards_ends_and_begins_again(window: Window) -> None:
    window.open("/nodes")
    window.driver.execute_script("localStorage.removeItem('bloomery.tour')")
    window.open("/nodes")
    window.see("1 of 5: The four figures")
    for number in range(2, 6):
        window.click("Next card")
        window.see(f"{number} of 5:", ".tour")
        if number == 2:
            window.click("Open a machine")
            window.see("Why", "main")
            window.go("/nodes")
            window.see("2 of 5:", ".tour")
    window.click("End the tour")
    wait_for(lambda: not window.shows("End the tour"), "no tour", timeout_s=20)
    window.open("/activity")
    window.driver.find_element("id", "help").click()
    window.click("Begin the tour")
    window.see("1 of 5: The four figures")
    window.click("End the tour")


def test_a_service_that_records_nothing_says_so(tmp_path: Path, browser: WebDriver) -> None:  # noqa: F811
    with Served(tmp_path / "state") as served:
        served.wait_until_it_answers()
        window = Window(browser, served.url or "")
        window.open("/audit")
        window.see("No order is recorded: [audit]file is not set.")
        assert window.complaints() == []
        browser.get("about:blank")


CLOSED = "http://127.0.0.9:9"  # nothing listens there


def test_a_bmc_that_does_not_answer_is_found_with_its_machine(window, service, make) -> None:
    info = {"redfish_address": CLOSED, "redfish_username": "a", "redfish_password": "b"}
    node = make("mute-1", driver="redfish", driver_info=info)
    service.api("PUT", f"/v1/nodes/{node}/states/provision", {"target": "manage"})
    window.open("/bmcs")
    window.see("answers", ".vbody")
    window.see("mute-1", ".vbody")
    silent = "//button[contains(., 'Not answering')]"  # with those that other tests have called
    window.driver.find_element("xpath", silent).click()
    window.see("Not answering", "main [aria-pressed=true]")
    assert window.driver.current_url.endswith("#/bmcs?only=1")
    window.fill("Search BMCs", "nobody")
    window.see("No BMC fits the filter.")
    window.fill("Search BMCs", "127.0.0.9 mute")
    window.see("mute-1", ".vbody")
    window.driver.refresh()
    window.click("mute-1")
    window.see("mute-1", "h1")


def test_a_conductor_leads_to_its_nodes_and_its_bmcs(window: Window, service) -> None:
    [conductor] = service.api("GET", "/ext/v1/conductors")["conductors"]
    host = conductor["hostname"]
    window.open("/conductors")
    window.fill("Search conductors", "nobody")
    window.see("No conductor fits the filter.")
    window.fill("Search conductors", host)
    window.click(f"BMCs of {host}: show")
    window.see("answers", ".vbody")
    assert window.driver.current_url.endswith(f"#/bmcs?q={host}")
    window.go("/conductors")
    window.click(f"Nodes of {host}: 4")
    window.see("rack-1-u4", ".vbody")
    assert f"q=conductor:{host}" in window.driver.current_url


def test_a_conductor_is_drained(tmp_path: Path, browser: WebDriver) -> None:  # noqa: F811
    with Served(tmp_path / "state") as served:
        served.wait_until_it_answers()
        window = Window(browser, served.url or "")
        window.open("/conductors")
        window.click("Drain")
        window.see("bloomery conductor drain", "dialog")
        window.click("Drain")
        window.see("no other conductor that stays would serve", "dialog")
        window.click(
            "Also where no other conductor serves its nodes. Where one process runs everything, "
            "these pages end with it."
        )
        window.click("Drain")
        assert served.code() == 0
        window.see("The stream of events is lost")
    window.complaints()
