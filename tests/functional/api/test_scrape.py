"""/metrics: in time while the database is mute, and with series of single nodes for some."""

from __future__ import annotations

import base64
import dataclasses
import threading
from typing import Any

import bcrypt
import pytest

from bloomery import errors, metrics
from bloomery.api import app, scrape
from bloomery.conf import Conf
from bloomery.conf.agent import Metrics
from bloomery.conf.default import Default
from bloomery.conf.web import OsloMiddleware
from bloomery.http_server import readiness
from bloomery.metrics import Gauge, Series, SeriesGauges

SENSOR = Series("baremetal_temp", ("node_name",), ("web-1",), 40.0)
ANSWERS = Gauge(metrics.DATABASE_ANSWERS, "0: mute.", (), lambda: {(): 1.0}, from_database=True)
GAUGES = (
    ANSWERS,
    Gauge("nodes", "Nodes.", (), lambda: {(): 3.0}, from_database=True),
    Gauge("workers_busy", "Workers.", (), lambda: {(): 1.0}),
    SeriesGauges("Sensor of a machine.", lambda: [SENSOR]),
)
NEAR, FAR = {"REMOTE_ADDR": "127.0.0.1"}, {"REMOTE_ADDR": "192.0.2.7"}
PROXIED = NEAR | {"HTTP_X_FORWARDED_FOR": "192.0.2.7"}
LOGIN = {"HTTP_AUTHORIZATION": "Basic " + base64.b64encode(b"ann:secret").decode()}
WRONG = {"HTTP_AUTHORIZATION": "Basic " + base64.b64encode(b"ann:wrong").decode()}


def answer(application: Any, environ: dict[str, str]) -> tuple[str, str]:
    """Return status and body, as the server would get them."""
    statuses: list[str] = []
    base = {
        "REQUEST_METHOD": "GET", "PATH_INFO": "/metrics", "SCRIPT_NAME": "", "QUERY_STRING": "",
        "SERVER_NAME": "localhost", "SERVER_PORT": "6385", "wsgi.url_scheme": "http",
    }  # fmt: skip
    body = application(base | environ, lambda status, _headers, *_: statuses.append(status))
    return statuses[0][:3], b"".join(body).decode()


@pytest.fixture(scope="module")
def htpasswd(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("logins") / "htpasswd"
    path.write_text(f"ann:{bcrypt.hashpw(b'secret', bcrypt.gensalt(rounds=4)).decode()}\n")
    return str(path)


def make(world: Any, gauges: Any = GAUGES, **conf: Any) -> Any:
    services = dataclasses.replace(world.site, conf=dataclasses.replace(Conf(), **conf))
    return app.make_app(services, scrape.make(gauges))


@pytest.mark.parametrize(
    ("caller", "options", "status", "sees"),
    [
        (NEAR, {}, "200", True),
        (FAR, {}, "200", False),
        (PROXIED, {}, "200", False),
        (PROXIED, {"oslo_middleware": OsloMiddleware(enable_proxy_headers_parsing=True)},
         "200", False),
        (FAR, {"metrics": Metrics(node_networks=("192.0.2.0/24",))}, "200", True),
        (PROXIED, {"metrics": Metrics(node_networks=("192.0.2.0/24",))}, "200", False),
        (PROXIED, {"metrics": Metrics(node_networks=("192.0.2.0/24",)),
                   "oslo_middleware": OsloMiddleware(enable_proxy_headers_parsing=True)},
         "200", True),
        (FAR | LOGIN, {}, "200", True),
        (FAR | WRONG, {}, "401", False),
    ],
    ids=["this host", "far", "by a proxy here", "by a trusted proxy", "network", "forged header",
         "network behind a trusted proxy", "login", "wrong login"],
)  # fmt: skip
def test_series_of_single_nodes_are_for_those_who_may_list_them(
    world: Any, htpasswd: str, caller: dict[str, str], options: Any, status: str, sees: bool
) -> None:
    logins = Default(auth_strategy="http_basic", http_basic_auth_user_file=htpasswd)
    got, body = answer(make(world, default=logins, **options), caller)
    assert (got, 'node_name="web-1"' in body) == (status, sees)
    assert ("bloomery_nodes 3.0" in body) == (status == "200")


def test_without_logins_everybody_sees_them(world: Any) -> None:
    assert 'node_name="web-1"' in answer(make(world), FAR)[1]


def test_a_malformed_network_is_named(world: Any) -> None:
    with pytest.raises(errors.CannotStart, match=r"\[metrics\]node_networks: networks are allowed"):
        make(world, metrics=Metrics(node_networks=("here",)))


def test_a_mute_database_is_looked_at_once_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight gauges, of which each would wait for its own time-out."""
    over, looks = threading.Event(), []

    def mute() -> metrics.Readings:
        looks.append(1)
        over.wait()
        return {}

    monkeypatch.setattr(readiness, "WITHIN_S", 0.05)
    waiting = [Gauge(f"rows_{n}", "R.", (), mute, from_database=True) for n in range(8)]
    application = scrape.make((*waiting, ANSWERS, *GAUGES[2:]))
    try:
        for _ in range(3):
            status, body = answer(application, {})
            assert (status, "bloomery_workers_busy 1.0" in body) == ("200", True)
            assert "bloomery_database_answers 0.0" in body
            assert "bloomery_rows_0 " not in body
        assert len(looks) == 1
    finally:
        over.set()


def test_a_database_that_answers_is_said_to() -> None:
    body = answer(scrape.make(GAUGES), {})[1]
    assert "bloomery_database_answers 1.0" in body
    assert "bloomery_nodes 3.0" in body
