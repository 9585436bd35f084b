"""Software configs and deployments in memory (``software.SoftwareStore``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bloomery import errors
from bloomery.orchestration.resources import software


class MemorySoftware:
    def __init__(self) -> None:
        self.configs: dict[str, dict[str, Any]] = {}
        self.deployments: dict[str, dict[str, Any]] = {}

    def create_config(self, uuid: str, **values: Any) -> None:
        self.configs.setdefault(uuid, {"id": uuid, **values})

    def show_config(self, uuid: str) -> Mapping[str, Any] | None:
        return self.configs.get(uuid)

    def delete_config(self, uuid: str) -> None:
        if any(one["config_id"] == uuid for one in self.deployments.values()):
            raise errors.Conflict(reason=f"cannot delete software config {uuid}: it is deployed")
        self.configs.pop(uuid, None)

    def create_deployment(self, uuid: str, **values: Any) -> None:
        self.deployments.setdefault(uuid, {"id": uuid, "output_values": {}, **values})

    def show_deployment(self, uuid: str) -> Mapping[str, Any] | None:
        return self.deployments.get(uuid)

    def update_deployment(self, uuid: str, **changes: Any) -> None:
        self.deployments[uuid] |= changes

    def delete_deployment(self, uuid: str) -> None:
        self.deployments.pop(uuid, None)

    def signal_deployment(self, uuid: str, details: Mapping[str, Any]) -> str | None:
        deployment = self.deployments[uuid]
        outputs = (self.configs.get(deployment["config_id"]) or {}).get("outputs") or ()
        changes = software.outcome(deployment, outputs, details)
        if changes is None:
            return None
        deployment |= changes
        return software.outcome_text(changes)
