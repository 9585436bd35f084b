"""Software configs, what machines read at first boot, and deployments to servers."""

from __future__ import annotations

import email
import json

import pytest
import yaml

from bloomery import errors
from bloomery.orchestration.properties.schema import Status as SupportStatus
from bloomery.orchestration.resources import base, software, states
from bloomery.orchestration.resources.software_config import (
    SoftwareComponent,
    SoftwareConfig,
    StructuredConfig,
)
from bloomery.orchestration.resources.software_deployment import (
    DeploymentFailed,
    SoftwareDeployment,
    StructuredDeployment,
)
from bloomery.orchestration.resources.software_deployment_group import (
    SoftwareDeploymentGroup,
    SoftwareDeployments,
    StructuredDeploymentGroup,
    StructuredDeployments,
)
from bloomery.orchestration.resources.states import Status
from bloomery.orchestration.resources.user_data import CloudConfig, MultipartMime
from bloomery.orchestration.template.view import Walked
from bloomery.outcome import DONE
from tests.kit.stacks.kinds import Children, is_complete, made
from tests.kit.stacks.memory_machines import MemorySoftware

OTHER = "5b0e7c1e-0d5e-4d7a-8a1c-6f3f0f0d2b11"


@pytest.fixture
def store():
    return MemorySoftware()


def stored(store, kind, uuid=OTHER, **properties):
    config = made(kind, properties, name="c", uuid=uuid, software=store)
    config.validate()
    config.handle_create()
    return config


# ------------------------------------------------------------------------------------- configs


@pytest.mark.parametrize(
    ("kind", "properties", "group", "text"),
    [
        (SoftwareConfig, {"config": "echo", "group": "script"}, "script", "echo"),
        (SoftwareConfig, {}, "Heat::Ungrouped", None),
        (StructuredConfig, {"config": {"a": [1]}}, "Heat::Ungrouped", {"a": [1]}),
        (
            SoftwareComponent,
            {"configs": [{"actions": ["CREATE"], "config": "echo", "tool": "script"}]},
            "component",
            {"configs": [{"actions": ["CREATE"], "config": "echo", "tool": "script"}]},
        ),
        (CloudConfig, {"cloud_config": {"a": 1}}, "Heat::Ungrouped", "#cloud-config\na: 1\n"),
        (CloudConfig, {}, "Heat::Ungrouped", "#cloud-config\n{}\n"),
    ],
)
def test_a_config_is_stored_under_its_id_and_removed_with_it(store, kind, properties, group, text):
    config = stored(store, kind, **properties)
    row = store.show_config(config.get_reference_id())
    assert (row["group"], row["config"]) == (group, text)
    assert row["name"] == config.physical_resource_name()
    assert config.resolve_attribute("config") == text
    assert config.resolve_attribute("other") is None
    config.handle_delete()
    config.handle_delete()
    assert store.configs == {}


def test_a_config_made_twice_is_one_config(store):
    first, again = (stored(store, SoftwareConfig, config="x") for _ in range(2))
    assert first.record.physical_id == again.record.physical_id
    assert len(store.configs) == 1


def test_a_config_needs_a_place_to_be_stored():
    with pytest.raises(errors.NotSupported, match="software of a"):
        made(SoftwareConfig).handle_create()


def test_a_component_has_one_text_for_each_action():
    part = {"actions": ["CREATE", "UPDATE"], "config": "x", "tool": "script"}
    component = made(SoftwareComponent, {"configs": [part, {**part, "actions": ["UPDATE"]}]})
    with pytest.raises(errors.StackValidationFailed, match="two texts for UPDATE"):
        component.validate()


def test_a_cloud_config_is_read_back_as_it_was(store):
    document = {"runcmd": ["a: b", "- c"], "n": None, "t": True, "text": "two\nlines", "ü": "ï"}
    text = stored(store, CloudConfig, cloud_config=document).text()
    assert text.startswith("#cloud-config\n")
    assert yaml.safe_load(text) == document


def parts(message):
    return [
        (part.get_content_type(), part.get_filename(), part.get_payload(decode=True).decode())
        for part in email.message_from_string(message).get_payload()
    ]


def test_a_message_has_texts_configs_and_the_parts_of_other_messages(store):
    script = stored(store, SoftwareConfig, config="#!/bin/sh\n")
    inner = made(
        MultipartMime,
        {"parts": [{"config": "1"}, {"config": "2", "subtype": "html"}]},
        software=store,
    ).text()
    given = [
        {"config": "ünï", "type": "text"},
        {"config": script.get_reference_id(), "subtype": "x-shellscript", "filename": "a.sh"},
        {"config": inner, "type": "multipart"},
        {"config": "no message", "type": "multipart"},
        {"config": "6b0e7c1e-0d5e-4d7a-8a1c-6f3f0f0d2b12"},
    ]
    message = made(MultipartMime, {"parts": given}, software=store)
    assert parts(message.text()) == [
        ("text/plain", None, "ünï"),
        ("text/x-shellscript", "a.sh", "#!/bin/sh\n"),
        ("text/plain", None, "1"),
        ("text/html", None, "2"),
        ("text/plain", None, "6b0e7c1e-0d5e-4d7a-8a1c-6f3f0f0d2b12"),
    ]
    assert message.text() == message.text()


