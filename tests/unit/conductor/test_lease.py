"""The lease: who was silent too long touches no BMC."""

from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.conductor.lease import Lease, check, write_budget_s
from bloomery.conf import Conf
from bloomery.conf.conductor import Conductor
from bloomery.conf.drivers import Redfish
from bloomery.drivers.base import WRITE_BUDGET_S
from tests.kit.clock import HandClock


def test_a_conductor_that_was_heard_of_may_write() -> None:
    clock = HandClock()
    lease = Lease(60, clock)
    clock.now += 60 - WRITE_BUDGET_S
    lease.require("node", "host")


def test_a_conductor_that_was_silent_for_too_long_may_not() -> None:
    clock = HandClock()
    lease = Lease(60, clock)
    clock.now += 60 - WRITE_BUDGET_S + 0.1
    with pytest.raises(errors.LockLost):
        lease.require("node", "host")


def test_a_sign_of_life_renews_it() -> None:
    clock = HandClock()
    lease = Lease(60, clock)
    clock.now += 59
    lease.renew()
    lease.require("node", "host")


def test_a_revoked_lease_is_never_renewed() -> None:
    lease = Lease(60, HandClock())
    lease.revoke()
    lease.renew()
    with pytest.raises(errors.LockLost):
        lease.require("node", "host")


@pytest.mark.parametrize(
    ("timeout", "interval", "is_enough"),
    [(21, 10, False), (39, 10, False), (40, 10, True), (60, 20, True), (60, 21, False)],
)
def test_a_lease_must_outlast_the_pause_between_signs_of_life(
    timeout: int, interval: int, is_enough: bool
) -> None:
    """Else half of the writes to BMCs would be refused, for no reason that anybody sees."""
    conf = Conf(conductor=Conductor(heartbeat_timeout=timeout, heartbeat_interval=interval))
    if is_enough:
        check(conf)
        return
    with pytest.raises(errors.CannotStart, match=f"heartbeat_timeout = {timeout}: .* at least"):
        check(conf)


def test_a_bmc_that_is_long_connected_to_needs_a_longer_time_out() -> None:
    conductor = Conductor(heartbeat_timeout=60, heartbeat_interval=10)
    check(Conf(conductor=conductor, redfish=Redfish(connect_timeout=20)))
    slow = Conf(conductor=conductor, redfish=Redfish(connect_timeout=21))
    with pytest.raises(errors.CannotStart, match=r"62, .* twice \[redfish\]connect_timeout \(21\)"):
        check(slow)
    clock = HandClock()
    lease = Lease(60, clock, budget_s=write_budget_s(slow))
    clock.now += 60 - 2 * 21 + 0.1
    with pytest.raises(errors.LockLost):
        lease.require("node", "host")
