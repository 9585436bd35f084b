"""What holds for every endpoint that is declared, now and later."""

from __future__ import annotations

import re
import uuid as uuids

import pytest

from bloomery.api import routes
from bloomery.api.declare import REFUSED, TooOld
from bloomery.api.versions import MAX

ENDPOINTS = [(each.method, each.path, each) for each in routes.ENDPOINTS]
IDS = [f"{method} {path}" for method, path, _ in ENDPOINTS]
BODIES = [
    b"", b"null", b"[]", b"{}", b'"x"', b"5", b"{", b"\xff", b'{"a": 1}', b'[{"op": 5}]',
    b'{"target": {}}', b'{"target": []}', b'{"traits": {}}', b'{"boot_device": {}}',
    b'{"driver": "\\u0000"}', b'{"id": "\\u0000"}',
    b'[{"op":"add","path":"/extra/\\u0000","value":1}]',
    b'[{"op":"add","path":"/name","value":{"a":[1]}}]', b'{"reason": 5}', b'{"limit": 1e400}',
]  # fmt: skip
QUERIES = [
    "", "?x=1", "?limit=1&limit=2", "?fields=a,b", "?%00=%00", "?detail=maybe", "?=", "?&&",
    "?a%5B=1",
]  # fmt: skip

ARGUMENTS_FIRST = {"/v1/continue_inspection"}  # without any it is 400 in each version, as in Ironic
NEEDED = {  # or else 400, too
    "/v1/heartbeat": {"node_ident": "web-1", "callback_url": "http://agent"},
    "/v1/heartbeat/{node}": {"callback_url": "http://agent"},
}


def filled(path, ident):
    return re.sub(r"\{[^}]*\}", ident, path)


def test_every_endpoint_is_declared_once():
    assert len(set(IDS)) == len(IDS)
    assert len(IDS) > 45


@pytest.mark.parametrize(("method", "path", "endpoint"), ENDPOINTS, ids=IDS)
def test_declaration_is_complete(method, path, endpoint):
    assert re.fullmatch(r"public|baremetal:[a-z_]+(:[a-z_]+)+", endpoint.rule)
    assert 1 <= endpoint.since <= MAX
    assert endpoint.status in (200, 201, 202, 204, REFUSED)
    if method in ("POST", "PATCH"):
        assert endpoint.body is not None or endpoint.named is not None
    if endpoint.since == 1:
        assert endpoint.too_old is TooOld.NO_PAGE


@pytest.mark.sampled
@pytest.mark.parametrize(("method", "path", "endpoint"), ENDPOINTS, ids=IDS)
def test_older_client_is_kept_out(world, method, path, endpoint):
    if endpoint.since == 1 or path in ARGUMENTS_FIRST:
        return
    address = filled(path, world.node())
    answer = world.api.ask(method, address, NEEDED.get(path), version=endpoint.since - 1)
    assert answer.status == endpoint.too_old.value[0]


@pytest.mark.sampled
@pytest.mark.parametrize(("method", "path", "endpoint"), ENDPOINTS, ids=IDS)
def test_unknown_things_are_refused_politely(api, method, path, endpoint):
    for ident in (str(uuids.uuid4()), "unknown"):
        answer = api.ask(method, filled(path, ident), [] if method == "PATCH" else None)
        if "{" in path:
            assert answer.status in (400, 404)
            assert answer.form == "first"


@pytest.mark.sampled
@pytest.mark.parametrize(("method", "path", "endpoint"), ENDPOINTS, ids=IDS)
def test_no_input_is_an_error_of_ours(world, method, path, endpoint):
    node = world.node(provision_state="manageable")
    idents = [node, "a.b", "%00", "%F0%9F%98%80", "..", "%ff", "a" * 300, "{}", "%2F", "' OR 1=1"]
    asked = [(filled(path, ident), QUERIES[0], BODIES[0]) for ident in idents]
    asked += [(filled(path, node), query, b"") for query in QUERIES]
    asked += [(filled(path, node), "", body) for body in BODIES]
    for where, query, body in asked:
        answer = world.api.ask(method, where + query, raw=body)
        assert answer.status < 500, (where, query, body, answer.body)
