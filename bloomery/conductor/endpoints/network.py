"""Virtual interfaces of nodes."""

from __future__ import annotations

from typing import Any

from bloomery.conductor import tasks
from bloomery.conductor.runtime import ConductorRuntime
from bloomery.model.request import Request

Json = dict[str, Any]


class NetworkEndpoints:
    """Serves ``rpc.contract.Network``."""

    runtime: ConductorRuntime

    def vif_attach(self, request: Request, node_uuid: str, vif_info: Json) -> None:
        with tasks.exclusive(self.runtime, request, node_uuid, "attach vif") as task:
            task.driver.network.vif_attach(task, vif_info)
            task.save()

    def vif_detach(self, request: Request, node_uuid: str, vif_id: str) -> None:
        with tasks.exclusive(self.runtime, request, node_uuid, "detach vif") as task:
            task.driver.network.vif_detach(task, vif_id)
            task.save()

    def vif_list(self, request: Request, node_uuid: str) -> list[Json]:
        with tasks.shared(self.runtime, request, node_uuid) as task:
            return task.driver.network.vif_list(task)
