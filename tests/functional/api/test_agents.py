"""Calls of agents, as the API alone decides on them: no login, versions, and events."""

from __future__ import annotations

import bcrypt
import pytest

from bloomery.api import auth
from bloomery.conf import Conf
from bloomery.conf.default import Default
from tests.kit.machines.agent import Agent

PORT = "00000000-0000-4000-8000-000000000001"
MAC = "52:54:00:00:00:01"
EVENT = {
    "event": "network.bind_port", "port_id": PORT, "mac_address": MAC, "status": "ACTIVE",
}  # fmt: skip


@pytest.fixture
def conf(tmp_path):
    """Callers prove who they are; agents cannot."""
    path = tmp_path / "htpasswd"
    path.write_text("ann:" + bcrypt.hashpw(b"secret", bcrypt.gensalt(rounds=4)).decode())
    return Conf(default=Default(auth_strategy="http_basic", http_basic_auth_user_file=str(path)))


@pytest.mark.parametrize(
    "path",
    [
        "/v1/lookup", "/v1/lookup/", "/v1/lookup.json", "/v1/heartbeat/web-1",
        f"/v1/heartbeat/{PORT}.json", "/v1/continue_inspection", "/", "/v1", "/v1/",
    ],
)  # fmt: skip
def test_agents_are_asked_for_no_login(path):
    assert auth.PUBLIC.fullmatch(path)


@pytest.mark.parametrize(
    "path",
    [
        "/lookup", "/v1/lookup/x", "/v1/heartbeat", "/v1/heartbeat/", "/v1/heartbeat/a/b",
        "/v1/heartbeat/WEB", "/v1/nodes", "/v1/events", "/v1/continue_inspection/x",
        "/v1/heartbeat/a%2Fnodes", "/v1/nodes/v1/lookup",
    ],
)  # fmt: skip
def test_nobody_else_gets_past_the_login_so(path):
    assert auth.PUBLIC.fullmatch(path) is None


def test_a_lookup_needs_no_login_and_all_else_does(api):
    assert Agent(api, [MAC]).try_to_look_up().status == 404
    assert api.post("/v1/heartbeat/web-1", {"callback_url": ""}).status == 404
    assert api.post("/v1/continue_inspection", {}).status == 400
    assert api.get("/v1/nodes").status == 401
    assert api.post("/v1/events", {"events": [EVENT]}).status == 401


@pytest.mark.parametrize("version", [1, 21, 83])
def test_a_bad_inventory_is_told_before_the_version(api, version):
    assert api.post("/v1/continue_inspection", {}, version=version).status == 400


def test_a_bad_lookup_is_told_before_the_version(api):
    assert api.get("/v1/lookup?node_uuid=x", version=21).status == 400
    assert api.get(f"/v1/lookup?node_uuid={PORT}", version=21).status == 404


@pytest.mark.parametrize("body", [{}, {"callback_url": 5}, {"callback_url": "", "x": 1}])
def test_a_bad_heartbeat_is_told_before_the_version(api, body):
    assert api.post("/v1/heartbeat/web-1", body, version=21).status == 400


def test_a_heartbeat_needs_a_version_that_knows_it(api):
    known_later = {"callback_url": "", "agent_status": "start"}
    assert api.post("/v1/heartbeat/web-1", known_later, version=21).status == 404


def test_an_inventory_needs_a_version_that_knows_it(api):
    inventory = {"inventory": {"interfaces": [{"mac_address": MAC}]}}
    assert api.post("/v1/continue_inspection", inventory, version=83).status == 404
    assert api.post("/v1/continue_inspection?node_uuid=x", inventory, version=83).status == 400


class TestEvents:
    @pytest.fixture
    def conf(self):
        return Conf()

    @pytest.mark.parametrize("kind", ["bind_port", "unbind_port", "delete_port"])
    def test_events_are_taken(self, api, kind):
        event = EVENT | {
            "event": f"network.{kind}", "device_id": None, "binding:host_id": PORT,
            "binding:vnic_type": "baremetal",
        }  # fmt: skip
        answer = api.post("/v1/events", {"events": [EVENT, event]})
        assert (answer.status, answer.body) == (204, b"")

    @pytest.mark.parametrize(
        "body",
        [
            {}, {"events": []}, {"events": {}}, {"events": [{}]}, {"events": [EVENT], "x": 1},
            {"events": [EVENT | {"event": "network.nonsense"}]},
            {"events": [EVENT | {"port_id": "x"}]}, {"events": [EVENT | {"mac_address": "x"}]},
            {"events": [EVENT | {"device_id": "x"}]}, {"events": [EVENT | {"x": 1}]},
            {"events": [EVENT | {"binding:host_id": 5}]}, {"events": [EVENT | {"status": None}]},
        ],
    )  # fmt: skip
    def test_events_that_are_none_are_refused(self, api, body):
        assert api.post("/v1/events", body).status == 400

    def test_older_clients_know_no_events(self, api):
        assert api.post("/v1/events", {"events": [EVENT]}, version=53).status == 404
        assert api.get("/v1/events", version=53).status == 405
        assert api.get("/v1/heartbeat", version=1).status == 405
        assert api.get("/v1/continue_inspection", version=1).status == 405
