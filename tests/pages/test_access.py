"""Every page, wide and narrow, light and dark, holds to the rules of axe-core for WCAG 2.2 AA."""

from __future__ import annotations

import itertools

import pytest

from tests.kit.clients.window import Window
from tests.kit.servers.served import Served
from tests.pages import conftest

PAGES = {
    "/nodes": "rack-1-u2", "/nodes?q=since:soon+is:free&colour=health": "takes how long",
    "/nodes/rack-1-u1": "Why", "/stacks": conftest.STACK,
    "/stacks/new": "Nothing is ordered yet",
    "/events?type=baremetal.node.provision_set": "node.provision_set",
    "/activity": "Slowest steps", "/allocations": "Node", "/books": "No runbook yet",
    "/conductors": "online", "/bmcs": "answers",
    "/firmware": "Simulated", "/webhooks": "webhook", "/users": "no logins",
    "/audit": "Recorded by host",
    "/about": "1.115",
}  # fmt: skip


SCREENS = list(itertools.product((1280, 360), ("light", "dark")))


@pytest.mark.parametrize(("path", "words"), PAGES.items())
def test_a_page_holds_to_the_rules(window: Window, path: str, words: str) -> None:
    window.open(path)
    window.see(words)
    assert [window.violations(*screen) for screen in SCREENS] == [[]] * len(SCREENS)


@pytest.mark.parametrize("tab", ["graph", "events", "outputs", "parameters", "template"])
def test_a_stack_holds_to_them(window: Window, service: Served, tab: str) -> None:
    stack = conftest.stacks_client(service).get(f"/stacks/{conftest.STACK}")["stack"]
    window.open(f"/stacks/{conftest.STACK}/{stack['id']}?tab={tab}")
    window.see("Plan an update")
    assert [window.violations(*screen) for screen in SCREENS] == [[]] * len(SCREENS)
