"""How many calls one BMC gets at a time; the others wait, as long as their budget allows."""

from __future__ import annotations

import threading


class Slots:
    """``most`` calls at a time, ``writes`` among them that change something."""

    def __init__(self, most: int, writes: int) -> None:
        self._most, self._writes_most = most, writes
        self._busy = self._writing = 0
        self._freed = threading.Condition()

    def enter(self, *, write: bool, timeout_s: float) -> bool:
        """Take a place; False when none came free in time."""
        with self._freed:
            if not self._freed.wait_for(lambda: self._is_room(write), timeout_s):
                return False
            self._busy += 1
            self._writing += write
            return True

    def _is_room(self, write: bool) -> bool:
        return self._busy < self._most and not (write and self._writing >= self._writes_most)

    def leave(self, *, write: bool) -> None:
        with self._freed:
            self._busy -= 1
            self._writing -= write
            self._freed.notify_all()
