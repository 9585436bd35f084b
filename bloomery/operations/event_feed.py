"""Events for callers who may see them: pages, and streams.

Callers who may list all events see all; others see events of their project's nodes, owned or
leased, and of its stacks, by the owner at the time of the event.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import events
from bloomery.events import selection as selections
from bloomery.events.live import Stream
from bloomery.events.selection import Selection
from bloomery.model import webhook
from bloomery.model.rules import idents
from bloomery.operations import policy
from bloomery.operations.context import Context

_OF_STACKS: Final = (events.STACK, events.RESOURCE)
_BATCH: Final = 500
_MOST_EXAMINED: Final = 5000  # rows of one page: few of them may match


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The type of events, and one object at most.

    ``node``: UUID or name; the UUID may be that of a deleted node.  ``stack``, and ``object``,
    which is any object with events: a UUID.
    """

    event_type: str | None = None
    node: str | None = None
    stack: str | None = None
    object: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Events after number ``since`` and up to ``until``; ``descending``: the newest first."""

    since: int
    until: int | None = None
    descending: bool = False

    def after(self, number: int) -> Span:
        """Return what is left behind the event of that number."""
        if self.descending:
            return dataclasses.replace(self, until=number - 1)
        return dataclasses.replace(self, since=number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """``last_id``: where a later request continues; ``rest``: the span of the next page, if any."""

    documents: list[dict[str, Any]]
    last_id: int
    rest: Span | None = None


def list_page(
    ctx: Context, query: Query, since: int | None, until: int | None, *, newest_first: bool,
    limit: int,
) -> Page:  # fmt: skip
    """Return the first ``limit`` events after number ``since`` and up to ``until``, at most.

    Without ``since``: events that are committed after this call.  Raises Forbidden, Invalid,
    NodeNotFound.
    """
    project = policy.visible_project(ctx, "events")
    selection = _select(ctx, query, project)
    documents: list[dict[str, Any]] = []
    with ctx.services.db.read() as conn:
        last_id = events.last_id(conn) if since is None or newest_first else since
        span = Span(since=last_id if since is None else since, until=until, descending=newest_first)
        for examined, stored in enumerate(_read(conn, span, selection.object_uuid)):
            if len(documents) == limit or examined == _MOST_EXAMINED:
                return Page(documents=documents, last_id=last_id, rest=span)
            span, last_id = span.after(stored.id), max(last_id, stored.id)
            if selection.takes(stored):
                hides_error = selection.hides_error(stored)
                documents.append(selections.document(stored, hides_error=hides_error))
    return Page(documents=documents, last_id=last_id)


def _read(conn: sa.Connection, span: Span, object_uuid: str | None) -> Iterator[events.EventRow]:
    """Yield the rows of a span, in batches."""
    is_over = False
    while not is_over:
        batch = events.list_after(
            conn, span.since, _BATCH, until=span.until, object_uuid=object_uuid,
            descending=span.descending,
        )  # fmt: skip
        yield from batch
        is_over = len(batch) < _BATCH
        span = span if is_over else span.after(batch[-1].id)


def listen(ctx: Context, query: Query, since: int | None) -> Callable[[Stream], None]:
    """Return a function that streams events after ``since`` to a connection.

    Without ``since``: events that are committed after this call.  Raises TooManyListeners, and the
    errors of ``list_page``.
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
    """Return the selection of events that match and are visible; project None: all."""
    webhook.check_type(query.event_type)
    if sum(each is not None for each in (query.node, query.stack, query.object)) > 1:
        raise errors.Invalid(
            reason="cannot use node, stack and object at once: ask for one of them"
        )
    hidden = {
        "owner": policy.hidden_fields(ctx, project, None),
        "lessee": policy.hidden_fields(ctx, None, project),
    }
    node = query.node
    if node is not None and not idents.is_uuid(node):
        node = policy.get_uuid(ctx, node)
    return Selection(
        event_type=query.event_type,
        objects=("node",) if node is not None else _OF_STACKS if query.stack is not None else (),
        object_uuid=node or query.stack or query.object,
        project=project,
        hides_errors_from=frozenset(
            role for role, names in hidden.items() if selections.LAST_ERROR in names
        ),
    )
