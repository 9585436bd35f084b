"""The provision verbs, and the calls of agents."""

from __future__ import annotations

from typing import Any

from bloomery.conductor import flows, verbs
from bloomery.conductor.runtime import ConductorRuntime, Context
from bloomery.drivers.base import Heartbeat
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

    def heartbeat(
        self,
        request: Request,
        node_uuid: str,
        callback_url: str,
        agent_version: str | None,
        agent_status: str | None,
        agent_status_message: str | None,
    ) -> None:
        heartbeat = Heartbeat(
            callback_url=callback_url, agent_version=agent_version, status=agent_status,
            status_message=agent_status_message,
        )  # fmt: skip
        context = Context(runtime=self.runtime, request=request)
        flows.heartbeat(context, node_uuid, heartbeat)
