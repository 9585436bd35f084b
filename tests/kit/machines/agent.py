"""The lab's agent, for tests: an answer that is not the usual one fails the test.

agent = Agent(api, macs=["52:54:00:00:00:01"])
agent.look_up()
agent.call()
"""

from __future__ import annotations

from typing import Any

from bloomery.lab import agent
from tests.fakes.client import Answer

URL = "https://192.0.2.7:9999"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


class Agent(agent.Agent):
    def look_up(self, **query: str) -> None:
        """Learn the node, the configuration and the token."""
        self.expect(self.try_to_look_up(**query), 200)

    def expect(self, answer: Answer, status: int) -> None:
        """Learn from an answer with this status."""
        assert answer.status == status, answer.body
        self.learn(answer.json)

    def call(self, **changes: Any) -> Answer:
        """Send a heartbeat; ``changes``: what differs, None: left out."""
        return super().call(**{"callback_url": URL, "agent_verify_ca": CERTIFICATE} | changes)
