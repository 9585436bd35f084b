"""Names of stacks in URLs, links and ARNs.

/v1/{project}/stacks/{name}/{id}
arn:openstack:heat::{project}:stacks/{name}/{id}{path}
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import unquote

from bloomery.api.orchestration.call import StackCall
from bloomery.model.stack_views import StackIdentity

_ARN_FIELDS: Final = 6
_SERVICE: Final = ["openstack", "heat"]


def of(call: StackCall, stack_name: str, stack_id: str) -> StackIdentity:
    return StackIdentity(project=call.project, name=stack_name, uuid=stack_id)


def url(call: StackCall, stack: StackIdentity, *segments: str) -> str:
    """Return the URL of a stack, or of a path below it."""
    return call.link("stacks", stack.name, stack.uuid, *segments, project=stack.project)


def link(call: StackCall, rel: str, stack: StackIdentity, *segments: str) -> dict[str, str]:
    return {"href": url(call, stack, *segments), "rel": rel}


def as_document(stack: StackIdentity, path: str = "") -> dict[str, Any]:
    """Return an identity as previews show it."""
    return {
        "tenant": stack.project,
        "stack_name": stack.name,
        "stack_id": stack.uuid,
        "path": path,
    }


def resource_path(name: str) -> str:
    """Return the path of a resource below its stack; identities do not quote names."""
    return f"/resources/{name}"


def parsed(arn: str) -> tuple[str, list[str]]:
    """Return the stack's ARN, and the segments below the stack.

    Text that is no ARN of a stack is returned unchanged: no stack has that name.
    """
    fields = arn.split(":", _ARN_FIELDS - 1)
    words = fields[-1].split("/")
    if len(fields) < _ARN_FIELDS or fields[1:3] != _SERVICE or len(words) < 3:
        return arn, []
    fields[5] = "/".join(words[:3])
    return ":".join(fields), [unquote(word) for word in words[3:]]