# --------------------------------------------------------------------------------- deployments

INPUTS = [
    {"name": "port", "type": "Number", "default": 80},
    {"name": "disk", "type": "String", "replace_on_change": True},
]
OUTPUTS = [{"name": "url"}, {"name": "fault", "error_output": True}]


def deployment(store, kind=SoftwareDeployment, config=None, **properties):
    if config is None:
        config = stored(
            store, SoftwareConfig, config="run", group="script", inputs=INPUTS, outputs=OUTPUTS
        )
    given = {"config": config.get_reference_id(), "server": "server-1", **properties}
    found = made(kind, given, name="d", software=store, endpoint="http://h/v1")
    found.validate()
    return found


def begun(store, **properties):
    found = deployment(store, **properties)
    found.prepare_create()
    return found, found.handle_create()


def row(found, store):
    return store.show_deployment(found.record.physical_id)


def fetched(found, store):
    """The config that the server fetches."""
    return store.show_config(row(found, store)["config_id"])


def values(found, store):
    return {entry["name"]: entry["value"] for entry in fetched(found, store)["inputs"]}


def test_a_deployment_brings_a_config_with_values_to_a_server(store):
    found, token = begun(store, input_values={"disk": "sda", "more": 1})
    assert not is_complete(found.check_create_complete, token)
    assert (row(found, store)["server_id"], row(found, store)["status"]) == (
        "server-1",
        "IN_PROGRESS",
    )
    config = fetched(found, store)
    assert (config["config"], config["group"], config["outputs"]) == ("run", "script", OUTPUTS)
    assert values(found, store) == {
        "port": 80,
        "disk": "sda",
        "more": 1,
        "deploy_server_id": "server-1",
        "deploy_action": "CREATE",
        "deploy_stack_id": "s/1",
        "deploy_resource_name": "d",
        "deploy_signal_transport": "CFN_SIGNAL",
        "deploy_signal_id": f"http://h/v1/p/stacks/s/1/resources/d/signal?token={found.token()}",
        "deploy_signal_verb": "POST",
    }


def test_a_deployment_waits_for_the_answer_of_its_server(store):
    found, token = begun(store)
    wait = found.check_create_complete(token)
    assert (wait.source, wait.timeout_s) == (found.record.physical_id, 0)
    assert wait.reason == f"server {found.properties['server']} has not signalled yet"
    assert found.resolve_attribute("deploy_stdout") is None
    text = found.handle_signal({"url": "u", "deploy_stdout": "ok", "deploy_status_code": 0})
    assert text == "deployment succeeded"
    assert found.check_create_complete(json.loads(json.dumps(token))) == DONE
    assert found.resolve_attribute("deploy_stdout") == "ok"
    assert found.resolve_attribute("url") == "u"
    with pytest.raises(base.NoActionRequired):
        found.handle_signal({})


@pytest.mark.parametrize(
    ("details", "text", "reason"),
    [
        ({"deploy_status_code": "2"}, "deployment failed (2)", "non-zero status code: 2"),
        ({"deploy_status_code": 1, "fault": "f"}, "deployment failed (1)", "fault : f, deploy"),
        ({"fault": ""}, "deployment failed", "fault : "),
    ],
)
def test_a_server_may_answer_that_it_failed(store, details, text, reason):
    found, token = begun(store)
    assert found.handle_signal(details) == text
    with pytest.raises(
        DeploymentFailed, match=f"^Deployment to server failed: .*{reason}"
    ) as ended:
        found.check_create_complete(token)
    assert str(states.fault_of("d", ended.value)).startswith("Error: resources.d: Deployment to ")


def test_what_is_not_answered_is_not_waited_for(store):
    found, token = begun(store, signal_transport="NO_SIGNAL")
    assert found.check_create_complete(token) == DONE
    assert (row(found, store)["status"], row(found, store)["status_reason"]) == (
        "COMPLETE",
        "Not waiting for outputs signal",
    )


LOGIN = ("deploy_auth_url", "deploy_user_id", "deploy_password", "deploy_project_id")


