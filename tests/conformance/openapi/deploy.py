"""Deploy a node with the client that openapi-python-client has generated; run in its environment.

deploy.py FOLDER URL: FOLDER holds the package ``generated``, URL is that of the service.
"""

# ruff: noqa: T201
from __future__ import annotations

import importlib
import sys
import time
from typing import Any

VERSION = {"x_open_stack_ironic_api_version": "latest"}


def main(folder: str, url: str) -> None:
    sys.path.insert(0, folder)
    client = importlib.import_module("generated").Client(base_url=url)

    def call(name: str, *idents: str, **more: Any) -> Any:
        function = importlib.import_module(f"generated.api.nodes.{name}").sync_detailed
        answer = function(*idents, client=client, **VERSION, **more)
        assert answer.status_code < 300, (name, answer.status_code, answer.content)
        return answer.parsed

    def body(name: str, /, **values: Any) -> Any:
        models = importlib.import_module("generated.models")
        return getattr(models, name).from_dict(values)

    node = call("post_v1_nodes", body=body("PostV1NodesBody", driver="fake-hardware", name="g-1"))
    for target, state in (
        ("manage", "manageable"), ("provide", "available"), ("active", "active"),
    ):  # fmt: skip
        order = body("PutV1NodesNodeStatesProvisionBody", target=target)
        call("put_v1_nodes_node_states_provision", node.uuid, body=order)
        until = time.monotonic() + 60
        while (node := call("get_v1_nodes_node", node.uuid)).provision_state != state:
            assert time.monotonic() < until, node.provision_state
            time.sleep(0.05)
    listed = call("get_v1_nodes").nodes
    print([(each.name, node.provision_state) for each in listed])


if __name__ == "__main__":
    main(*sys.argv[1:])
