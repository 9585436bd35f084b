"""Markup in a name, a description, an error or a value is text on every page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bloomery.cli.client import Client
from tests.kit.clients.window import Window
from tests.kit.servers.served import Served
from tests.kit.waiting import wait_for
from tests.pages import conftest

IMAGE = "<img src=x onerror=window.hacked=1>"
MARKUP = f"{IMAGE}<script>window.hacked=1</script>"
TEMPLATE = {
    "heat_template_version": "2021-04-16",
    "description": MARKUP,
    "parameters": {
        "p": {"type": "string", "default": MARKUP, "description": MARKUP, "label": MARKUP},
    },
    "resources": {
        IMAGE: {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "p"}}},
        "bad": {"type": "OS::Heat::TestResource", "depends_on": IMAGE,
                "properties": {"value": MARKUP, "fail": True}},
    },
    "outputs": {"o": {"description": MARKUP, "value": MARKUP}},
}  # fmt: skip


WORDS = {
    "/webhooks": "127.0.0.1:9", "/books": "CUSTOM_HOSTILE", "/conductors": "online",
    "/users": "admin",
}  # fmt: skip


@pytest.fixture(scope="module")
def hostile(service: Served) -> Iterator[dict[str, str]]:
    api, stacks = Client(service.url), conftest.stacks_client(service)
    node = api.post("/v1/nodes", {
        "driver": "fake-hardware", "name": "hostile",
        "description": MARKUP, "resource_class": MARKUP[:80],
        "extra": {MARKUP: MARKUP}, "properties": {"rack": MARKUP, "slot": MARKUP},
        "instance_info": {"display_name": MARKUP},
    })  # fmt: skip
    api.patch("/v1/nodes/hostile", [
        {"op": "add", "path": f"/{field}", "value": MARKUP} for field in ("owner", "lessee")
    ])  # fmt: skip
    api.put("/v1/nodes/hostile/maintenance", {"reason": MARKUP})
    port = api.post("/v1/ports", {
        "node_uuid": node["uuid"], "address": "52:54:00:66:00:01", "physical_network": IMAGE,
        "local_link_connection": {
            "switch_id": "52:54:00:66:00:02", "port_id": MARKUP, "switch_info": MARKUP,
        },
    })  # fmt: skip
    steps = [{"interface": "deploy", "step": "x", "args": {MARKUP: MARKUP}, "order": 1}]
    book = api.post("/v1/runbooks", {"name": "CUSTOM_HOSTILE", "steps": steps})
    allocation = api.post("/v1/allocations", {
        "name": "hostile", "resource_class": MARKUP[:80], "owner": MARKUP,
    })  # fmt: skip
    webhook = api.post("/ext/v1/webhooks", {
        "url": "http://127.0.0.1:9/", "secret": f"whsec_{'a' * 32}", "description": MARKUP,
    })  # fmt: skip
    order: dict[str, Any] = {
        "stack_name": "hostile",
        "disable_rollback": True,
        "template": TEMPLATE,
    }
    stack = stacks.post("/stacks", order)["stack"]
    path = f"/stacks/hostile/{stack['id']}"
    wait_for(lambda: stacks.get(path)["stack"]["stack_status"] == "CREATE_FAILED", "it to fail")
    yield {"node": node["uuid"], "stack": path}
    stacks.delete(path)
    api.delete(f"/ext/v1/webhooks/{webhook['uuid']}")
    for record in (f"allocations/{allocation['uuid']}", f"runbooks/{book['uuid']}",
                   f"ports/{port['uuid']}", "nodes/hostile"):  # fmt: skip
        api.delete(f"/v1/{record}")


@pytest.mark.parametrize(
    "page",
    ["/nodes", "/nodes?q=hostile&columns=owner,lessee,rack,slot,resource_class,cause",
     "/nodes/{node}", "/nodes/{node}?tab=json", "/nodes/{node}?tab=hardware",
     "/nodes/{node}?tab=events", "/events",
     "/webhooks", "/audit", "/users", "/allocations", "/books", "/conductors", "/stacks", "{stack}",
     "{stack}?tab=events", "{stack}?tab=outputs", "{stack}?tab=parameters",
     "{stack}?tab=template", "{stack}/update"],
)  # fmt: skip
def test_markup_is_text(window: Window, hostile: dict[str, str], page: str) -> None:
    window.open(page.format(**hostile))
    window.see(WORDS.get(page, "hostile"))
    made = (
        "return [window.hacked, document.querySelectorAll('img, main script, main b > b').length]"
    )
    assert window.driver.execute_script(made) == [None, 0]
