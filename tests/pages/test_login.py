"""Logins of each kind, what a role may do, and a login that ends in the middle of a form."""

from __future__ import annotations

import json
from collections.abc import Iterator

import bcrypt
import pytest
from selenium.webdriver.remote.webdriver import WebDriver

from tests.kit.clients.browser import fetch
from tests.kit.clients.window import Window
from tests.kit.servers import web
from tests.kit.servers.identity import SYSTEM, Identity, password
from tests.kit.servers.served import Served
from tests.kit.waiting import wait_for

PASSWORD = "correct horse"
JSON = {"Content-Type": "application/json"}
NODE = '{"driver": "fake-hardware"}'
BUTTONS = {  # page: a button, and the roles that may use it
    "/webhooks": {"Add a webhook": ["admin"]},
    "/stacks/new": {"Create the stack": ["admin", "member"]},
    "/conductors": {"Drain": ["admin"]},
    "/allocations": {"New allocation": ["admin", "member"]},
}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("guarded")
    line = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    (folder / "htpasswd").write_text(f"ann:{line}\n")
    options = {"auth_strategy": "http_basic", "http_basic_auth_user_file": folder / "htpasswd"}
    with Served(folder / "state", DEFAULT=options) as served:
        served.wait_until_it_answers()
        yield served


@pytest.fixture(scope="module")
def identity() -> Iterator[Identity]:
    with Identity() as identity:
        identity.grant("root", SYSTEM, "admin")
        identity.grant("bob", "web", "reader")
        identity.grant("eve", "web", "member")
        yield identity


@pytest.fixture(scope="module")
def tokens(tmp_path_factory, identity: Identity) -> Iterator[Served]:
    state = tmp_path_factory.mktemp("tokens") / "state"
    options = {"DEFAULT": {"auth_strategy": "keystone"}, "keystone_authtoken": identity.options()}
    with Served(state, **options) as served:
        served.wait_until_it_answers()
        yield served


@pytest.fixture
def door(browser: WebDriver, guarded: Served) -> Iterator[Window]:
    yield from shown(browser, guarded)


@pytest.fixture
def token_door(browser: WebDriver, tokens: Served) -> Iterator[Window]:
    yield from shown(browser, tokens)


def shown(browser: WebDriver, served: Served) -> Iterator[Window]:
    window = Window(browser, served.url)
    window.emulate()
    browser.get(f"{served.url}/ui/")
    browser.execute_script("sessionStorage.clear()")
    window.complaints()
    window.load()
    yield window
    assert window.complaints() == []
    browser.get("about:blank")


def log_in(window: Window, user: str, secret: str, **more: str) -> None:
    window.fill("User", user)
    window.fill("Password", secret)
    for name, value in more.items():
        window.fill(name, value)
    window.click("Log in")


def test_a_wrong_password_is_told_and_what_was_typed_stays(door: Window) -> None:
    assert door.violations(1280, "dark") == []
    log_in(door, "ann", "wrong")
    door.see("Failed:", "dialog")
    assert door.find("User", "input").get_property("value") == "ann"
    log_in(door, "ann", PASSWORD)
    door.see("No node is enrolled yet")
    door.see("ann", "#account")


def test_a_password_is_in_this_window_only_and_gone_after_the_logout(door: Window) -> None:
    log_in(door, "ann", PASSWORD)
    door.see("No node is enrolled yet")
    kept = "return [document.cookie, JSON.stringify(localStorage), sessionStorage.length]"
    cookie, local, count = door.driver.execute_script(kept)
    assert (cookie, count) == ("", 1)
    assert "Basic" not in local
    door.click("Log out")
    door.see("Log in", "dialog")
    assert door.driver.execute_script("return sessionStorage.length") == 0


@pytest.mark.parametrize("name", ["bare-metal", "orchestration"])
def test_descriptions_are_read_with_the_login(door: Window, name: str) -> None:
    log_in(door, "ann", PASSWORD)
    door.go("/about")
    door.find(f"Save the OpenAPI document of the {name} API")
    door.driver.execute_script(
        "URL.createObjectURL = blob => {"
        " blob.text().then(text => { window.saved = text }); return '#' }"
    )
    door.click(f"Save the OpenAPI document of the {name} API")
    saved = wait_for(lambda: door.driver.execute_script("return window.saved"), "the document")
    assert json.loads(saved)["openapi"] == "3.1.0"


def test_a_login_that_ends_loses_nothing_that_was_typed(door: Window) -> None:
    log_in(door, "ann", PASSWORD)
    door.see("No node is enrolled yet")
    door.go("/stacks/new")
    door.see("How the sentence begins")
    door.fill("greeting", "Typed")
    door.driver.execute_script("sessionStorage.clear()")
    door.click("Show the plan")
    log_in(door, "ann", PASSWORD)
    door.see("2 to create")
    assert door.find("greeting", "input").get_property("value") == "Typed"


@pytest.mark.parametrize("host", ["127.0.0.1", "stranger.example"])
@pytest.mark.parametrize("credentials", ["omit", "include"])
def test_another_site_or_port_orders_nothing_beside_a_login(
    door: Window, host: str, credentials: str
) -> None:
    log_in(door, "ann", PASSWORD)
    door.see("No node is enrolled yet")
    with web.serving({"/": web.text("<p>a page", Content_Type="text/html")}) as stranger:
        door.driver.get(stranger.url("/", host=host))
        for body, headers in ((NODE, JSON), (NODE, {"Content-Type": "text/plain"})):
            options = {"method": "POST", "body": body, "headers": headers}
            status, _ = fetch(
                door.driver, f"{door.url}/v1/nodes", credentials=credentials, **options
            )
            assert status == 0
    door.complaints()  # those of the stranger
    door.open()
    door.see("No node is enrolled yet")


@pytest.mark.parametrize(
    ("role", "user", "scope"),
    [
        ("admin", "root", {}),
        ("member", "eve", {"Project": "web"}),
        ("reader", "bob", {"Project": "web"}),
    ],
)
def test_what_a_role_may_not_do_is_grey(token_door: Window, role, user, scope) -> None:
    if role == "admin":
        token_door.click("of the whole system instead")
    log_in(token_door, user, password(user), **scope)
    token_door.see(user, "#account")
    for path, buttons in BUTTONS.items():
        for name, roles in buttons.items():
            token_door.go(path)
            if path == "/stacks/new" and role == "reader":
                token_door.see("policy")  # of templates, too
                continue
            if path == "/stacks/new":
                token_door.see("How the sentence begins")
                token_door.click("Show the plan")
            if path in ("/webhooks", "/conductors") and role != "admin":
                token_door.see("policy")  # the list itself is refused
                continue
            assert token_door.find(name).is_enabled() is (role in roles), (path, name)


def test_what_is_grey_is_refused_by_the_api_all_the_same(token_door: Window) -> None:
    log_in(token_door, "bob", password("bob"), Project="web")
    token_door.see("bob", "#account")
    headers = token_door.driver.execute_script(
        "return JSON.parse(sessionStorage.getItem('bloomery.login'))"
    )
    for path, body in (
        ("/v1/nodes", NODE),
        ("/ext/v1/webhooks", '{"url": "http://a", "secret": "b"}'),
    ):
        status, text = fetch(
            token_door.driver, path, method="POST", body=body, headers=headers | JSON
        )
        assert status == 403, text
    assert password("bob") not in str(headers)
