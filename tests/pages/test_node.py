"""A node in the browser: why it is where it is, and every order that its state takes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bloomery.conductor.states import State
from bloomery.db import hardware
from bloomery.db.engine import Database
from tests.kit.clients.window import PATIENCE_S, Window
from tests.kit.servers.served import Served
from tests.kit.waiting import wait_for
from tests.pages.conftest import MARKUP

ORDERS = """return [...document.querySelectorAll('.actions > .row > button, .why .row button')]
    .map(each => each.innerText)"""
ADD_STEP = """const choice = document.querySelector('dialog select');
    choice.value = [...choice.options].find(each => each.text === arguments[0]).value;
    choice.dispatchEvent(new Event('change'))"""
OTHERS = {"Power on", "Power off", "Shut down", "Reboot", "Maintenance", "End maintenance"}
Make = Callable[..., str]


def orders(window: Window) -> set[str]:
    shown = window.driver.execute_script(ORDERS)
    assert len(set(shown)) == len(shown), "an order has one button"
    return set(shown) - OTHERS


def show(window: Window, name: str, tab: str = "") -> None:
    window.open(f"/nodes/{name}{tab and f'?tab={tab}'}")
    window.see("Why")


def bring(service: Served, node: str, *verbs: str) -> None:
    ends = {"manage": "manageable", "provide": "available", "active": "active"}
    for verb in verbs:
        service.api("PUT", f"/v1/nodes/{node}/states/provision", {"target": verb})
        wait_for(lambda verb=verb: state(service, node) == ends[verb], verb, timeout_s=PATIENCE_S)


def state(service: Served, node: str) -> Any:
    return service.api("GET", f"/v1/nodes/{node}")["provision_state"]


def wait_for_state(service: Served, node: str, expected: str) -> None:
    wait_for(lambda: state(service, node) == expected, expected, timeout_s=PATIENCE_S)


def set_row(served: Path, node: str, **values: Any) -> None:
    with closing(sqlite3.connect(served / "bloomery.sqlite", timeout=30)) as db, db:
        names = ", ".join(f"{name} = ?" for name in values)
        db.execute(f"UPDATE nodes SET {names} WHERE uuid = ?", (*values.values(), node))


def test_the_buttons_of_each_state_are_the_verbs_that_it_takes(
    window: Window,
    service: Served,
    make: Make,
    state_dir: Path,
) -> None:
    node = make("states-1")
    labels = {"active": "Deploy", "deleted": "Undeploy"}
    window.open("/about")
    for each in State:
        set_row(state_dir, node, provision_state=each, reservation="nobody")
        set_row(state_dir, node, reservation=None)
        verbs = service.api("GET", f"/ext/v1/nodes/{node}/why")["verbs"]
        allowed = [verb["target"] for verb in verbs if verb["allowed"]]
        window.go(f"/nodes/{node}?state={each}")
        window.see(each, "h1 + .badge")
        assert orders(window) == {labels.get(verb, verb.capitalize()) for verb in allowed}, each
    set_row(state_dir, node, provision_state="enroll")


def test_verbs_that_are_refused_alike_share_one_reason(window, make) -> None:
    show(window, make("refused-1"))
    window.click("Not now")
    window.see("it is in state")
    reasons = window.driver.execute_script(
        "return [...document.querySelectorAll('.actions dd')].map(each => each.innerText)"
    )
    assert reasons == ['it is in state "enroll"']
    assert "Deploy, Rebuild" in window.text(".actions dt")


def test_a_narrow_page_is_no_wider_with_an_open_menu(window, make) -> None:
    window.emulate(360)
    show(window, make("narrow-1"))
    for menu in ("Not now", "Commands"):
        window.click(menu)
        wide, fits, opened = window.driver.execute_script(
            "const page = document.documentElement;"
            "return [page.scrollWidth, page.clientWidth,"
            " document.querySelectorAll('.actions details[open]').length]"
        )
        assert (wide <= fits, opened) == (True, 1), menu
    top, bottom = window.driver.execute_script(
        "return [document.querySelector('#help').getBoundingClientRect().top,"
        " document.querySelector('#search').getBoundingClientRect().bottom]"
    )
    assert top < bottom, "the last button of the bar has a line of its own"


def test_a_node_goes_its_way_by_buttons_alone(window, service, make) -> None:
    node = make("life-1")
    show(window, node)
    window.click("Manage")
    window.see("manageable", "h1 + .badge")
    assert window.text("p.path") == "Fleet"
    window.click("Provide")
    window.fill("To confirm, type life-1", "life-1")
    window.click("Provide")
    window.see("available", "h1 + .badge")
    window.see("Last cleaned", ".facts")
    window.click("Deploy")
    window.fill("Image", "http://images/a.img")
    window.fill("Config drive", '{"user_data": "#cloud-config"}')
    window.see("baremetal node set life-1 --instance-info image_source=http://images/a.img")
    window.see("baremetal node deploy life-1 --config-drive")
    window.click("Deploy")
    window.see("active", "h1 + .badge")
    assert service.api("GET", f"/v1/nodes/{node}")["instance_info"]["image_source"]
    window.click("Undeploy")
    window.see("Cleaning may erase all its disks.")
    window.fill("To confirm, type life-1", "life-1")
    window.click("Undeploy")
    window.see("available", "h1 + .badge")


def test_entries_of_a_step_have_fields_and_disks_that_stay_are_said(window, service, make) -> None:
    node = make("entries-1", firmware_interface="fake", raid_interface="fake")
    bring(service, node, "manage")
    show(window, node)
    window.click("Clean")
    window.see("The chosen steps run one after the other.", "dialog")
    window.see("Add a step", "dialog")
    window.driver.execute_script(ADD_STEP, "raid.delete_configuration")
    window.see("Clean steps may erase disks.", "dialog")
    window.find("To confirm, type entries-1", "input")
    window.click("Move the step away")
    window.driver.execute_script(ADD_STEP, "firmware.update")
    window.fill("component", "bios")
    window.fill("url", "http://images/b.bin")
    window.click("Add another of settings")
    window.click("Remove settings 2")
    window.see('"settings":[{"component":"bios","url":"http://images/b.bin"}]', "dialog")
    window.see("The chosen steps write no disk.", "dialog")
    assert not window.shows("To confirm, type entries-1", "input")
    window.click("Clean")
    window.see("Last cleaned", ".facts")
    cleaned = service.api("GET", f"/ext/v1/nodes/{node}/why")["last_cleaned"]
    assert "firmware.update" in cleaned["steps"]


def test_images_of_other_machines_are_offered(window, service, make) -> None:
    image = "http://images/of-another.img"
    make("image-1", instance_info={"image_source": image})
    node = make("image-2")
    bring(service, node, "manage", "provide")
    show(window, node)
    window.click("Deploy")
    field = window.find("Image", "input")
    script = "return [...arguments[0].list.options].map(each => each.value)"
    wait_for(lambda: image in window.driver.execute_script(script, field), "the image",
             timeout_s=PATIENCE_S)  # fmt: skip
    window.see("The image is written to the root disk", "dialog")


def test_commands_stay_within_a_dialogue(window, service, make) -> None:
    node = make("narrow-2")
    bring(service, node, "manage", "provide")
    window.emulate(400)
    show(window, node)
    window.click("Deploy")
    window.fill("Boot ISO", "http://127.0.0.1:45713/lab/any-other-with-a-long-name.iso")
    window.see("boot_iso=http://", "dialog")
    cut = """return [...document.querySelectorAll('dialog .command button')].filter(each =>
        each.scrollWidth > each.clientWidth).length"""
    assert window.driver.execute_script(cut) == 0


def test_steps_are_chosen_from_those_that_the_node_offers(window, service, make) -> None:
    node = make("steps-1")
    bring(service, node, "manage")
    show(window, node)
    window.click("Clean")
    window.see("Add a step", "dialog")
    options = window.find("Step to add", "select").text
    assert "vendor.log_passthrough" in options
    window.driver.execute_script(ADD_STEP, "vendor.log_passthrough")
    window.see('"step":"log_passthrough"', "dialog")
    window.see("The chosen steps write no disk.", "dialog")
    window.click("Clean")
    window.see("manageable -> cleaning")
    wait_for_state(service, node, "manageable")
    window.see("vendor.log_passthrough", ".flow[open]")


def test_the_sentence_of_the_next_action_has_its_button(window, make) -> None:
    show(window, make("next-1"))
    window.see("ask for manage", ".why")
    assert window.text(".why button") == "Manage"


def test_a_password_is_in_no_command(window, service, make) -> None:
    node = make("rescue-1")
    bring(service, node, "manage", "provide", "active")
    show(window, node)
    window.click("Rescue")
    window.fill("Rescue password", "hush-hush")
    window.see("--rescue-password PASSWORD")
    window.click("Rescue")
    window.see("rescue", "h1 + .badge")
    wait_for_state(service, node, "rescue")
    assert "hush-hush" not in window.driver.page_source


def test_power_and_maintenance_are_ordered(window, service, make) -> None:
    node = make("power-1")
    bring(service, node, "manage")
    show(window, node)
    window.click("Power on")
    window.see("power on", ".title")
    window.click("Reboot")
    window.see("baremetal node reboot power-1")
    window.click("Reboot")
    window.click("Maintenance")
    window.fill("Reason", MARKUP)
    window.see("baremetal node maintenance set power-1 --reason")
    window.click("Maintenance")
    window.see(MARKUP, ".why")
    window.click("End maintenance")
    window.find("Maintenance")
    assert service.api("GET", f"/v1/nodes/{node}")["maintenance"] is False


def test_a_refused_order_keeps_what_was_typed(window, service, make) -> None:
    node = make("typed-1")
    bring(service, node, "manage", "provide")
    show(window, node)
    window.click("Deploy")
    window.fill("Image", "http://images/long-name.img")
    service.api("PUT", f"/v1/nodes/{node}/states/provision", {"target": "manage"})
    wait_for_state(service, node, "manageable")
    window.click("Deploy")
    window.see("Failed:", "dialog")
    assert window.find("Image", "input").get_attribute("value") == "http://images/long-name.img"
    window.click("Cancel")
    window.see("manageable", "h1 + .badge")


def test_a_second_operator_is_told_who_holds_the_node_and_may_order_again(
    window, service, make, state_dir: Path
) -> None:
    node = make("held-1")
    bring(service, node, "manage")
    show(window, node)
    set_row(state_dir, node, reservation="conductor-of-ann")
    window.click("Power on")
    window.see("conductor-of-ann", ".toast.error")
    set_row(state_dir, node, reservation=None)
    window.click("Retry")
    window.see("Power on: ordered of held-1")
    window.see("power on", ".title")


def test_what_is_wrong_is_edited_and_shown_before_it_is_sent(window, service, make) -> None:
    info = {
        "redfish_address": "https://10.0.0.9", "redfish_username": "admin",
        "redfish_password": "old-one", "redfish_verify_ca": False,
    }  # fmt: skip
    node = make("edit-1", driver="redfish", driver_info=info, properties={"rack": "r1"})
    show(window, "edit-1")
    window.click("Edit")
    window.see("Nothing is changed yet.", "dialog")
    window.fill("Note", f"it's {MARKUP}")
    window.fill("Resource class", "bm.small")
    window.fill("Traits", "CUSTOM_B, CUSTOM_A")
    window.fill("redfish_address", "https://10.0.0.10")
    window.fill("redfish_password", "new-one")
    window.fill("redfish_username", " ")
    window.see("driver_info/redfish_address https://10.0.0.9 https://10.0.0.10", "dialog table")
    window.see("driver_info/redfish_password ****** ******", "dialog table")
    window.see("--driver-info redfish_password=PASSWORD", "dialog")
    window.see("baremetal node unset edit-1 --driver-info redfish_username", "dialog")
    window.click("Save")
    window.see(f"it's {MARKUP}", ".note")
    shown = service.api("GET", f"/v1/nodes/{node}")
    assert shown["driver_info"] == {
        "redfish_address": "https://10.0.0.10", "redfish_password": "******",
        "redfish_verify_ca": False,
    }  # fmt: skip
    assert (shown["resource_class"], shown["traits"]) == ("bm.small", ["CUSTOM_A", "CUSTOM_B"])
    assert (shown["description"], shown["properties"]) == (f"it's {MARKUP}", {"rack": "r1"})
    assert "new-one" not in window.driver.page_source


def test_an_edit_that_is_refused_keeps_what_was_typed(window, make) -> None:
    make("edit-2")
    make("edit-3")
    show(window, "edit-3")
    window.click("Edit")
    window.fill("Name", "edit-2")
    window.click("Save")
    window.see("edit-2", "dialog .failed")
    assert window.find("Name", "input").get_attribute("value") == "edit-2"
    window.click("Cancel")


def test_children_are_shown_with_their_parent(window, service, make) -> None:
    host = make("host-1")
    child = make("dpu-1", parent_node=host)
    show(window, host, "hardware")
    window.see("Child nodes", ".panel")
    window.see("dpu-1", ".panel")
    show(window, child)
    window.see("its host", ".facts")
    service.api("DELETE", f"/v1/nodes/{child}")


def test_a_node_that_is_deleted_says_so(window, service, make) -> None:
    node = make("gone-1")
    show(window, node)
    service.api("DELETE", f"/v1/nodes/{node}")
    window.see("This node is gone.")


def test_an_error_of_ten_thousand_characters_is_shown_shortened(
    window,
    make,
    state_dir: Path,
) -> None:
    node = make("error-1")
    set_row(state_dir, node, provision_state="deploy failed", last_error=MARKUP + "x" * 10_000)
    show(window, node)
    window.see(MARKUP, ".why")
    window.see("characters)", ".why")
    set_row(state_dir, node, provision_state="enroll")


def test_a_machine_says_first_which_one_it_is(window: Window, service, make) -> None:
    show(window, "rack-1-u1")
    info = service.api("GET", "/v1/nodes/rack-1-u1")["driver_info"]
    window.see(f"BMC {info['redfish_address']}", ".facts")
    window.see("MAC 52:54:", ".facts")
    link = "return document.querySelector('.facts a[target=_blank]').getAttribute('href')"
    assert window.driver.execute_script(link) == info["redfish_address"]
    for name, address in (("href-1", "javascript:alert(1)"), ("href-2", 'x"onclick=alert(1)')):
        make(name, driver_info={"redfish_address": address})
        show(window, name)
        window.see(f"BMC {address}", ".facts")
        hrefs = "return [...document.querySelectorAll('.facts a')].map(each => each.href)"
        assert window.driver.execute_script(hrefs) == []


def test_a_flow_that_failed_shows_where(window: Window, service, make) -> None:
    login = {"redfish_username": "a", "redfish_password": "b"}
    info = {"redfish_address": "http://127.0.0.1:9"} | login
    node = make("flow-1", driver="redfish", driver_info=info)
    service.api("PUT", f"/v1/nodes/{node}/states/provision", {"target": "manage"})
    last = f"/v1/nodes/{node}?fields=last_error"
    wait_for(lambda: service.api("GET", last)["last_error"], "the fault", timeout_s=PATIENCE_S)
    show(window, node)
    window.see("failed", ".flow summary")
    bar = "return document.querySelector('.why .flow-bar').ariaLabel"
    assert window.driver.execute_script(bar).endswith("failed")


def test_a_flow_that_runs_shows_its_steps_to_come_as_wide_as_they_usually_are(
    window: Window,
) -> None:
    def step(name: str, position: int, at: str, **more: Any) -> dict[str, Any]:
        return {"kind": "step", "flow_id": "f", "flow": "deploy", "name": name, "at": at,
                "position": position, "state": "running", "usual": None} | more  # fmt: skip

    usual = {"runs": 20, "median_s": 30, "p95_s": 40}
    ahead = [{"name": "deploy.switch", "usual": usual}, {"name": "deploy.boot", "usual": None}]
    document = {
        "running": {"flow_id": "f", "ahead": ahead},
        "timeline": [
            step("deploy.write", 2, "2026-01-01T00:00:10+00:00", duration_s=30),
            step("deploy.prepare", 1, "2026-01-01T00:00:00+00:00", duration_s=10,
                 ended_at="2026-01-01T00:00:10+00:00"),
        ],
    }  # fmt: skip
    drawn = """const done = arguments[1];
        import(new URL('timeline.js', document.baseURI)).then(({flowBar, makeTimeline}) => {
            const bar = flowBar(arguments[0]), chart = makeTimeline()(arguments[0]);
            done([bar.ariaLabel, [...bar.children].map(each => Math.round(each.style.flexGrow)),
                  [...chart.querySelectorAll('.bar-fill')].map(each => each.style.left)])
        }, error => done(String(error)))"""
    window.open("/about")
    label, widths, places = window.driver.execute_async_script(drawn, document)
    assert label == (
        "deploy.prepare done, deploy.write running, deploy.switch to come, deploy.boot to come"
    )
    assert widths == [107, 321, 321, 250]  # seconds 10, 30, 30, and the mean of what is known
    assert places == ["0%", "14.2857%", "57.1429%", "99.5%"]


def test_each_part_has_a_tab(window: Window, service: Served) -> None:
    nodes = service.api("GET", "/v1/nodes?provision_state=available&driver=redfish")["nodes"]
    show(window, nodes[0]["name"], "hardware")  # its newest flow is a cleaning
    window.see("52:54:", ".panel")
    window.fill("Search BIOS settings", "BootMode")
    window.see("BootMode", ".panel")
    assert "NumCores" not in window.text(".panel")
    window.click("Timeline")
    window.see("bios.read_hardware")
    bars = "return document.querySelectorAll('.bar-usual').length"
    wait_for(lambda: window.driver.execute_script(bars), "usual durations", timeout_s=PATIENCE_S)
    flows = "return [...document.querySelectorAll('.flow')].map(each => each.open)"
    assert window.driver.execute_script(flows)[:2] == [True, False]
    window.driver.execute_script("document.querySelectorAll('.flow summary')[1].click()")
    window.driver.execute_script("document.getElementById('tab-json').click()")
    window.see('"driver"', ".panel")
    window.click("Timeline")
    wait_for(
        lambda: window.driver.execute_script(flows)[:2] == [True, True], "what was opened",
        timeout_s=PATIENCE_S,
    )  # fmt: skip
    window.driver.execute_script("document.getElementById('tab-events').click()")
    window.see("node.provision_set")
    window.click("States")
    place = "return document.querySelector('.panel svg .here')?.textContent"
    state_name = window.text("h1 + .badge")[1:]  # behind its sign
    wait_for(
        lambda: state_name in (window.driver.execute_script(place) or ""), state_name,
        timeout_s=PATIENCE_S,
    )  # fmt: skip
    window.click("JSON")
    window.see('"driver": "redfish"', ".panel")
    shown = json.loads(window.text(".panel pre"))
    assert shown["driver_info"]["redfish_password"] == "******"


def test_erased_disks_are_shown(window: Window, service: Served, state_dir: Path) -> None:
    disks = [
        {"name": "/dev/sda", "serial": MARKUP, "is_erased": True},
        {"name": "/dev/sdb", "serial": "S-2", "is_erased": False},
    ]
    proof = {"step": "erase_devices", "ended_at": "2026-01-02T00:00:00+00:00", "disks": disks}
    node = service.api("GET", "/v1/nodes/rack-1-u1")["uuid"]
    with closing(Database(f"sqlite:///{state_dir / 'bloomery.sqlite'}")) as database:
        database.transact(lambda conn: hardware.add_erasure(conn, node, proof))
    show(window, "rack-1-u1", "hardware")
    window.see("erase_devices", ".panel")
    text = window.text(".panel")
    assert MARKUP in text
    assert text.count("not erased") == 1


@pytest.mark.parametrize("name", ["nobody", "..%2Ffleet", MARKUP.replace(" ", "%20")])
def test_a_node_that_is_not_there_is_said(window: Window, name: str) -> None:
    window.open(f"/nodes/{name}")
    window.see("Failed:")
