"""What a template of machines that run says of places and networks."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import click
import pytest

from bloomery.cli import stack_import
from bloomery.cli.client import ApiError

UUID = "11111111-2222-4333-8444-555555555555"
NODE: dict[str, Any] = {
    "uuid": UUID, "name": None, "resource_class": None, "instance_name": None,
    "instance_uuid": None, "instance_info": {"image_source": "http://a"},
    "provision_state": "active", "power_state": "power on", "protected": False,
}  # fmt: skip
IMAGE = {"source": "http://a"}
TRAITS = {"instance_info": {"image_source": "http://a", "traits": ["CUSTOM_A"]}}


def read(*, vifs: tuple[str, ...] = (), **more: Any) -> list[stack_import.Machine]:
    def get(path: str) -> Any:
        if path.startswith("/stacks/"):
            raise ApiError(reason="no", answer=404)
        return {"vifs": [{"id": each} for each in vifs]} if path.endswith("vifs") else NODE | more

    client = SimpleNamespace(get=get)
    service: Any = SimpleNamespace(orchestration=client, nodes=client)
    return stack_import.read(service, [UUID, UUID], "web")


@pytest.mark.parametrize(
    ("node", "properties"),
    [
        ({}, {"node": UUID, "name": "node-11111111", "image": IMAGE}),
        ({"name": "n1"}, {"node": UUID, "name": "n1", "image": IMAGE}),
        ({"name": "n1", "instance_name": "i1"}, {"node": UUID, "name": "i1", "image": IMAGE}),
        ({"resource_class": "bm"},
         {"selector": {"resource_class": "bm"}, "name": "node-11111111", "image": IMAGE}),
        ({"resource_class": "bm", **TRAITS},
         {"selector": {"resource_class": "bm", "traits": ["CUSTOM_A"]}, "name": "node-11111111",
          "image": IMAGE, "traits": ["CUSTOM_A"]}),
        ({"vifs": ("v1", "v2")},
         {"node": UUID, "name": "node-11111111", "image": IMAGE,
          "networks": [{"vif": "v1"}, {"vif": "v2"}]}),
    ],
)  # fmt: skip
def test_a_machine_is_written_down_once(node: dict[str, Any], properties: dict[str, Any]) -> None:
    (machine,) = read(**node)
    assert machine.properties == properties


def machine(name: str, instance: str | None = None, **more: Any) -> stack_import.Machine:
    properties = {"selector": {"resource_class": "bm"}, "name": instance or name, "image": IMAGE}
    node = NODE | {"instance_name": instance, "uuid": name}
    return stack_import.Machine(name=name, node=node, properties=properties | more, left=())


@pytest.mark.parametrize(
    ("machines", "refusal"),
    [
        ([machine("a"), machine("b", root_gb=1, image={"source": "http://b"})],
         "cannot make a group of them: b differs from a in image, root_gb"),
        ([machine("a", node="a")], "cannot make a group of a, which has no resource class"),
    ],
)  # fmt: skip
def test_a_group_of_machines_that_differ_is_refused(
    machines: list[stack_import.Machine], refusal: str
) -> None:
    with pytest.raises(click.ClickException, match=refusal):
        stack_import.adopt_data("web", machines, "workers")


@pytest.mark.parametrize(
    ("instances", "pattern"),
    [
        (("web-0", "web-1"), "web-%index%"), (("web-1", "web-2"), "g-%index%"),
        ((None, "web-1"), "web-%index%"), ((None, None), "g-%index%"), (("web",), "g-%index%"),
        (("0", "1"), "%index%"),
    ],
)  # fmt: skip
def test_the_names_of_members_are_those_of_their_instances(
    instances: tuple[str | None, ...], pattern: str
) -> None:
    machines = [machine(f"n{number}", each) for number, each in enumerate(instances)]
    data = stack_import.adopt_data("web", machines, "g")
    group = data["template"]["resources"]["g"]["properties"]
    assert (group["count"], group["member"]["name"]) == (len(machines), pattern)
    members = data["resources"]["g"]["resources"]
    assert [each["resource_id"] for each in members.values()] == [each.name for each in machines]
