"""The address that a resource hands out for signals opens with its token, and with no other."""

from __future__ import annotations

import pytest

from bloomery.api.orchestration import app
from bloomery.db.tables import STACK_ORDERS
from tests.fakes.client import Client
from tests.kit.clients.callers import Claims
from tests.kit.clients.stack_calls import StackCalls

TOKEN = "signal-" + "0123456789" * 4
HANDLE = {"type": "OS::Heat::WaitConditionHandle"}


class Nobody(Claims):
    """Nobody has a login, as machines have none."""

    def identify(self, request, environ):
        raise app.auth.Unauthorized


@pytest.fixture
def calls(tmp_path):
    calls = StackCalls(tmp_path, enforced=True)
    yield calls
    calls.db.close()


@pytest.fixture
def address(calls):
    """Return the path of a handle's signal; its stack is done."""
    web = calls.create("web", resources={"h": HANDLE, "other": HANDLE})
    calls.finish(web)
    for name, token in (("h", TOKEN), ("other", TOKEN[::-1])):
        calls.add_resource(
            web, name, type="OS::Heat::WaitConditionHandle", data={"token": token},
            redacted={"token"},
        )  # fmt: skip
    return f"/v1/p1/stacks/web/{web.uuid}/resources/h/signal"


@pytest.fixture
def api(calls):
    return Client(app.make_app(calls.services, calls.operations, Nobody()), version=None)


def orders(calls):
    return [row.kind for row in calls.rows(STACK_ORDERS)]


@pytest.mark.parametrize("query", [f"?token={TOKEN}", ""])
def test_right_token_is_enough(calls, api, address, query):
    headers = {} if query else {"X-Auth-Token": TOKEN}
    answer = api.post(address + query, {"status": "SUCCESS"}, headers=headers)
    assert (answer.status, answer.body) == (200, b"null")
    assert orders(calls) == ["signal"]


@pytest.mark.parametrize("token", [TOKEN[:-1], TOKEN + "0", "signal-", "signal-é"])
def test_wrong_token_finds_nothing(calls, api, address, token):
    answer = api.post(f"{address}?token={token}", {})
    assert (answer.status, answer.json["error"]["type"]) == (404, "ResourceNotFound")
    assert orders(calls) == []


def test_token_opens_its_own_address_alone(calls, api, address):
    answer = api.post(address.replace("/h/", "/other/") + f"?token={TOKEN}", {})
    assert answer.status == 404
    assert orders(calls) == []


@pytest.mark.parametrize("change", [("/p1/", "/p2/"), ("/web/", "/was/")])
def test_token_opens_nothing_under_another_name(calls, api, address, change):
    assert api.post(f"{address.replace(*change)}?token={TOKEN}", {}).status == 404
    assert orders(calls) == []


def test_without_a_token_a_login_is_asked_for(api, address):
    assert api.post(address, {}).status == 401
