"""Whatever the body, the query and the path say: the API answers, and never with 500."""

from __future__ import annotations

import itertools
import json
import re
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bloomery.api.orchestration import app, routes
from tests.fakes.client import Client
from tests.kit.clients.stack_calls import StackCalls
from tests.kit.sampling import count

BASE = "/v1/p1"
TEMPLATE = {
    "heat_template_version": "2021-04-16",
    "parameters": {"n": {"type": "number", "default": 1}},
    "resources": {"a": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "n"}}}},
    "outputs": {"o": {"value": {"get_attr": ["a", "value"]}}},
}
WORDS = st.sampled_from(["heat_template_version", "2021-04-16", "n", "a", "OS::Heat::Value", "a,b"])
KEYS = st.text(max_size=5) | st.sampled_from(
    ["parameters", "resources", "outputs", "heat_template_version", "type", "properties", "n", "a",
     "parameter_defaults", "resource_registry", "hooks", "encrypted_param_names", "event_sinks",
     "get_param", "get_attr", "template", "name", "id", "status", "action", "files",
     "environment"]
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner),
    max_leaves=8,
)
BODIES = st.dictionaries(
    st.sampled_from(
        ["stack_name", "template", "template_url", "environment", "environment_files", "files",
         "parameters", "disable_rollback", "timeout_mins", "tags", "adopt_stack_data", "existing",
         "clear_parameters", "converge"]
    ),
    VALUES,
    max_size=3,
)  # fmt: skip
ARGUMENTS = st.sampled_from(
    ["limit", "marker", "sort_keys", "sort_dir", "status", "name", "id", "nested_depth", "type",
     "with_detail", "tags", "tags_any", "not_tags", "show_nested", "with_count", "parent",
     "disable_rollback", "timeout_mins", "tenant", "action", "stack_user_project_id",
     "resource_name", "with_attr", "template_type", "support_status", "version",
     "ignore_errors", "global_tenant", "with_description", "server_id", "token"]
)  # fmt: skip
TEXTS = st.sampled_from(["1", "0", "x", "true", "asc", "a,b", "CREATE_COMPLETE", "_", "%", "é",
                         "9" * 15, "(", "OS::Heat::Value", "upd", "o", "x" * 300, "..", "a/b", "-",
                         "heat_template_version.2021-04-16"])  # fmt: skip
ASKED = settings(max_examples=count(120), suppress_health_check=list(HealthCheck))
names = (f"s{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    calls = StackCalls(tmp_path_factory.mktemp("stacks"), max_stacks_per_tenant=-1)
    client = Client(app.make_app(calls.services, calls.operations), version=None)
    assert client.post(f"{BASE}/stacks", {"stack_name": "upd", "template": TEMPLATE}).status == 201
    yield client
    calls.db.close()


def ask(api, method, path, body):
    answer = api.ask(method, path, raw=json.dumps(body).encode())
    assert answer.status < 500 or answer.status == 503, (method, path, body, answer.body)
    return answer


def address(api):
    return api.get(f"{BASE}/stacks/upd").headers["location"].removeprefix("http://localhost")


@ASKED
@given(BODIES)
def test_no_body_of_a_create_is_our_fault(api, body):
    body = {"stack_name": next(names), "template": TEMPLATE} | body
    for path in ("stacks", "stacks/preview", "validate"):
        ask(api, "POST", f"{BASE}/{path}", body)


@ASKED
@given(BODIES)
def test_no_body_of_an_update_is_our_fault(api, body):
    path = address(api)
    for method in ("PUT", "PATCH"):
        ask(api, method, path, {"template": TEMPLATE} | body)
        ask(api, method, f"{path}/preview", {"template": TEMPLATE} | body)


OF_PROJECTS = [each for each in routes.ENDPOINTS if each.path.startswith(routes.PREFIX)]


@ASKED
@given(st.data())
def test_no_endpoint_fails_over_arguments(api, data):
    endpoint = data.draw(st.sampled_from(OF_PROJECTS))
    path = endpoint.path.removeprefix(routes.PREFIX)
    if data.draw(st.booleans()):
        path = path.replace("stacks/{stack_name}/{stack_id}", address(api).removeprefix(f"{BASE}/"))
    path = re.sub(r"\{\w+\}", lambda _: quote(data.draw(TEXTS), ""), path)
    query = urlencode(data.draw(st.lists(st.tuples(ARGUMENTS, TEXTS), max_size=3)))
    if (endpoint.method, path) != ("DELETE", address(api).removeprefix(f"{BASE}/")):
        ask(api, endpoint.method, f"{BASE}/{path}?{query}", data.draw(VALUES))
