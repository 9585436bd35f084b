"""Stacks, outputs, resources and events as rows tell them."""

from __future__ import annotations

import uuid

import pytest
import sqlalchemy as sa

from bloomery import errors
from bloomery.db import resources, tables, tree_values
from bloomery.db import trees as db_trees
from bloomery.model.stack_views import EventQuery, ResourceQuery
from bloomery.model.stacks import Template
from tests.kit.clients.stack_calls import VALUE, StackCalls, template
from tests.kit.stacks import trees

OUTPUTS = {
    "value": {"description": "What it holds.", "value": {"get_attr": ["a", "value"]}},
    "id": {"value": {"get_resource": "a"}},
    "text": {"value": {"str_replace": {"template": "N", "params": {"N": {"get_param": "size"}}}}},
}


@pytest.fixture
def calls(tmp_path):
    return StackCalls(tmp_path)


@pytest.fixture
def web(calls):
    made = calls.create(
        resources={"a": VALUE | {"description": "The one."}, "b": VALUE},
        outputs=OUTPUTS,
        declared={"size": {"type": "number", "default": 3}},
    )
    calls.add_resource(made, "a", {"value": 17}, physical_id="id-of-a")
    calls.add_resource(made, "b", {"value": 18}, physical_id="id-of-b", requires=("a",))
    return made


def test_outputs_are_made_of_rows(calls, web):
    shown = calls.operations.show_stack(calls.member, web)
    assert {each.key: (each.value, each.error) for each in shown.outputs} == {
        "value": (17, None), "id": ("id-of-a", None), "text": ("3", None),
    }  # fmt: skip
    assert shown.description == "No description"
    assert shown.parameters == {
        "OS::stack_name": "web", "OS::stack_id": web.uuid, "OS::project_id": "p1", "size": "3",
    }  # fmt: skip
    assert calls.operations.show_stack(calls.member, web, resolve_outputs=False).outputs is None


def test_only_what_outputs_ask_for_is_fetched(calls, web, monkeypatch):
    asked = []
    real = resources.list_of_stack
    monkeypatch.setattr(
        resources, "list_of_stack", lambda *a, **more: asked.append(a[3]) or real(*a, **more)
    )
    calls.operations.show_stack(calls.member, web)
    assert asked == [{"a"}]


def test_an_output_that_cannot_be_told_spoils_no_other(calls, web):
    calls.change(
        web, template_uuid=_template(calls, {"bad": {"value": {"get_file": "x"}}, **OUTPUTS})
    )
    outputs = {each.key: each for each in calls.operations.show_stack(calls.member, web).outputs}
    assert outputs["bad"].value is None
    assert "x" in outputs["bad"].error
    assert outputs["value"].value == 17


def _template(calls, outputs):
    """Store a template that no validation would let in."""
    value = Template(
        uuid=trees.ident("bad template"),
        template=template(
            resources={"a": VALUE, "b": VALUE}, outputs=outputs,
            parameters={"size": {"type": "number", "default": 3}},
        ),
    )  # fmt: skip
    row, _ = tree_values.encode_template(value, trees.SEALER)
    calls.db.transact(lambda conn: db_trees.insert_templates(conn, [row]))
    return value.uuid


def test_outputs_one_by_one(calls, web):
    listed = calls.operations.list_outputs(calls.member, web)
    assert [(each.key, each.description, each.value) for each in listed] == [
        ("value", "What it holds.", None), ("id", "No description given", None),
        ("text", "No description given", None),
    ]  # fmt: skip
    assert calls.operations.show_output(calls.member, web, "value").value == 17
    with pytest.raises(errors.NotFound, match="nope"):
        calls.operations.show_output(calls.member, web, "nope")


def test_a_resource_that_is_not_there_yet_is_null(calls):
    made = calls.create(resources={"a": VALUE}, outputs=OUTPUTS | {"text": {"value": 1}})
    outputs = {
        each.key: each.value for each in calls.operations.show_stack(calls.member, made).outputs
    }
    assert outputs == {"value": None, "id": "a", "text": 1}


