"""[audit]file: who ordered what is recorded before it is done, and no secret with it."""

from __future__ import annotations

import json
import signal
import urllib.error
from dataclasses import replace

import pytest
from click.testing import CliRunner

from bloomery import audit, errors
from bloomery.api import app
from bloomery.cli.main import main
from bloomery.conf import Conf
from bloomery.conf.default import Default
from bloomery.conf.notifications import Audit
from bloomery.http_server.wsgi import REQUEST_ID_HEADERS
from tests.fakes.client import Client
from tests.functional.api.test_auth import basic, line
from tests.kit.servers.orchestration import template
from tests.kit.servers.served import Served

SECRET = "hunter2"
UUID = "7ab3e4a1-42f5-4e0a-b7cb-d2d4b6b7d2d4"
STACKS = "/ext/v1/orchestration/v1/admin/stacks"
ANN = basic("ann", SECRET)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "orders"


@pytest.fixture
def conf(tmp_path, path):
    logins = tmp_path / "htpasswd"
    logins.write_text(line("ann", SECRET))
    return Conf(
        audit=Audit(file=str(path)),
        default=Default(auth_strategy="http_basic", http_basic_auth_user_file=str(logins)),
    )


def last(path):
    return audit.orders([path])[-1]


def test_an_order_has_its_caller_its_fields_and_its_answer(api, path):
    body = {"driver": "fake-hardware", "name": "web-1", "driver_info": {"password": SECRET}}
    created = api.post("/v1/nodes", body, headers=ANN)
    order = last(path)
    assert (order["user"], order["method"], order["path"]) == ("ann", "POST", "/v1/nodes")
    assert (order["status"], order["fields"]) == (201, ["driver", "name", "driver_info"])
    assert order["request_id"] == created.headers[REQUEST_ID_HEADERS[0]]
    patch = [{"op": "add", "path": "/driver_info/password", "value": SECRET}]
    api.patch("/v1/nodes/web-1", patch, headers=ANN)
    assert last(path)["fields"] == ["/driver_info/password"]
    api.put("/v1/nodes/web-1/states/provision", {"target": "manage"}, headers=ANN)
    assert last(path)["target"] == "manage"
    acted = {"nodes": ["web-1", "web-2"], "power": {"target": "power on"}}
    api.post("/ext/v1/nodes:act", acted, headers=ANN)
    assert (last(path)["nodes"], last(path)["target"]) == (["web-1", "web-2"], "power on")
    batch = {"nodes": [body | {"name": "web-3"}, {"uuid": UUID, "driver": "fake-hardware"}, 7]}
    api.post("/ext/v1/nodes:batch", batch, headers=ANN)
    assert last(path)["nodes"] == ["web-3", UUID]
    assert SECRET not in path.read_text()
    assert audit.check([path]).faults == []


def test_refusals_are_recorded_and_reads_are_not(api, path):
    api.get("/v1/nodes", headers=ANN)
    api.get("/v1/nodes")
    assert audit.orders([path]) == []
    api.delete("/v1/nodes/web-1")
    order = last(path)
    assert (order["status"], order["method"], "user" in order) == (401, "DELETE", False)
    api.delete("/v1/nodes/web-1", headers=ANN)
    assert (last(path)["status"], last(path)["user"]) == (404, "ann")
    api.post("/v1/nodes", raw=b"[", headers=ANN)
    assert last(path)["status"] == 400
    api.post(f"/v1/heartbeat/{UUID}", {}, headers=ANN)
    assert last(path)["path"] == "/v1/nodes"


AUDIT = "/ext/v1/audit"


def test_the_newest_orders_are_listed_with_their_answers(api, path):
    none = api.get(AUDIT, headers=ANN).json
    assert (none["orders"], none["is_recorded"], none["is_whole"]) == ([], True, True)
    for name in ("web-1", "web-2"):
        api.post("/v1/nodes", {"driver": "fake-hardware", "name": name}, headers=ANN)
    api.put("/v1/nodes/web-1/states/provision", {"target": "manage"}, headers=ANN)
    api.delete("/v1/nodes/web-2")
    listed = api.get(AUDIT, headers=ANN).json["orders"]
    assert [(each["user"], each["method"], each["status"]) for each in listed] == [
        (None, "DELETE", 401), ("ann", "PUT", 202), ("ann", "POST", 201), ("ann", "POST", 201),
    ]  # fmt: skip
    assert listed[1]["target"] == "manage"
    assert "hash" not in listed[0]
    two = api.get(f"{AUDIT}?limit=2", headers=ANN).json
    assert (two["orders"], two["is_whole"]) == (listed[:2], False)
    assert api.get(f"{AUDIT}?limit=0", headers=ANN).status == 400
    assert api.get(AUDIT).status == 401


