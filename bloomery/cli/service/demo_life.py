"""Keep the rack of the demo living, so that its pages have something to show.

One deployment fails and waits for somebody who looks why; one fails and is repaired; one machine
is deployed and undeployed in turn.

    life = DemoLife(client, servers, pause=shutdown.requested.wait)
    life.show_failures()
    while life.take_turn():
        pass
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from bloomery import errors
from bloomery.cli.client import ApiError, Client
from bloomery.lab import rack, wire

_PATIENCE_S: Final = 60.0
_POLL_S: Final = 0.5
_TURN_S: Final = 20.0  # between two orders to the machine that comes and goes
_REFUSAL: Final = {"error": {"code": "Base.1.0.GeneralError", "message": "the virtual drive is "
                             "locked by another session"}}  # fmt: skip


def image_of(servers: rack.Rack) -> str:
    """Return the URL of the ISO that the rack hands out."""
    return f"{servers.address}{wire.ISO}"


class DemoLife:
    """``pause(seconds)`` waits and returns whether to stop."""

    def __init__(self, client: Client, servers: rack.Rack, pause: Callable[[float], bool]) -> None:
        self._client, self._pause = client, pause
        self._image = image_of(servers)
        self._bmcs = {machine.name: machine.bmc for machine in servers.machines}
        self._spare: list[str] = []

    def show_failures(self, names: Callable[[int], str]) -> list[str]:
        """Let two deployments fail and repair the first; return the names of both.

        ``names``: the node of each machine of the rack, by its number.
        """
        idle = [
            (names(number), bmc) for number, bmc in enumerate(self._bmcs.values(), 1)
            if self._state(names(number)) == "available"
        ]  # fmt: skip
        failing, self._spare = idle[-2:], [name for name, _ in idle[:1]]
        for name, bmc in failing:
            bmc.faults.add(kind="status", status=400, body=_REFUSAL, method="POST",
                           path="VirtualMedia.InsertMedia")  # fmt: skip
            self._deploy(name)
        for name, _ in failing:
            self._wait_for(name, "deploy failed")
        repaired = failing[0][0]
        self._order(repaired, "deleted")
        self._wait_for(repaired, "available")
        return [name for name, _ in failing]

    def take_turn(self) -> bool:
        """Wait, then deploy or undeploy the machine that comes and goes; False: stop."""
        if self._pause(_TURN_S):
            return False
        for name in self._spare:
            try:
                state = self._state(name)
                if state == "available":
                    self._deploy(name)
                elif state in ("active", "deploy failed"):
                    self._order(name, "deleted")
            except ApiError:
                continue  # somebody uses the machine otherwise
        return True

    def _deploy(self, name: str) -> None:
        info = [{"op": "add", "path": "/instance_info/boot_iso", "value": self._image}]
        self._client.patch(f"/v1/nodes/{name}", info)
        self._order(name, "active")

    def _order(self, name: str, target: str) -> None:
        self._client.put(f"/v1/nodes/{name}/states/provision", {"target": target})

    def _state(self, name: str) -> Any:
        return self._client.get(f"/v1/nodes/{name}?fields=provision_state")["provision_state"]

    def _wait_for(self, name: str, state: str) -> None:
        give_up_at = time.monotonic() + _PATIENCE_S
        while self._state(name) != state:
            if self._pause(_POLL_S) or time.monotonic() > give_up_at:
                raise errors.Conflict(reason=f"cannot show {name} in {state}: it does not come")
