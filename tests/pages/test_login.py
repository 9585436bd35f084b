"""Logins of each kind, what a role may do, and a login that ends in the middle of a form."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import bcrypt
import pytest
from selenium.webdriver.remote.webdriver import WebDriver

from tests.kit.clients.browser import fetch
from tests.kit.clients.window import PATIENCE_S, Window
from tests.kit.servers import web
from tests.kit.servers.identity import SYSTEM, Identity, password
from tests.kit.servers.served import Served
from tests.kit.waiting import wait_for

PASSWORD = "correct horse"
JSON = {"Content-Type": "application/json"}
FAKE_NODE = '{"driver": "fake-hardware"}'
ROLES = {  # the user, and the project in which the user has a role
    "system admin": ("root", SYSTEM, "admin"), "admin": ("pat", "web", "admin"),
    "manager": ("max", "web", "manager"), "member": ("eve", "web", "member"),
    "reader": ("bob", "web", "reader"),
}  # fmt: skip
EMPTY = {"heat_template_version": "2021-04-16", "resources": {}}
NODE = "/v1/nodes/{node}"
HOOK = "/ext/v1/webhooks/{webhook}"
STACKS = "/ext/v1/orchestration/v1/web-id/stacks"
STACK = f"{STACKS}/roles/{{stack}}"
SECRET = f"whsec_{'a' * 32}"
SYSTEM_ONLY = {"system admin"}
OF_PROJECT = {"admin", "manager", "member"}
MANAGERS = {"system admin", "admin", "manager"}
ALL = SYSTEM_ONLY | OF_PROJECT
BUTTONS = {  # by page: the button, the roles that may use it, and the request that it sends
    "/nodes": [
        (
            "Enrol a node",
            {"system admin", "admin"},
            "POST",
            "/v1/nodes",
            {"driver": "fake-hardware"},
        ),
    ],
    "/nodes/{node}": [
        ("Provide", ALL, "PUT", f"{NODE}/states/provision", {"target": "provide"}),
        ("Power on", ALL, "PUT", f"{NODE}/states/power", {"target": "power on"}),
        ("Maintenance", ALL, "PUT", f"{NODE}/maintenance", {"reason": "x"}),
        ("Edit", ALL, "PATCH", NODE, [{"op": "remove", "path": "/description"}]),
    ],
    "/allocations": [
        ("New allocation", ALL, "POST", "/v1/allocations", {"resource_class": "x"}),
        ("Delete", ALL, "DELETE", "/v1/allocations/{allocation}", None),
    ],
    "/books": [
        (
            "Run",
            MANAGERS,
            "PUT",
            f"{NODE}/states/provision",
            {"target": "clean", "runbook": "CUSTOM_R"},
        ),
    ],
    "/conductors": [
        ("Drain", SYSTEM_ONLY, "PUT", "/ext/v1/conductors/{host}/drain", {}),
    ],
    "/webhooks": [
        (
            "Add a webhook",
            SYSTEM_ONLY,
            "POST",
            "/ext/v1/webhooks",
            {"url": "http://a", "secret": SECRET},
        ),
        ("Park", SYSTEM_ONLY, "PATCH", HOOK, [{"op": "remove", "path": "/description"}]),
        ("Delete", SYSTEM_ONLY, "DELETE", HOOK, None),
    ],
    "/stacks/roles/{stack}": [
        ("Plan an update", OF_PROJECT, "PUT", STACK, {"template": EMPTY}),
        ("Check", OF_PROJECT, "POST", f"{STACK}/actions", {"check": None}),
        ("Suspend", OF_PROJECT, "POST", f"{STACK}/actions", {"suspend": None}),
        ("Delete", OF_PROJECT, "DELETE", STACK, None),
    ],
    "/stacks/new": [
        ("Create the stack", ALL, "POST", STACKS, {"stack_name": "b", "template": EMPTY}),
    ],
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
        for user, project, role in ROLES.values():
            identity.grant(user, project, role)
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


def test_the_logins_are_listed_with_the_command_that_adds_one(door: Window) -> None:
    log_in(door, "ann", PASSWORD)
    door.go("/users")
    door.see("bloomery user add NAME", "main")
    cells = "return [...document.querySelectorAll('tbody td')].map(each => each.innerText)"
    row = ["ann", "yes", "not recorded", "0"]
    wait_for(  # the page may be drawn a second time, as the login ends
        lambda: door.driver.execute_script(cells) == row, "the row of the login"
    )


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
        for body, headers in ((FAKE_NODE, JSON), (FAKE_NODE, {"Content-Type": "text/plain"})):
            options = {"method": "POST", "body": body, "headers": headers}
            status, _ = fetch(
                door.driver, f"{door.url}/v1/nodes", credentials=credentials, **options
            )
            assert status == 0
    door.complaints()  # those of the stranger
    door.open()
    door.see("No node is enrolled yet")


def ask(served: Served, token: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Send a request with a token; return the status and the document."""
    headers = {"X-Auth-Token": token, "X-OpenStack-Ironic-API-Version": "latest"} | JSON
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{served.url}{path}", data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
            return answer.status, json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        return error.code, error.read()


