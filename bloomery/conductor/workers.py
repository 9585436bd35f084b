"""The pool of threads that work on nodes.

A slot is taken before anything is written, so that a full pool fails without an undo.  Some slots
are reserved for requests of users; heartbeats do not get them.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from datetime import datetime
from typing import Any, Final, Self, TypeVar

import futurist

from bloomery import errors
from bloomery.model.request import IN_LOG, Request

T = TypeVar("T")

_KEPT: Final = 16  # idle threads that stay: starting threads costs a tenth of a node's life


class Workers:
    """A pool of threads; a slot is the right to use one.

    ``missing_since``: since when nodes wait for a worker, by UUID.
    """

    def __init__(self, size: int, reserved_percentage: int = 0) -> None:
        self._pool = futurist.DynamicThreadPoolExecutor(
            max_workers=size,
            min_workers=min(size - 1, _KEPT),
        )
        self._mutex = threading.Lock()
        self.size = size
        self._open_to_all = size - size * reserved_percentage // 100
        self.busy = 0
        self.missing_since: dict[str, datetime] = {}

    def slot(self, *, allow_reserved: bool = True) -> Slot:
        """Take a slot.  Raises NoFreeConductorWorker."""
        with self._mutex:
            if self.busy >= (self.size if allow_reserved else self._open_to_all):
                raise errors.NoFreeConductorWorker(size=self.size)
            self.busy += 1
        return Slot(self)

    def spawn(self, work: Callable[..., Any], *args: Any, **more: Any) -> Future[Any]:
        """Run ``work`` in a thread.  Raises NoFreeConductorWorker."""
        with self.slot() as slot:
            return slot.spawn(work, *args, **more)

    def submit(self, work: Callable[..., T], *args: Any, **more: Any) -> Future[T]:
        return self._pool.submit(_in_name_of, IN_LOG.get(), work, *args, **more)

    def give_back(self) -> None:
        with self._mutex:
            self.busy -= 1

    def stop(self) -> None:
        """Wait for running work; accept no more."""
        with contextlib.suppress(RuntimeError):  # the pool joins a thread that could not start
            self._pool.shutdown(wait=True)


def _in_name_of(request: Request | None, work: Callable[..., T], *args: Any, **more: Any) -> T:
    IN_LOG.set(request)
    return work(*args, **more)


class Slot:
    """A reserved worker; leaving the block frees it, unless work was spawned in it."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._used = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        if not self._used:
            self._used = True
            self._workers.give_back()

    def spawn(self, work: Callable[..., T], *args: Any, **more: Any) -> Future[T]:
        """Run ``work`` in the reserved thread; its end frees the slot."""
        future = self._workers.submit(work, *args, **more)
        self._used = True
        future.add_done_callback(lambda _: self._workers.give_back())
        return future
