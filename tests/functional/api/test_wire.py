"""Forms of errors, methods, bodies, headers: what holds for every resource."""

from __future__ import annotations

import threading

import pytest

from bloomery.cmd.service import Service
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.operations.status import readiness_checks
from bloomery.rpc.liveness import Liveness
from bloomery.state_dir import StateDir
from tests.kit.clock import HandClock
from tests.kit.servers import peers
from tests.kit.waiting import wait_for

IDS = ("x-openstack-request-id", "openstack-request-id")
FORM = "application/x-www-form-urlencoded"


# ------------------------------------------------------------------------------------ errors


def test_error_of_a_handler_is_encoded_twice(api):
    answer = api.get("/v1/nodes/unknown")
    assert answer.status == 404
    assert answer.headers["content-type"] == "application/json"
    assert answer.fault == {
        "faultcode": "Client",
        "faultstring": "Node unknown could not be found.",
        "debuginfo": None,
    }


def test_error_of_routing_names_code_and_title(api):
    assert api.get("/v1/nonsense").fault == {
        "code": 404,
        "title": "Not Found",
        "description": "This API version knows nothing of that path",
    }


def test_refused_method_is_told_what_is_allowed(api):
    assert api.put("/v1/drivers").fault["description"] == "Allowed here: GET"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/nodes/a%20b", 400),
        ("/v1/nodes/a%00b", 400),
        ("/v1/nodes/%C3%A4", 400),
        ("/v1/nodes/ports", 404),
        ("/v1/nodes/traits", 404),
        ("/v1/nodes/bios", 404),
        ("/v1/__class__", 404),
        ("/v1/nodes/x/__init__", 404),
        ("/v1/words", 404),
        ("/v2", 404),
    ],
)
def test_path_that_leads_nowhere_is_refused(api, path, status):
    answer = api.get(path)
    assert answer.status == status


def test_path_that_is_not_utf_8_is_refused(api):
    answer = api.get("/v1/nodes/%ff")
    assert (answer.status, answer.form) == (400, "second")
    assert api.get("/v1/nodes?name=%ff").status == 400


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "image/png"])
def test_client_that_takes_no_json_gets_plain_text(api, accept):
    answer = api.get("/v1/nodes", headers={"Accept": accept})
    assert (answer.status, answer.form) == (406, "page")
    assert "x-openstack-ironic-api-version" not in answer.headers


@pytest.mark.parametrize(
    "accept",
    [
        "*/*",
        "application/json",
        "application/*",
        "text/html, */*;q=0.1",
        "text/html;q=1, application/json",
    ],
)
def test_client_that_takes_json_gets_it(api, accept):
    assert api.get("/v1/nodes", headers={"Accept": accept}).status == 200


def test_unexpected_error_tells_no_details(world, monkeypatch, caplog):
    def broken(*_args, **_kwargs):
        raise RuntimeError("the secret plan")

    monkeypatch.setattr(world.conductor, "create_node", broken)
    answer = world.api.post("/v1/nodes", {"driver": "fake-hardware"})
    assert (answer.status, answer.form) == (500, "first")
    assert answer.fault["faultcode"] == "Server"
    assert b"secret plan" not in answer.body
    assert "secret plan" in caplog.text


# ----------------------------------------------------------------------------------- headers


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/v1/nodes"),
        ("GET", "/v1/nonsense"),
        ("PUT", "/v1/nodes"),
        ("GET", "/healthz"),
    ],
)
def test_every_answer_has_a_request_id(api, method, path):
    one, other = (api.ask(method, path) for _ in range(2))
    assert one.headers[IDS[0]] == one.headers[IDS[1]]
    assert one.headers[IDS[0]].startswith("req-")
    assert one.headers[IDS[0]] != other.headers[IDS[0]]


@pytest.mark.parametrize("path", ["/", "/v1/nodes", "/v1/nonsense"])
def test_options_is_empty_and_bare(api, path):
    answer = api.ask("OPTIONS", path)
    assert (answer.status, answer.body) == (200, b"")
    assert not [name for name in answer.headers if "openstack" in name]


