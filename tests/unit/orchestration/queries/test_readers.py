"""Readers of a stack learn neither its secrets nor the tokens with which it is signalled."""

from __future__ import annotations

import pytest

from bloomery.model.stack_views import ResourceQuery
from bloomery.orchestration.orders.software import RowSoftware
from tests.kit.clients.stack_calls import StackCalls, caller
from tests.kit.stacks import trees

SECRET = "correct horse"
TOKEN = "signal-" + "0123456789" * 4
READER = caller("reader")
STARS = "******"
KEY = {"get_param": "key"}
CONFIG = "OS::Heat::SoftwareConfig"
INNER = """
heat_template_version: 2021-04-16
parameters: {word: {type: string}}
outputs: {it: {value: {digest: [md5, {get_param: word}]}}}
"""
RESOURCES = {
    "plain": {"type": "OS::Heat::Value", "properties": {"value": "open"}},
    "verbatim": {"type": "OS::Heat::Value", "properties": {"value": KEY}},
    "digest": {"type": "OS::Heat::Value", "properties": {"value": {"digest": ["md5", KEY]}}},
    "parts": {
        "type": "OS::Heat::SoftwareComponent",
        "properties": {"configs": [{"tool": "script", "config": KEY}]},
    },
    "handle": {"type": "OS::Heat::WaitConditionHandle"},
}


@pytest.fixture
def calls(tmp_path):
    calls = StackCalls(tmp_path, enforced=True)
    yield calls
    calls.db.close()


@pytest.fixture
def web(calls):
    made = calls.create(
        resources=RESOURCES,
        declared={"key": {"type": "string", "hidden": True}},
        parameters={"key": SECRET},
    )
    calls.finish(made)
    values = {"plain": "open", "verbatim": SECRET, "digest": "0aae15"}
    for name, value in values.items():
        calls.add_resource(made, name, {"value": value}, hidden_properties=True)
    calls.add_resource(
        made, "parts", {"configs": [{"tool": "script", "config": SECRET}]},
        type="OS::Heat::SoftwareComponent", hidden_properties=True,
    )  # fmt: skip
    calls.add_resource(
        made, "handle", {"signal_transport": "TOKEN_SIGNAL"}, data={"token": TOKEN},
        type="OS::Heat::WaitConditionHandle", redacted={"token"},
    )  # fmt: skip
    return made


def attributes(calls, web, who, name, *more):
    return calls.operations.describe_stack_resource(who, web, name, more).attributes


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain", {"value": "open"}),
        ("verbatim", {"value": STARS}),
        ("digest", {"value": STARS}),
        ("parts", {"config": {"configs": [{"tool": STARS, "config": STARS}]}}),
    ],
)
def test_attributes_have_stars_where_properties_have_them(calls, web, name, expected):
    for who in (READER, calls.member):
        assert attributes(calls, web, who, name) == expected
        listed = calls.operations.list_stack_resources(who, web, ResourceQuery(with_detail=True))
        assert {each.resource.name: each.attributes for each in listed}[name] == expected


def test_tokens_are_for_those_who_may_signal(calls, web):
    asked = ("token", "curl_cli", "signal")
    for who, is_there in ((READER, False), (calls.member, True), (caller("heat_stack_user"), True)):
        shown = attributes(calls, web, who, "handle", *asked)
        assert [TOKEN in shown[name] for name in asked] == [is_there] * 3
        assert shown["endpoint"].endswith("/resources/handle/signal")


def test_outputs_of_a_stack_below_that_was_given_a_secret_have_stars(calls):
    nested = {"type": "inner.yaml", "properties": {"word": KEY}}
    web = calls.create(
        resources={"n": nested}, files={"inner.yaml": INNER}, parameters={"key": SECRET},
        declared={"key": {"type": "string", "hidden": True}},
    )  # fmt: skip
    calls.work(web)
    assert attributes(calls, web, READER, "n", "it")["it"] == STARS


# ----------------------------------------------------------------------------------------- software


@pytest.fixture
def software(calls, web):
    """A configuration of the stack, and a deployment with the one that it has written."""
    ids = {name: trees.ident(name) for name in ("config", "deployment", "written", "foreign")}
    store = RowSoftware(calls.db, trees.SEALER, "p1")
    for name in ("config", "foreign"):
        store.create_config(
            ids[name], name=name, config=f"echo {SECRET}", options={"key": SECRET},
            inputs=[{"name": "size", "default": SECRET}],
        )  # fmt: skip
    token = {"name": "deploy_signal_id", "value": TOKEN}
    store.create_config(ids["written"], name="written", config="echo", inputs=[token])
    store.create_deployment(
        ids["deployment"], config_id=ids["written"], server_id="s1", input_values={"a": SECRET}
    )
    for name, kind in (("config", CONFIG), ("deployment", "OS::Heat::SoftwareDeployment")):
        calls.add_resource(web, name, {}, type=kind, physical_id=ids[name], hidden_properties=True)
    return ids


def test_configs_of_stacks_tell_readers_no_secret(calls, software):
    shown = calls.operations.show_software_config(READER, software["config"])
    assert (shown.name, shown.config, shown.options) == ("config", STARS, {"key": STARS})
    assert shown.inputs[0]["default"] == STARS
    written = calls.operations.show_software_config(READER, software["written"])
    assert {each["name"]: each["value"] for each in written.inputs} == {"deploy_signal_id": STARS}
    assert calls.operations.metadata_software_deployments(READER, "s1") == [written]


def test_deployments_of_stacks_tell_readers_no_secret(calls, software):
    shown = calls.operations.show_software_deployment(READER, software["deployment"])
    assert shown.input_values == {"a": STARS}
    assert calls.operations.list_software_deployments(READER) == [shown]


@pytest.mark.parametrize("who", [caller("member", "reader"), caller("reader", "heat_stack_user")])
def test_agents_and_members_read_what_is_to_be_run(calls, software, who):
    shown = calls.operations.show_software_config(who, software["config"])
    assert shown.config == f"echo {SECRET}"
    written = calls.operations.metadata_software_deployments(who, "s1")[0]
    assert TOKEN in str(written)
    deployment = calls.operations.show_software_deployment(who, software["deployment"])
    assert deployment.input_values == {"a": SECRET}


def test_config_that_no_stack_has_made_is_shown_whole(calls, software):
    shown = calls.operations.show_software_config(READER, software["foreign"])
    assert shown == calls.operations.show_software_config(calls.member, software["foreign"])
    assert shown.config == f"echo {SECRET}"
