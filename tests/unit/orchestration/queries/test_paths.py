"""A path of get_attr may ask resources: when the template is read, none is there yet."""

from __future__ import annotations

import pytest

from bloomery import errors
from tests.kit.clients.stack_calls import StackCalls

ASKED = {"get_attr": ["map", "value", {"get_attr": ["key", "value"]}]}
RESOURCES = {
    "key": {"type": "OS::Heat::Value", "properties": {"value": "k"}},
    "map": {"type": "OS::Heat::Value", "properties": {"value": {"k": "it"}}},
}


@pytest.fixture
def calls(tmp_path):
    calls = StackCalls(tmp_path)
    yield calls
    calls.db.close()


def outputs(calls, web):
    return {each.key: each.value for each in calls.operations.show_stack(calls.member, web).outputs}


def test_path_of_an_output_asks_a_resource(calls):
    web = calls.create(resources=RESOURCES, outputs={"o": {"value": ASKED}})
    assert outputs(calls, web) == {"o": None}
    assert calls.work(web).status == "COMPLETE"
    assert outputs(calls, web) == {"o": "it"}
    assert calls.operations.show_output(calls.member, web, "o").value == "it"


def test_path_of_a_property_waits_for_the_resource_that_it_asks(calls):
    asking = {"type": "OS::Heat::Value", "properties": {"value": ASKED}}
    web = calls.create(
        resources={"asking": asking, **RESOURCES},
        outputs={"o": {"value": {"get_attr": ["asking", "value"]}}},
    )
    assert calls.work(web).status == "COMPLETE"
    assert outputs(calls, web) == {"o": "it"}


@pytest.mark.parametrize(
    "names", [[{"get_attr": ["key", "value"]}, "value"], ["map", {"get_attr": ["key", "value"]}]]
)
def test_name_that_only_a_resource_tells_is_refused_where_it_stands(calls, names):
    asking = {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": names}}}
    for more, place in (
        ({"resources": {**RESOURCES, "asking": asking}}, "resources.asking"),
        ({"resources": RESOURCES, "outputs": {"o": {"value": {"get_attr": names}}}}, "outputs.o"),
    ):
        with pytest.raises(errors.StackValidationFailed, match=place):
            calls.create(**more)


def test_id_that_only_a_resource_tells_is_refused(calls):
    asked = {"get_resource": {"get_attr": ["key", "value"]}}
    with pytest.raises(errors.Failure, match=r"outputs\.o"):
        calls.create(resources=RESOURCES, outputs={"o": {"value": asked}})