def test_answers_without_a_body_have_no_content_type(world):
    uuid = world.node(provision_state="enroll")
    for answer, status in (
        (world.api.put(f"/v1/nodes/{uuid}/maintenance"), 202),
        (world.api.delete(f"/v1/nodes/{uuid}"), 204),
    ):
        assert (answer.status, answer.body) == (status, b"")
        assert "content-type" not in answer.headers


# ----------------------------------------------------------------------------------- methods


@pytest.mark.parametrize("path", ["/", "/v1"])
def test_head_works_on_documents(api, path):
    answer = api.ask("HEAD", path)
    assert (answer.status, answer.body) == (200, b"")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("HEAD", "/v1/nodes", "GET, POST"),
        ("PUT", "/v1/nodes", "GET, POST"),
        ("DELETE", "/v1/nodes", "GET, POST"),
        ("PATCH", "/v1/ports", "GET, POST"),
        ("PUT", "/v1/nodes/{node}", "DELETE, GET, PATCH"),
        ("POST", "/v1/nodes/{node}", "DELETE, GET, PATCH"),
        ("TRACE", "/v1/nodes", "GET, POST"),
        ("POST", "/v1/drivers", "GET"),
        ("POST", "/v1/conductors", "GET"),
        ("GET", "/v1/nodes/{node}/maintenance", "DELETE, PUT"),
        ("POST", "/v1/nodes/{node}/traits", "DELETE, GET, PUT"),
        ("GET", "/v1/nodes/{node}/traits/CUSTOM_A", "DELETE, PUT"),
        ("PUT", "/v1/nodes/{node}/vifs", "GET, POST"),
        ("GET", "/v1/nodes/{node}/states/power", "PUT"),
        ("POST", "/v1/nodes/detail", "GET"),
        ("POST", "/", "GET, HEAD"),
        ("DELETE", "/v1", "GET, HEAD"),
    ],
)
def test_method_that_is_not_there_is_refused_with_those_that_are(world, method, path, allowed):
    answer = world.api.ask(method, path.format(node=world.node()))
    assert (answer.status, answer.headers["allow"]) == (405, allowed)
    if method != "HEAD":
        assert answer.form == "second"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/nodes/{node}/detail"),
        ("GET", "/v1/nodes/{node}/management"),
        ("DELETE", "/v1/nodes/{node}/x"),
        ("PATCH", "/v1/nodes/{node}/x"),
        ("GET", "/v1/ports/{node}/x"),
        ("GET", "/v1/drivers/fake-hardware/x"),
    ],
)
def test_surplus_path_segments_are_refused(world, method, path):
    body = [] if method == "PATCH" else None
    answer = world.api.ask(method, path.format(node=world.node()), body)
    assert (answer.status, answer.form) == (404, "second")


# ------------------------------------------------------------------------------------ bodies


def test_body_that_is_no_json_is_a_bad_request(api):
    for raw in (b"nonsense", b"{", b"\xff\xfe", b'{"a": NaN}', b'{"driver": "\\ud800"}'):
        answer = api.post("/v1/nodes", raw=raw)
        assert (answer.status, answer.form) == (400, "first"), raw


@pytest.mark.parametrize("raw", [b"[]", b'"x"', b"5", b"null", b"true"])
def test_body_that_is_no_object_is_a_bad_request(api, raw):
    answer = api.post("/v1/nodes", raw=raw)
    assert answer.status == 400
    assert answer.said.startswith("Schema error for node:")


def test_deep_body_is_refused_bare(api):
    deep = b'{"driver": "fake-hardware", "extra": ' + b'{"a":' * 30 + b"1" + b"}" * 30 + b"}"
    answer = api.post("/v1/nodes", raw=deep)
    assert (answer.status, answer.form) == (400, "bare")
    assert api.post("/v1/nodes", raw=b"[" * 100_000).form == "bare"


