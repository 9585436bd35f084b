"""What create and update would do."""

from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.db import tables
from tests.kit.clients.stack_calls import VALUE, StackCalls

GROUP = {
    "type": "OS::Heat::ResourceGroup",
    "properties": {"count": 2, "resource_def": VALUE},
}
KINDS = ("unchanged", "updated", "replaced", "added", "deleted")


@pytest.fixture
def calls(tmp_path):
    return StackCalls(tmp_path)


def test_a_preview_stores_nothing_and_shows_what_is_below(calls):
    arguments = calls.arguments(
        resources={"a": VALUE, "b": VALUE | {"depends_on": "a"}, "g": GROUP}, tags=["t"],
        outputs={"o": {"value": {"get_attr": ["a", "value"]}, "description": "told"}},
    )  # fmt: skip
    preview = calls.operations.preview_stack(calls.member, "web", arguments)
    first, second, group = preview.resources
    assert (first.resource.name, first.properties, first.required_by) == ("a", {"value": 1}, ["b"])
    assert (second.resource.state, second.resource.physical_id) == ("INIT_COMPLETE", None)
    assert first.attributes == {"value": None}
    assert [(each.resource.name, each.parent) for each in group] == [("0", "g"), ("1", "g")]
    assert (first.parent, {each.stack.name for each in group}) == (None, {"web-g"})
    assert preview.parameters["OS::stack_name"] == "web"
    assert preview.identity.uuid == preview.parameters["OS::stack_id"] == "None"
    assert {each.stack.uuid for each in (first, second, *group)} == {"None"}
    assert [(each.key, each.description) for each in preview.outputs] == [("o", "told")]
    assert calls.rows(tables.STACKS) == calls.orders() == []


def test_a_preview_is_refused_as_a_create_is(calls):
    calls.create()
    with pytest.raises(errors.StackExists):
        calls.operations.preview_stack(calls.member, "web", calls.arguments(resources={"a": VALUE}))
    with pytest.raises(errors.StackValidationFailed):
        calls.operations.preview_stack(
            calls.member, "w", calls.arguments(resources={"a": {"type": "X"}})
        )


def test_a_preview_shows_no_hidden_value(calls):
    arguments = calls.arguments(
        declared={"key": {"type": "string", "hidden": True}},
        resources={"a": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "key"}}}},
        parameters={"key": "correct horse"},
    )
    preview = calls.operations.preview_stack(calls.member, "web", arguments)
    assert "correct horse" not in repr(preview)
    assert preview.resources[0].properties["value"] == "******"


def test_a_preview_leaves_out_properties_that_have_no_value(calls):
    preview = calls.operations.preview_stack(
        calls.member, "web", calls.arguments(resources={"a": VALUE})
    )
    assert preview.resources[0].properties == {"value": 1}


def test_an_update_is_previewed_in_every_state(calls):
    random = {"type": "OS::Heat::RandomString", "properties": {"length": 8}}
    made = calls.create(resources={"a": VALUE, "b": VALUE, "c": random, "d": VALUE})
    calls.change(made, action="SUSPEND", status="COMPLETE")
    for name in "abd":
        calls.add_resource(made, name, {"value": 1}, physical_id=name)
    calls.add_resource(made, "c", {"length": 8}, type=random["type"], physical_id="c")
    changed = {"type": VALUE["type"], "properties": {"value": 2}}
    longer = {"type": random["type"], "properties": {"length": 9}}
    arguments = calls.arguments(resources={"a": VALUE, "b": changed, "c": longer, "e": VALUE})
    preview = calls.operations.preview_update_stack(calls.member, made, arguments)
    names = {kind: [each.resource.name for each in getattr(preview, kind)] for kind in KINDS}
    assert names == {
        "unchanged": ["a"], "updated": ["b"], "replaced": ["c"], "added": ["e"], "deleted": ["d"],
    }  # fmt: skip
    assert preview.updated[0].resource.physical_id == "b"
    assert calls.orders() == []


INNER = """
heat_template_version: 2021-04-16
parameters: {word: {type: string}}
resources:
  r: {type: OS::Heat::Value, properties: {value: {get_param: word}}}
  same: {type: OS::Heat::RandomString}
"""
OUTER = """
heat_template_version: 2021-04-16
parameters: {word: {type: string}}
resources:
  n: {type: inner.yaml, properties: {word: {get_param: word}}}
"""
ABOVE = {
    "o": {"type": "outer.yaml", "properties": {"word": {"get_param": "word"}}},
    "g": {
        "type": "OS::Heat::ResourceGroup",
        "properties": {"count": {"get_param": "count"}, "resource_def": VALUE},
    },
    "a": VALUE,
}
TREE = {
    "files": {"inner.yaml": INNER, "outer.yaml": OUTER},
    "declared": {
        "word": {"type": "string", "default": "x"}, "count": {"type": "number", "default": 2},
    },
}  # fmt: skip


@pytest.fixture
def tree(calls):
    made = calls.create(resources=ABOVE, **TREE)
    assert calls.work(made).status == "COMPLETE"
    return made


def changes(calls, tree, *, resources=ABOVE, show_nested=True, **parameters):
    arguments = calls.arguments(resources=resources, **TREE, parameters=parameters)
    preview = calls.operations.preview_update_stack(
        calls.member, tree, arguments, show_nested=show_nested
    )
    listed = {
        kind: sorted((each.resource.name, each.parent) for each in getattr(preview, kind))
        for kind in KINDS
    }
    return {kind: names for kind, names in listed.items() if names}


def names(text):
    return sorted(
        (name, above or None) for name, _, above in (w.partition("<") for w in text.split())
    )


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, {"unchanged": "0<g 1<g a r<n same<n", "updated": "g n<o o"}),
        ({"word": "y"}, {"unchanged": "0<g 1<g a same<n", "updated": "g n<o o r<n"}),
        ({"count": 3}, {"unchanged": "0<g 1<g a r<n same<n", "updated": "g n<o o", "added": "2<g"}),
        ({"count": 1}, {"unchanged": "0<g a r<n same<n", "updated": "g n<o o", "deleted": "1<g"}),
    ],
)  # fmt: skip
def test_resources_of_stacks_below_have_their_names_there(calls, tree, parameters, expected):
    assert changes(calls, tree, **parameters) == {k: names(each) for k, each in expected.items()}


def test_stack_below_that_goes_takes_its_resources_along(calls, tree):
    replaced = ABOVE | {"o": {"type": "OS::Heat::None"}}
    gone = {name: body for name, body in ABOVE.items() if name != "g"}
    assert changes(calls, tree, resources=replaced) == {
        "unchanged": names("0<g 1<g a"), "updated": names("g"), "replaced": names("o"),
        "deleted": names("n<o r<n same<n"),
    }  # fmt: skip
    assert changes(calls, tree, resources=gone)["deleted"] == names("0<g 1<g g")


def test_resource_that_owns_a_stack_is_updated_whether_it_changes_or_not(calls, tree):
    assert changes(calls, tree, show_nested=False) == {
        "unchanged": names("a"), "updated": names("g o"),
    }  # fmt: skip
