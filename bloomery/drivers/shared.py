"""What all interfaces that are built from one configuration share."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

from bloomery.conf import Conf

T = TypeVar("T")


class Shared(Generic[T]):
    """Makes its object when the first interface asks for it.

    ``make`` must keep ``conf``: as long as the object lives, no other one has its identity.
    """

    def __init__(self, make: Callable[[Conf], T]) -> None:
        self._make = make
        self._made: weakref.WeakValueDictionary[int, T] = weakref.WeakValueDictionary()
        self._mutex = threading.Lock()

    def of(self, conf: Conf) -> T:
        """Return the object of ``conf``."""
        with self._mutex:
            found = self._made.get(id(conf))
            if found is None:
                found = self._made[id(conf)] = self._make(conf)
            return found
