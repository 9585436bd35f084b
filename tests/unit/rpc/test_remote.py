"""Calls to conductors elsewhere: how long each waits for its answer."""

from __future__ import annotations

import contextlib
import threading

import pytest

from bloomery import errors
from bloomery.metrics import METRICS
from bloomery.model.request import Request
from bloomery.rpc import contract, wire
from bloomery.rpc.remote import CallLimits, Cap, Remote
from tests.kit.waiting import wait_for


class Channel:
    """Answers at once, and notes how long it might have taken."""

    def __init__(self):
        self.timeouts = []

    def call(self, host, message, timeout_s):
        self.timeouts.append(timeout_s)
        return {"result": None}

    def close(self):
        return


@pytest.mark.parametrize(
    ("method", "wait_s", "timeout_s"),
    [("vif_list", None, 60), ("vif_list", 30, 90), ("describe_work", None, 3),
     ("describe_work", 30, 3)],
)  # fmt: skip
def test_memory_is_not_waited_for(method, wait_s, timeout_s):
    channel = Channel()
    remote = Remote(
        channel, contract.METHODS, cap=Cap(version=contract.VERSION), limits=CallLimits(4),
        response_timeout_s=60,
    )  # fmt: skip
    request = Request(request_id="req-1", wait_s=wait_s)
    getattr(remote.proxy("rack-a"), method)(request, "some-node")
    assert channel.timeouts == [timeout_s]


def test_calls_that_were_given_up_leave_no_more_threads_than_may_wait(monkeypatch):
    monkeypatch.setattr("bloomery.rpc.remote.LATELY_S", 0.0)
    others, answered, limits = set(threading.enumerate()), threading.Event(), CallLimits(8)
    channel = Channel()
    channel.call = lambda *_: answered.wait() and {"result": None}
    remote = Remote(
        channel, contract.METHODS, cap=Cap(version=contract.VERSION), limits=limits,
        response_timeout_s=60, is_silent=lambda _host: True, look_every_s=0.001,
    )  # fmt: skip

    def left() -> int:
        return len(set(threading.enumerate()) - others)

    try:
        for _ in range(20):
            with contextlib.suppress(errors.ConductorSilent, errors.ConductorCallsBusy):
                remote.proxy("rack-a").inject_nmi(Request.new(), "a")
        wait_for(lambda: left() == limits.most_per_host, "those without a place to end")
        assert limits.calls == limits.most_per_host
    finally:
        answered.set()
    wait_for(lambda: (left(), limits.calls) == (0, 0), "all to end")


def test_calls_without_an_answer_are_counted_by_kind():
    def count(code: str) -> float:
        labels = {"fault": code}
        name = "bloomery_conductor_call_faults_total"
        return METRICS.registry.get_sample_value(name, labels) or 0

    channel = Channel()
    remote = Remote(
        channel, contract.METHODS, cap=Cap(version=contract.VERSION), limits=CallLimits(4),
        response_timeout_s=60,
    )  # fmt: skip

    def refuse(*_args):
        raise errors.ConductorUnreached(host="rack-a", reason="no route")

    codes = errors.ConductorUnreached.code, errors.NodeLocked.code
    before = [count(code) for code in codes]
    channel.call = refuse
    with pytest.raises(errors.ConductorUnreached):
        remote.proxy("rack-a").vif_list(Request.new(), "some-node")
    locked = errors.NodeLocked(action="look", node="n", holder="h")
    channel.call = lambda *_: wire.failed(locked)
    with pytest.raises(errors.NodeLocked):
        remote.proxy("rack-a").vif_list(Request.new(), "some-node")
    assert [count(code) for code in codes] == [before[0] + 1, before[1]]
