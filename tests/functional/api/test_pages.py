"""The files of the pages, what leads to them, and the one origin of both APIs."""

from __future__ import annotations

import base64
import dataclasses
import gzip
import http.client
import re
from pathlib import Path

import bcrypt
import pytest

from bloomery.api import app, server
from bloomery.api.orchestration import app as orchestration
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.default import Default
from bloomery.conf.engine import Orchestration
from bloomery.conf.web import OsloMiddleware
from bloomery.web import pages
from tests.fakes.client import Client
from tests.fakes.stack_operations import FakeStackOperations

BROWSER = {"Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}
FROM_A_PAGE = {"X-Requested-With": "bloomery-pages"}
STACKS = "/ext/v1/orchestration/v1/p1/stacks"


@pytest.fixture
def make(world):
    def make(conf=world.site.conf) -> Client:
        services = dataclasses.replace(world.site, conf=conf)
        stacks = orchestration.make_app(services, FakeStackOperations())
        return Client(app.make_app(services, pages=pages.serve, stacks=stacks), version=None)

    return make


@pytest.fixture
def client(make) -> Client:
    return make()


def test_every_file_is_served_with_its_type(client: Client) -> None:
    files = [path for path in pages.FOLDER.rglob("*") if path.is_file()]
    assert pages.FOLDER / pages.INDEX in files
    for path in files:
        answer = client.get(f"/ui/{path.relative_to(pages.FOLDER).as_posix()}")
        assert (answer.status, answer.body) == (200, path.read_bytes())
        assert answer.headers["content-type"].startswith(pages._TYPES[path.suffix])
        assert answer.headers["cache-control"] == "no-cache"
    assert client.get("/ui/").body == (pages.FOLDER / pages.INDEX).read_bytes()


def test_a_file_that_the_browser_has_is_not_sent_again(client: Client) -> None:
    first = client.get("/ui/")
    again = client.get("/ui/", headers={"If-None-Match": first.headers["etag"]})
    head = client.ask("HEAD", "/ui/")
    assert (again.status, again.body) == (304, b"")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == str(len(first.body))


@pytest.mark.parametrize(("accepted", "is_packed"), [
    ("gzip, deflate, br", True), ("br", False), ("gzip;q=0", False), ("identity", False),
    ("", False),
])  # fmt: skip
def test_a_browser_that_takes_gzip_gets_it(client: Client, accepted: str, is_packed: bool) -> None:
    plain = client.get("/ui/main.js")
    answer = client.get("/ui/main.js", headers={"Accept-Encoding": accepted})
    assert answer.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
    assert (answer.headers.get("content-encoding") == "gzip") == is_packed
    assert (gzip.decompress(answer.body) if is_packed else answer.body) == plain.body
    assert (answer.headers["etag"] != plain.headers["etag"]) == is_packed
    held = {"Accept-Encoding": accepted, "If-None-Match": answer.headers["etag"]}
    assert client.get("/ui/main.js", headers=held).status == 304


def test_the_page_names_all_its_scripts_so_that_they_load_at_once() -> None:
    text = (pages.FOLDER / pages.INDEX).read_text()
    named = re.findall(r'<link rel="modulepreload" href="(\S+)">', text)
    assert sorted([*named, "main.js"]) == sorted(path.name for path in pages.FOLDER.glob("*.js"))


_MOST_LINES = 4000  # of all scripts: pages that one person can read
_SPACE = re.compile(r"[{;] *((?:padding|margin|gap)(?:-\w+)?): ([^;}]+)")
_TEXT = re.compile(r"[{;] *font(?:-size)?: ([^;}]+)")
_IN_DRAWINGS = re.compile(r"^\.(?:diagram|resource|terminal)\b")  # boxes of fixed sizes


def test_the_scripts_stay_short() -> None:
    lines = sum(len(path.read_text().splitlines()) for path in pages.FOLDER.glob("*.js"))
    assert lines <= _MOST_LINES, "remove, or see doc/contributing/pages.md"


def test_spaces_and_texts_are_of_one_scale_each() -> None:
    rules = (pages.FOLDER / "style.css").read_text().partition("* { box-sizing")[2].splitlines()
    spaces = [value for rule in rules for _, value in _SPACE.findall(rule)]
    texts = [
        value for rule in rules if not _IN_DRAWINGS.match(rule) for value in _TEXT.findall(rule)
    ]
    assert len(spaces) > 50
    assert len(texts) > 10
    step = re.compile(r"(?:(?:var\(--s[1-6]\)|0|auto) ?)+")
    assert [value for value in spaces if not step.fullmatch(value)] == []
    size = re.compile(r"inherit|(?:700 )?var\(--t[1-4]\)(?: ui-monospace.*)?|\.92em/1\.45 .*")
    assert [value for value in texts if not size.fullmatch(value)] == []


@pytest.mark.parametrize(
    "path",
    ["nothing.js", "../pages.py", "..%2fpages.py", "static", "%00.js", "a/../index.html", "é.js"],
)
def test_no_other_path_leads_to_a_file(client: Client, path: str) -> None:
    assert client.get(f"/ui/{path}").status == 404


def test_files_are_only_read(client: Client) -> None:
    answer = client.post("/ui/index.html", {})
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


def test_a_browser_is_led_to_the_pages_and_a_client_sees_the_versions(client: Client) -> None:
    for path in ("/", "/ui"):
        answer = client.get(path, headers=BROWSER)
        assert (answer.status, answer.headers["location"]) == (302, "ui/")
    assert client.get("/").json["name"] == "OpenStack Ironic API"
    assert client.get("/", headers={"Accept": "application/json"}).json["versions"]
    assert client.post("/", headers=BROWSER).status == 405


def test_the_pages_answer_to_no_other_name(client: Client) -> None:
    assert client.get("/ui/", headers={"Host": "stranger.example"}).status == 421


def test_both_apis_are_at_one_address(client: Client) -> None:
    stacks = client.get(STACKS)
    versions = client.get("/ext/v1/orchestration/", headers=FROM_A_PAGE).json["versions"]
    link = stacks.json["stacks"][0]["links"][0]["href"]
    assert link.startswith(f"http://localhost{STACKS}/web/")
    assert versions[0]["links"][0]["href"] == "http://localhost/ext/v1/orchestration/v1/"
    assert client.get("/ext/v1/orchestrations").status == 404


@pytest.mark.parametrize(
    ("conf", "headers", "url"),
    [
        (Conf(api=Api(public_endpoint="https://metal.example/a/"),
              orchestration=Orchestration(public_endpoint="https://stacks.example")),
         {"Host": "metal.example"}, "https://metal.example/a"),
        (Conf(oslo_middleware=OsloMiddleware(enable_proxy_headers_parsing=True)),
         {"X-Forwarded-Prefix": "/b"}, "http://localhost/b"),
    ],
)  # fmt: skip
def test_links_of_stacks_stay_at_that_address(make, conf: Conf, headers, url: str) -> None:
    versions = make(conf).get("/ext/v1/orchestration/", headers=headers).json["versions"]
    assert versions[0]["links"][0]["href"] == f"{url}/ext/v1/orchestration/v1/"


def test_a_page_asks_for_the_password_itself(make, tmp_path: Path) -> None:
    file = tmp_path / "htpasswd"
    file.write_bytes(b"ann:" + bcrypt.hashpw(b"secret", bcrypt.gensalt(4)))
    default = Default(auth_strategy="http_basic", http_basic_auth_user_file=str(file))
    client = make(Conf(default=default))
    login = {"Authorization": "Basic " + base64.b64encode(b"ann:secret").decode()}
    for path in ("/v1/nodes", STACKS):
        assert "www-authenticate" in client.get(path).headers
        for headers in (FROM_A_PAGE, {"Sec-Fetch-Mode": "cors"}, {"Sec-Fetch-Mode": "no-cors"}):
            answer = client.get(path, headers=headers)
            assert (answer.status, "www-authenticate" in answer.headers) == (401, False)
        navigating = client.get(path, headers={"Sec-Fetch-Mode": "navigate"})
        assert "www-authenticate" in navigating.headers
        assert client.get(path, headers=FROM_A_PAGE | login).status == 200
    assert client.get("/ui/").status == 200


@pytest.mark.parametrize(
    ("of_stacks", "asked"),
    [(False, {"/v1/nodes": 200, "/ui/": 200, "/nothing": 404, STACKS: 200}),
     (True, {"/v1/p1/stacks": 200, "/v1/p1/nothing": 404})],
)  # fmt: skip
def test_every_answer_says_what_a_browser_may_do_with_it(world, of_stacks: bool, asked) -> None:
    conf = Conf(api=Api(port=0))
    stacks = orchestration.make_app(world.site, FakeStackOperations())
    served = stacks if of_stacks else app.make_app(world.site, pages=pages.serve, stacks=stacks)
    serving = server.make(served, conf)
    serving.start()
    try:
        for method, path, status in [
            ("BREW", "/", 405),
            *(("GET", *each) for each in asked.items()),
        ]:
            connection = http.client.HTTPConnection(*serving.address, timeout=10)
            connection.request(method, path)
            answer = connection.getresponse()
            connection.close()
            policy = dict(
                each.split(" ", 1) for each in answer.headers["Content-Security-Policy"].split("; ")
            )
            assert (answer.status, policy) == (status, {
                **dict.fromkeys(("script-src", "style-src", "connect-src"), "'self'"),
                **dict.fromkeys(
                    ("default-src", "frame-ancestors", "base-uri", "form-action"), "'none'"
                ),
                "img-src": "'self' data:",
            })  # fmt: skip
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Referrer-Policy"] == "no-referrer"
    finally:
        serving.stop()
