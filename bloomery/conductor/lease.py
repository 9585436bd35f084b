"""The right to write to BMCs: it lasts as long as our signs of life are seen.

Peers take our nodes over when our counter stood still for ``heartbeat_timeout``.  A conductor
that could not write its counter for that long, less the time that a BMC may take, sends nothing
to a BMC any more: somebody else may be doing so by now.

A lease belongs to one incarnation of the conductor.  Work that began under an earlier one has
lost its nodes, however alive the conductor is again.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from bloomery import errors
from bloomery.conf import Conf
from bloomery.drivers import base


def write_budget_s(conf: Conf) -> float:
    """Return within how long of the look at the lease a BMC has an order, or will not get it.

    Redfish connects first, and then agrees on TLS, each within ``connect_timeout``.  The time after
    the order, such as ``read_timeout``, belongs to the answer.
    """
    return max(base.WRITE_BUDGET_S, 2.0 * conf.redfish.connect_timeout)


def check(conf: Conf) -> None:
    """Refuse a time-out that leaves no lease between two signs of life.  Raises CannotStart.

    One sign may be lost: so the lease, which is what the time-out leaves besides the time of a
    BMC, lasts for two pauses.
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
    """Renewed by each heartbeat that was committed; measured on our own monotonic clock.

    ``incarnation``: whose lease it is; None before the first registration.  ``budget_s``: see
    ``write_budget_s``.
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
        """Let it be that of a new incarnation, from ``since`` on; who had the former lost it."""
        self.incarnation = incarnation
        self.renew(since=since)
        self._suspended = False

    def renew(self, *, since: float | None = None) -> None:
        """``since``: when the heartbeat was begun that was committed; None: now."""
        self._renewed = self.now() if since is None else since

    def suspend(self) -> None:
        """End it until ``begin``: peers have declared us dead."""
        self._suspended = True

    def revoke(self) -> None:
        """End it for good: this process stops, and its successor may be at work."""
        self._revoked = True

    def require(self, node: str, holder: str, incarnation: str | None = None) -> None:
        """Raise LockLost if the lease ran out or was revoked: stop, and touch no BMC.

        ``incarnation``: that of the reservation; None: the present one.
        """
        why = self._lost(incarnation)
        if why is not None:
            raise errors.LockLost(node=node, holder=holder, log=why)

    def _lost(self, incarnation: str | None) -> str | None:
        """Say why nothing may be sent to a BMC; None: it may."""
        if self._revoked:
            return "the conductor has stopped"
        if self._suspended:
            return "the conductor was declared dead"
        if incarnation is not None and incarnation != self.incarnation:
            return "the conductor was declared dead since, and has begun anew"
        silent_s = self.now() - self._renewed
        return f"silent for {silent_s:.0f} s" if silent_s > self._lasts_s else None
