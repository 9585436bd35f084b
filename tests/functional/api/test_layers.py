"""Behind proxies, and for pages of browsers: links, Location and preflights of both APIs."""

from __future__ import annotations

import dataclasses

import pytest
import webob

from bloomery import errors
from bloomery.api import layers
from bloomery.api.orchestration import app as orchestration
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.web import Cors, Healthcheck, OsloMiddleware
from tests.fakes.client import Client
from tests.fakes.stack_operations import FakeStackOperations

PAGE = "https://dashboard.example"
PROXIED = {
    "X-Forwarded-Proto": "https", "X-Forwarded-Host": "cloud.localhost",
    "X-Forwarded-For": "9.9.9.9", "X-Forwarded-Prefix": "/baremetal",
}  # fmt: skip


def asked_by(app, peer, headers, path="/healthcheck"):
    """Return the answer to a request from the address of a socket."""
    environ = {"REMOTE_ADDR": peer}
    return webob.Request.blank(path, environ, headers=headers).get_response(app)


def hrefs(value):
    """Every address in a document."""
    if isinstance(value, dict):
        own = [text for name, text in value.items() if name in ("href", "next")]
        return own + [each for inner in value.values() for each in hrefs(inner)]
    return [each for inner in value for each in hrefs(inner)] if isinstance(value, list) else []


@pytest.fixture
def stacks(world):
    return Client(orchestration.make_app(world.site, FakeStackOperations()), version=None)


def test_headers_of_proxies_are_no_business_of_strangers(api, stacks):
    for answer in (api.get("/v1", headers=PROXIED), stacks.get("/v1", headers=PROXIED)):
        assert hrefs(answer.json)
        assert "cloud.localhost" not in answer.body.decode()


class TestBehindProxies:
    @pytest.fixture
    def conf(self):
        return Conf(oslo_middleware=OsloMiddleware(enable_proxy_headers_parsing=True))

    def test_every_link_goes_through_the_proxy(self, api, stacks):
        own = "https://docs.openstack.org"
        for path in ("/", "/v1", "/v1/nodes", "/v1/nodes/detail", "/v1/drivers", "/v1/volume"):
            links = hrefs(api.get(path, headers=PROXIED).json)
            assert all(
                link.startswith(("https://cloud.localhost/baremetal", own)) for link in links
            )
        assert hrefs(stacks.get("/", headers=PROXIED).json) == [
            "https://cloud.localhost/baremetal/v1/"
        ]

    def test_location_and_next_go_through_it_too(self, api):
        answer = api.post("/v1/nodes", {"driver": "fake-hardware"}, headers=PROXIED)
        node = answer.json["uuid"]
        assert answer.headers["location"] == f"https://cloud.localhost/baremetal/v1/nodes/{node}"
        page = api.get("/v1/nodes?limit=1", headers=PROXIED).json
        assert page["next"].startswith("https://cloud.localhost/baremetal/v1/nodes?")
        moved = api.put(f"/v1/nodes/{node}/states/power", {"target": "power on"}, headers=PROXIED)
        assert moved.headers["location"].startswith("https://cloud.localhost/baremetal/v1/nodes/")

    @pytest.mark.parametrize(
        ("headers", "url"),
        [
            ({"Forwarded": "for=9.9.9.9;proto=https;host=a.localhost"}, "https://a.localhost"),
            (
                {"Forwarded": 'for="[::1]:80"; host="a.localhost:8443" ;proto=https, host=b'},
                "https://a.localhost:8443",
            ),
            ({"Forwarded": "host=a.localhost", "X-Forwarded-Host": "b"}, "http://a.localhost"),
            ({"X-Forwarded-Proto": "https"}, "https://localhost"),
            ({"X-Forwarded-Proto": "https, http"}, "https://localhost"),
            ({"X-Forwarded-Proto": "javascript"}, "http://localhost"),
            ({"X-Forwarded-Host": "a.localhost:443, b", "X-Forwarded-Proto": "HTTPS"},
             "https://a.localhost"),
            ({"X-Forwarded-Host": "a.localhost:80"}, "http://a.localhost"),
            ({"X-Forwarded-Prefix": "metal/"}, "http://localhost/metal"),
            ({"X-Forwarded-Prefix": "/"}, "http://localhost"),
            ({}, "http://localhost"),
        ],
    )  # fmt: skip
    def test_what_proxies_say_is_understood(self, api, headers, url):
        answer = api.get("/", headers=headers).json
        assert hrefs(answer)[0] == f"{url}/v1/"

    @pytest.mark.parametrize("value", ["", ";;;", "=,=", "\xff", "proto", "host", "a" * 3000])
    def test_nonsense_is_no_error_of_ours(self, api, value):
        for name in ("Forwarded", *PROXIED):
            assert api.get("/v1/nodes", headers={name: value}).status in (200, 421)

    class TestWithAPublicEndpoint:
        @pytest.fixture
        def conf(self):
            return Conf(
                api=Api(public_endpoint="https://metal.example/"),
                oslo_middleware=OsloMiddleware(enable_proxy_headers_parsing=True),
            )

        def test_the_operator_has_the_last_word(self, api):
            links = hrefs(api.get("/", headers=PROXIED).json)
            assert links == ["https://metal.example/v1/"] * 2