def test_a_deleted_stack_is_shown_without_outputs(calls, web):
    calls.change(web, action="DELETE", status="COMPLETE", deleted_at=trees.AT, live_name=None)
    assert calls.operations.show_stack(calls.member, web).outputs is None
    assert calls.operations.get_template(calls.member, web)["outputs"] == OUTPUTS
    for ask in (
        calls.operations.list_outputs,
        calls.operations.delete_stack,
        calls.operations.stack_suspend,
    ):
        with pytest.raises(errors.EntityNotFound):
            ask(calls.member, web)


def test_what_was_given_comes_back(calls):
    made = calls.create(
        declared={"size": {"type": "number"}},
        files={"a.txt": "text"},
        environment={"parameters": {"size": 12345678901234567890123}},
    )
    assert calls.operations.get_files(calls.member, made) == {"a.txt": "text"}
    environment = calls.operations.get_environment(calls.member, made)
    assert environment["parameters"] == {"size": 12345678901234567890123}
    assert environment["resource_registry"] == {"resources": {}}


# ------------------------------------------------------------------------------------- resources


def test_resources_are_listed_with_who_requires_them(calls, web):
    listed = calls.operations.list_stack_resources(calls.member, web, ResourceQuery())
    states = [(each.resource.name, each.resource.state) for each in listed]
    assert states == [("a", "CREATE_COMPLETE"), ("b", "CREATE_COMPLETE")]
    assert [tuple(each.required_by) for each in listed] == [("b",), ()]
    assert listed[0].attributes is None


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"type": ["Heat::Val"]}, "ab"), ({"type": ["x", "Value"]}, "ab"), ({"type": ["Val*"]}, ""),
        ({"name": ["b"]}, "b"), ({"status": ["FAILED"]}, ""), ({"action": ["CREATE"]}, "ab"),
        ({"physical_id": ["id-of-a", "?"]}, "a"),
    ],
)  # fmt: skip
def test_resources_are_filtered(calls, web, filters, expected):
    listed = calls.operations.list_stack_resources(
        calls.member, web, ResourceQuery(filters=filters)
    )
    assert "".join(each.resource.name for each in listed) == expected


def test_resources_of_stacks_below_are_listed_as_deep_as_asked(calls, web):
    below, deeper = calls.create("below"), calls.create("deeper")
    calls.change(below, root_uuid=web.uuid, owner_uuid=web.uuid, owner_resource="a", depth=1)
    calls.change(deeper, root_uuid=web.uuid, owner_uuid=below.uuid, owner_resource="c", depth=2)
    calls.add_resource(web, "a", physical_id=below.uuid)
    calls.add_resource(below, "c", physical_id=deeper.uuid)
    calls.add_resource(deeper, "d")

    def listed(depth):
        query = ResourceQuery(nested_depth=depth)
        return [
            (each.stack.name, each.resource.name, each.parent, each.nested and each.nested.name)
            for each in calls.operations.list_stack_resources(calls.member, web, query)
        ]

    top = [("web", "a", None, "below"), ("web", "b", None, None)]
    assert sorted(listed(0)) == top
    assert sorted(listed(1)) == [("below", "c", "a", "deeper"), *top]
    assert sorted(listed(9)) == [
        ("below", "c", "a", "deeper"), ("deeper", "d", "c", None), *top,
    ]  # fmt: skip


def test_one_resource_is_shown_with_attributes(calls, web):
    shown = calls.operations.describe_stack_resource(calls.member, web, "a", ["nope", "show"])
    assert shown.attributes == {"value": 17, "nope": None, "show": None}
    assert shown.description == "The one."
    assert list(shown.required_by) == ["b"]
    with pytest.raises(errors.ResourceNotFound, match="zzz"):
        calls.operations.describe_stack_resource(calls.member, web, "zzz")


