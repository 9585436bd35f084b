"""What a newcomer does in the first minutes: find what failed, read why, repair it."""

from __future__ import annotations

from pathlib import Path

from selenium.webdriver.remote.webdriver import WebDriver

from bloomery.cli.client import Client
from bloomery.lab.rack import Rack
from tests.kit.clients.browser import browser  # noqa: F401  a fixture
from tests.kit.clients.window import Window
from tests.kit.servers.served import Served
from tests.kit.waiting import wait_for
from tests.pages import conftest
from tests.pages.test_access import SCREENS

WORDS = "the virtual drive is locked by another session"
REFUSAL = {"error": {"code": "Base.1.0.GeneralError", "message": WORDS}}


def state(api: Client, name: str) -> str:
    return api.get(f"/v1/nodes/{name}")["provision_state"]


def fail(api: Client, rack: Rack) -> str:
    """Let the deployment of an available node fail; return its name."""
    [name, *_] = [
        each["name"] for each in api.get("/v1/nodes")["nodes"]
        if each["provision_state"] == "available"
    ]  # fmt: skip
    machine = rack.machines[int(name.removeprefix("rack-1-u")) - 1]
    machine.bmc.faults.add(
        kind="status", status=400, body=REFUSAL, method="POST", path="VirtualMedia.InsertMedia"
    )
    image = [{"op": "add", "path": "/instance_info/boot_iso", "value": conftest.ISO}]
    api.patch(f"/v1/nodes/{name}", image)
    api.put(f"/v1/nodes/{name}/states/provision", {"target": "active"})
    wait_for(lambda: state(api, name) == "deploy failed", "the failure", timeout_s=60)
    return str(name)


def test_a_failed_deployment_is_found_explained_and_repaired(
    window: Window, service: Served, rack: Rack
) -> None:
    api = Client(service.url)
    name = fail(api, rack)
    window.open("/nodes")
    window.driver.find_element("css selector", "[data-key='is:attention']").click()
    window.click(name)
    window.see(WORDS)
    window.see("Next:")
    window.click("Deploy")
    window.find("Boot ISO", "input")
    window.click("Deploy")
    wait_for(lambda: state(api, name) == "active", "the machine", timeout_s=60)
    window.see("Undeploy")
    window.click("Undeploy")
    window.fill(f"To confirm, type {name}", name)
    window.click("Undeploy")
    wait_for(lambda: state(api, name) == "available", "the machine again", timeout_s=60)
    window.see("available")


def test_an_empty_site_shows_three_ways_in(tmp_path: Path, browser: WebDriver) -> None:  # noqa: F811
    with Served(tmp_path / "state") as served:
        served.wait_until_it_answers()
        window = Window(browser, served.url or "")
        window.open()
        for command in ("lab up --write machines.json", "enrol machines.csv --dry-run",
                        "discover 10.0.0.0/24 > bmcs.csv"):  # fmt: skip
            window.see(f"bloomery {command}", ".ways")
        assert [window.violations(*screen) for screen in SCREENS] == [[]] * len(SCREENS)
        window.emulate()
        window.click("Add 8 fake nodes")
        window.see("enroll 8", ".chips")
        window.see("fake-rack", ".vbody")
        assert window.complaints() == []
        browser.get("about:blank")


def test_fake_nodes_are_refused_without_their_driver(tmp_path: Path, browser: WebDriver) -> None:  # noqa: F811
    hardware = {"DEFAULT": {"enabled_hardware_types": "redfish"}}
    with Served(tmp_path / "state", **hardware) as served:
        served.wait_until_it_answers()
        window = Window(browser, served.url or "")
        window.open()
        window.click("Add 8 fake nodes")
        window.see("cannot add nodes of the driver fake-hardware: [DEFAULT]enabled_hardware_types")
        assert served.api("GET", "/v1/nodes")["nodes"] == []
        window.complaints()
        browser.get("about:blank")


def test_the_tour_is_gone_once_its_last_card_is_followed(window: Window) -> None:
    window.open()
    for _ in range(4):
        window.click("Next card")
    window.click("Show the documents")
    window.see("Licences")
    window.go("/nodes")
    window.see("need attention")
    assert "of 5:" not in window.main()
    window.driver.execute_script("localStorage.clear()")


def test_an_allocation_of_a_stack_has_the_name_of_its_resource(
    window: Window, service: Served
) -> None:
    [allocation] = Client(service.url).get("/v1/allocations")["allocations"]
    window.open("/allocations")
    window.see("slot of a stack")
    assert allocation["uuid"] not in window.main()