PREFLIGHT = {"Origin": PAGE, "Access-Control-Request-Method": "PATCH"}


def allowed(answer):
    return answer.headers.get("access-control-allow-origin")


def test_without_an_allowed_origin_no_page_is_told_anything(api):
    assert allowed(api.ask("OPTIONS", "/v1/nodes", headers=PREFLIGHT)) is None
    assert allowed(api.get("/v1/nodes", headers=PREFLIGHT)) is None


class TestForPages:
    @pytest.fixture
    def conf(self):
        exposed = ("X-OpenStack-Ironic-API-Version",)
        return Conf(cors=Cors(allowed_origin=(PAGE,), expose_headers=exposed, max_age=60))

    def test_preflight_is_answered_without_a_login(self, api, stacks):
        own = "X-OpenStack-Ironic-API-Version, X-Auth-Token, content-type"
        headers = PREFLIGHT | {"Access-Control-Request-Headers": own}
        answer = api.ask("OPTIONS", "/v1/nodes", headers=headers)
        assert (answer.status, allowed(answer)) == (200, PAGE)
        assert answer.headers["access-control-allow-methods"] == "PATCH"
        assert answer.headers["access-control-max-age"] == "60"
        assert answer.headers["vary"] == "Origin"
        headers = PREFLIGHT | {"Access-Control-Request-Headers": "X-Auth-Token"}
        answer = stacks.ask("OPTIONS", "/v1/admin/stacks", headers=headers)
        assert (answer.status // 100, allowed(answer)) == (2, PAGE)

    @pytest.mark.parametrize(
        "headers",
        [
            {"Origin": "https://other.example"},
            {"Access-Control-Request-Method": "BREW"},
            {"Access-Control-Request-Headers": "X-Other"},
        ],
    )
    def test_what_is_not_allowed_gets_no_permission(self, api, headers):
        answer = api.ask("OPTIONS", "/v1/nodes", headers=PREFLIGHT | headers)
        assert (answer.status, allowed(answer)) == (200, None)

    def test_answers_and_errors_may_be_read(self, api):
        for path, status in (("/v1/nodes", 200), ("/v1/nodes/x", 404), ("/nothing", 404)):
            answer = api.get(path, headers={"Origin": PAGE})
            assert (answer.status, allowed(answer)) == (status, PAGE)
            assert answer.headers["access-control-allow-credentials"] == "true"
            assert answer.headers["access-control-expose-headers"] == (
                "X-OpenStack-Ironic-API-Version"
            )

    def test_body_of_a_page_arrives(self, api):
        body = {"driver": "fake-hardware"}
        assert api.post("/v1/nodes", body, headers={"Origin": PAGE}).status == 201

    def test_who_is_no_page_notices_nothing(self, api):
        assert allowed(api.get("/v1/nodes")) is None


class TestForPagesByDefault:
    """Nothing but the origin is set."""

    @pytest.fixture
    def conf(self):
        return Conf(cors=Cors(allowed_origin=(PAGE,)))

    def test_pages_read_versions_the_place_of_what_is_new_and_request_ids(self, api):
        body = {"driver": "fake-hardware"}
        answer = api.post("/v1/nodes", body, headers={"Origin": PAGE})
        exposed = answer.headers["access-control-expose-headers"].lower().split(",")
        assert exposed == [
            "x-openstack-ironic-api-version", "x-openstack-ironic-api-minimum-version",
            "x-openstack-ironic-api-maximum-version", "location", "x-openstack-request-id",
            "openstack-request-id",
        ]  # fmt: skip
        assert set(exposed) <= {name.lower() for name in answer.headers}

    @pytest.mark.parametrize(
        ("method", "origin"),
        [("GET", PAGE), ("PUT", PAGE), ("POST", PAGE), ("DELETE", PAGE), ("PATCH", PAGE),
         ("HEAD", None), ("OPTIONS", None), ("TRACE", None)],
    )  # fmt: skip
    def test_methods_of_pages_are_those_of_ironic(self, api, method, origin):
        headers = PREFLIGHT | {"Access-Control-Request-Method": method}
        assert allowed(api.ask("OPTIONS", "/v1/nodes", headers=headers)) == origin


class TestHealth:
    @pytest.fixture
    def conf(self):
        return Conf(healthcheck=Healthcheck(enabled=True))

    def test_whoever_asks_is_told(self, api):
        answer = api.get("/healthcheck", version=None)
        assert (answer.status, answer.headers["content-type"]) == (200, "text/plain; charset=UTF-8")
        headers = {"Accept": "application/json"}
        assert api.get("/healthcheck", headers=headers).json["detailed"] is False
        assert api.ask("HEAD", "/healthcheck").status == 204


class TestHealthForSomeNetworks:
    """Only the socket tells from where a question comes."""

    @pytest.fixture
    def conf(self):
        health = Healthcheck(enabled=True, allowed_source_ranges=("10.0.0.0/8",))
        middleware = OsloMiddleware(enable_proxy_headers_parsing=True)
        return Conf(healthcheck=health, oslo_middleware=middleware)

    @pytest.mark.parametrize(
        "headers",
        [
            {},
            {"X-Forwarded-For": "10.1.2.3"},
            {"X-Forwarded-For": "10.1.2.3, 192.0.2.1"},
            {"Forwarded": 'for="[2001:db8::1]:99"'},
            {"Forwarded": "for=unknown"},
        ],
    )
    @pytest.mark.parametrize(("peer", "status"), [("10.9.9.9", 200), ("192.0.2.7", 404)])
    def test_no_header_decides_who_may_ask(self, world, headers, peer, status):
        assert asked_by(world.app, peer, headers).status_int == status


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("path", "healthcheck"),
        ("path", ""),
        ("allowed_source_ranges", ("nonsense",)),
        ("allowed_source_ranges", ("10.0.0.0/8", "10.0.0.1/8")),
        ("backends", ("nope",)),
        ("backends", ("disable_by_file", "enable_by_files")),
    ],
)
def test_options_of_health_that_cannot_be_used_are_refused_by_name(option, value):
    health = Healthcheck(enabled=True, **{option: value})
    with pytest.raises(errors.CannotStart, match=rf"cannot use \[healthcheck\]{option} "):
        layers.healthcheck(Conf(healthcheck=health))
    assert layers.healthcheck(Conf(healthcheck=dataclasses.replace(health, enabled=False))) == {}


