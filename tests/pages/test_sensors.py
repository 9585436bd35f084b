"""The sensors of a machine on its page: newest values, the last hours, names that are markup."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.remote.webdriver import WebDriver

from bloomery.cli.client import Client
from bloomery.cli.fleet import Fleet, Machine, create
from bloomery.lab.rack import Rack
from tests.kit.clients.browser import browser  # noqa: F401  a fixture
from tests.kit.clients.window import PATIENCE_S, Window
from tests.kit.servers.served import Served
from tests.kit.waiting import wait_for
from tests.pages.conftest import MARKUP
from tests.pages.test_access import SCREENS

_CARD = """
    const card = [...document.querySelectorAll('.card')].find(each =>
        each.querySelector('h2').innerText === 'Sensors');
    const rows = [...(card?.querySelectorAll('tbody tr') ?? [])];
    return card && {text: card.innerText, images: card.querySelectorAll('img').length,
        rows: rows.map(row => [...row.cells].map(cell => cell.innerText)),
        lines: rows.map(row => row.querySelector('polyline').getAttribute('points').split(' ')),
        titles: rows.map(row => [...row.querySelectorAll('svg title')].map(each => each.innerHTML)),
    };
"""
OPTIONS = {"send_sensor_data": "true", "interval": "1", "enable_for_undeployed_nodes": "true"}


def thermal(celsius: float) -> dict[str, Any]:
    status = {"State": "Enabled", "Health": "Critical"}
    hot = {"MemberId": "1", "PhysicalContext": MARKUP, "ReadingCelsius": celsius, "Status": status}
    return {"Id": "Thermal", "Name": "Thermal", "Temperatures": [hot]}


@pytest.fixture
def rack() -> Iterator[Rack]:
    with Rack(1, apart=True) as servers:
        yield servers


@pytest.fixture
def shown(tmp_path: Path, browser: WebDriver) -> Iterator[Window]:  # noqa: F811
    """A window with the pages of a service that reads sensors each second."""
    with Served(tmp_path / "state", sensor_data=OPTIONS) as served:
        served.wait_until_it_answers()
        window = Window(browser, served.url or "")
        window.emulate()
        window.complaints()
        yield window
        assert window.complaints() == []
        browser.get("about:blank")


def enrol(url: str, rack: Rack) -> None:
    client, [server] = Client(url), rack.machines
    create(
        client, Machine(name="web-1", driver="redfish", driver_info=server.driver_info, ports=[])
    )
    Fleet(client, ["web-1"]).take("manage", "manageable")


def count_readings(url: str, name: str) -> int:
    sensors = Client(url).get("/ext/v1/nodes/web-1/sensors")["sensors"]
    return max(
        (len(each["readings"]) for each in sensors if each["name"].startswith(name)), default=0
    )


def show(window: Window) -> Any:
    window.open("/nodes/web-1?tab=hardware")
    window.see("Sensors", ".panel")
    return window.driver.execute_script(_CARD)


def test_the_card_shows_the_newest_values_and_the_hours(shown: Window, rack: Rack) -> None:
    enrol(shown.url, rack)
    faults = rack.machines[0].bmc.faults
    for number, celsius in enumerate((95, 40.5), 1):
        faults.clear()
        faults.add(kind="status", status=200, body=thermal(celsius), path="/Thermal$", times=-1)
        read = lambda number=number: count_readings(shown.url, MARKUP) >= number  # noqa: E731
        wait_for(read, "a reading", timeout_s=PATIENCE_S)
    wait_for(
        lambda: show(shown)["rows"][0][-1].strip() == "40.5 to 95 °C",
        "both values", timeout_s=PATIENCE_S,
    )  # fmt: skip
    card = show(shown)
    name, newest, status, _ = card["rows"][0]
    assert name.startswith(f"{MARKUP} 1@")
    assert newest.startswith("40.5 °C ")
    assert newest.endswith(("now", "ago"))
    assert status.endswith("Critical")
    assert card["images"] == 0
    assert len(card["lines"][0]) == len(card["titles"][0]) >= 2
    assert (card["lines"][0][0], card["lines"][0][-1]) == ("0.0,2.0", "120.0,22.0")
    assert card["titles"][0][-1].startswith("40.5 °C, ")
    assert "Sensors are read every" in card["text"]
    assert [shown.violations(*screen) for screen in SCREENS] == [[]] * len(SCREENS)


@pytest.fixture
def off(tmp_path: Path, browser: WebDriver) -> Iterator[Window]:  # noqa: F811
    with Served(tmp_path / "off") as served:
        served.wait_until_it_answers()
        served.api("POST", "/v1/nodes", {"driver": "fake-hardware", "name": "web-1"})
        yield Window(browser, served.url or "")
        browser.get("about:blank")


def test_the_card_names_the_option_where_sensors_are_not_read(off: Window) -> None:
    card = show(off)
    assert "[sensor_data]send_sensor_data" in card["text"]
    assert card["rows"] == []
