"""What the clients do that openapi-python-client has generated; run in its environment.

stories.py STORY FOLDER URL: FOLDER holds the package ``generated``, URL is that of the service.
"""

# ruff: noqa: T201
from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

VERSION = {"x_open_stack_ironic_api_version": "latest"}
TEMPLATE = {
    "heat_template_version": "2021-04-16",
    "resources": {"nothing": {"type": "OS::Heat::None"}},
}

Call = Callable[..., Any]


def body(name: str, /, **values: Any) -> Any:
    models = importlib.import_module("generated.models")
    return getattr(models, name).from_dict(values)


def wait(show: Callable[[], Any], state: str) -> Any:
    until = time.monotonic() + 60
    while (found := show()) != state:
        assert time.monotonic() < until, found
        time.sleep(0.05)


def deploy(call: Call) -> None:
    """Deploy a node."""
    enrolled = body("PostV1NodesBody", driver="fake-hardware", name="g-1")
    node = call("nodes.post_v1_nodes", body=enrolled, **VERSION)
    for target, state in (
        ("manage", "manageable"), ("provide", "available"), ("active", "active"),
    ):  # fmt: skip
        order = body("PutV1NodesNodeStatesProvisionBody", target=target)
        call("nodes.put_v1_nodes_node_states_provision", node.uuid, body=order, **VERSION)
        wait(lambda: call("nodes.get_v1_nodes_node", node.uuid, **VERSION).provision_state, state)
    listed = call("nodes.get_v1_nodes", **VERSION).nodes
    print([(each.name, each.provision_state) for each in listed])


def create(call: Call) -> None:
    """Create a stack, and show it."""
    new = body("PostV1ProjectStacksBody", stack_name="g-1", template=TEMPLATE)
    stack = call("stacks.post_v1_project_stacks", "admin", body=new)["stack"]
    show = "stacks.get_v1_project_stacks_stack_name_stack_id"
    place = ("admin", "g-1", stack["id"])
    wait(lambda: call(show, *place)["stack"]["stack_status"], "CREATE_COMPLETE")
    listed = call("stacks.get_v1_project_stacks", "admin")["stacks"]
    print([(each["stack_name"], each["stack_status"]) for each in listed])


def main(story: str, folder: str, url: str) -> None:
    sys.path.insert(0, folder)
    client = importlib.import_module("generated").Client(base_url=url)

    def call(name: str, *idents: str, **more: Any) -> Any:
        function = importlib.import_module(f"generated.api.{name}").sync_detailed
        answer = function(*idents, client=client, **more)
        assert answer.status_code < 300, (name, answer.status_code, answer.content)
        return answer.parsed

    {"deploy": deploy, "create": create}[story](call)


if __name__ == "__main__":
    main(*sys.argv[1:])
