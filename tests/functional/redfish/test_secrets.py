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
    assert "what is ******?" in shown["last_error"]
    assert PASSWORD not in everything(stage, caplog)


TOKEN = "Bearer-of-a-long-secret"


def test_a_login_in_the_address_of_an_image_is_not_told(stage, secretive, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    node = manageable(stage, secretive)
    image = f"https://ann:{TOKEN}@images.test/a.iso?signature=of-a-bucket"
    message = {"error": {"code": "Base.1.0.Odd", "message": f"cannot fetch {image}"}}
    secretive.bmc.faults.add(kind="status", status=400, body=message, path="InsertMedia")
    body = {"device_type": "cdrom", "image_url": image}
    for told in ("cannot fetch https://******@images.test/a.iso?******", None):
        assert stage.api.post(f"/v1/nodes/{node}/vmedia", body).status == 204
        stage.wait_until_free(node)
        last_error = stage.show(node)["last_error"]
        assert told is None or told in last_error
    shown = stage.api.get(f"/v1/nodes/{node}/vmedia").json
    assert [each["image"] for each in shown] == ["https://******@images.test/a.iso?******"]
    assert [s for s in (TOKEN, "of-a-bucket") if s in everything(stage, caplog)] == []


def test_headers_of_a_subscription_are_not_told(stage, secretive, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    node = manageable(stage, secretive)
    message = {"error": {"code": "Base.1.0.Odd", "message": f"what is {TOKEN}?"}}
    secretive.bmc.faults.add(kind="status", status=400, body=message, path="Subscriptions")
    body = {
        "Destination": "https://events.test/a", "HttpHeaders": [{"Authorization": TOKEN}],
    }  # fmt: skip
    path = f"/v1/nodes/{node}/vendor_passthru/create_subscription"
    refused = stage.api.post(path, body)
    assert (refused.status, "what is ******?" in refused.said) == (400, True)
    made = stage.api.post(path, body)
    assert (made.status, TOKEN.encode() in made.body) == (200, False)
    assert TOKEN not in everything(stage, caplog)
