"""Software configurations and deployments."""

from __future__ import annotations

from typing import Any

from bloomery.api.orchestration.views import time
from bloomery.model.software import ConfigSummary, SoftwareConfig, SoftwareDeployment


def config(config: SoftwareConfig) -> dict[str, Any]:
    return {
        "id": config.uuid,
        "name": config.name,
        "group": config.group,
        "config": config.config,
        "inputs": [*config.inputs],
        "outputs": [*config.outputs],
        "options": dict(config.options),
        "creation_time": time(config.created_at),
    }


def summary(config: ConfigSummary, *, with_project: bool = False) -> dict[str, Any]:
    document: dict[str, Any] = {
        "id": config.uuid,
        "name": config.name,
        "group": config.group,
        "creation_time": time(config.created_at),
    }
    return document | ({"project": config.project} if with_project else {})


def deployment(deployment: SoftwareDeployment) -> dict[str, Any]:
    return {
        "id": deployment.uuid,
        "config_id": deployment.config_uuid,
        "server_id": deployment.server_id,
        "input_values": dict(deployment.input_values),
        "output_values": dict(deployment.output_values),
        "action": deployment.action,
        "status": deployment.status,
        "status_reason": deployment.status_reason,
        "creation_time": time(deployment.created_at),
        "updated_time": time(deployment.updated_at),
    }
