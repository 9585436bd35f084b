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
        assert window.text(".chips") == "All …"
        assert window.text(".figures") == "… need attention … in use … free … working"
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
    assert window.driver.current_url.endswith("#/nodes?q=state:available")
    window.driver.refresh()
    wait_for(lambda: len(names(window)) == 3, "the same again", timeout_s=PATIENCE_S)
    press(window, "[data-key=all]")
    wait_for(lambda: len(names(window)) == 4, "all nodes", timeout_s=PATIENCE_S)


_FIGURES = "return [...document.querySelectorAll('.figure > a > b')].map(e => e.innerText)"


def test_four_numbers_lead_to_their_machines(window, service, make) -> None:
    service.api("PUT", f"/v1/nodes/{make('worn-1')}/maintenance", {"reason": "a fan"})
    window.open()
    window.see("bm.test 3", ".figures")
    assert window.driver.execute_script(_FIGURES) == ["1", "1", "3", "0"]
    press(window, "[data-key='is:attention']")
    wait_for_names(window, ["worn-1"])
    press(window, "[data-key='is:free class:bm.test']")
    wait_for(lambda: len(names(window)) == 3, "the free machines", timeout_s=PATIENCE_S)
    assert window.driver.current_url.endswith("#/nodes?q=is:free+class:bm.test")
    window.driver.refresh()
    wait_for(lambda: len(names(window)) == 3, "the same again", timeout_s=PATIENCE_S)
    window.click("Take away class:bm.test")
    assert window.driver.current_url.endswith("#/nodes?q=is:free")


_FILTER = """
    const [text, done] = arguments;
    import(new URL('filter.js', document.baseURI)).then(({parse}) => {
        const at = hours => new Date(Date.now() - hours * 3600e3).toISOString();
        const row = (name, state, hours, more) => ({name, provision_state: state, cause_code: null,
            provision_updated_at: hours ? at(hours) : null, updated_at: null, text: name, ...more});
        const rows = [
            row('a1', 'active', 3, {resource_class: 'gpu', rack: 'r1', slot: '7', health: 'OK'}),
            row('a2', 'available', .5, {resource_class: 'gpu.big', rack: 'r "1"', owner: 'p-1'}),
            row('b1', 'deploy failed', 50, {cause_code: 'deploy_failed', power_state: 'power on'}),
            row('b2', 'clean wait', 0, {resource_class: 'a.b', bmc_address: '10.0.0.7'}),
            row('b3', 'error', 1, {cause_code: 'error', text: 'b3 broken fan'}),
            row('b4', 'available', 1, {maintenance: true, cause_code: 'maintenance'}),
        ];
        const filter = parse(text);
        done([rows.filter(filter.fits).map(each => each.name).join(' '), filter.wrong]);
    });
"""
_WORDS = {
    "": "a1 a2 b1 b2 b3 b4", "b": "b1 b2 b3 b4", "b 3": "b3", '"broken fan"': "b3",
    "state:failed": "b1 b3", "state:active,error": "a1 b3", "state:clean": "b2",
    'state:"clean wait"': "b2", "-state:available": "a1 b1 b2 b3", "state:in-use": "a1",
    "is:attention": "b1 b3 b4", "is:free": "a2", "is:working": "b2", "is:maintenance": "b4",
    "class:gpu": "a1", "class:gpu*": "a1 a2", "class:GPU,a.b": "a1 b2", "class:aXb": "",
    'class:""': "b1 b3 b4", 'rack:"r \\"1\\""': "a2", "owner:p-1": "a2", "slot:7": "a1",
    "since:>2h": "a1 b1", "since:<2h": "a2 b3 b4", "since:2d": "b1", "power:on": "b1",
    "health:ok": "a1", "bmc:10.0.0.7": "b2", "cause:deploy_failed": "b1",
    "state:failed since:<2h": "b3", "10:00:7": "", "class:gpu*,": "a1 a2",
}  # fmt: skip
_WRONG = {
    "since:soon": 'since: takes how long in its state: >1h, <2d; not "soon".',
    "is:odd": "is: takes attention, in-use, working, free, maintenance, selected, ordered; "
    'not "odd".',
    "state:odd": "state: takes a state, a part of its name, or failed, on-hold, working, in-use; "
    'not "odd".',
    "ower:p-1": 'No key ower: "ower:p-1" is searched as text.',
}


