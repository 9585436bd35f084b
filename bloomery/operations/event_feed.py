"""What happened: pages of past events, and events as they come, to whoever may see them.

Callers who may list the events of everybody see all; others those of nodes that their project owns
or is lent, and of its stacks, as of the moment when each happened.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from bloomery import errors
from bloomery.db import events
from bloomery.events import selection as selections
from bloomery.events.live import Stream
from bloomery.events.selection import Selection
from bloomery.model import webhook
from bloomery.model.rules import idents
from bloomery.operations import policy
from bloomery.operations.context import Context

_BATCH: Final = 500
_MOST_EXAMINED: Final = 5000  # rows of one page: few may be asked for among many


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Of which kind, and of one object at most.

    ``node``: UUID or name; a UUID may be that of a node that is gone.  ``stack``, and ``object``,
    which is anything that has events: a UUID.
    """

    event_type: str | None = None
    node: str | None = None
    stack: str | None = None
    object: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """``last_id``: up to which number was looked; ``has_more``: there may be more after it."""

    documents: list[dict[str, Any]]
    last_id: int
    has_more: bool


def list_page(ctx: Context, query: Query, *, since: int, limit: int) -> Page:
    """Return the next ``limit`` events after number ``since``, at most; no lock, few reads.

    Raises Forbidden, Invalid, NodeNotFound.
    """
    project = policy.visible_project(ctx, "events")
    selection = _select(ctx, query, project)
    documents: list[dict[str, Any]] = []
    examined = 0
    with ctx.services.db.read() as conn:
        while examined < _MOST_EXAMINED:
            batch = events.list_after(conn, since, _BATCH)
            for stored in batch:
                if len(documents) == limit:
                    return Page(documents=documents, last_id=since, has_more=True)
                since = stored.id
                if selection.takes(stored):
                    hides_error = selection.hides_error(stored)
                    documents.append(selections.document(stored, hides_error=hides_error))
            examined += len(batch)
            if len(batch) < _BATCH:
                return Page(documents=documents, last_id=since, has_more=False)
    return Page(documents=documents, last_id=since, has_more=True)


def listen(ctx: Context, query: Query, since: int | None) -> Callable[[Stream], None]:
    """Return what begins to push events to a connection: those after ``since``, then new ones.

    Without ``since``: those that are committed after this call.  Raises TooManyListeners, and what
    ``list_page`` raises.
    """
    project = policy.visible_project(ctx, "events")
    selection = _select(ctx, query, project)
    live = ctx.services.live
    if live is None:
        raise errors.NotAcceptable(reason="cannot stream events: this process has no relay")
    live.check_room()
    if since is None:
        with ctx.services.db.read() as conn:
            since = events.last_id(conn)
    last_id = since
    return lambda stream: live.add(stream, selection, last_id)


def _select(ctx: Context, query: Query, project: str | None) -> Selection:
    """Return which events are asked for that the caller may see; None: of everybody."""
    webhook.check_type(query.event_type)
    if sum(each is not None for each in (query.node, query.stack, query.object)) > 1:
        raise errors.Invalid(
            reason="cannot use node, stack and object at once: ask for one of them"
        )
    node = query.node
    if node is not None and not idents.is_uuid(node):
        node = policy.get_uuid(ctx, node)
    return Selection(
        event_type=query.event_type,
        object="node" if node is not None else "stack" if query.stack is not None else None,
        object_uuid=node or query.stack or query.object,
        project=project,
        hides_errors_from=_not_shown_errors(ctx, project),
    )


def _not_shown_errors(ctx: Context, project: str | None) -> frozenset[str]:
    """Return as what a project may not read ``last_error`` of its nodes: owner, lessee."""
    hidden = {
        "owner": policy.hidden_fields(ctx, project, None),
        "lessee": policy.hidden_fields(ctx, None, project),
    }
    return frozenset(role for role, names in hidden.items() if selections.LAST_ERROR in names)
