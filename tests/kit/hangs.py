"""A test that hangs fails alone, and the others run on.

When its time is up an alarm raises ``Hang`` in it, and again every few seconds until it has ended:
what cleans up may hang as well.  pytest-timeout's own alarm sounds once, and its other method ends
the whole run.  Code that no alarm interrupts ends the run, too, with the stack of every thread.
"""

from __future__ import annotations

import faulthandler
import signal
from collections.abc import Iterator
from typing import Any, Final

import pytest
import pytest_timeout
from _pytest.faulthandler import fault_handler_stderr_fd_key
from _pytest.outcomes import OutcomeException

AGAIN_S: Final = 10.0
LAST_S: Final = 120.0  # from the first alarm until the run is ended


class Hang(OutcomeException):
    """pytest goes on after it as after a failure; hypothesis tries no other example."""


class _Phase:
    """Whether code of a test runs, and may be interrupted, or code of pytest."""

    is_of_test = False


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool:
    def ring(_number: int, _frame: object) -> None:
        if _Phase.is_of_test:
            pytest_timeout.dump_stacks(item.config.get_terminal_writer())
            raise Hang(f"it took longer than {settings.timeout:g} s")

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, settings.timeout, AGAIN_S)
    faulthandler.dump_traceback_later(
        settings.timeout + LAST_S, exit=True, file=item.config.stash[fault_handler_stderr_fd_key]
    )
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_cancel_timer(item: pytest.Item) -> bool:
    """A failure, too, is a reason to be called; what cleans up after it is still timed."""
    if item.config.getoption("usepdb"):
        _cancel()
    return True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol() -> Iterator[None]:
    try:
        return (yield)
    finally:
        _cancel()


def _cancel() -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    faulthandler.cancel_dump_traceback_later()


def _phase() -> Iterator[None]:
    _Phase.is_of_test = True
    try:
        return (yield)
    finally:
        _Phase.is_of_test = False


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_setup() -> Iterator[None]:
    return (yield from _phase())


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call() -> Iterator[None]:
    return (yield from _phase())


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown() -> Iterator[None]:
    return (yield from _phase())
