"""Which names the service answers to, and whose pages it serves, where nobody logs in."""

from __future__ import annotations

import dataclasses
import socket

import pytest

from bloomery.api import browsers
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.default import Default
from bloomery.conf.engine import Orchestration
from bloomery.conf.web import Cors

PUBLIC = Conf(
    api=Api(public_endpoint="https://metal.example/"),
    orchestration=Orchestration(public_endpoint="http://stacks.example:8004"),
)
EXPOSED = Conf(api=Api(insecure_listen=True, host_ip="0.0.0.0"))
ALLOWING = Conf(cors=Cors(allowed_origin=("https://dashboard.example", "http://Panel.example:80/")))


def status(conf: Conf, *, host: str | None = None, origin: str | None = None) -> int:
    refusal = browsers.Guard(conf).refusal(host, origin)
    return 200 if refusal is None else refusal.status


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:6385", "127.0.0.1:6385", "127.8.8.8", "[::1]:6385",
             "localhost.", "api.localhost", ""],
)  # fmt: skip
def test_loopback_is_served_by_each_of_its_names(host: str):
    assert status(Conf(), host=host) == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:6385", "localhost.evil.example",
             "127.0.0.1.evil.example", "10.0.0.1", "[fd00::1]:6385", "[::1", "x:y:z", "\xff",
             "a@localhost@evil.example", "2130706433", "127.1"],
)  # fmt: skip
def test_other_names_are_not_served(host: str):
    assert status(Conf(), host=host) == 421


def test_what_is_no_browser_may_name_no_host():
    assert status(Conf()) == 200


@pytest.mark.parametrize("host", ["metal.example", "METAL.example:8443", "stacks.example:8004"])
def test_the_public_endpoints_are_served(host: str):
    assert status(PUBLIC, host=host) == 200
    assert status(PUBLIC, host="evil.example") == 421


@pytest.mark.parametrize("host", ["10.0.0.1:6385", "[fd00::1]:6385", socket.gethostname()])
def test_a_service_that_listens_elsewhere_answers_at_its_addresses_and_name(host: str):
    assert status(EXPOSED, host=host) == 200
    assert status(EXPOSED, host="evil.example") == 421


def test_a_name_to_listen_on_is_served():
    conf = Conf(api=Api(insecure_listen=True, host_ip="Rack.example"))
    assert status(conf, host="rack.example:6385") == 200


@pytest.mark.parametrize(
    ("host", "origin"),
    [("localhost:6385", "http://localhost:6385"), ("127.0.0.1", "http://127.0.0.1"),
     ("127.0.0.1:80", "http://127.0.0.1"), ("[::1]:6385", "http://[::1]:6385"),
     ("localhost", "https://localhost")],
)  # fmt: skip
def test_own_pages_are_served(host: str, origin: str):
    assert status(Conf(), host=host, origin=origin) == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:8080", "https://localhost",
               "http://localhost:6385.evil.example", "x", "http://[::1", "file://"],
)  # fmt: skip
@pytest.mark.parametrize("host", ["localhost:6385", None])
def test_pages_of_others_are_not_served(origin: str, host: str | None):
    assert status(Conf(), host=host, origin=origin) == 403


@pytest.mark.parametrize(
    "origin", ["https://dashboard.example", "https://Dashboard.example:443", "http://panel.example"]
)
def test_pages_that_an_operator_allows_are_served(origin: str):
    assert status(ALLOWING, host="localhost", origin=origin) == 200
    assert status(ALLOWING, host="localhost", origin="http://dashboard.example") == 403
    assert status(Conf(cors=Cors(allowed_origin=("*",))), host="localhost", origin=origin) == 200


@pytest.mark.parametrize(
    "conf",
    [Conf(cors=Cors(allowed_origin=("dashboard.example",))),
     Conf(api=Api(public_endpoint="metal.example"))],
)  # fmt: skip
def test_an_option_without_a_scheme_opens_to_no_page_without_an_origin(conf: Conf):
    assert status(conf, host="localhost", origin="null") == 403
    assert status(conf, host="x:y:z") == 421


def test_pages_of_the_public_endpoint_are_served_through_a_proxy():
    assert status(PUBLIC, host="127.0.0.1:6385", origin="https://metal.example") == 200


@pytest.mark.parametrize("strategy", ["http_basic", "keystone"])
def test_who_logs_in_may_come_from_anywhere(strategy: str):
    conf = dataclasses.replace(Conf(), default=Default(auth_strategy=strategy))
    assert status(conf, host="metal.example", origin="https://elsewhere.example") == 200


def test_refusals_name_the_way_out():
    guard = browsers.Guard(Conf())
    assert "[api]public_endpoint" in guard.refusal("metal.example", None).message
    assert "[cors]allowed_origin" in guard.refusal("localhost", "http://evil.example").message
