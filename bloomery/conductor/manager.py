"""The RPC endpoint of a conductor: one class per noun, one method per contract method.

Larger classes are in ``endpoints``.
"""

from __future__ import annotations

from typing import Any

from bloomery.conductor import allocations, tasks, verbs
from bloomery.conductor.endpoints.agents import AgentEndpoints
from bloomery.conductor.endpoints.hardware import HardwareEndpoints
from bloomery.conductor.endpoints.power import PowerEndpoints
from bloomery.conductor.endpoints.records import RecordEndpoints
from bloomery.conductor.runtime import ConductorRuntime, Context
from bloomery.model.provision import ProvisionArguments
from bloomery.model.request import Request

Json = dict[str, Any]


class ProvisioningEndpoints:
    """Serves ``rpc.contract.Provisioning``."""

    runtime: ConductorRuntime

    def do_provisioning_action(
        self, request: Request, node_uuid: str, verb: str, arguments: Json
    ) -> None:
        verbs.perform(self.runtime, request, node_uuid, verb, ProvisionArguments(**arguments))


class AllocationEndpoints:
    """Serves ``rpc.contract.Allocations``."""

    runtime: ConductorRuntime

    def create_allocation(self, request: Request, values: Json, node_uuid: str | None) -> None:
        allocations.create(Context(runtime=self.runtime, request=request), values, node_uuid)

    def destroy_allocation(self, request: Request, uuid: str) -> None:
        allocations.destroy(Context(runtime=self.runtime, request=request), uuid)


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


class ConductorManager(
    RecordEndpoints,
    AllocationEndpoints,
    ProvisioningEndpoints,
    AgentEndpoints,
    PowerEndpoints,
    HardwareEndpoints,
    NetworkEndpoints,
):
    """Serves ``rpc.contract.Conductor``, which documents the methods."""

    def __init__(self, runtime: ConductorRuntime) -> None:
        self.runtime = runtime
