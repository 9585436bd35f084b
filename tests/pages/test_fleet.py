"""The fleet in the browser: found, filtered, kept live, and ordered about."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webdriver import WebDriver

from tests.kit.clients.browser import browser  # noqa: F401  a fixture
from tests.kit.clients.window import PATIENCE_S, Window
from tests.kit.servers.served import Served
from tests.kit.waiting import wait_for
from tests.pages.conftest import MARKUP, NODES
from tools.servers import free_port

NAMES = "return [...document.querySelectorAll('.vbody [data-column=name]')].map(e => e.innerText)"


def names(window: Window) -> list[str]:
    return list(window.driver.execute_script(NAMES))


def wait_for_names(window: Window, expected: list[str]) -> None:
    wait_for(lambda: sorted(names(window)) == sorted(expected), f"{expected}", timeout_s=PATIENCE_S)


def press(window: Window, selector: str) -> None:
    script = "document.querySelector(arguments[0])?.click() ?? 'none'"
    window.driver.execute_script(script, selector)


def choose(window: Window, *nodes: str) -> None:
    for node in nodes:
        window.click(f"Select {node}")


def type_keys(window: Window, *keys: str) -> None:
    window.driver.switch_to.active_element.send_keys(*keys)


_HOLD_THE_LIST = """
    const ofTheBrowser = window.fetch
    const isReleased = new Promise(resolve => { window.release = resolve })
    window.fetch = async (url, options) => {
        if (String(url).includes('/ext/v1/nodes?')) await isReleased
        return ofTheBrowser(url, options)
    }