def test_backends_of_health_are_those_of_oslo(tmp_path):
    health = Healthcheck(
        enabled=True, backends=("disable_by_file",), disable_by_file_path=str(tmp_path)
    )
    (layer,) = layers.healthcheck(Conf(healthcheck=health)).values()
    assert asked_by(layer, "192.0.2.7", {}).status_int == 503


@pytest.mark.parametrize(
    ("headers", "client"),
    [
        ({"X-Forwarded-For": "10.1.2.3, 192.0.2.1"}, "10.1.2.3"),
        ({"X-Forwarded-For": "10.1.2.3:4711"}, "10.1.2.3"),
        ({"X-Forwarded-For": "2001:DB8::1"}, "2001:db8::1"),
        ({"Forwarded": 'for="[2001:db8::1]:99"'}, "2001:db8::1"),
        ({"Forwarded": "for=unknown"}, "192.0.2.7"),
        ({"X-Forwarded-For": ", 10.1.2.3"}, "192.0.2.7"),
    ],
)
def test_client_of_a_proxy_is_an_address(headers, client):
    def inner(environ, start_response):
        return webob.Response(environ["REMOTE_ADDR"])(environ, start_response)

    conf = Conf(oslo_middleware=OsloMiddleware(enable_proxy_headers_parsing=True))
    assert asked_by(layers.around(inner, conf, ()), "192.0.2.7", headers, "/").text == client


def test_health_is_a_path_like_others_unless_it_is_enabled(api):
    assert api.get("/healthcheck").status == 404
