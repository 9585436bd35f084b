"""RPC methods for agents."""

from __future__ import annotations

from typing import Any

from bloomery.conductor import agents
from bloomery.conductor.runtime import ConductorRuntime, Context
from bloomery.drivers.base import Heartbeat
from bloomery.model.request import Request

Json = dict[str, Any]


class AgentEndpoints:
    """Serves ``rpc.contract.Agents``."""

    runtime: ConductorRuntime

    def get_node_with_token(
        self, request: Request, node_uuid: str, caller: str | None = None
    ) -> Json:
        token = agents.make_token(self.runtime, node_uuid, caller)
        return {"uuid": node_uuid, "agent_token": token}

    def heartbeat(
        self,
        request: Request,
        node_uuid: str,
        callback_url: str,
        agent_version: str | None,
        agent_token: str | None,
        agent_verify_ca: str | None,
        agent_status: str | None,
        agent_status_message: str | None,
    ) -> None:
        heartbeat = Heartbeat(
            callback_url=callback_url, agent_version=agent_version, verify_ca=agent_verify_ca,
            status=agent_status, status_message=agent_status_message,
        )  # fmt: skip
        context = Context(runtime=self.runtime, request=request)
        agents.receive(context, node_uuid, heartbeat, agent_token)

    def continue_inspection(
        self, request: Request, node_uuid: str, inventory: Json, plugin_data: Json
    ) -> None:
        agents.continue_inspection(self.runtime, request, node_uuid, inventory, plugin_data)
