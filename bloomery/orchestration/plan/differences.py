"""Differences between two values, leaf by leaf, and their masking."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from bloomery import errors

MASK: Final = "******"


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value known only during the traversal; ``after`` says when."""

    after: str = ""

    def __str__(self) -> str:
        return f"(known after {self.after})" if self.after else "(not known)"


class NotSet(enum.Enum):
    """Marks an absent value, as distinct from an explicit null."""

    NOT_SET = "(not set)"

    def __str__(self) -> str:
        return self.value


NOT_SET: Final = NotSet.NOT_SET


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A leaf that differs.  ``path`` begins with a property, or with a part such as metadata."""

    path: tuple[str | int, ...]
    before: Any
    after: Any
    certain: bool = True
    hidden: str = ""  # why the values are not shown

    @property
    def where(self) -> str:
        return errors.spelled(self.path)

    def masked(self, path: tuple[str | int, ...], why: str) -> Difference:
        """Return a copy at ``path`` with masked values, because deeper keys may reveal a secret."""
        after = self.after if isinstance(self.after, Unknown) else MASK
        return replace(self, path=path, before=MASK, after=after, hidden=why)


def between(
    before: Any, after: Any, path: tuple[str | int, ...], *, certain: bool = True
) -> Iterator[Difference]:
    """Yield each differing leaf; lists of unequal length and unequal types differ as a whole."""
    todo = [(before, after, path)]
    while todo:
        old, new, where = todo.pop()
        if isinstance(old, dict) and isinstance(new, dict):
            keys = [*old, *(key for key in new if key not in old)]
            leaves = ((key, old.get(key, NOT_SET), new.get(key, NOT_SET)) for key in reversed(keys))
            todo += [(left, right, (*where, key)) for key, left, right in leaves]
        elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
            pairs = list(enumerate(zip(old, new, strict=True)))
            todo += [(left, right, (*where, index)) for index, (left, right) in reversed(pairs)]
        elif old != new:
            yield Difference(path=where, before=old, after=new, certain=certain)
