"""Deprecated paths with the node's ident at the end or in the query.

    /v1/nodes/states/console/<ident>            for /v1/nodes/<ident>/states/console
    /v1/nodes/maintenance?node_ident=<ident>    for /v1/nodes/<ident>/maintenance

Ironic still answers these paths; no node can have one of these words as its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from webob import exc as statuses

from bloomery import errors
from bloomery.api import routing
from bloomery.api.declare import Call
from bloomery.api.routing import Rest

WORDS: Final = frozenset({"maintenance", "management", "states", "vendor_passthru"})
IDENT: Final = "node_ident"


def with_ident_first(
    call: Call, subresources: Mapping[str, Rest], segments: Sequence[str]
) -> list[str]:
    """Return the current spelling of the path; an ident in the query moves into the path.

    Raises MissingParameterValue, and the error of an unknown method.
    """
    depth, controller = 1, subresources[segments[0]]
    while depth < len(segments) and segments[depth] in controller.children:
        controller = controller.children[segments[depth]]
        depth += 1
    path = list(segments)
    ident = call.query.pop(IDENT, None)
    if ident is None and depth < len(path):
        ident = path.pop(depth)
    is_order = path[0] == "states" and depth < len(path)  # these paths have the ident in the query
    if is_order or (not ident and call.method not in routing.allowed(controller)):
        allow = ", ".join(routing.allowed(controller))
        raise statuses.HTTPMethodNotAllowed(headers=[("Allow", allow)])
    if not ident:
        raise errors.MissingParameterValue(reason=f"Missing mandatory parameter: {IDENT}")
    if not isinstance(ident, str):
        raise errors.InvalidParameterValue(reason=f"Expected a name or UUID for {IDENT}: {ident}")
    return [ident, *path]
