"""Redirect a name, an id or an ARN to the URL of the stack: 302 for any method.

Clients repeat the request at the Location.
"""

from __future__ import annotations

from collections.abc import Callable

from bloomery.api.declare import Reply
from bloomery.api.orchestration import identity
from bloomery.api.orchestration.call import StackCall
from bloomery.model.stack_views import StackIdentity


def find(call: StackCall, stack: str) -> Reply:
    """Redirect a name, an id or an ARN; segments of an ARN below the stack are kept."""
    name, segments = identity.parsed(stack)
    return _redirect(call, call.operations.identify_stack(call.request, name), *segments)


def find_part(part: str) -> Callable[[StackCall, str], Reply]:
    """Return the function that redirects to a part of a stack."""

    def find(call: StackCall, stack: str) -> Reply:
        return _redirect(call, call.operations.identify_stack(call.request, stack), part)

    return find


def _redirect(call: StackCall, stack: StackIdentity, *segments: str) -> Reply:
    query = f"?{call.query_string}" if call.query_string else ""
    return Reply(location=identity.url(call, stack, *segments) + query)