def test_metadata_is_shown(calls, web):
    calls.add_resource(web, "c", metadata={"k": [1]})
    assert calls.operations.get_resource_metadata(calls.member, web, "c") == {"k": [1]}


# ---------------------------------------------------------------------------------------- events


def test_events_are_paged_and_filtered(calls, web):
    for name in ("a", "b", "a"):
        _tell(calls, web, name)
    newest = calls.operations.list_events(calls.member, web, EventQuery())
    assert [each.event.name for each in newest] == ["a", "b", "a", "web"]
    after = EventQuery(marker=newest[0].event.uuid, limit=2)
    older = calls.operations.list_events(calls.member, web, after)
    assert [each.event.name for each in older] == ["b", "a"]
    oldest = calls.operations.list_events(calls.member, web, EventQuery(descending=False))
    assert oldest == newest[::-1]
    of_b = calls.operations.list_events(calls.member, web, EventQuery(filters={"name": ["b"]}))
    assert [each.event.name for each in of_b] == ["b"]
    by_type = EventQuery(sort_keys=["type"])
    assert calls.operations.list_events(calls.member, web, by_type)[0].event.name == "web"
    with pytest.raises(errors.NotFound):
        calls.operations.list_events(calls.member, web, EventQuery(resource="zzz"))


def test_the_tree_is_told_with_its_root_when_it_is_asked(calls, web):
    below = calls.create("below")
    calls.change(below, root_uuid=web.uuid, owner_uuid=web.uuid, owner_resource="a", depth=1)
    flat = calls.operations.list_events(calls.member, web, EventQuery(nested_depth=0))
    assert {each.stack.name for each in flat} == {"web"}
    deep = calls.operations.list_events(calls.member, web, EventQuery(nested_depth=1))
    assert {(each.stack.name, each.root.name) for each in deep} == {
        ("web", "web"), ("below", "web"),
    }  # fmt: skip
    plain = calls.operations.list_events(calls.member, web, EventQuery())
    assert {each.root for each in plain} == {None}


def test_one_event_is_shown_with_properties_and_hides_what_is_hidden(calls):
    def of(value):
        return {"type": "OS::Heat::Value", "properties": {"value": value}}

    web = calls.create(
        resources={"c": VALUE, "d": of({"digest": ["md5", {"get_param": "key"}]}), "e": VALUE},
        declared={"key": {"type": "string", "hidden": True}},
        parameters={"key": "correct horse"},
    )
    calls.add_resource(web, "c", {"value": 5, "type": None})
    calls.add_resource(web, "d", {"value": "0aae15", "type": "string"}, hidden_properties=True)
    calls.add_resource(web, "f", {"value": ["a correct horse!"]}, hidden_properties=True)
    for name, expected in (
        ("c", {"value": 5}), ("d", {"value": "******", "type": "string"}), ("e", {}),
        ("f", {"value": ["a ******!"]}),
    ):  # fmt: skip
        uuid = _tell(calls, web, name, trees.ident(f"properties {web.uuid} {name}"))
        shown = calls.operations.show_event(calls.member, web, name, uuid)
        assert shown.properties == expected
    with pytest.raises(errors.EventNotFound):
        calls.operations.show_event(calls.member, web, "c", uuid)


def _tell(calls, stack, name, properties_uuid=None):
    ident = str(uuid.uuid4())
    row = {
        "uuid": ident, "stack_uuid": stack.uuid, "root_uuid": stack.uuid, "created_at": trees.AT,
        "action": "CREATE", "status": "COMPLETE", "name": name, "type": "OS::Heat::Value",
        "physical_id": None, "reason": "state changed", "properties_uuid": properties_uuid,
    }  # fmt: skip
    calls.db.transact(lambda conn: conn.execute(sa.insert(tables.STACK_EVENTS), row))
    return ident