"""


def test_nothing_is_counted_or_called_live_before_the_list_is_there(window: Window) -> None:
    order = {"source": _HOLD_THE_LIST}
    script = window.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", order)
    try:
        window.open()
        window.see("Listing nodes", "#status")
        assert window.text(".chips") == "All … ! Needs attention …"
        window.see("Listing nodes…", "main")
        window.driver.execute_script("release()")
        window.see("Live", "#status")
        window.see(f"All {NODES}", ".chips")
    finally:
        window.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)


def test_counts_are_filters_and_the_filter_is_in_the_address(window: Window) -> None:
    window.open()
    window.see("available 3")
    press(window, "[data-key=available]")
    wait_for(lambda: len(names(window)) == 3, "the available nodes", timeout_s=PATIENCE_S)
    assert window.driver.current_url.endswith("#/nodes?state=available")
    window.driver.refresh()
    wait_for(lambda: len(names(window)) == 3, "the same again", timeout_s=PATIENCE_S)
    press(window, "[data-key=all]")
    wait_for(lambda: len(names(window)) == 4, "all nodes", timeout_s=PATIENCE_S)


@pytest.mark.parametrize(
    "words", ["web-7", "SN4711", "10.0.0.7", "52:54:00:99:00:01", "p-mine", "broken fan", "uuid"]
)
def test_a_node_is_found_by_what_it_is_known_by(window, service, make, words: str) -> None:
    node = make("web-7", owner="p-mine", extra={"serial_number": "SN4711"},
                driver_info={"redfish_address": "https://10.0.0.7"})  # fmt: skip
    service.api("POST", "/v1/ports", {"node_uuid": node, "address": "52:54:00:99:00:01"})
    service.api("PUT", f"/v1/nodes/{node}/maintenance", {"reason": "broken fan"})
    window.open(f"/nodes?q={node if words == 'uuid' else words}")
    wait_for_names(window, ["web-7"])


def test_what_happens_elsewhere_is_shown_at_once(window, service, make) -> None:
    window.open("/nodes?q=live-")
    window.see("No node fits the filter.")
    node = make("live-1")
    wait_for_names(window, ["live-1"])
    service.api("PUT", f"/v1/nodes/{node}/states/provision", {"target": "manage"})
    window.see("manageable", ".vbody")
    service.api("PUT", f"/v1/nodes/{node}/maintenance", {"reason": MARKUP})
    window.see(MARKUP, ".vbody")
    window.see("1 node: in maintenance", ".problems")
    service.api("PATCH", f"/v1/nodes/{node}",
                [{"op": "add", "path": "/name", "value": "live-2"}])  # fmt: skip
    wait_for_names(window, ["live-2"])
    service.api("DELETE", f"/v1/nodes/{node}")
    window.see("No node fits the filter.")


def test_a_row_is_read_again_after_an_event_of_an_older_release(
    window, service, make, state_dir: Path
) -> None:
    node = make("older-1")
    service.api("PUT", f"/v1/nodes/{node}/states/provision", {"target": "manage"})
    window.open("/nodes?q=older-1")
    window.see("manageable", ".vbody")
    copied = "object, object_uuid, action, status, level, publisher, owner, lessee"
    with closing(sqlite3.connect(state_dir / "bloomery.sqlite", timeout=30)) as db, db:
        db.execute("UPDATE nodes SET last_error = 'no fan turns' WHERE uuid = ?", (node,))
        db.execute(
            f"INSERT INTO events (created_at, {copied}, facts) SELECT created_at, {copied}, "
            "json_remove(facts, '$.cause_code', '$.cause') FROM events "
            "WHERE object_uuid = ? AND action = 'provision_set' ORDER BY id DESC LIMIT 1", (node,),
        )  # fmt: skip
    window.see("no fan turns", ".vbody")


def test_an_order_of_many_names_its_loss_and_asks_for_the_count(window, service, make) -> None:
    for name in ("bulk-1", "bulk-2"):
        make(name)
    window.open("/nodes?q=bulk-")
    choose(window, "bulk-1", "bulk-2")
    window.see("2 selected")
    window.click("Manage")
    window.see("baremetal node manage bulk-1")
    window.click("Manage")
    window.see("Manage, 2 nodes: 2 done")
    window.click("Provide")
    window.see("Data is lost.")
    window.fill("To confirm, type the number of nodes: 2", "1")
    window.click("Provide")
    assert window.shows("Cancel")
    window.fill("To confirm, type the number of nodes: 2", "2")
    window.click("Provide")
    window.see("Provide, 2 nodes: 2 done")
    assert "selected" not in window.main(), "a second click would erase them again"
    states = {each["provision_state"] for each in service.api("GET", "/v1/nodes")["nodes"]
              if (each["name"] or "").startswith("bulk-")}  # fmt: skip
    assert states == {"available"}


def test_an_order_of_many_shows_all_that_it_hits_and_whom_it_leaves_out(
    window, service, make
) -> None:
    for number in range(30):
        make(f"hit-{number}", properties={"rack": f"r{number % 2}"})
    service.api("PUT", f"/v1/nodes/{make('hit-out')}/states/provision", {"target": "manage"})
    window.open("/nodes?q=hit-")
    window.see("manageable 1", ".chips")
    window.click("Select all nodes shown")
    window.see("31 selected")
    window.click("Manage (30)")
    window.see("rack r0, enroll: 15", "dialog")
    shown = window.text("dialog .names")
    assert all(f"hit-{number}" in shown for number in range(30))
    window.click("1 of the selection is left out: the state refuses it")
    window.see("manageable: 1 hit-out", "dialog details")
    window.click("Cancel")


def test_what_was_refused_is_said_and_ordered_again(window, service, make) -> None:
    node, _ = make("race-1"), make("race-2")
    window.open("/nodes?q=race-")
    choose(window, "race-1", "race-2")
    window.click("Maintenance")
    window.fill("Reason", "a fan")
    service.api("DELETE", f"/v1/nodes/{node}")  # by another operator
    window.click("Maintenance")
    window.see("race-1 refused")
    window.see("race-2 done")
    window.see("Order the 1 refused again")
    window.click("Order the 1 refused again")
    window.see("could not be found")


def test_columns_groups_and_order_stay_chosen(window: Window, make) -> None:
    make("owned-1", owner="p-1")
    window.open("/nodes?q=owned")
    window.fill("Group by", "provision_state")
    window.click("Columns")
    window.click("Owner")
    window.see("p-1", ".vbody")
    window.driver.refresh()
    window.see("p-1", ".vbody")
    assert "group=provision_state" in window.driver.current_url
    window.driver.execute_script("localStorage.clear()")


def test_every_row_is_reached_by_keys(window: Window) -> None:
    window.open()
    window.see("rack-1-u1")
    type_keys(window, "/")
    type_keys(window, "u2", Keys.ESCAPE)
    wait_for_names(window, ["rack-1-u2"])
    type_keys(window, "j")
    type_keys(window, "x")
    window.see("1 selected")
    type_keys(window, Keys.ENTER)
    window.see("In this state")
    type_keys(window, "?")
    window.see("search nodes", "dialog")
    type_keys(window, Keys.ESCAPE)


def test_a_node_is_enrolled_by_the_properties_of_its_driver(window: Window, service) -> None:
    window.open()
    window.click("Enrol a node")
    window.fill("Driver", "redfish")
    window.find("redfish_password", "input")
    window.see("more properties", "dialog")
    window.fill("Driver", "fake-hardware")
    window.find("B1", "input")
    assert "more properties" not in window.text("dialog"), "there is none"
    window.fill("Name", "new-1")
    window.fill("MAC address", "52:54:00:77:00:01")
    window.see("baremetal node create --driver fake-hardware --name new-1")
    window.click("Enrol")
    window.see("enroll", "main h1 + .badge")
    (port,) = [each for each in service.api("GET", "/v1/ports?detail=true")["ports"]
               if each["address"] == "52:54:00:77:00:01"]  # fmt: skip
    service.api("DELETE", f"/v1/nodes/{port['node_uuid']}")


def test_an_error_of_ten_thousand_characters_stays_readable(window, service, make) -> None:
    node = make("long-1")
    service.api("PUT", f"/v1/nodes/{node}/maintenance", {"reason": MARKUP + "x" * 4000})
    window.open("/nodes?q=long-1")
    window.see(MARKUP, ".vbody")
    width = "return document.documentElement.scrollWidth <= innerWidth"
    assert window.driver.execute_script(width)


_NO_RETRY_BY_ITSELF = """
    const ofTheBrowser = window.setTimeout;
    window.setTimeout = (work, pause) => pause < 500 ? ofTheBrowser(work, pause) : 0;
"""


def test_a_service_that_was_killed_is_caught_up_with(
    tmp_path: Path,
    browser: WebDriver,  # noqa: F811
) -> None:
    port = free_port()
    window = Window(browser, f"http://127.0.0.1:{port}")
    with Served(tmp_path / "state", port=port) as served:
        served.wait_until_it_answers()
        node = served.api("POST", "/v1/nodes", {"driver": "fake-hardware", "name": "old-1"})
        window.open()
        wait_for_names(window, ["old-1"])
        browser.execute_script(_NO_RETRY_BY_ITSELF)
        served.send(signal.SIGKILL)
        served.code()
        window.see("The stream of events is lost")
        assert names(window) == ["old-1"]
    with Served(tmp_path / "state", port=port) as served:
        served.wait_until_it_answers()
        served.api("POST", "/v1/nodes", {"driver": "fake-hardware", "name": "new-1"})
        served.api("DELETE", f"/v1/nodes/{node['uuid']}")
        window.click("Retry now")
        wait_for_names(window, ["new-1"])
        window.see("Live", "#status")
        assert "lost" not in window.text("#banner")
    window.complaints()
