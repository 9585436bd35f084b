"""Whatever a client sends, it gets a 4xx in the error form; never 500, never a wait."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bloomery.api import routing
from bloomery.api.orchestration import routes
from bloomery.conf import Conf
from bloomery.conf.engine import Orchestration
from tests.kit.sampling import count
from tests.unit.api.orchestration.conftest import BASE, S, World, fault
from tests.unit.api.orchestration.test_stacks import NEW

STACKS = f"{BASE}/stacks"


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b'{"a": }',
        b"{" * 100_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b'{"a": ' + b"[" * 500 + b"]" * 500 + b"}",
        b'{"stack_name": "a\\u0000b"}',
        b'{"a": "\\ud800"}',
        b'{"\\ud800": 1}',
        b'{"a": "\xff"}',
        b'{"a": NaN}',
        b'{"a": 1e999}',
        b'{"a": ' + b"9" * 5000 + b"}",
        b'{"timeout_mins": ' + b"9" * 300 + b', "stack_name": "a", "template": {}}',
        b"[]",
        b"null",
        b'"{}"',
        b" {}",
        b"",
        b"\xef\xbb\xbf{}",
        b"--boundary\r\nContent-Disposition: form-data",
    ],
)
@pytest.mark.parametrize("path", [STACKS, f"{STACKS}/preview", f"{S}/actions"])
def test_body_that_is_no_use_is_refused(api, engine, raw, path):
    assert fault(api.post(path, raw=raw)) == (400, "HTTPBadRequest")
    assert engine.asked == []


@pytest.mark.parametrize(
    "kind", ["application/x-www-form-urlencoded", "multipart/form-data", "x", "text/plain"]
)
def test_body_of_another_type_counts_as_none(api, kind):
    answer = api.post(f"{S}/actions", {"suspend": None}, content_type=kind)
    assert fault(answer) == (400, "HTTPBadRequest")


@pytest.mark.parametrize("kind", [None, "", "application/json; charset=UTF-8"])
def test_json_may_come_without_its_type(api, kind):
    assert api.post(f"{S}/actions", {"suspend": None}, content_type=kind).status == 200


def test_json_of_a_page_may_not_come_without_its_type(api):
    page = {"headers": {"Origin": "http://localhost"}}
    answer = api.post(f"{S}/actions", {"suspend": None}, content_type=None, **page)
    assert fault(answer) == (400, "HTTPBadRequest")
    assert api.post(f"{S}/actions", {"suspend": None}, **page).status == 200


def test_body_may_be_as_large_as_the_option_says(world):
    world.conf = Conf(orchestration=Orchestration(max_json_body_size=100))
    answer = world.api.post(STACKS, raw=b'{"a": "' + b"x" * 100 + b'"}')
    assert fault(answer) == (400, "RequestLimitExceeded")
    assert "100 bytes" in answer.json["error"]["message"]


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("template", 'heat_template_version: 2021-04-16\ndescription: "\\ud800"'),
        ("template", '{"heat_template_version": "2021-04-16", "description": "\\ud800"}'),
        ("template", '{"heat_template_version": "2021-04-16", "description": "\\u0000"}'),
        ("template", 'heat_template_version: 2021-04-16\ndescription: "\\0"'),
        ("template", "a: &a [x, x, x, x]\nb: &b [*a, *a, *a, *a]\nc: [*b, *b]"),
        ("template", "[" * 5_000),
        ("template", "\x07"),
        ("template", "a: " + "9" * 5_000),
        ("environment", "parameters: {a: " + "9" * 5_000 + "}"),
        ("environment", '{"parameters": {"a": "\\ud800"}}'),
        ("adopt_stack_data", '{"template": {"a": "\\ud800"}}'),
        ("adopt_stack_data", "[" * 5_000),
    ],
)  # fmt: skip
def test_text_that_no_database_could_keep_is_refused(api, engine, part, value):
    answer = api.post(STACKS, NEW | {part: value})
    status, kind = fault(answer)
    assert (status, kind in {"HTTPBadRequest", "RequestLimitExceeded"}) == (400, True), answer.body
    assert engine.asked == []


@pytest.mark.parametrize(
    "path",
    [f"{BASE}/stacks/%ff", "/v1/%ff/stacks", f"{S}/outputs/%c3%28", f"{STACKS}?name=%ff", "/%ff"],
)
def test_path_or_query_that_is_not_utf_8_is_refused(api, path):
    assert fault(api.get(path)) == (400, "HTTPBadRequest")


def test_text_with_nul_in_a_path_or_a_query_is_refused(api):
    """PostgreSQL cannot look for it."""
    assert fault(api.get(f"{BASE}/stacks/a%00b")) == (400, "HTTPBadRequest")
    assert fault(api.get(f"{STACKS}?name=a%00b")) == (400, "HTTPBadRequest")


@pytest.mark.parametrize(
    "query",
    [
        "limit=-1", "limit=x", "limit=1.5", "limit=" + "9" * 30, "limit=%D9%A3",
        "sort_dir=up", "with_count=1", "show_deleted=yes", "show_nested=",
        "global_tenant=x",
    ],
)  # fmt: skip
def test_bad_arguments_of_lists_are_refused(api, engine, query):
    assert fault(api.get(f"{STACKS}?{query}"))[0] == 400
    assert engine.asked == []


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
KEYS = ("stack_name", "template", "template_url", "environment", "environment_files", "files",
        "files_container", "parameters", "disable_rollback", "timeout_mins", "tags",
        "adopt_stack_data", "existing", "clear_parameters", "converge")  # fmt: skip


@settings(max_examples=count(300))
@given(st.dictionaries(st.sampled_from(KEYS), VALUES))
def test_no_body_makes_an_error_of_ours(body):
    for method, path in (("POST", STACKS), ("POST", f"{STACKS}/preview"), ("PUT", S), ("PATCH", S)):
        answer = World().api.ask(method, path, raw=json.dumps(body).encode())
        if answer.status >= 300:
            assert fault(answer)[0] == 400


SEGMENTS = ("stacks", "web", "resources", "events", "a%2Fb", "..", "%00", "detail", "preview",
            "actions", "", "arn:", "v1", "services")  # fmt: skip


@settings(max_examples=count(300))
@given(
    st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "X"]),
    st.lists(st.sampled_from(SEGMENTS), max_size=7),
    st.text(max_size=10).map(lambda text: text.encode(errors="replace").decode()),
)  # fmt: skip
def test_no_path_makes_an_error_of_ours(method, segments, body):
    answer = World().api.ask(method, "/v1/p1/" + "/".join(segments), raw=body.encode())
    assert answer.status < 500, answer.body


def test_every_row_of_the_table_is_reached():
    """A row that an earlier one hides would never answer."""
    table = routing.Table(routes.ENDPOINTS)
    for each in routes.ENDPOINTS:
        places = (place for place, _ in table.find(routing.segments_of(each.path)))
        answering = (place.endpoints.get(each.method) for place in places)
        assert next(filter(None, answering)) is each, each.path
