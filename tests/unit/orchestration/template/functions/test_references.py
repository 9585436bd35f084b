"""What a template may ask of its stack: what it needs, and what is refused before it exists."""

from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.orchestration.template import view
from bloomery.orchestration.template.functions import base, references
from tests.kit.stacks.function_vectors import AWS, VIEW, Vector, outcome, parsed

R = base.Reference


def tree(snippet, version="2021-04-16", seen=VIEW):
    return parsed(Vector("", snippet, None, version), seen)


NEEDS = [
    ({"get_resource": "r"}, [R("r", None)]),
    ({"get_resource": {"get_param": "r2"}}, [R("r", None)]),
    ({"get_attr": ["r", "value", 0]}, [R("r", "value")]),
    ({"get_attr": "r"}, [R("r", "")]),
    ({"get_attr": ["r"]}, [R("r", "")]),
    ({"get_attr": [{"get_param": "r2"}, {"get_param": "s"}]}, [R("r", "abc")]),
    (
        {"get_attr": ["r", "map", {"get_attr": ["unready", "x"]}]},
        [R("unready", "x"), R("r", "map")],
    ),
    ([[{"get_resource": "r"}], {"get_attr": ["q", "x"]}], [R("r", None), R("q", "x")]),
    ({"a": [{"get_resource": "r"}, "b", 1], "c": {"get_param": "s"}}, [R("r", None)]),
    ({"if": ["yes", {"get_resource": "r"}, {"get_resource": "nope"}]}, [R("r", None)]),
    ({"get_resource": "nope"}, [R("nope", None)]),
    ({"get_param": "s"}, []),
]


@pytest.mark.parametrize(("snippet", "expected"), NEEDS)
def test_a_tree_tells_what_it_needs(snippet, expected):
    assert list(base.references(tree(snippet), VIEW)) == expected


def test_ref_needs_a_resource_unless_it_names_a_parameter():
    assert list(base.references(tree({"Ref": "r"}, AWS), VIEW)) == [R("r", None)]
    assert list(base.references(tree({"Ref": "s"}, AWS), VIEW)) == []
    assert list(base.references(tree({"Fn::GetAtt": ["r", "x"]}, AWS), VIEW)) == [R("r", "x")]


VALIDATES = [
    ({"get_attr": ["r", "value"]}, None),
    ({"get_attr": "r"}, None),
    ({"get_attr": ["unready", "anything"]}, None),
    ({"get_attr": ["r", "nope"]}, "r nope"),
    ({"get_attr": ["nope", "x"]}, "no resource is called 'nope'"),
    ({"list_join": [",", [{"get_attr": ["r", "nope"]}]]}, "r nope"),
    ({"get_attr": [{"get_param": "r2"}, "nope"]}, "r nope"),
    ({"get_param": "nope"}, None),
    ({"get_file": "nope"}, None),
    ({"get_resource": "nope"}, None),
    ({"resource_facade": "metadata"}, None),
]


@pytest.mark.parametrize(("snippet", "expected"), VALIDATES)
def test_what_can_be_refused_before_the_stack_exists_is(snippet, expected):
    made = tree(snippet)
    if expected is None:
        base.validate(made, VIEW)
    else:
        with pytest.raises(errors.StackValidationFailed, match=expected):
            base.validate(made, VIEW)


def test_a_fault_tells_its_place():
    made = tree({"a": [{"list_join": [",", [{"get_attr": ["r", "nope"]}]]}]})
    with pytest.raises(errors.StackValidationFailed) as caught:
        base.resolve(made, VIEW)
    assert caught.value.path == ("a", 0, "list_join", 1, 0, "get_attr")
    with pytest.raises(errors.StackValidationFailed) as caught:
        tree([{"if": ["yes", {"list_join": 5}, 0]}])
    assert caught.value.path == (0, "if", 1, "list_join")
    with pytest.raises(errors.StackValidationFailed) as caught:
        tree([{"if": [{"not": {"get_file": "x"}}, 1, 0]}])
    assert caught.value.path == (0, "if", 0, "not", "get_file")


class Group(view.PlainResource):
    """A resource that uses paths itself."""

    def attribute(self, name, path=()):
        return view.Walked(["walked", name, *path])


class WithGroup(view.Plain):
    def resource(self, name):
        return Group(name=name, values={"all": [["first"]]})


def test_a_resource_may_use_the_path_itself():
    seen = WithGroup()
    asked = {"get_attr": ["g", "all", 0, 0]}
    for version in ("2014-10-16", "2021-04-16"):
        assert outcome(Vector("", asked, None, version), seen) == ["walked", "all", 0, 0]
    # the first version hands over no path, and walks what it is given
    assert outcome(Vector("", {"get_attr": ["g", "all", 1]}, None, "2013-05-23"), seen) == "all"


def test_a_facade_needs_a_parent():
    with pytest.raises(errors.StackValidationFailed, match="nested template"):
        base.resolve(tree({"resource_facade": "metadata"}), view.Plain())


def test_a_null_at_the_end_of_a_path_is_no_missing_one():
    assert references.select_loosely({"a": None}, ["a"]) is None
    assert references.select_loosely({"a": None}, ["b"]) == ""
