"""A tree for the tests of what drives trees: it does by script what orders ask for."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Iterable

from bloomery.model.stacks import Stack, Tree, Turn


class FakeTree:
    """Each order takes ``TURNS`` turns, and then all stacks are complete.

    ``waits_on`` are objects; until each was told of ``due_at`` is never.  ``hold`` stops a turn.
    """

    TURNS = 2

    def __init__(self, tree: Tree, *, waits_on: Iterable[str] = ()) -> None:
        self.stacks: list[Stack] = list(tree.stacks)
        self.missing = set(waits_on)
        self.looks: list[str | None] = []
        self.turns: list[Turn] = []
        self.go_on = threading.Event()
        self.go_on.set()
        self.fault: Exception | None = None
        self.inside = threading.Event()
        self._left = 0
        self._taken: list[int] = []
        self.take(tree)

    @property
    def is_idle(self) -> bool:
        return not self._left and not self.missing

    def take(self, accepted: Tree) -> None:
        self._taken += [order.id for order in accepted.orders]
        self._left = self.TURNS

    def turn(self) -> Turn:
        self.inside.set()
        assert self.go_on.wait(20)
        if self.fault is not None:
            raise self.fault
        self._left = max(self._left - 1, 0)
        stacks: list[Stack] = []
        if self.is_idle:
            self.stacks = stacks = [
                dataclasses.replace(stack, status="COMPLETE") for stack in self.stacks
            ]
        turn = Turn(stacks=stacks, orders=tuple(self._taken), is_idle=self.is_idle)
        self._taken = []
        self.turns.append(turn)
        return turn

    def written(self, turn: Turn) -> None:
        """Nobody listens."""

    def due_at(self) -> float | None:
        return time.monotonic() if self._left or not self.missing else None

    def waits(self) -> Iterable[str]:
        return set(self.missing)

    def wake(self, uuid: str | None) -> None:
        self.looks.append(uuid)