def test_names_that_are_no_text_are_listed(api):
    api.post("/ext/v1/nodes:act", raw=b'{"nodes": ["a\\ud800", "b"]}', headers=ANN)
    assert api.get(AUDIT, headers=ANN).json["orders"][0]["nodes"] == ["a?", "b"]


def test_of_a_long_record_the_end_is_read(path, monkeypatch):
    trail = audit.Trail(path)
    for number in range(50):
        trail.add("asked", {"request_id": f"req-{number}", "method": "PUT"})
    trail.add("answered", {"request_id": "req-49", "status": 202})
    orders, is_whole = audit.newest(path, most_bytes=path.stat().st_size // 2)
    assert not is_whole
    assert 10 < len(orders) < 30
    assert [each["request_id"] for each in orders[:2]] == ["req-49", "req-48"]
    assert [each["status"] for each in orders[:2]] == [202, None]
    assert audit.newest(path)[1]


def test_a_site_without_a_record_says_so(world):
    site = replace(world.site, conf=replace(world.site.conf, audit=Audit()))
    answer = Client(app.make_app(site)).get(AUDIT, headers=ANN).json
    assert (answer["orders"], answer["is_recorded"]) == ([], False)


def test_what_cannot_be_recorded_is_not_done(api, path, tmp_path):
    path.rename(tmp_path / "moved")
    path.mkdir()
    refused = api.post("/v1/nodes", {"driver": "fake-hardware"}, headers=ANN)
    assert (refused.status, "nothing was done" in refused.said) == (503, True)
    assert api.get("/v1/nodes", headers=ANN).json["nodes"] == []
    path.rmdir()
    assert api.post("/v1/nodes", {"driver": "fake-hardware"}, headers=ANN).status == 201
    assert audit.check([tmp_path / "moved", path]).faults == []


def test_a_file_that_cannot_be_written_prevents_the_start(world, tmp_path):
    conf = replace(world.site.conf, audit=Audit(file=str(tmp_path)))
    with pytest.raises(errors.CannotStart, match=r"cannot write \[audit\]file .*directory"):
        app.make_app(replace(world.site, conf=conf))


def refuse_a_stack(served, path, stack):
    """The first order of a stack, which makes its API, finds no file to write."""
    moved = path.rename(path.with_name("moved"))
    path.mkdir()
    with pytest.raises(urllib.error.HTTPError) as refused:
        served.api("POST", STACKS, stack)
    with refused.value as answer:
        assert answer.code == 503, (answer.read(), "".join(served.complaints))
    path.rmdir()
    moved.rename(path)


def test_a_service_records_orders_of_both_apis_through_kills(tmp_path):
    """A second process continues the chain, and the commands check and export it."""
    state, path = tmp_path / "state", tmp_path / "state/orders"
    for name in ("one", "two"):
        with Served(state, audit={"file": "orders"}) as served:
            served.wait_until_it_answers()
            served.api("POST", "/v1/nodes", {"driver": "fake-hardware", "name": name})
            stack = {"stack_name": name, "template": template({}), "environment": {}}
            refuse_a_stack(served, path, stack)
            served.api("POST", STACKS, stack)
            served.send(signal.SIGKILL)
    runner = CliRunner()
    checked = runner.invoke(main, ["audit", "verify", str(path)])
    assert (checked.exit_code, "records, 1 to" in checked.stdout) == (0, True), checked.output
    exported = runner.invoke(main, ["audit", "export", str(path), "--json"])
    orders = [(each["path"], each["status"]) for each in json.loads(exported.stdout)]
    assert orders == [("/v1/nodes", 201), (STACKS, 201)] * 2
    table = runner.invoke(main, ["audit", "export", str(path)]).stdout.splitlines()
    assert table[0].startswith("at,user,")
    assert len(table) == 5
    path.write_bytes(path.read_bytes().replace(b'"POST"', b'"GOST"', 1))
    changed = runner.invoke(main, ["audit", "verify", str(path)])
    assert (changed.exit_code, "was changed" in changed.stderr) == (1, True)
    gone = runner.invoke(main, ["audit", "verify", str(tmp_path / "none")])
    assert "cannot read " in gone.stderr