@pytest.fixture(scope="module")
def records(tokens: Served, identity: Identity) -> dict[str, str]:
    """What the buttons are about: one of each, of the project ``web`` where it has an owner."""
    root, eve = identity.token("root", SYSTEM), identity.token("eve", "web")

    def create(token: str, path: str, **body: Any) -> Any:
        status, document = ask(tokens, token, "POST", path, body)
        assert status < 300, document
        return document

    step = {"interface": "vendor", "step": "log_passthrough", "args": {}, "order": 1}
    create(root, "/v1/runbooks", name="CUSTOM_R", owner="web-id", steps=[step])
    node = create(root, "/v1/nodes", driver="fake-hardware", name="roles", owner="web-id")
    path = f"/v1/nodes/{node['uuid']}"
    ask(tokens, root, "PUT", f"{path}/states/provision", {"target": "manage"})
    state = lambda: ask(tokens, root, "GET", path)[1]["provision_state"]  # noqa: E731
    wait_for(lambda: state() == "manageable", "the node", timeout_s=PATIENCE_S)
    hook = create(root, "/ext/v1/webhooks", url="https://192.0.2.1/", secret=SECRET)
    allocation = create(eve, "/v1/allocations", name="roles", resource_class="none-such")
    stack = create(eve, STACKS, stack_name="roles", template=EMPTY)["stack"]
    _, conductors = ask(tokens, root, "GET", "/ext/v1/conductors")
    return {"node": node["uuid"], "webhook": hook["uuid"], "allocation": allocation["uuid"],
            "stack": stack["id"], "host": conductors["conductors"][0]["hostname"]}  # fmt: skip


def is_offered(window: Window, name: str) -> bool:
    """Is there such a button that is not grey?  A page that is refused has none."""
    wait_for(
        lambda: window.shows(name) or "Failed:" in window.main(), f"{name!r}", timeout_s=PATIENCE_S
    )
    return window.shows(name) and window.find(name).is_enabled()


@pytest.mark.parametrize("role", ROLES)
def test_what_a_role_may_not_do_is_grey_and_refused_by_the_api(
    token_door: Window, tokens: Served, identity: Identity, records: dict[str, str], role: str
) -> None:
    user, project, _ = ROLES[role]
    window, token, offered, served = token_door, identity.token(user, project), set(), set()
    if project == SYSTEM:
        window.click("of the whole system instead")
    log_in(window, user, password(user), **({} if project == SYSTEM else {"Project": project}))
    window.see(user, "#account")
    for page, buttons in BUTTONS.items():
        if page == "/stacks/roles/{stack}" and project == SYSTEM:
            continue  # the stack is of another project
        window.go("/about")
        window.see("Licences", "main")
        window.go(page.format(**records))
        if page == "/stacks/new":
            window.see("Failed:" if role == "reader" else "How the sentence begins", "main")
            window.click("Show the plan")
        for name, roles, method, path, body in buttons:
            if is_offered(window, name):
                offered.add((page, name))
            if role in roles:
                served.add((page, name))
            else:
                status, text = ask(tokens, token, method, path.format(**records), body)
                assert status in (403, 404), (name, status, text)
    assert offered == served


def test_a_login_that_ends_in_a_dialogue_keeps_what_was_typed(
    token_door: Window, identity: Identity
) -> None:
    token_door.click("of the whole system instead")
    log_in(token_door, "root", password("root"))
    token_door.see("root", "#account")
    token_door.go("/nodes")
    token_door.click("Enrol a node")
    token_door.fill("Driver", "fake-hardware")
    token_door.fill("Name", "typed-1")
    token_door.driver.execute_script(
        "sessionStorage.setItem('bloomery.login', JSON.stringify({'X-Auth-Token': 'over'}))"
    )
    token_door.click("Enrol")
    token_door.click("of the whole system instead")
    log_in(token_door, "root", password("root"))
    token_door.see("typed-1", "h1")


def test_a_token_is_kept_and_no_password(token_door: Window) -> None:
    log_in(token_door, "bob", password("bob"), Project="web")
    token_door.see("bob", "#account")
    kept = "return [JSON.stringify(sessionStorage), JSON.stringify(localStorage), document.cookie]"
    assert password("bob") not in str(token_door.driver.execute_script(kept))
