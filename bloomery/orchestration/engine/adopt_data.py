"""The adopt data of a stack: the document from which another stack can be adopted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bloomery.model.stacks import Stack, StoredResource, Template, copy_json


def of_stack(
    stack: Stack, template: Template, resources: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the document of a stack; ``resources``: its entries of resources, by name."""
    return {
        "name": stack.name,
        "id": stack.uuid,
        "action": str(stack.action),
        "status": str(stack.status),
        "template": dict(template.template),
        "environment": dict(template.environment),
        "files": dict(template.files),
        "resources": resources,
        "project_id": stack.project,
        "stack_user_project_id": None,
        "tags": list(stack.tags),
    }


def of_resource(resource: StoredResource, nested: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry of a resource; ``nested``: the document of the stack that it owns."""
    return {
        **nested,
        "name": resource.name,
        "type": resource.type,
        "resource_id": resource.physical_id,
        "action": str(resource.action),
        "status": str(resource.status),
        "metadata": copy_json(resource.metadata),
        "resource_data": copy_json(resource.data),
    }
