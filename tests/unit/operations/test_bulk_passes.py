"""A request for many nodes that is repeated orders no node twice."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from bloomery import errors
from bloomery.model.request import PARKING, Parked, Parking
from bloomery.operations import bulk


def test_a_repeated_request_sends_only_what_was_parked(monkeypatch):
    sent, look = [], Future()

    def send(ctx, ident, body):
        sent.append(ident)
        if ident == "bad":
            raise errors.Invalid(reason="no")
        if ident.startswith("remote"):
            PARKING.get().result_of("look", lambda: look)

    monkeypatch.setattr(bulk, "ACTIONS", {"provision": send})
    monkeypatch.setattr(bulk.policy, "authorize", lambda ctx, rule: None)
    idents = ["a", "remote-1", "bad", "remote-2", "a"]
    token = PARKING.set(Parking())
    try:
        for _ in range(2):
            with pytest.raises(Parked):
                bulk.act(None, idents, "provision", {})
        look.set_result(None)
        results = bulk.act(None, idents, "provision", {})
    finally:
        PARKING.reset(token)
    assert [(each["node"], each["result"]) for each in results] == [
        ("a", "accepted"), ("remote-1", "accepted"), ("bad", "refused"), ("remote-2", "accepted"),
        ("a", "accepted"),
    ]  # fmt: skip
    assert sorted(sent) == ["a", "a", "bad", *["remote-1"] * 3, *["remote-2"] * 3]
