"""How stacks are named in URLs, in links, and in ARNs.

/v1/{project}/stacks/{name}/{id}
arn:openstack:heat::{project}:stacks/{name}/{id}{path}
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import unquote

from bloomery.api.orchestration.call import Call
from bloomery.model.stack_views import StackIdentity

_ARN_FIELDS: Final = 6
_SERVICE: Final = ["openstack", "heat"]


def of(call: Call, stack_name: str, stack_id: str) -> StackIdentity:
    """Return the stack that a URL names."""
    return StackIdentity(project=call.project, name=stack_name, uuid=stack_id)


def url(call: Call, stack: StackIdentity, *below: str) -> str:
    """Return the address of a stack, or of something of it."""
    return call.at("stacks", stack.name, stack.uuid, *below, project=stack.project)


def link(call: Call, rel: str, stack: StackIdentity, *below: str) -> dict[str, str]:
    return {"href": url(call, stack, *below), "rel": rel}


def as_document(stack: StackIdentity, path: str = "") -> dict[str, Any]:
    """Return an identity as previews spell it."""
    return {
        "tenant": stack.project,
        "stack_name": stack.name,
        "stack_id": stack.uuid,
        "path": path,
    }


def resource_path(name: str) -> str:
    """Return where a resource is below its stack; in identities names are not quoted."""
    return f"/resources/{name}"


def parsed(arn: str) -> tuple[str, list[str]]:
    """Return the ARN of the stack alone, and the segments below the stack.

    What is no ARN of a stack is returned as it is: nothing has that name.
    """
    fields = arn.split(":", _ARN_FIELDS - 1)
    words = fields[-1].split("/")
    if len(fields) < _ARN_FIELDS or fields[1:3] != _SERVICE or len(words) < 3:
        return arn, []
    fields[5] = "/".join(words[:3])
    return ":".join(fields), [unquote(word) for word in words[3:]]
