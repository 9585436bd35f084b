"""Software configurations, and their deployments to servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftwareConfig:
    """A text for a tool on a server, immutable.  ``inputs``, ``outputs``: maps with a name.

    ``config`` may be any JSON value.
    """

    uuid: str
    project: str
    name: str | None = None
    group: str | None = None
    config: Any = None
    inputs: Sequence[Mapping[str, Any]] = ()
    outputs: Sequence[Mapping[str, Any]] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    created_at: datetime

    def document(self) -> dict[str, Any]:
        """Return the configuration in the form of Heat's API, without times."""
        return {
            "id": self.uuid,
            "name": self.name,
            "group": self.group,
            "config": self.config,
            "inputs": [*self.inputs],
            "outputs": [*self.outputs],
            "options": dict(self.options),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSummary:
    """A configuration in a list."""

    uuid: str
    project: str
    name: str | None
    group: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SoftwareDeployment:
    """The deployment of a configuration to a server, and its result.

    ``stack_user_project``: of the agent on the server, whose login may read it.
    """

    uuid: str
    project: str
    stack_user_project: str | None = None
    server_id: str | None = None
    config_uuid: str
    input_values: Mapping[str, Any] = field(default_factory=dict)
    output_values: Mapping[str, Any] = field(default_factory=dict)
    action: str = "INIT"
    status: str = "COMPLETE"
    status_reason: str | None = ""
    created_at: datetime
    updated_at: datetime | None = None

    def document(self) -> dict[str, Any]:
        """Return the deployment in the form of Heat's API, without times."""
        return {
            "id": self.uuid,
            "config_id": self.config_uuid,
            "server_id": self.server_id,
            "input_values": dict(self.input_values),
            "output_values": dict(self.output_values),
            "action": self.action,
            "status": self.status,
            "status_reason": self.status_reason,
        }
