"""Safeguards of calls between processes are taken away one by one; a probe notices each."""

from __future__ import annotations

from typing import Any

import pytest

from bloomery.rpc import dispatch, json_rpc_server
from bloomery.rpc.remote import CallLimits
from tests.kit.probes import rpc_probes


def _host_of_the_message(dispatcher: Any, call: Any) -> Any:
    dispatcher.host = call.host
    return METHOD(dispatcher, call)


METHOD = dispatch.Dispatcher._method
MUTANTS: dict[str, tuple[Any, str, Any]] = {
    "no memory of replies": (dispatch.Replies, "once", lambda _self, _call_id, run: run()),
    "any process will do": (dispatch.Dispatcher, "_check_instance", lambda *_: None),
    "any host will do": (dispatch.Dispatcher, "_method", _host_of_the_message),
    "kept connections are cut": (json_rpc_server, "_KEPT_S", 0.0),
    "no limit of calls": (CallLimits, "_has_room", lambda *_: True),
}


def _red() -> list[str]:
    red = []
    for probe in rpc_probes.PROBES:
        try:
            probe()
        except AssertionError:
            red.append(probe.__name__)
    return red


def test_the_probes_are_green_while_nothing_is_missing():
    assert _red() == []


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_safeguard_that_is_missing_is_noticed(monkeypatch, mutant):
    owner, name, without = mutant
    monkeypatch.setattr(owner, name, without)
    assert len(_red()) == 1
