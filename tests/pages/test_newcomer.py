"""What a newcomer does in the first minutes: find what failed, read why, repair it."""

from __future__ import annotations

from bloomery.cli.client import Client
from bloomery.lab.rack import Rack
from tests.kit.clients.window import Window
from tests.kit.servers.served import Served
from tests.kit.waiting import wait_for
from tests.pages import conftest

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
