"""A database that dies: after so many commits nothing is written or read any more."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import sqlalchemy as sa

from bloomery.db.engine import Database

T = TypeVar("T")


class Dead(BaseException):
    """The process has died; no code of ours catches this by name."""


class Mortal(Database):
    """Commits as often as it was told to, and then never again."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._counting = threading.RLock()
        self.commits = 0
        self.lives: int | None = None  # None: for ever
        self.died = threading.Event()

    def transact(self, work: Callable[[sa.Connection], T]) -> T:
        with self._counting:
            if self.lives is not None and self.commits >= self.lives:
                self.died.set()
                raise Dead
            result = super().transact(work)
            self.commits += 1
            return result
