"""A request: its context, which RPC carries beside each call, and arguments of several calls.

An API request waits for a conductor's work without a thread.  Its first pass starts the work and
raises ``Parked``.  The server repeats the request once the work is done, and the next pass gets the
result at the same place.

    parking = PARKING.get()
    return work() if parking is None else parking.result_of("set boot device of node X", begin)
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The context of a request; its rows and events have its ``request_id``.

    ``wait_s``: how long the caller waits for a locked node (``Prefer: wait=N``). ``user``,
    ``project`` and the domains are ids; ``domain`` is that of a domain-scoped token, and
    ``system_scope`` is "all" for a system-scoped token.  ``is_admin_project``: the project is the
    cloud's admin project.  ``is_restricted``: the token is valid for some requests only (access
    rules of an application credential, a binding). Roles come from the authenticated login, never
    from headers of a client.
    """

    request_id: str
    user: str | None = None
    user_name: str | None = None
    user_domain: str | None = None
    project: str | None = None
    project_name: str | None = None
    project_domain: str | None = None
    domain: str | None = None
    roles: tuple[str, ...] = ()
    system_scope: str | None = None
    is_admin_project: bool = False
    is_restricted: bool = False
    wait_s: float | None = None

    @classmethod
    def new(cls, *, user: str | None = None, project: str | None = None) -> Request:
        return cls(request_id=f"req-{uuid.uuid4()}", user=user, project=project)


IN_LOG: Final[ContextVar[Request | None]] = ContextVar("bloomery.request_in_log", default=None)
"""The request that log lines of this thread name."""


@contextmanager
def in_name_of(request: Request) -> Iterator[None]:
    """Log ``request`` in the lines of this thread inside the block."""
    of_thread = IN_LOG.set(request)
    try:
        yield
    finally:
        IN_LOG.reset(of_thread)


class Parked(Exception):
    """The request waits: repeat it when ``outcome`` is done."""

    def __init__(self, outcome: Future[Any]) -> None:
        super().__init__()
        self.outcome = outcome


class Parking:
    """The passes of one request: its identity, its arrival, and its pending work.

    ``is_audited``: the audit has recorded its order.
    """

    __slots__ = ("_outcomes", "began", "is_audited", "request")

    def __init__(self) -> None:
        self.is_audited = False
        self.request = Request.new()
        self.began = time.perf_counter()
        self._outcomes: dict[str, Future[Any]] = {}

    def result_of(self, work: str, begin: Callable[[], Future[T]]) -> T:
        """Return the result of ``work``, which the first pass begins.

        Raises Parked while the work is running, and then its errors.
        """
        outcome = self._outcomes.get(work)
        if outcome is None:
            outcome = self._outcomes[work] = begin()
        if not outcome.done():
            raise Parked(outcome)
        result: T = outcome.result()
        return result

    def once(self, work: str, run: Callable[[], T]) -> T:
        """Return the result of ``run``, which no later pass repeats.  Raises its Parked."""
        if work not in self._outcomes:
            outcome: Future[T] = Future()
            outcome.set_result(run())
            self._outcomes[work] = outcome
        return self.result_of(work, Future)


PARKING_KEY: Final = "bloomery.parking"  # in the environment of servers that repeat requests
PARKING: Final[ContextVar[Parking | None]] = ContextVar("bloomery.parking", default=None)
"""The request that this thread answers; None: its thread waits for everything."""


def begin(environ: Mapping[str, Any]) -> Parking:
    """Begin a pass of a request, which may be parked if its server repeats requests."""
    parking: Parking | None = environ.get(PARKING_KEY)
    PARKING.set(parking)
    return parking or Parking()


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionArguments:
    """The checked arguments of a provision verb; each verb reads its own.

    ``configdrive`` (active, rebuild): a URL, the base64 text of a gzipped image, or an object with
    meta_data, network_data, user_data and vendor_data.  ``steps``: the user's steps in order:
    deploy steps (interface, step, args, priority) for active and rebuild, steps (interface, step,
    args) for clean and service.  ``disable_ramdisk`` (clean, service): boot no agent.
    ``rescue_password`` (rescue): plain text.
    """

    configdrive: Any = None
    steps: list[dict[str, Any]] = field(default_factory=list)
    rescue_password: str | None = None
    disable_ramdisk: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class VendorCall:
    """The call of a vendor method by its name; ``info``: its arguments."""

    method: str
    http_method: str
    info: dict[str, Any]

    @property
    def purpose(self) -> str:
        return f"vendor method {self.method}"
