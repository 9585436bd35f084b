"""A rack of simulated servers, a service that runs it, and a browser that shows its pages.

No test passes whose window logs an error, breaks its policy or asks another origin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.remote.webdriver import WebDriver

from bloomery.cli.client import Client
from bloomery.cli.fleet import Fleet, Machine, create
from bloomery.cli.stacks import StackRun
from bloomery.lab.rack import Rack
from tests.kit.clients.browser import browser  # noqa: F401  a fixture
from tests.kit.clients.window import Window
from tests.kit.servers.served import Served
from tools.servers import free_port

NODES = 4
STACK = "servers"
MARKUP = "<img src=x onerror=alert(1)>"
ISO = "http://127.0.0.1/images/demo.iso"  # the simulated drives take any address
TEMPLATE = {
    "heat_template_version": "2021-04-16",
    "description": "A server and a sentence.",
    "parameters": {
        "greeting": {"type": "string", "default": "Hello"},
        "secret": {"type": "string", "hidden": True, "default": "hush-hush"},
    },
    "resources": {
        "sentence": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "greeting"}}},
        "slot": {"type": "OS::Ironic::Allocation", "properties": {"resource_class": "bm.test"}},
        "server": {
            "type": "OS::Ironic::Instance",
            "properties": {"name": "server", "allocation": {"get_resource": "slot"},
                           "image": {"boot_iso": ISO}},
        },
    },
    "outputs": {"node": {"value": {"get_attr": ["server", "node_name"]}}},
}  # fmt: skip


@pytest.fixture(scope="session")
def rack() -> Iterator[Rack]:
    with Rack(NODES, apart=True, consoles=True) as servers:
        yield servers


@pytest.fixture(scope="session")
def state_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served") / "state"


@pytest.fixture(scope="session")
def service(state_dir: Path, rack: Rack) -> Iterator[Served]:
    """A service with a node for each machine of the rack, and a stack that has one deployed."""
    conductor = {"preflight_timeout": "0"}  # nobody hands out the ISO
    events, first = {"webhook_allow_local": "true"}, free_port()
    console = {"allow_local": "true", "port_range": f"{first}:{first + NODES + 1}"}
    default = {"enabled_console_interfaces": "console-server,fake,no-console"}
    audit = {"file": "audit.jsonl"}
    redfish = dict.fromkeys(
        ("firmware_update_status_interval", "firmware_update_reboot_delay"), "1"
    ) | {"firmware_update_validation_interval": "0"}
    groups = {
        "DEFAULT": default,
        "audit": audit,
        "events": events,
        "conductor": conductor,
        "console": console,
        "redfish": redfish,
    }
    with Served(state_dir, **groups) as served:
        served.wait_until_it_answers()
        machines = [
            Machine(
                name=f"rack-1-u{number}", driver="redfish", driver_info=server.driver_info,
                ports=[{"address": server.mac}],
                more={"resource_class": "bm.test", "console_interface": "console-server"},
            )
            for number, server in enumerate(rack.machines, 1)
        ]  # fmt: skip
        client = Client(served.url)
        for machine in machines:
            create(client, machine)
        fleet = Fleet(client, [machine.name for machine in machines])
        fleet.take("manage", "manageable")
        fleet.take("provide", "available")
        stack = StackRun(stacks_client(served), STACK)
        stack.create({"template": TEMPLATE})
        stack.watch("CREATE_COMPLETE")
        yield served


def stacks_client(served: Served) -> Client:
    return Client(f"{served.url}/ext/v1/orchestration/v1/admin")


@pytest.fixture
def window(browser: WebDriver, service: Served) -> Iterator[Window]:  # noqa: F811
    shown = Window(browser, service.url)
    shown.emulate()
    shown.complaints()  # of the browser's own start
    yield shown
    assert shown.complaints() == []
    browser.get("about:blank")


@pytest.fixture
def make(service: Served) -> Iterator[Callable[..., str]]:
    """Make a fake node; it is gone after the test."""
    made = []

    def make(name: str, owner: str | None = None, **values: Any) -> str:
        node = service.api("POST", "/v1/nodes", {"driver": "fake-hardware", "name": name} | values)
        made.append(node["uuid"])
        if owner is not None:
            change = [{"op": "add", "path": "/owner", "value": owner}]
            service.api("PATCH", f"/v1/nodes/{node['uuid']}", change)
        return made[-1]

    yield make
    present = {each["uuid"] for each in service.api("GET", "/v1/nodes")["nodes"]}
    for uuid in present.intersection(made):
        service.api("PUT", f"/v1/nodes/{uuid}/maintenance", {})
        service.api("DELETE", f"/v1/nodes/{uuid}")
