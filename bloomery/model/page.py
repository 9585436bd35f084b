"""One page of a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """At most ``limit`` items (None: all) by ``sort_key``, ties by id, after ``marker``.

    The marker is the UUID (of conductors: the host name) of an item on the previous page.
    """

    limit: int | None = None
    marker: str | None = None
    sort_key: str = "id"
    descending: bool = False

    def is_full(self, items: Sequence[Any]) -> bool:
        """Tell whether another page may follow; True also for a last page that is exactly full."""
        return len(items) == self.limit
