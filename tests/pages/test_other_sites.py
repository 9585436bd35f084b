"""A browser on the operator's machine shows a page of a stranger; the service asks for no login."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Iterator
from typing import Any, Final

import pytest
from selenium.webdriver.common.by import By

from tests.kit.clients.browser import browser, fetch  # noqa: F401  a fixture
from tests.kit.servers import web
from tests.kit.servers.served import Served
from tests.kit.waiting import wait_for

NODE: Final = '{"driver": "fake-hardware"}'
STACK: Final = json.dumps(
    {"stack_name": "s", "template": {"heat_template_version": "2021-04-16", "resources": {}}}
)
FORM: Final = """<form method="post" enctype="text/plain" action="{url}" target="frame">
<input name='{name}' value='"}}'></form><iframe name="frame"></iframe>"""
JSON: Final = {"Content-Type": "application/json"}
SIMPLE: Final = (  # what a browser sends without asking the service first
    {"headers": {"Content-Type": "text/plain"}, "mode": "no-cors"},
    {"headers": {"Content-Type": "text/plain"}},
    {"mode": "no-cors"},
)


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("served") / "state") as service:
        service.wait_until_it_answers()
        yield service


def nodes(served: Served) -> list[Any]:
    return served.api("GET", "/v1/nodes")["nodes"]


def stacks(served: Served) -> list[Any]:
    with urllib.request.urlopen(f"{served.orchestration_url}/v1/p/stacks", timeout=30) as answer:
        return json.loads(answer.read())["stacks"]


HOSTS: Final = ("stranger.example", "127.0.0.1")  # another site; another port of this host


@pytest.mark.parametrize("host", HOSTS)
def test_a_stranger_s_page_makes_no_node_and_no_stack(served, browser, host: str):  # noqa: F811
    targets = ((f"{served.url}/v1/nodes", NODE),
               (f"{served.orchestration_url}/v1/p/stacks", STACK))  # fmt: skip
    with web.serving({"/": web.text("<p>a page", Content_Type="text/html")}) as stranger:
        browser.get(stranger.url("/", host=host))
        for url, body in targets:
            for options in SIMPLE:
                fetch(browser, url, method="POST", body=body, **options)
            fetch(browser, url, method="POST", blob=body, mode="no-cors")
            status, _ = fetch(browser, url, method="POST", body=body, headers=JSON)
            assert status == 0  # the browser asks first, and nobody allows it
    assert (nodes(served), stacks(served)) == ([], [])


@pytest.mark.parametrize("host", HOSTS)
def test_a_stranger_s_form_makes_no_node(served: Served, browser, host: str):  # noqa: F811
    name = NODE[:-1] + ', "description": "'
    form = FORM.format(url=f"{served.url}/v1/nodes", name=name)
    with web.serving({"/": web.text(form, Content_Type="text/html")}) as stranger:
        browser.get(stranger.url("/", host=host))
        browser.find_element(By.TAG_NAME, "form").submit()
        browser.switch_to.frame("frame")
        wait_for(lambda: "error" in browser.page_source or nodes(served), "an answer")
        browser.switch_to.default_content()
    assert nodes(served) == []


def test_a_stranger_s_name_that_leads_here_reads_nothing(served: Served, browser):  # noqa: F811
    for url in (served.url, served.orchestration_url):
        rebound = re.sub("127.0.0.1", "stranger.example", url)
        browser.get(f"{rebound}/v1")
        assert "public_endpoint" in browser.page_source
        status, text = fetch(browser, f"{rebound}/v1/nodes")
        assert (status, "public_endpoint" in text) == (421, True)


def test_a_page_of_the_service_itself_uses_it(served: Served, browser):  # noqa: F811
    browser.get(f"{served.url}/v1")
    status, text = fetch(browser, "/v1/nodes", method="POST", body=NODE, headers=JSON)
    assert status == 201, text
    assert fetch(browser, f"/v1/nodes/{json.loads(text)['uuid']}", method="DELETE")[0] == 204