def test_many_brackets_side_by_side_are_fine(api):
    assert api.node(extra={"list": [[] for _ in range(100)], "text": "[[[[" * 20})


def test_large_body_is_refused_bare(api):
    answer = api.post("/v1/nodes", raw=b'{"driver": "' + b"x" * 1024 * 1024 + b'"}')
    assert (answer.status, answer.form) == (413, "bare")


def test_provision_takes_larger_bodies(world):
    uuid = world.node(provision_state="available")
    body = {"target": "active", "configdrive": "A" * 2 * 1024 * 1024}
    assert world.api.put(f"/v1/nodes/{uuid}/states/provision", body).status == 202


@pytest.mark.parametrize("content_type", [None, FORM, "multipart/form-data; boundary=x"])
def test_body_without_a_type_is_taken_as_a_form(api, content_type):
    answer = api.post("/v1/nodes", {"driver": "fake-hardware"}, content_type=content_type)
    assert answer.status == 400
    assert "Unexpected arguments" in answer.said


@pytest.mark.parametrize(
    "content_type",
    ["application/json; charset=utf-8", "application/json-patch+json", "Application/JSON"],
)
def test_whole_bodies_are_read_from_any_json(api, content_type):
    assert (
        api.post("/v1/nodes", {"driver": "fake-hardware"}, content_type=content_type).status == 201
    )


@pytest.mark.parametrize("content_type", ["text/plain", "application/xml", "text/json", "x/json"])
def test_whole_bodies_of_other_types_are_refused(api, content_type):
    answer = api.post("/v1/nodes", {"driver": "fake-hardware"}, content_type=content_type)
    assert (answer.status, "Content-Type: application/json" in answer.said) == (415, True)
    assert api.get("/v1/nodes").json["nodes"] == []


def test_named_arguments_are_read_from_json_only(world):
    path = f"/v1/nodes/{world.node()}/states/power"
    assert world.api.put(path, {"target": "power on"}, content_type="text/plain").status == 415
    answer = world.api.put(path, raw=b"nonsense")
    assert "Missing mandatory parameter: target" in answer.said
    assert world.api.put(path + "?target=power%20on").status == 202


def test_a_body_of_another_type_is_refused_where_none_is_needed(world):
    node = world.node()
    path = f"/v1/nodes/{node}/maintenance"
    assert world.api.put(path, {"reason": "disks"}, content_type="text/plain").status == 415
    assert world.api.get(f"/v1/nodes/{node}").json["maintenance"] is False


def test_last_of_repeated_keys_counts(api):
    answer = api.post("/v1/nodes", raw=b'{"driver": "nonsense", "driver": "fake-hardware"}')
    assert answer.status == 201


@pytest.mark.parametrize(
    ("number", "status"),
    [(2**63 - 1, 201), (-(2**63), 201), (2**64, 400), (-(2**63) - 1, 400), (10**60, 400)],
)
def test_integers_beyond_64_bits_are_refused(api, number, status):
    answer = api.post("/v1/nodes", {"driver": "fake-hardware", "extra": {"n": number}})
    assert answer.status == status


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"driver": "fake-hardware", "description": "a\0b"}, "description"),
        ({"driver": "fake-hardware", "extra": {"a": ["b\0"]}}, "extra/a"),
        ({"driver": "fake-hardware", "extra": {"a\0": 1}}, "extra"),
    ],
)
def test_nul_is_refused_with_its_place(api, body, where):
    answer = api.post("/v1/nodes", body)
    assert answer.status == 400
    assert where in answer.said
    assert "NUL" in answer.said


def test_nul_in_a_query_is_refused(api):
    assert api.get("/v1/nodes?owner=a%00b").status == 400


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("nonsense=1", "nonsense"),
        ("driver=a&driver=b", "Expected string for driver"),
        ("maintenance=maybe", "maintenance"),
        ("instance_uuid=x", "Expected UUID for instance_uuid: x"),
        ("limit=x", "Expected an integer for limit: x"),
        ("description_contains=" + "x" * 50_000, "description_contains: at most 4096"),
        ("_method=delete", "_method"),
    ],
)
def test_bad_query_argument_is_named(api, query, said):
    answer = api.get(f"/v1/nodes?{query}")
    assert answer.status == 400
    assert said in answer.said


