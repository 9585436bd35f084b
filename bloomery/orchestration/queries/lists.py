"""Lists of stacks, with filters, tags and pages, and of engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from bloomery import errors
from bloomery.db import engines
from bloomery.db import stacks as db
from bloomery.model.stack_views import STACK_SORT_KEYS, EngineDetails, StackQuery
from bloomery.model.stacks import Stack
from bloomery.operations.context import Context
from bloomery.orchestration.queries import access
from bloomery.orchestration.queries.access import StackContext
from bloomery.orchestration.resources.states import Status
from bloomery.orchestration.stack.secrecy import Secrecy

_INTERVALS: Final = 2  # without a heartbeat: an engine is shown as down
_TRUTH: Final = {"true": True, "false": False}
_STATUSES: Final = frozenset(str(status) for status in Status)
_SORTABLE: Final = frozenset(STACK_SORT_KEYS.values())
_FIELDS: Final = frozenset(
    {
        "uuid", "name", "action", "reason", "disable_rollback", "timeout_mins", "user", "project",
        "owner_uuid",
    }
)  # fmt: skip


def list_stacks(ctx: Context, query: StackQuery) -> list[Stack]:
    _authorize_everybody(ctx, query)
    rows = _rows(ctx, query)
    if rows is None or query.limit == 0:
        return []
    with ctx.services.db.read() as conn:
        return db.list_page(conn, rows)


def count_stacks(ctx: Context, query: StackQuery) -> int:
    _authorize_everybody(ctx, query)
    rows = _rows(ctx, query)
    if rows is None:
        return 0
    with ctx.services.db.read() as conn:
        return db.count(conn, rows)


def _authorize_everybody(ctx: Context, query: StackQuery) -> None:
    if query.everybody:
        access.authorize(ctx, "stacks:global_index")


def _rows(ctx: Context, query: StackQuery) -> db.Query | None:
    filters = dict(query.filters)
    states: list[tuple[str | None, str]] = []
    for text in filters.pop("status", ()):
        action, _, status = text.partition("_")
        states.append((None, text) if text in _STATUSES else (action, status))
    equal = {name: _values(name, texts) for name, texts in filters.items()}
    if not _FIELDS.issuperset(equal) or not all(equal.values()):
        return None
    hidden = () if query.show_hidden else ctx.services.conf.engine.hidden_stack_tags
    project = None if query.everybody else ctx.request.project
    if project is None and not query.everybody and ctx.services.policies.enforced:
        return None
    keys = [key for key in dict.fromkeys(query.sort_keys) if key in _SORTABLE]
    order = [(key, bool(query.descending)) for key in keys]
    return db.Query(
        project=project,
        equal=equal,
        states=states,
        tags=query.tags,
        tags_any=query.tags_any,
        not_tags=query.not_tags,
        not_tags_any=query.not_tags_any,
        hidden=hidden,
        deleted=query.show_deleted,
        nested=query.show_nested,
        order=order or [("created_at", query.descending is not False)],
        marker=query.marker,
        limit=query.limit,
    )


def _values(name: str, texts: Sequence[str]) -> list[Any]:
    read: Callable[[str], Any] = {"disable_rollback": _truth, "timeout_mins": _number}.get(
        name, str
    )
    return [value for value in map(read, texts) if value is not None]


def _truth(text: str) -> bool | None:
    return _TRUTH.get(str(text).lower())


def _number(text: str) -> int | None:
    return int(text) if str(text).isdecimal() and len(str(text)) < 10 else None


# --------------------------------------------------------------------------------- what is shown


def parameters_of(stack: Any, secrecy: Secrecy) -> Mapping[str, str]:
    try:
        return secrecy.serialized_parameters(stack.definition.parameters)
    except errors.Failure:  # a template of another release may not fit
        return {}


def list_services(ctx: StackContext) -> list[EngineDetails]:
    with ctx.services.db.read() as conn:
        live = engines.list_live(conn)
    if not live:
        raise errors.Unavailable(reason="cannot list engines: none is there; start one")
    now = ctx.runtime.utc()
    details = []
    for engine in live:
        silence = now - (engine.updated_at or engine.created_at)
        is_up = silence <= timedelta(seconds=_INTERVALS * engine.report_interval)
        details.append(EngineDetails(engine=engine, up=is_up))
    return details
