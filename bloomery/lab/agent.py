"""The calls of a ramdisk's agent to the API: lookup, heartbeats, inventory.

    agent = Agent(api, macs=["52:54:00:00:00:01"])
    agent.learn(agent.try_to_look_up().json)
    agent.call(callback_url="https://127.0.0.1:9999", agent_verify_ca=certificate)

Source: ironic-python-agent and the ramdisk API of Ironic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

VERSION = "1.68"  # the newest that ironic-python-agent speaks


class Answer(Protocol):
    """An answer of the API."""

    status: int

    @property
    def json(self) -> Any: ...


class Api(Protocol):
    """The API that an agent calls."""

    def get(self, path: str, *, version: str) -> Any: ...

    def post(self, path: str, body: Any, *, version: str) -> Any: ...


class Agent:
    """One boot of an agent; ``macs`` are the addresses of the machine that it runs on."""

    def __init__(self, api: Api, macs: Sequence[str] = (), version: str = VERSION) -> None:
        self.api, self.macs, self.version = api, list(macs), version
        self.boot("")

    def boot(self, command_line: str) -> None:
        """Begin anew: all that the agent knows is the command line of its kernel."""
        parameters = dict(text.partition("=")[::2] for text in command_line.split())
        self.kernel_token: str | None = parameters.get("ipa-agent-token")
        self.node: dict[str, Any] = {}
        self.config: dict[str, Any] = {}

    @property
    def token(self) -> str | None:
        """The token of the kernel's command line, else the token of the lookup."""
        lookup_token: str | None = self.config.get("agent_token")
        return self.kernel_token or lookup_token

    def try_to_look_up(self, **query: str) -> Any:
        query = ({"addresses": ",".join(self.macs)} if self.macs else {}) | query
        text = "&".join(f"{name}={value}" for name, value in query.items())
        return self.api.get(f"/v1/lookup?{text}", version=self.version)

    def learn(self, document: dict[str, Any]) -> None:
        """Keep the node and the configuration, with the token, of an answer."""
        self.node, self.config = document["node"], document["config"]

    def call(self, **body: Any) -> Any:
        """Send a heartbeat; None leaves a field out.

        ``node_ident``: names the node in place of the path.
        """
        body = {"agent_version": "11.0.0", "agent_token": self.token} | body
        sent = {name: value for name, value in body.items() if value is not None}
        path = "" if "node_ident" in sent else f"/{self.node['uuid']}"
        return self.api.post(f"/v1/heartbeat{path}", sent, version=self.version)

    def inventory(self, **more: Any) -> dict[str, Any]:
        """Return the machine's hardware in the form of ironic-python-agent."""
        nics = [{"name": f"eth{n}", "mac_address": mac} for n, mac in enumerate(self.macs)]
        return {
            "interfaces": nics,
            "cpu": {"count": 8, "architecture": "x86_64"},
            "memory": {"physical_mb": 16384},
            "disks": [{"name": "/dev/sda", "size": 500107862016}],
            "boot": {"current_boot_mode": "uefi"},
        } | more

    def try_to_hand_in(
        self, data: Any = None, *, version: str = "1.84", node_uuid: str | None = None
    ) -> Any:
        """Post an inventory, by default this machine's."""
        body = {"inventory": self.inventory()} if data is None else data
        query = "" if node_uuid is None else f"?node_uuid={node_uuid}"
        return self.api.post(f"/v1/continue_inspection{query}", body, version=version)
