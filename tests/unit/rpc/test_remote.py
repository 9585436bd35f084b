"""Calls to conductors elsewhere: how long each waits for its answer."""

from __future__ import annotations

import pytest

from bloomery.model.request import Request
from bloomery.rpc import contract
from bloomery.rpc.call_limits import CallLimits
from bloomery.rpc.remote import Cap, Remote


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
