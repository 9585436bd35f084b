"""The provision verbs."""

from __future__ import annotations

from typing import Any

from bloomery.conductor import verbs
from bloomery.conductor.runtime import ConductorRuntime
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