@pytest.mark.parametrize("word", ["1", "t", "TRUE", "on", "Yes", "y"])
def test_booleans_may_be_words(api, word):
    assert api.get(f"/v1/nodes?maintenance={word}").status == 200


def test_what_the_api_has_beside_ironics_is_listed(api):
    answer = api.get("/ext/v1")
    links = {link["rel"]: link["href"] for link in answer.json["links"]}
    assert (answer.status, links["fleet"]) == (200, f"{links['self']}/fleet")
    assert {"events", "openapi.json", "webhooks"} <= set(links)
    assert api.get("/ext/v1/fleet").status == 200
    assert api.post("/ext/v1", {}).status == 405
    assert [api.get(path).status for path in ("/ext", "/ext/v1/nothing")] == [404, 404]


# ------------------------------------------------------------------------------------ health


def test_health_is_told_to_anybody(api):
    assert api.get("/healthz", version="nonsense").json == {"alive": True}
    assert api.get("/readyz").json == {"ready": True, "missing": []}


def test_site_without_a_conductor_is_not_ready(world):
    peers.leave(world.site.db, "host-1")
    answer = world.api.get("/readyz")
    assert answer.status == 503
    assert "conductor" in answer.json["missing"][0]


def test_site_whose_conductors_fell_silent_is_not_ready_and_says_so_at_once(world):
    now = [0.0]
    ring = world.site.rpc.ring
    ring._clock = lambda: now[0]
    ring.liveness = Liveness.of(world.site.conf, ring._clock)
    while (answer := world.api.get("/readyz")).status == 200:
        assert now[0] < 60, "nobody sent a heartbeat for so long"
        now[0] += 10
    [sentence] = answer.json["missing"]
    assert "no conductor is alive" in sentence
    assert "host-1 sent no heartbeat for 60 s" in sentence
    assert world.api.get("/v1/conductors/host-1").json["alive"] is False
    assert world.api.get("/v1/conductors").json["conductors"][0]["alive"] is False
    refused = world.api.post("/v1/nodes", {"driver": "fake-hardware"})
    assert (refused.status, "host-1 sent no heartbeat" in refused.said) == (503, True)
    assert world.api.get("/v1/nodes").status == 200


def test_site_is_not_ready_while_a_conductor_of_its_ring_is_out_of_reach(world):
    from bloomery.db import conductors

    row = {"hostname": "gone", "group": "", "drivers": ["fake-hardware"], "interfaces": []}
    world.site.db.transact(lambda conn: conductors.register(conn, **row))
    answer = world.api.get("/readyz")
    assert answer.status == 503
    assert "conductor gone is on line and cannot be reached" in answer.json["missing"][0]


@pytest.mark.sqlite
def test_site_without_a_database_is_not_ready(world, tmp_path):
    world.site.db.close()
    (tmp_path / "bloomery.sqlite").write_bytes(b"this is no database" * 100)
    for left in tmp_path.glob("bloomery.sqlite-*"):
        left.unlink()
    answer = world.api.get("/readyz")
    assert answer.status == 503
    assert "database" in answer.json["missing"][0]


def test_service_whose_pulse_hangs_is_not_ready(tmp_path, monkeypatch):
    may_go, clock = threading.Event(), HandClock()
    with StateDir(tmp_path / "home") as home, Service(Conf(api=Api(port=0)), home) as running:
        pulse = running.conductor.runtime.pulse
        monkeypatch.setattr(pulse, "_clock", clock)
        pulse.call(lambda: may_go.wait(20))
        missing = readiness_checks(running.services)["the pulse of BMCs"]
        assert missing() == []
        clock.turn(11)
        assert missing() == ["the thread that looks at BMCs has not answered for 11 s"]
        may_go.set()
        wait_for(lambda: not missing(), "its answer")
