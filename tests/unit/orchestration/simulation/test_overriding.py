from __future__ import annotations

from bloomery.orchestration.simulation import lifecycle
from tests.unit.orchestration.stack import kit

INNER = """
heat_template_version: 2018-08-31
parameters: {length: {type: number, default: 7}}
resources: {x: {type: OS::Heat::RandomString, properties: {length: {get_param: length}}}}
outputs: {value: {value: {get_attr: [x, value]}}}
"""


def test_a_template_in_the_place_of_a_type_may_hold_a_resource_of_that_type():
    root = (
        "resources: {a: {type: OS::Heat::RandomString, properties: {length: 9}}}\n"
        "outputs: {o: {value: {get_attr: [a, value]}}}"
    )
    env = {"resource_registry": {"OS::Heat::RandomString": "a.yaml"}}
    result = lifecycle.run(kit.stack(kit.hot(root), env, files={"a.yaml": INNER}))
    assert result.status == "CREATE_COMPLETE"
    assert len(result.outputs["o"].value) == 9
