"""What conductors and engines that run alone answer to those who watch them."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest
import urllib3

from bloomery import errors
from bloomery.cmd import gauges as process_gauges
from bloomery.cmd.monitoring import Monitor
from bloomery.conf import Conf
from bloomery.conf.web import Monitoring
from bloomery.orchestration.engine_host.engine_service import EngineService
from bloomery.secrets import Sealer
from tests.kit.servers.site import KEY, Site
from tools.servers import free_port

Ask = Callable[[str], urllib3.BaseHTTPResponse]


@pytest.fixture
def ask(site: Site) -> Iterator[Ask]:
    """Return what asks the monitor of the site's conductor."""
    conf = Conf(monitoring=Monitoring(conductor_port=free_port()))
    gauges = process_gauges.of_conductor(site.service)
    monitor = Monitor(conf, "conductor_port", gauges, {"the database": site.service.missing})
    monitor.start()
    url = f"http://127.0.0.1:{conf.monitoring.conductor_port}"
    yield lambda path: urllib3.request("GET", f"{url}{path}", retries=False)
    monitor.stop()


def test_a_conductor_that_serves_is_alive_and_ready(ask: Ask):
    assert (ask("/healthz").status, ask("/healthz").json()) == (200, {"alive": True})
    assert (ask("/readyz").status, ask("/readyz").json()) == (200, {"ready": True, "missing": []})
    assert ask("/v1/nodes").status == 404


def test_its_gauges_are_shown(site: Site, ask: Ask):
    with site.acquire(site.enrol()):
        assert "bloomery_nodes_held 1.0" in ask("/metrics").data.decode()


def test_a_conductor_that_ends_its_work_is_alive_and_not_ready(site: Site, ask: Ask):
    site.service.begin_stop()
    ready = ask("/readyz")
    assert (ready.status, ask("/healthz").status) == (503, 200)
    assert ready.json() == {
        "ready": False, "missing": [f"conductor {site.runtime.host} is off line"],
    }  # fmt: skip


def test_a_database_that_is_away_is_named(site: Site, ask: Ask, monkeypatch: pytest.MonkeyPatch):
    def refuse() -> None:
        raise errors.DatabaseBusy(reason="it is away")

    monkeypatch.setattr(site.runtime.ring, "refresh", refuse)
    ready = ask("/readyz")
    assert ready.status == 503
    assert "it is away" in ready.json()["missing"][0]


def test_an_engine_that_stops_is_not_ready(site: Site):
    engine = EngineService(site.runtime.conf, site.db, Sealer(KEY), lambda: None)
    assert engine.missing() == []
    engine.begin_stop()
    assert engine.missing() == ["the engine ends its work"]


def test_nothing_listens_where_no_port_is_named(site: Site):
    monitor = Monitor(Conf(), "engine_port", (), {})
    monitor.start()
    monitor.stop()


def test_a_port_that_is_taken_is_named_with_its_option():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        conf = Conf(monitoring=Monitoring(engine_port=taken.getsockname()[1]))
        with pytest.raises(errors.CannotStart, match=r"\[monitoring\]engine_port"):
            Monitor(conf, "engine_port", (), list)