def test_words_with_keys_filter_by_columns(window: Window) -> None:
    window.open()
    filtered = {text: window.driver.execute_async_script(_FILTER, text) for text in _WORDS}
    assert filtered == {text: [names, []] for text, names in _WORDS.items()}


def test_a_word_that_filters_nothing_is_told(window: Window) -> None:
    window.open()
    told = {text: window.driver.execute_async_script(_FILTER, text) for text in _WRONG}
    assert told == {text: ["", [sentence]] for text, sentence in _WRONG.items()}
    window.go("/nodes?q=since:soon")
    window.see(_WRONG["since:soon"], "main")
    window.see("No node fits the filter.")


def test_a_view_is_saved_opened_and_removed(window: Window, make) -> None:
    make("owned-1", owner="p-1")
    window.open("/nodes?q=owner:p-1&columns=owner,rack")
    window.click("Views")
    window.fill("Name of the view", MARKUP)
    window.click("Save this view")
    window.open("/nodes")
    wait_for(lambda: len(names(window)) == NODES + 1, "all nodes", timeout_s=PATIENCE_S)
    window.click("Views")
    window.click(MARKUP)
    wait_for_names(window, ["owned-1"])
    window.see("p-1", ".vbody")
    window.click("Views")
    window.click(f"Remove the view {MARKUP}")
    assert not window.shows(MARKUP)
    window.driver.execute_script("localStorage.clear()")


_SAVED = """
    const ofTheBrowser = URL.createObjectURL;
    URL.createObjectURL = blob => { window.saved = blob.text(); return ofTheBrowser(blob) };
"""


def test_the_list_is_downloaded_as_it_is_filtered(window: Window, make) -> None:
    first = make("csv-1", owner='=HYPERLINK("x")', properties={"rack": "a, b"})
    second = make("csv-2")
    window.open("/nodes?q=csv-&columns=owner,rack,provision_state")
    wait_for_names(window, ["csv-1", "csv-2"])
    window.driver.execute_script(_SAVED)
    window.click("Download CSV")
    lines = window.driver.execute_async_script("window.saved.then(arguments[0])").splitlines()
    assert lines == [
        '"name","uuid","owner","rack","provision_state"',
        f'"csv-1","{first}","\'=HYPERLINK(""x"")","a, b","enroll"',
        f'"csv-2","{second}","","","enroll"',
    ]


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
    window.see("Automated cleaning may erase all disks of the machine.", "dialog")
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


def test_an_order_of_many_goes_one_by_one_and_stops_at_a_failure(window, service, make) -> None:
    info = {"redfish_address": "http://127.0.0.1:9", "redfish_username": "a",
            "redfish_password": "b"}  # fmt: skip
    make("pace-1")
    make("pace-2", driver="redfish", driver_info=info)
    for number in range(3, 6):
        make(f"pace-{number}")
    window.open("/nodes?q=pace-")
    window.see("pace-5", ".vbody")
    window.click("Select all nodes shown")
    window.click("Manage")
    window.see("baremetal node manage pace-1 pace-2 pace-3 pace-4 pace-5", "dialog")
    window.fill("Machines at a time", "1")
    window.fill("Failures to bear", "0")
    window.click("Manage")
    window.see("Manage, 5 nodes: 1 done, 1 failed, 3 not ordered")
    states = {each["name"]: each["provision_state"]
              for each in service.api("GET", "/v1/nodes")["nodes"]}  # fmt: skip
    assert [states[f"pace-{number}"] for number in range(1, 6)] == ["manageable", *["enroll"] * 4]
    window.click("Order the other 3")
    window.see("Manage, 5 nodes: 4 done, 1 failed")
    window.click("Dismiss")


