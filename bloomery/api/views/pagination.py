"""Pages of lists, and the link to the next page."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import urlencode

from bloomery import errors
from bloomery.api import versions
from bloomery.api.declare import Call
from bloomery.model.fields import FieldTable, sort_keys
from bloomery.model.request import Page


def read(
    call: Call,
    query: Mapping[str, Any],
    fields: FieldTable,
    *,
    default_key: str = "id",
    never: Collection[str] = (),
) -> Page:
    """Return the page of the arguments limit, marker, sort_key and sort_dir."""
    limit, most = query.get("limit"), call.context.services.conf.api.max_limit
    if limit is not None and limit <= 0:
        raise errors.InvalidParameterValue(reason=f"limit must be positive, not {limit}")
    key = query.get("sort_key") or default_key
    if key in fields:
        versions.require(call.version, fields[key].since, f"sort_key {key}")
    allowed = sort_keys(fields, never)
    if key != "id" and key not in allowed:
        raise errors.InvalidParameterValue(
            reason=f"The sort_key value {key!r} is an invalid field for sorting; "
            f"allowed are {', '.join(allowed)}",
        )
    return Page(
        limit=most if limit is None else min(limit, most),
        marker=query.get("marker"),
        sort_key=key,
        descending=is_descending(query.get("sort_dir", "asc")),
    )


def is_descending(direction: str) -> bool:
    if direction not in ("asc", "desc"):
        raise errors.InvalidParameterValue(
            reason=f"Invalid sort direction: {direction}. Acceptable values are 'asc' or 'desc'",
        )
    return direction == "desc"


def next_url(call: Call, path: str, page: Page, last: str, **more: Any) -> str:
    """Return the URL of the page after the item ``last``.

    ``more`` are further arguments, written before limit and marker, without those that are None.
    """
    arguments = {"sort_key": page.sort_key, "sort_dir": "desc" if page.descending else "asc"}
    for name, value in more.items():
        if value is not None:
            arguments[name] = ",".join(value) if isinstance(value, list | tuple) else str(value)
    arguments |= {"limit": str(page.limit), "marker": last}
    return f"{call.at(path)}?{urlencode(arguments, safe=',')}"