def test_an_agent_that_signals_by_heat_gets_a_login_that_is_the_deployment_itself(store):
    found, _token = begun(store, signal_transport="HEAT_SIGNAL")
    login = {name: value for name, value in values(found, store).items() if name in LOGIN}
    context = found.context
    assert login == {
        "deploy_auth_url": f"{context.endpoint}/{context.project_id}/agents/v3".replace(
            "//a", "/a"
        ),
        "deploy_user_id": f"{context.stack_id}/{found.record.name}",
        "deploy_password": found.token(),
        "deploy_project_id": context.project_id,
    }
    assert "deploy_signal_id" not in values(found, store)


@pytest.mark.parametrize("transport", ["TEMP_URL_SIGNAL", "ZAQAR_SIGNAL"])
def test_transports_of_other_services_are_refused_by_name(store, transport):
    with pytest.raises(errors.StackValidationFailed, match=transport):
        deployment(store, signal_transport=transport)


@pytest.mark.parametrize("action", ["update", "suspend", "resume"])
def test_an_action_that_is_named_deploys_again(store, action):
    found, _ = begun(store, actions=["CREATE", action.upper()])
    found.handle_signal({})
    first, found.record.properties = fetched(found, store)["id"], found.properties
    found.properties = {**found.properties, "input_values": {"port": 81}}
    arguments = (None, {}, {"input_values": {}}) if action == "update" else ()
    token = getattr(found, f"handle_{action}")(*arguments)
    assert values(found, store)["deploy_action"] == action.upper()
    assert values(found, store)["port"] == 81
    assert first not in store.configs
    check = getattr(found, f"check_{action}_complete")
    assert not is_complete(check, token)
    found.handle_signal({})
    assert check(token)


def test_an_action_that_is_not_named_deploys_nothing(store):
    found, _ = begun(store, actions=["UPDATE"])
    assert row(found, store)["status"] == "COMPLETE"
    token = found.handle_suspend()
    assert found.check_suspend_complete(token) == DONE
    assert values(found, store)["deploy_action"] == "CREATE"
    assert found.handle_update(None, {}, {}) is None


def test_an_input_may_ask_for_another_deployment(store):
    found, _ = begun(store, input_values={"disk": "sda"})
    found.record.properties = found.properties
    found.properties = {**found.properties, "input_values": {"disk": "sdb"}}
    with pytest.raises(base.UpdateReplace):
        found.handle_update(None, {}, {"input_values": {}})


@pytest.mark.parametrize("actions", [["CREATE"], ["CREATE", "DELETE"]])
def test_a_deleted_deployment_leaves_nothing(store, actions):
    found, _ = begun(store, actions=actions)
    found.handle_signal({})
    token = found.handle_delete()
    assert is_complete(found.check_delete_complete, token) is ("DELETE" not in actions)
    if "DELETE" in actions:
        found.handle_signal({})
        assert found.check_delete_complete(token) == DONE
    assert found.check_delete_complete(found.handle_delete())
    assert store.deployments == {}
    assert list(store.configs) == [found.properties["config"]]


def test_a_deployment_whose_config_is_gone_can_be_deleted(store):
    found, _ = begun(store)
    found.handle_signal({})
    del store.configs[found.properties["config"]]
    assert found.check_delete_complete(found.handle_delete()) == DONE
    with pytest.raises(errors.NotFound, match="cannot deploy d: there is no software config"):
        deployment(store, config=found, actions=["CREATE"]).handle_create()


def test_after_a_crash_the_answer_that_came_meanwhile_counts(store):
    """The handler runs again, because what it had done was never stored with the resource."""
    before, _ = begun(store)
    before.handle_signal({"url": "u"})
    after = deployment(store)
    after.record.data["token"] = before.token()
    token = after.handle_create()
    assert after.check_create_complete(token) == DONE
    assert after.resolve_attribute("url") == "u"
    assert len(store.deployments) == 1
    assert len(store.configs) == 2


def test_an_attribute_that_is_no_output_is_refused(store):
    found, _ = begun(store)
    assert found.offers_attribute("url")
    assert found.resolve_attribute("url") == Walked(None)
    with pytest.raises(errors.InvalidTemplateAttribute, match="nope"):
        found.resolve_attribute("nope")
    assert deployment(MemorySoftware()).resolve_attribute("url") is None


def test_a_component_deploys_the_text_of_the_action(store):
    parts = [
        {"actions": ["CREATE"], "config": "install", "tool": "script"},
        {"actions": ["SUSPEND"], "config": "stop", "tool": "ansible"},
    ]
    component = stored(store, SoftwareComponent, configs=parts)
    found, _ = begun(store, config=component)
    assert (fetched(found, store)["group"], fetched(found, store)["config"]) == (
        "script",
        "install",
    )
    found.handle_signal({})
    assert found.handle_suspend()
    assert fetched(found, store)["config"] == "stop"
    assert not found.handle_resume()


