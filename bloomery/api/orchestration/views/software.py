"""Software configurations and deployments."""

from __future__ import annotations

from typing import Any

from bloomery.api.orchestration.views import time
from bloomery.model.software import ConfigSummary, SoftwareConfig, SoftwareDeployment


def config(config: SoftwareConfig) -> dict[str, Any]:
    return config.document() | {"creation_time": time(config.created_at)}


def summary(config: ConfigSummary, *, with_project: bool = False) -> dict[str, Any]:
    document: dict[str, Any] = {
        "id": config.uuid,
        "name": config.name,
        "group": config.group,
        "creation_time": time(config.created_at),
    }
    return document | ({"project": config.project} if with_project else {})


def deployment(deployment: SoftwareDeployment) -> dict[str, Any]:
    return deployment.document() | {
        "creation_time": time(deployment.created_at),
        "updated_time": time(deployment.updated_at),
    }
