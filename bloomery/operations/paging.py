"""Pages of lists: how long, from where, in which order, and where the next one is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from bloomery import errors
from bloomery.model.fields import FieldTable
from bloomery.operations import versions
from bloomery.operations.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What a caller asked of a list; ``limit`` is that of the answer."""

    limit: int
    marker: str | None = None
    sort_key: str = "id"
    sort_dir: str = "asc"

    @property
    def descending(self) -> bool:
        return self.sort_dir == "desc"

    def is_full(self, count: int) -> bool:
        """Another page may follow: also after an exactly full last one."""
        return count == self.limit


def read(
    ctx: Context,
    asked: Mapping[str, Any],
    fields: FieldTable,
    *,
    default_key: str = "id",
    never: Iterable[str] = (),
) -> Page:
    """Return the page that the arguments limit, marker, sort_key and sort_dir ask for."""
    return Page(
        limit=_limit(ctx, asked.get("limit")),
        marker=asked.get("marker"),
        sort_key=_sort_key(ctx, asked.get("sort_key") or default_key, fields, never),
        sort_dir=_sort_dir(asked.get("sort_dir", "asc")),
    )


def _limit(ctx: Context, asked: int | None) -> int:
    most = ctx.services.conf.api.max_limit
    if asked is None:
        return most
    if asked <= 0:
        raise errors.InvalidParameterValue(reason=f"limit must be positive, not {asked}")
    return min(asked, most)


def _sort_key(ctx: Context, key: str, fields: FieldTable, never: Iterable[str]) -> str:
    if key == "id":
        return key
    field = fields.get(key)
    if field is None or not field.can_sort or key in never:
        allowed = sorted(f.name for f in fields.values() if f.can_sort and f.name not in never)
        raise errors.InvalidParameterValue(
            reason=f"The sort_key value {key!r} is an invalid field for sorting; "
            f"allowed are id, {', '.join(allowed)}",
        )
    versions.require(ctx.version, field.since, f"sort_key {key}")
    return key


def _sort_dir(asked: str) -> str:
    if asked not in ("asc", "desc"):
        raise errors.InvalidParameterValue(
            reason=f"Invalid sort direction: {asked}. Acceptable values are 'asc' or 'desc'",
        )
    return asked


def next_url(ctx: Context, path: str, page: Page, last: str, **more: Any) -> str:
    """Return the address of the page after the one that ends with ``last``.

    ``more`` are further arguments, written before limit and marker; those that are None stay
    out, and so do filters that are not true.
    """
    said = {"sort_key": page.sort_key, "sort_dir": page.sort_dir}
    said |= {name: _written(value) for name, value in more.items() if value is not None}
    said |= {"limit": str(page.limit), "marker": last}
    return f"{ctx.url}/v1/{path}?{urlencode(said, safe=',')}"


def _written(value: Any) -> str:
    return ",".join(value) if isinstance(value, list | tuple) else str(value)
