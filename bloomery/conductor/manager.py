"""The RPC endpoint of a conductor: thin, one class per noun, one method per contract method."""

from __future__ import annotations

from bloomery.conductor.endpoints.agents import AgentEndpoints
from bloomery.conductor.endpoints.allocations import AllocationEndpoints
from bloomery.conductor.endpoints.hardware import HardwareEndpoints
from bloomery.conductor.endpoints.network import NetworkEndpoints
from bloomery.conductor.endpoints.power import PowerEndpoints
from bloomery.conductor.endpoints.provisioning import ProvisioningEndpoints
from bloomery.conductor.endpoints.records import RecordEndpoints
from bloomery.conductor.runtime import ConductorRuntime


class ConductorManager(
    RecordEndpoints,
    AllocationEndpoints,
    ProvisioningEndpoints,
    AgentEndpoints,
    PowerEndpoints,
    HardwareEndpoints,
    NetworkEndpoints,
):
    """Serves ``rpc.contract.Conductor``; see there for what each method promises."""

    def __init__(self, runtime: ConductorRuntime) -> None:
        self.runtime = runtime
