"""Passwords and tokens stay between us and the BMC, whatever goes wrong."""

from __future__ import annotations

import logging

import pytest

from bloomery.lab.bmc import Rules
from tests.functional.redfish.conftest import available, manageable

PASSWORD = "correct-horse-battery"


@pytest.fixture
def secretive(make_rack):
    return make_rack(rules=Rules(users={"admin": PASSWORD})).machines[0]


def everything(stage, caplog) -> str:
    """What was logged, and what stands in the rows."""
    rows = repr(stage.site.everything())
    logged = "\n".join(caplog.handler.format(record) for record in caplog.records)
    return f"{rows}\n{logged}"


def test_no_password_and_no_token_is_told(stage, secretive, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    node = available(stage, secretive)
    stage.ask(node, "active")
    stage.wait_for(node, "active")
    tokens = list(secretive.bmc.sessions)
    said = everything(stage, caplog)
    assert tokens
    assert f"POST {secretive.address}" in said
    assert [secret for secret in (PASSWORD, *tokens) if secret in said] == []


def test_no_password_is_told_when_the_bmc_refuses_it(stage, secretive, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    node = manageable(stage, secretive)
    secretive.bmc.sessions.clear()
    secretive.bmc.faults.add(kind="status", status=401, times=-1)
    assert "HTTP 401" in stage.power(node, "power on")["last_error"]
    assert PASSWORD not in everything(stage, caplog)


def test_a_bmc_that_repeats_the_password_does_not_spread_it(stage, secretive, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    node = manageable(stage, secretive)
    message = {"error": {"code": "Base.1.0.Odd", "message": f"what is {PASSWORD}?"}}
    secretive.bmc.faults.add(kind="status", status=400, body=message, times=-1, path="Reset")
    shown = stage.power(node, "power on")
    assert "what is ***?" in shown["last_error"]
    assert PASSWORD not in everything(stage, caplog)
