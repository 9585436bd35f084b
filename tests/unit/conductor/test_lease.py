"""The lease: who was silent too long touches no BMC."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from bloomery import errors
from bloomery.conductor.lease import BMC_BUDGET_S, Lease


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_conductor_that_was_heard_of_may_write() -> None:
    clock = Clock()
    lease = Lease(60, clock)
    clock.now += 60 - BMC_BUDGET_S
    lease.require("node", "host")


def test_a_conductor_that_was_silent_for_too_long_may_not() -> None:
    clock = Clock()
    lease = Lease(60, clock)
    clock.now += 60 - BMC_BUDGET_S + 0.1
    with pytest.raises(errors.LockLost):
        lease.require("node", "host")


def test_a_sign_of_life_renews_it() -> None:
    clock = Clock()
    lease = Lease(60, clock)
    clock.now += 59
    lease.renew()
    lease.require("node", "host")


def test_a_revoked_lease_is_never_renewed() -> None:
    lease = Lease(60, Clock())
    lease.revoke()
    lease.renew()
    with pytest.raises(errors.LockLost):
        lease.require("node", "host")