def test_an_order_of_many_goes_on_while_another_page_is_open(window, make) -> None:
    for number in range(8):
        make(f"away-{number}")
    window.open("/nodes?q=away-")
    window.see("away-7", ".vbody")
    window.click("Select all nodes shown")
    window.click("Manage")
    window.fill("Machines at a time", "1")
    window.click("Manage")
    window.go("/users")
    window.see("no logins", "main")
    window.go("/nodes?q=away-")
    window.see("Manage, 8 nodes: 8 done")
    window.click("Dismiss")


def test_a_limit_of_failures_waits_for_the_end_of_each_order(window, service, make) -> None:
    """Nothing is ordered beyond what is under way, so that a failure can stop the rest."""
    info = {"redfish_address": "http://127.0.0.1:9", "redfish_username": "a",
            "redfish_password": "b"}  # fmt: skip
    for number in range(10):
        make(f"limit-{number}", driver="redfish", driver_info=info)
    window.open("/nodes?q=limit-")
    window.see("limit-9", ".vbody")
    window.click("Select all nodes shown")
    window.click("Manage")
    window.fill("Failures to bear", "0")
    window.click("Manage")
    window.see("not ordered", ".outcomes summary")
    window.see("Order the other 2", ".outcomes")
    window.click("Dismiss")


def test_an_order_without_an_answer_is_not_called_refused(window, make) -> None:
    make("mute-1")
    make("mute-2")
    window.open("/nodes?q=mute-")
    choose(window, "mute-1", "mute-2")
    window.driver.execute_script(
        "const send = window.fetch; window.fetch = (url, options) => "
        "options.method === 'PUT' ? Promise.reject(new TypeError('lost')) : send(url, options)"
    )
    window.click("Manage")
    window.click("Manage")
    window.see("Manage, 2 nodes: 2 without an answer")
    said = window.driver.execute_script("return document.getElementById('announcer').textContent")
    assert said == "Manage: ordered of 0 of 2 nodes"
    window.click("Dismiss")


def test_an_order_of_many_is_refused_while_nothing_answers(window, make) -> None:
    make("off-1")
    make("off-2")
    window.open("/nodes?q=off-")
    choose(window, "off-1", "off-2")
    window.driver.execute_script(
        "window.answers = window.fetch; window.fetch = () => Promise.reject(new TypeError('lost'))"
    )
    window.click("Maintenance")
    window.fill("Reason", "a fan")
    window.click("Maintenance")
    window.see("the service does not answer", "dialog")
    window.driver.execute_script("window.fetch = window.answers")
    window.click("Maintenance")
    window.see("Maintenance, 2 nodes: 2 done")
    window.click("Dismiss")


def test_what_was_ordered_stays_in_sight(window, make) -> None:
    for name in ("sight-1", "sight-2", "sight-3"):
        make(name)
    window.open("/nodes?q=state:enroll sight-")
    choose(window, "sight-1", "sight-2")
    window.click("Manage")
    window.see("The machine becomes manageable", "dialog")
    window.click("Manage")
    window.see("Manage, 2 nodes: 2 done")
    wait_for_names(window, ["sight-3"])
    window.click("Show these 2")
    wait_for_names(window, ["sight-1", "sight-2"])
    window.click("Dismiss")


def test_the_selection_outlives_a_visit_elsewhere(window, make) -> None:
    make("kept-1")
    window.open("/nodes?q=kept-")
    choose(window, "kept-1")
    search = window.driver.find_element("id", "q")
    assert search.get_property("value") == "kept-"
    window.go("/about")
    window.see("Licences")
    assert search.get_property("value") == ""
    window.driver.refresh()
    window.go("/nodes")
    window.click("1 selected")
    wait_for_names(window, ["kept-1"])
    window.click("Clear")
    window.see("No node fits the filter.")


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
    window.see("Next:", "main")  # the fleet is gone
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
