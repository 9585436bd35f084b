"""Redirect a name, an id or an ARN to the URL of the stack: 302 for any method.

Clients repeat the request at the Location.
"""

from __future__ import annotations

from bloomery.api.orchestration import identity
from bloomery.api.orchestration.call import Call, Reply
from bloomery.model.stack_views import StackIdentity


def find(call: Call, stack: str) -> Reply:
    return _redirect(call, call.operations.identify_stack(call.request, stack))


def find_part(call: Call, stack: str, part: str) -> Reply:
    return _redirect(call, call.operations.identify_stack(call.request, stack), part)


def find_arn(call: Call, arn: str) -> Reply:
    """Redirect an ARN; segments below the stack are kept in the Location."""
    stack, segments = identity.parsed(arn)
    return _redirect(call, call.operations.identify_stack(call.request, stack), *segments)


def _redirect(call: Call, stack: StackIdentity, *segments: str) -> Reply:
    query = f"?{call.query_string}" if call.query_string else ""
    return Reply(location=identity.url(call, stack, *segments) + query)
