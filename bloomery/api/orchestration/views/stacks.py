"""Stacks, their outputs and their snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bloomery.api.orchestration import identity
from bloomery.api.orchestration.call import StackCall
from bloomery.api.orchestration.views import resources as resource_views
from bloomery.api.orchestration.views import time
from bloomery.model.stack_views import (
    Output,
    PreviewedStack,
    StackDetails,
    StackIdentity,
    UpdatePreview,
)
from bloomery.model.stacks import Snapshot, Stack

Json = dict[str, Any]


def listed(call: StackCall, stack: Stack, *, with_project: bool = False) -> Json:
    """Return a stack as lists show it, without the description, which is in the template.

    An untagged stack has null here and an empty list in ``shown``, as in Heat.
    """
    project = {"project": stack.project} if with_project else {}
    return _common(call, stack) | {"description": "", "tags": list(stack.tags) or None} | project


def _common(call: StackCall, stack: Stack) -> Json:
    return {
        "id": stack.uuid,
        "links": [identity.link(call, "self", StackIdentity.of(stack))],
        "stack_name": stack.name,
        "stack_status": stack.state,
        "stack_status_reason": stack.reason,
        "creation_time": time(stack.created_at),
        "updated_time": time(stack.updated_at),
        "deletion_time": time(stack.deleted_at),
        "stack_owner": stack.user,
        "parent": stack.owner_uuid,
        "stack_user_project_id": None,
        "tags": list(stack.tags),
    }


def shown(call: StackCall, details: StackDetails) -> Json:
    """Return one stack; the key ``outputs`` is absent where they were not requested."""
    document = _common(call, details.stack) | {
        "description": details.description,
        "template_description": details.description,
        "parameters": dict(details.parameters),
        "capabilities": [],
        "notification_topics": [],
        "disable_rollback": details.stack.disable_rollback,
        "timeout_mins": details.stack.timeout_mins,
    }
    if details.outputs is not None:
        document["outputs"] = [output(each) for each in details.outputs]
    return document


def output(output: Output) -> Json:
    error = {} if output.error is None else {"output_error": output.error}
    return named_output(output) | {"output_value": output.value} | error


def named_output(output: Output) -> Json:
    return {"output_key": output.key, "description": output.description}


def previewed(call: StackCall, stack: PreviewedStack) -> Json:
    """Return a previewed stack, which has no state and no times."""
    return {
        "id": stack.identity.uuid,
        "links": [identity.link(call, "self", stack.identity)],
        "stack_name": stack.identity.name,
        "description": stack.description,
        "template_description": stack.description,
        "parameters": dict(stack.parameters),
        "capabilities": [],
        "notification_topics": [],
        "disable_rollback": stack.disable_rollback,
        "timeout_mins": stack.timeout_mins,
        "creation_time": None,
        "updated_time": None,
        "deletion_time": None,
        "stack_owner": stack.user,
        "parent": None,
        "stack_user_project_id": None,
        "tags": list(stack.tags),
        "outputs": [output(each) for each in stack.outputs],
        "resources": _trees(stack.resources),
    }


def _trees(resources: Sequence[Any]) -> list[Any]:
    """Return the previewed resources; a nested stack is a list in place of its resource."""
    return [
        _trees(each) if isinstance(each, Sequence) else resource_views.raw(each)
        for each in resources
    ]


def update_preview(preview: UpdatePreview) -> Json:
    parts = {
        "unchanged": preview.unchanged,
        "updated": preview.updated,
        "replaced": preview.replaced,
        "added": preview.added,
        "deleted": preview.deleted,
    }
    return {word: [resource_views.raw(each) for each in part] for word, part in parts.items()}


def snapshot(snapshot: Snapshot) -> Json:
    return {
        "id": snapshot.uuid,
        "name": snapshot.name,
        "action": snapshot.action,
        "status": snapshot.status,
        "status_reason": snapshot.reason or None,
        "data": snapshot.data,
        "creation_time": time(snapshot.created_at),
    }