def test_a_deployment_without_a_config_deploys_an_empty_one(store):
    found = made(SoftwareDeployment, {"server": "s"}, software=store)
    assert found.handle_create()
    assert fetched(found, store)["config"] == ""


def test_a_deployment_that_is_gone_has_failed(store):
    found, token = begun(store)
    store.deployments.clear()
    with pytest.raises(DeploymentFailed, match="gone"):
        found.check_create_complete(token)


# ------------------------------------------------------------------------------------ structured


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({}, {"a": [80, None], "b": {"get_input": ["x"]}, "c": {"get_input": "port", "d": 1}}),
        ({"input_key": "other"}, None),
    ],
)
def test_inputs_of_a_map_become_their_values(store, properties, text):
    document = {
        "a": [{"get_input": "port"}, {"get_input": "nope"}],
        "b": {"get_input": ["x"]},
        "c": {"get_input": "port", "d": 1},
    }
    config = stored(store, StructuredConfig, config=document, inputs=INPUTS)
    found, _ = begun(store, kind=StructuredDeployment, config=config, **properties)
    assert fetched(found, store)["config"] == (text or document)


def test_an_input_without_a_value_may_be_refused(store):
    config = stored(store, StructuredConfig, config={"a": {"get_input": "x"}})
    found = deployment(store, StructuredDeployment, config, input_values_validate="STRICT")
    with pytest.raises(errors.UserParameterMissing, match="x"):
        found.handle_create()


# ---------------------------------------------------------------------------------------- groups


@pytest.fixture
def children():
    return Children()


def group(children, kind=SoftwareDeploymentGroup, policy=None, **properties):
    given = {"config": OTHER, "servers": {"a": "id-a", "b": "id-b", "c": "id-c"}, **properties}
    return made(kind, given, name="g", children=children, policy=policy)


def members(children):
    return children.only.document["resources"]


@pytest.mark.parametrize(
    ("kind", "member"),
    [
        (SoftwareDeploymentGroup, "OS::Heat::SoftwareDeployment"),
        (StructuredDeploymentGroup, "OS::Heat::StructuredDeployment"),
        (SoftwareDeployments, "OS::Heat::SoftwareDeployment"),
        (StructuredDeployments, "OS::Heat::StructuredDeployment"),
    ],
)
def test_a_group_has_a_deployment_for_each_server(children, kind, member):
    found = group(children, kind)
    token = found.handle_create()
    assert list(members(children)) == ["a", "b", "c"]
    body = members(children)["b"]
    assert body["type"] == member
    assert (body["properties"]["server"], body["properties"]["config"]) == ("id-b", OTHER)
    assert "servers" not in body["properties"]
    children.end()
    assert found.check_create_complete(token) == DONE


def test_the_names_of_before_are_not_shown():
    for kind in (SoftwareDeployments, StructuredDeployments):
        assert kind.support.status is SupportStatus.HIDDEN
    assert SoftwareDeploymentGroup.support.status is SupportStatus.SUPPORTED


def pace(name, most):
    return {name: {"max_batch_size": most, "pause_time": 0}}


def walked(found, children, check, token):
    seen = []
    while not is_complete(check, token):
        if children.only.status is Status.IN_PROGRESS:
            bodies = members(children).items()
            seen.append(" ".join(f"{n}{b['properties']['config'][0]}" for n, b in bodies))
            children.end()
    return seen


def test_deployments_are_made_and_changed_in_batches(children):
    policy = {**pace("batch_create", 2), **pace("rolling_update", 2)}
    found = group(children, policy=policy)
    check, token = found.check_create_complete, found.handle_create()
    assert walked(found, children, check, token) == ["", "a5 b5", "a5 b5 c5"]
    servers = {"b": "id-b", "c": "id-c", "d": "id-d"}
    found.properties = {**found.properties, "config": "new", "servers": servers}
    check, token = found.check_update_complete, found.handle_update(None, {}, {"config": "new"})
    assert walked(found, children, check, token) == ["bn cn", "bn cn dn"]
    token = found.handle_update(None, {}, {})
    children.end()
    assert found.check_update_complete(token) == DONE


def test_a_group_tells_what_its_servers_have_answered(children):
    found = group(children)
    found.handle_create()
    assert found.resolve_attribute("server").value == {"a": "id-a", "b": "id-b", "c": "id-c"}
    assert found.resolve_attribute("resource.b").value == "id-b"
    assert set(found.listed_attributes()) == {
        "deploy_stdouts",
        "deploy_stderrs",
        "deploy_status_codes",
    }
    with pytest.raises(errors.InvalidTemplateAttribute, match=software.STDOUT):
        found.resolve_attribute("deploy_stdouts")
