"""Paths that lead nowhere, paths of the first clients, and what is too much of anything."""

from __future__ import annotations

import http.client
import json

import pytest

from bloomery.api import server
from bloomery.conf import Conf
from bloomery.conf.api import Api

SPELLINGS = [
    ("GET", "states", "states/{n}", "states?node_ident={n}"),
    ("GET", "states/console", "states/console/{n}", "states/console?node_ident={n}"),
    ("PUT", "maintenance", "maintenance/{n}", "maintenance?node_ident={n}"),
    ("DELETE", "maintenance", "maintenance/{n}", "maintenance?node_ident={n}"),
    ("GET", "management/boot_device", "management/boot_device/{n}",
     "management/boot_device?node_ident={n}"),
    ("GET", "management/boot_device/supported", "management/boot_device/{n}/supported",
     "management/boot_device/supported?node_ident={n}"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "today", "behind", "query"), SPELLINGS)
def test_first_clients_are_answered_as_those_of_today(world, method, today, behind, query):
    node, unknown = world.node(), "0f0f0f0f-0000-0000-0000-000000000000"
    new = world.api.ask(method, f"/v1/nodes/{node}/{today}")
    assert new.status in (200, 202)
    for old in (behind, query):
        answer = world.api.ask(method, f"/v1/nodes/{old.format(n=node)}")
        assert (answer.status, answer.body) == (new.status, new.body)
        assert world.api.ask(method, f"/v1/nodes/{old.format(n=unknown)}").status == 404
        assert world.api.ask(method, f"/v1/nodes/{old.format(n='a%20b')}").status == 400


def test_old_spelling_of_an_order_takes_its_arguments_beside_the_ident(world):
    node = world.node()
    path = f"/v1/nodes/states/power?node_ident={node}"
    answer = world.api.put(path, {"target": "power on"})
    assert answer.status == 202
    assert answer.headers["location"].endswith(f"/v1/nodes/{node}/states")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "states", 400),
        ("GET", "states/console", 400),
        ("GET", "states?node_ident=", 400),
        ("GET", "states?node_ident=a&node_ident=b", 400),
        ("GET", "maintenance", 405),
        ("PUT", "maintenance", 400),
        ("GET", "management", 404),
        ("GET", "management/management", 404),
        ("GET", "management/vendor_passthru", 404),
        ("GET", "vendor_passthru/management?method=x", 404),
        ("GET", "states/states", 404),
        ("POST", "states", 405),
        ("PUT", "states/nonsense", 405),
        ("PUT", "states/x/power", 404),
        ("GET", "states/history/x", 404),
    ],
)
def test_old_spelling_without_an_ident_is_refused(api, method, path, status):
    assert api.ask(method, f"/v1/nodes/{path}").status == status


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nonsense", 404),
        ("POST", "/v1/nonsense/x", 404),
        ("GET", "/v2/nodes", 404),
        ("GET", "/v1/v1/nodes", 404),
        ("GET", "/v1/nodes/{n}/nonsense", 404),
        ("PUT", "/v1/nodes/{n}/nonsense", 404),
        ("GET", "/v1/nodes/{n}/states/nonsense", 404),
        ("PUT", "/v1/nodes/{n}/states/nonsense", 405),
        ("GET", "/v1/nodes/{n}/management/nonsense", 404),
        ("GET", "/v1/nodes/{n}/inventory/x", 404),
        ("GET", "/v1/nodes/{n}/bios/a/b", 404),
        ("GET", "/v1/nodes/{n}/history/a/b", 404),
        ("GET", "/v1/nodes/{n}/traits/a", 405),
        ("GET", "/v1/nodes/{n}/vifs/a", 405),
        ("GET", "/v1/nodes/{n}/children/x", 404),
        ("GET", "/v1/nodes/{n}/firmware/x", 404),
        ("GET", "/v1/drivers/fake-hardware/x", 404),
        ("GET", "/v1/drivers/fake-hardware/x/y", 404),
        ("GET", "/v1/volume/x", 404),
        ("GET", "/v1/shards/x", 404),
        ("POST", "/v1/nodes/{n}", 405),
        ("PATCH", "/v1/nodes/{n}/x", 404),
        ("DELETE", "/v1/nodes/{n}/x", 404),
        ("DELETE", "/v1/nodes", 405),
        ("PATCH", "/v1/nodes", 405),
        ("PUT", "/v1/nodes/{n}", 405),
        ("GET", "/ext/v1/nodes/{n}/why/x", 404),
        ("GET", "/ext/v1/openapi.json/x", 404),
    ],
)
def test_unknown_path_is_404_and_a_known_one_without_the_method_405(world, method, path, status):
    body = [] if method == "PATCH" else None
    answer = world.api.ask(method, path.format(n=world.node()), body)
    assert answer.status == status, answer.body


def test_more_than_there_is_of_anything_is_all_of_it(api):
    api.node()
    for limit in ("9" * 20, "9" * 900, str(2**63)):
        assert len(api.get(f"/v1/nodes?limit={limit}").json["nodes"]) == 1
    assert api.get("/v1/nodes?limit=-" + "9" * 20).status == 400


@pytest.fixture
def serving(world):
    serving = server.make(world.app, Conf(api=Api(port=0)))
    serving.start()
    yield serving
    serving.stop()


KIB = 1024


@pytest.mark.parametrize(
    ("method", "path", "body", "headers", "status"),
    [
        ("GET", "/v1/nodes?driver=" + "x" * 9000, "", {}, 200),
        ("GET", "/v1/nodes?driver=" + "x" * 70_000, "", {}, 431),
        ("GET", "/v1/nodes/" + "x" * 9000, "", {}, 400),
        ("GET", "/v1/nodes", "", {"X": "x" * 9000}, 200),
        ("GET", "/v1/nodes", "", {"X": "x" * 70_000}, 431),
        ("GET", "/v1/nodes", "", {f"X-{n}": "x" for n in range(300)}, 431),
        ("POST", "/v1/nodes", "[" * 26 + "]" * 26, {}, 400),
        ("POST", "/v1/nodes", '{"a":' * 26 + "1" + "}" * 26, {}, 400),
        ("POST", "/v1/nodes", json.dumps({"driver": "x" * 1100 * KIB}), {}, 413),
        ("PATCH", "/v1/nodes/x", json.dumps(["x" * 1100 * KIB]), {}, 413),
        ("PUT", "/v1/nodes/x/states/power", json.dumps({"target": "x" * 1100 * KIB}), {}, 413),
        ("PUT", "/v1/nodes/x/states/provision", json.dumps({"target": "x" * 1100 * KIB}), {}, 404),
    ],
)
def test_too_much_is_refused_by_name(serving, method, path, body, headers, status):
    connection = http.client.HTTPConnection(*serving.address, timeout=20)
    known = {"Content-Type": "application/json", "X-OpenStack-Ironic-API-Version": "latest"}
    connection.request(method, path, body, known | headers)
    answer = connection.getresponse()
    document = json.loads(answer.read())
    connection.close()
    assert answer.status == status, document
    assert status == 200 or str(document.get("faultstring") or document["error_message"])
