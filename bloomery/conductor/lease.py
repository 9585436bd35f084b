"""The right to write to BMCs, renewed by the conductor's heartbeats.

Peers take a conductor's nodes over when its counter stood still for ``heartbeat_timeout``.  A
conductor that could not write its counter for that long, less the time of one BMC call, stops
writing to BMCs: a peer may be doing so.

A lease belongs to one incarnation.  Work of an earlier incarnation has lost its nodes.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from bloomery import errors
from bloomery.conf import Conf
from bloomery.drivers import base


def write_budget_s(conf: Conf) -> float:
    """Return how long after the lease check a BMC may still receive a write.

    Redfish connects and then negotiates TLS, each within ``connect_timeout``.  ``read_timeout``
    belongs to the answer and does not count.
    """
    return max(base.WRITE_BUDGET_S, 2.0 * conf.redfish.connect_timeout)


def check(conf: Conf) -> None:
    """Raise CannotStart for a time-out that leaves no lease between two heartbeats.

    The lease lasts two heartbeat intervals, so that one heartbeat may be lost.
    """
    settings, budget_s = conf.conductor, write_budget_s(conf)
    least = budget_s + 2 * settings.heartbeat_interval
    if settings.heartbeat_timeout < least:
        why = "" if budget_s == base.WRITE_BUDGET_S else (
            f", twice [redfish]connect_timeout ({conf.redfish.connect_timeout}),"
        )  # fmt: skip
        raise errors.CannotStart(
            reason=f"cannot use [conductor]heartbeat_timeout = {settings.heartbeat_timeout}: "
            "writes to BMCs would be refused between two signs of life; set it to at least "
            f"{least:.0f}, which is {budget_s:.0f} s for a BMC{why} and twice "
            f"heartbeat_interval ({settings.heartbeat_interval})",
        )


class Lease:
    """The lease of one incarnation, on the monotonic clock; each committed heartbeat renews it.

    ``incarnation``: None before the first registration.  ``budget_s``: see ``write_budget_s``.
    """

    def __init__(
        self,
        lasts_s: float,
        clock: Callable[[], float] = time.monotonic,
        *,
        budget_s: float = base.WRITE_BUDGET_S,
    ) -> None:
        self._lasts_s = max(lasts_s - budget_s, 1.0)
        self.now = clock
        self._renewed = clock()
        self._revoked = self._suspended = False
        self.incarnation: str | None = None

    def begin(self, incarnation: str, *, since: float | None = None) -> None:
        """Start the lease of a new incarnation at ``since``; the former incarnation loses it."""
        self.incarnation = incarnation
        self.renew(since=since)
        self._suspended = False

    def renew(self, *, since: float | None = None) -> None:
        """Renew the lease as of ``since``, the start of the committed heartbeat, or now."""
        self._renewed = self.now() if since is None else since

    def suspend(self) -> None:
        """End the lease until ``begin``: peers have declared this conductor dead."""
        self._suspended = True

    def revoke(self) -> None:
        """End the lease for good: this process stops, and its successor may be running."""
        self._revoked = True

    def require(self, node: str, holder: str, incarnation: str | None = None) -> None:
        """Raise LockLost if the lease ran out or was revoked: the caller must not write to a BMC.

        ``incarnation``: that of the reservation, by default the current one.
        """
        silent_s = self.now() - self._renewed
        if self._revoked:
            why = "the conductor has stopped"
        elif self._suspended:
            why = "the conductor was declared dead"
        elif incarnation is not None and incarnation != self.incarnation:
            why = "the conductor was declared dead since, and has begun anew"
        elif silent_s > self._lasts_s:
            why = f"silent for {silent_s:.0f} s"
        else:
            return
        raise errors.LockLost(node=node, holder=holder, log=why)
