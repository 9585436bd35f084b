"""The pool of threads that work on nodes.

A slot is taken before anything is written, so that a full pool fails without an undo.  Some slots
are reserved for requests of users; heartbeats do not get them.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent import futures
from concurrent.futures import Future
from datetime import datetime
from typing import Any, Final, Self, TypeVar

import futurist

from bloomery import errors, secrets
from bloomery.model.request import IN_LOG, Request, in_name_of

LOG = logging.getLogger(__name__)
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

    def each(
        self,
        uuids: Sequence[str],
        work: Callable[[str], object],
        *,
        most: int,
        patience_s: float | None = None,
    ) -> None:
        """Run ``work`` with each node, in ``most`` workers; without a free one in this thread.

        Errors are logged.  Returns at the end, or once nothing has ended for ``patience_s``.
        """
        todo, ended = deque(uuids), 0

        def drain() -> None:
            nonlocal ended
            while True:
                try:
                    uuid = todo.popleft()
                except IndexError:
                    return
                with in_name_of(Request.new()):
                    try:
                        work(uuid)
                    except Exception as exc:  # noqa: BLE001  one node stops no other
                        LOG.error("node %s: %s", uuid, secrets.report(exc))  # noqa: TRY400  masked
                ended += 1

        running: set[Future[Any]] = set()
        with contextlib.suppress(errors.NoFreeConductorWorker):
            for _ in range(min(most, len(todo))):
                running.add(self.spawn(drain))
        if not running:
            drain()
        while running:
            before = ended
            running = futures.wait(running, timeout=patience_s).not_done
            if ended == before:
                return

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
