"""A stream that ends at any byte, and pages below the prefix of a proxy."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from selenium.webdriver.remote.webdriver import WebDriver

from tests.kit.clients.browser import browser  # noqa: F401  a fixture
from tests.kit.clients.window import PATIENCE_S, Window
from tests.kit.servers.served import Served
from tests.kit.servers.tcp_proxy import TcpProxy
from tests.kit.waiting import wait_for
from tests.pages.conftest import STACK

CUTS = 4
MOST_BYTES = 6000  # until the next cut: a few events
ROWS = """
    const done = arguments[0];
    import(new URL('store.js', document.baseURI)).then(
        ({rows}) => done(JSON.stringify([...rows.values()])));
"""
OF_THE_PAGE = ("seen", "since", "text", "updated_at")
PREFIX = "/site"


@pytest.fixture
def proxy(service: Served) -> Iterator[TcpProxy]:
    with TcpProxy(("127.0.0.1", urlsplit(service.url).port or 0)) as proxy:
        yield proxy


def plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows in one order, without what a page adds to them."""
    named = [{k: v for k, v in row.items() if k not in OF_THE_PAGE} for row in rows]
    return sorted(named, key=lambda row: row["uuid"])


@pytest.mark.parametrize("seed", [1, 2])
def test_a_page_whose_stream_is_cut_anywhere_shows_what_the_service_has(
    browser: WebDriver,  # noqa: F811
    service: Served,
    proxy: TcpProxy,
    make,
    seed: int,
) -> None:
    chance, numbers, nodes = random.Random(seed), itertools.count(), []
    window = Window(browser, f"http://127.0.0.1:{proxy.port}")
    window.open(f"/nodes?q=cut-{seed}")
    window.see("Live", "#status")
    while proxy.cuts < CUTS:
        if proxy.left is None:
            proxy.left = chance.randrange(MOST_BYTES)
        change(service, make, chance, nodes, f"cut-{seed}-{next(numbers)}")
    proxy.left = None
    shown = lambda: plain(json.loads(browser.execute_async_script(ROWS)))  # noqa: E731
    stored = lambda: plain(service.api("GET", "/ext/v1/nodes")["nodes"])  # noqa: E731
    wait_for(lambda: shown() == stored(), "the same rows", timeout_s=PATIENCE_S)
    window.see("Live", "#status")
    assert "lost" not in window.text("#banner")


def change(service: Served, make, chance: random.Random, nodes: list[str], name: str) -> None:
    """Make a node, or order something of one."""
    if len(nodes) < 3:
        return nodes.append(make(name))
    node = nodes[chance.randrange(len(nodes))]
    match chance.randrange(4):
        case 0:
            service.api("PUT", f"/v1/nodes/{node}/maintenance", {"reason": name})
        case 1:
            service.api("DELETE", f"/v1/nodes/{node}/maintenance")
        case 2:
            text = [{"op": "add", "path": "/description", "value": f"{chance.random()}"}]
            service.api("PATCH", f"/v1/nodes/{node}", text)
        case 3:
            nodes.remove(node)
            service.api("PUT", f"/v1/nodes/{node}/maintenance", {})
            service.api("DELETE", f"/v1/nodes/{node}")
    return None


@pytest.mark.parametrize(
    ("page", "words"),
    [("/nodes", "rack-1-u1"), ("/nodes/rack-1-u1", "In this state"), ("/stacks", STACK),
     ("/stacks/new", "How the sentence begins"), ("/conductors", "online"), ("/about", "1.115")],
)  # fmt: skip
def test_pages_work_below_a_prefix(
    browser: WebDriver,  # noqa: F811
    proxy: TcpProxy,
    page: str,
    words: str,
) -> None:
    proxy.rewrite = lambda data: data.replace(f" {PREFIX}/".encode(), b" /", 1)
    window = Window(browser, f"http://127.0.0.1:{proxy.port}{PREFIX}")
    browser.get("about:blank")  # the page of the test before asks no more
    window.complaints()
    window.open(page)
    window.see(words)
    window.see("Live", "#status")
    assert window.complaints() == []  # requests outside of the prefix would be
    browser.get(window.url + "/")
    assert browser.current_url.startswith(f"{window.url}/ui/")
