"""An agent in a ramdisk, as a script: it speaks HTTP alone, and knows what it was told.

agent = Agent(api, macs=["52:54:00:00:00:01"])
agent.look_up()
agent.call()
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.fakes.client import Answer, Client

VERSION = "1.68"  # the newest that ironic-python-agent speaks
URL = "https://192.0.2.7:9999"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


class Agent:
    """One boot of an agent; ``macs`` are the addresses of the machine that it runs on."""

    def __init__(self, api: Client, macs: Sequence[str] = (), version: str = VERSION) -> None:
        self.api, self.macs, self.version = api, list(macs), version
        self.boot("")

    def boot(self, command_line: str) -> None:
        """Begin anew: all that the agent knows is the command line of its kernel."""
        words = dict(word.partition("=")[::2] for word in command_line.split())
        self.kernel_token: str | None = words.get("ipa-agent-token")
        self.node: dict[str, Any] = {}
        self.config: dict[str, Any] = {}

    @property
    def token(self) -> str | None:
        """The token of the kernel's command line, else the one that lookup gave."""
        lookup_token: str | None = self.config.get("agent_token")
        return self.kernel_token or lookup_token

    def try_to_look_up(self, **query: str) -> Answer:
        asked = {"addresses": ",".join(self.macs)} if self.macs else {}
        text = "&".join(f"{name}={value}" for name, value in (asked | query).items())
        return self.api.get(f"/v1/lookup?{text}", version=self.version)

    def look_up(self, **query: str) -> None:
        """Learn the node, the configuration and the token."""
        self.learn(self.try_to_look_up(**query), 200)

    def learn(self, answer: Answer, status: int) -> None:
        assert answer.status == status, answer.body
        self.node, self.config = answer.json["node"], answer.json["config"]

    def call(self, **changes: Any) -> Answer:
        """Send a heartbeat; ``changes``: what differs, None: left out.

        With ``node_ident`` it names its node so, and not in its path.
        """
        body = {
            "callback_url": URL, "agent_version": "11.0.0",
            "agent_token": self.token, "agent_verify_ca": CERTIFICATE,
        } | changes  # fmt: skip
        sent = {name: value for name, value in body.items() if value is not None}
        path = "" if "node_ident" in sent else f"/{self.node['uuid']}"
        return self.api.post(f"/v1/heartbeat{path}", sent, version=self.version)

    def inventory(self, **more: Any) -> dict[str, Any]:
        """Return what this machine is made of, as ironic-python-agent has it."""
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
    ) -> Answer:
        """Post an inventory, this machine's if none is named."""
        body = {"inventory": self.inventory()} if data is None else data
        query = "" if node_uuid is None else f"?node_uuid={node_uuid}"
        return self.api.post(f"/v1/continue_inspection{query}", body, version=version)
