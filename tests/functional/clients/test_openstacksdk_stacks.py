"""Every method of openstacksdk's orchestration proxy that has an endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openstack
import pytest
from openstack import exceptions

# The client's own: it warns about parts of itself.
pytestmark = [
    pytest.mark.filterwarnings("ignore::openstack.warnings.RemovedInSDK50Warning"),
    pytest.mark.filterwarnings("ignore::openstack.warnings.RemovedInSDK60Warning"),
]

TEMPLATE = {
    "heat_template_version": "2021-04-16",
    "parameters": {"text": {"type": "string", "default": "first"}, "count": {"type": "number"}},
    "resources": {
        "content": {
            "type": "OS::Heat::TestResource",
            "properties": {"value": {"get_param": "text"}},
        }
    },
    "outputs": {"text": {"value": {"get_attr": ["content", "output"]}}},
}
LOGIN = "noauth"
PARAMETERS = {"count": 3}


@pytest.fixture
def stacks(orchestration_env: dict[str, str]) -> Iterator[Any]:
    """The orchestration proxy of a connection to a running service."""
    names = {"endpoint": "OS_ENDPOINT", "username": "OS_USERNAME", "password": "OS_PASSWORD"}
    auth = {
        key: orchestration_env[name] for key, name in names.items() if name in orchestration_env
    }
    connection = openstack.connect(auth_type=orchestration_env["OS_AUTH_TYPE"], auth=auth)
    yield connection.orchestration
    connection.close()


@pytest.fixture
def stack(stacks: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    name = request.node.originalname.replace("test_", "")[:40]
    made = stacks.create_stack(name=name, template=TEMPLATE, parameters=PARAMETERS)
    yield stacks.wait_for_status(made, "CREATE_COMPLETE", interval=1, wait=60)
    stacks.delete_stack(made, ignore_missing=True)


def settle(stacks: Any, stack: Any, status: str) -> Any:
    return stacks.wait_for_status(stack, status, interval=1, wait=60)


def test_a_stack_is_made_looked_for_and_deleted(stacks: Any, stack: Any) -> None:
    found = stacks.find_stack(stack.name)
    assert (found.id, found.status) == (stack.id, "CREATE_COMPLETE")
    assert [each.id for each in stacks.stacks(name=stack.name)] == [stack.id]
    [output] = stacks.get_stack(stack.id).outputs
    assert output["output_value"] == "first"
    assert not stacks.find_stack(stack.id, resolve_outputs=False).outputs
    stacks.delete_stack(stack)
    stacks.wait_for_delete(stack, interval=1, wait=60)
    assert stacks.find_stack(stack.name) is None
    with pytest.raises(exceptions.NotFoundException):
        stacks.get_stack(stack.name)


def test_a_stack_is_previewed_and_updated(stacks: Any, stack: Any) -> None:
    preview = stacks.create_stack(
        preview=True, name="preview", template=TEMPLATE, parameters=PARAMETERS
    )
    assert preview.name == "preview"
    assert stacks.find_stack("preview") is None
    changed = {"template": TEMPLATE, "parameters": {**PARAMETERS, "text": "second"}}
    stacks.update_stack(stack.id, **changed)  # its preview=True is lost on the client's way
    settle(stacks, stack, "UPDATE_COMPLETE")
    [output] = stacks.get_stack(stack.id).outputs
    assert output["output_value"] == "second"


def test_a_stack_is_checked_suspended_and_resumed(stacks: Any, stack: Any) -> None:
    for verb in ("check", "suspend", "resume"):
        getattr(stacks, f"{verb}_stack")(stack)
        settle(stacks, stack, f"{verb.upper()}_COMPLETE")


def test_what_a_stack_was_made_of_is_told(stacks: Any, stack: Any) -> None:
    template = stacks.get_stack_template(stack)
    assert "content" in template.resources
    assert stacks.get_stack_environment(stack).parameters == PARAMETERS
    assert stacks.get_stack_files(stack) == {}


def test_resources_and_events_are_listed(stacks: Any, stack: Any) -> None:
    [resource] = stacks.resources(stack)
    assert (resource.name, resource.status) == ("content", "CREATE_COMPLETE")
    events = list(stacks.stack_events(stack))
    assert {event.resource_name for event in events} == {stack.name, "content"}
    [event, *_] = stacks.stack_events(stack, "content")
    assert event.resource_name == "content"


def test_a_stack_is_exported_and_abandoned(stacks: Any, stack: Any) -> None:
    assert set(stacks.export_stack(stack)["resources"]) == {"content"}
    assert set(stacks.abandon_stack(stack)["resources"]) == {"content"}
    stacks.wait_for_delete(stack, interval=1, wait=60)


def test_a_template_is_validated(stacks: Any) -> None:
    answer = stacks.validate_template(TEMPLATE)
    assert set(answer.parameters) == {"text", "count"}
    with pytest.raises(exceptions.HttpException):
        stacks.validate_template({**TEMPLATE, "surprise": 1})


def test_software_is_configured_and_deployed(stacks: Any) -> None:
    config = stacks.create_software_config(name="hello", config="echo hello", group="script")
    assert stacks.get_software_config(config.id).config == "echo hello"
    assert config.id in {each.id for each in stacks.software_configs()}
    deployment = stacks.create_software_deployment(
        config_id=config.id, server_id="server-1", status="IN_PROGRESS", action="CREATE"
    )
    assert [each.id for each in stacks.software_deployments()] == [deployment.id]
    stacks.update_software_deployment(deployment, status="COMPLETE", config_id=config.id)
    assert stacks.get_software_deployment(deployment.id).status == "COMPLETE"
    stacks.delete_software_deployment(deployment)
    stacks.delete_software_config(config)
    assert list(stacks.software_configs()) == []


def test_the_cloud_layer_makes_and_deletes_a_stack(stacks: Any, tmp_path: Any) -> None:
    cloud = stacks._connection
    file = tmp_path / "cloud.yaml"
    file.write_text(
        "heat_template_version: 2018-08-31\n"
        "resources: {a: {type: OS::Heat::Value, properties: {value: 1}}}\n"
    )
    made = cloud.create_stack("cloud-layer", template_file=str(file), wait=True, timeout=60)
    assert made.status == "CREATE_COMPLETE"
    assert [each.name for each in cloud.search_stacks("cloud-layer")] == ["cloud-layer"]
    assert cloud.delete_stack("cloud-layer", wait=True)
    assert cloud.get_stack("cloud-layer") is None
