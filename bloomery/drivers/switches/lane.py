"""The lane of each switch: one call at a time, and none for a while after failures in a row.

A configuration session of a switch is open for one client, and two that overlap mix their changes.
The lane holds within a conductor; conductors meet at the switch, and each changes the ports of its
own nodes alone.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from bloomery import errors
from bloomery.conf import Conf
from bloomery.drivers.base import DriverTask
from bloomery.drivers.bmc.gateway import PerConf
from bloomery.drivers.bmc.state import Breaker, Slots
from bloomery.drivers.switches.contract import Switch

_QUEUE_PAUSE_S: Final = 1.0  # before a call that found the lane taken queues again


class Lanes:
    """The lanes by the names of switches; its lock guards the table alone."""

    def __init__(self, conf: Conf) -> None:
        self.conf, self._mutex = conf, threading.Lock()
        self._lanes: dict[str, tuple[Slots, Breaker]] = {}

    @contextmanager
    def enter(self, switch: Switch, task: DriverTask) -> Iterator[None]:
        """Wait for the lane and hold it.

        Raises SwitchBusy after [ironic_networking]switch_timeout in the queue, SwitchLeftAlone
        while the switch is left alone, and LockLost.
        """
        limit_s = self.conf.ironic_networking.switch_timeout
        limits = self.conf.bmc
        with self._mutex:
            fresh = (Slots(1, 1), Breaker(limits.breaker_failures, limits.breaker_pause))
            slots, breaker = self._lanes.setdefault(switch.name, fresh)
        if not slots.enter(write=True, timeout_s=limit_s):
            raise errors.SwitchBusy(
                **switch.facts(reason=f"other orders of this conductor came first for {limit_s} s"),
                retry_after_s=_QUEUE_PAUSE_S,
            )
        try:
            task.assert_lease()
            if left_s := breaker.admit(insists=task.insists):
                last = breaker.last
                why = last.facts.get("reason", "") if isinstance(last, errors.Failure) else ""
                reason = f"{why} ({breaker.sentence(left_s)})"
                raise errors.SwitchLeftAlone(
                    **switch.facts(reason=reason), retry_after_s=left_s, cause=why
                )
            try:
                yield
            except errors.SwitchUnreachable as exc:
                breaker.failed(exc)
                raise
            except errors.SwitchRefused:
                breaker.succeeded()
                raise
            except BaseException:
                breaker.abandoned()
                raise
            breaker.succeeded()
        finally:
            slots.leave(write=True)


_LANES: Final = PerConf(Lanes)


def of(conf: Conf) -> Lanes:
    """Return the lanes that all users of ``conf`` share."""
    return _LANES.of(conf)
