"""Notifications of stacks as Heat sends them: ``orchestration.stack.<action>.<start|end|error>``.

Notifications of resources, ``orchestration.resource``, add three fields to those of the stack.

They are not versioned: the payload is a plain map, sent to the topics of
[oslo_messaging_notifications].
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

OBJECTS: Final = ("stack", "resource")  # of event rows
RESOURCE_FIELDS: Final = ("resource_name", "resource_type", "physical_resource_id")
EXCHANGE: Final = "heat"


def payload(stack_uuid: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return Heat's payload; ``facts`` are those of the event row.

    The description, which is in the template only, is null.
    """
    project, name, user = facts.get("project"), facts.get("stack_name"), facts.get("user")
    return {
        "tenant_id": project,
        "user_id": user,
        "user_identity": user,
        "username": user,
        "stack_identity": f"arn:openstack:heat::{project}:stacks/{name}/{stack_uuid}",
        "stack_name": name,
        "state": facts.get("state"),
        "state_reason": facts.get("state_reason"),
        "create_at": _time(facts.get("created_at")),
        "updated_at": _time(facts.get("updated_at")),
        "description": None,
        "tags": facts.get("tags") or [],
    } | {name: facts[name] for name in RESOURCE_FIELDS if name in facts}


def _time(value: str | None) -> str | None:
    return None if value is None else f"{datetime.fromisoformat(value):%Y-%m-%dT%H:%M:%SZ}"
