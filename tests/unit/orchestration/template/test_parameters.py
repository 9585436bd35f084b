from __future__ import annotations

from typing import Any

import pytest

from bloomery import errors
from bloomery.orchestration.template import parameters, view
from bloomery.orchestration.template.cfn import Cfn
from bloomery.orchestration.template.dialect import Identity
from bloomery.orchestration.template.functions import base
from bloomery.orchestration.template.functions.base import TreeReader
from bloomery.orchestration.template.hot import Hot
from bloomery.orchestration.template.parameter_schemas import hot_schema
from bloomery.orchestration.template.parameters import Parameters


def declared(**bodies: Any) -> dict[str, Any]:
    return parameters.schemas(bodies, hot_schema)


TEXT = {"type": "string"}


def test_a_section_is_read_name_by_name():
    assert parameters.schemas(None, hot_schema) == {}
    assert list(declared(a=TEXT, b=TEXT)) == ["a", "b"]
    with pytest.raises(errors.InvalidSchemaError) as caught:
        declared(a=TEXT, b={"type": "string", "constraints": [{"length": {}}]})
    assert caught.value.path == ("b", "constraints", 0, "length")
    with pytest.raises(errors.InvalidSchemaError):
        parameters.schemas({5: TEXT}, hot_schema)


@pytest.mark.parametrize("section", ["x", 5, ["a"], True])
def test_a_section_is_a_map(section: Any):
    with pytest.raises(errors.StackValidationFailed):
        parameters.schemas(section, hot_schema)


@pytest.mark.parametrize(
    ("given", "defaults", "default", "value"),
    [
        ("g", "d", "t", "g"),
        (None, "d", "t", "d"),
        (None, None, "t", "t"),
        ("", "d", "t", ""),
        (None, "", "t", ""),
        (None, None, "", ""),
        (0, "d", "t", "0"),
        (False, "d", "t", "False"),
    ],
)
def test_the_stack_beats_the_environment_beats_the_template(
    given: Any, defaults: Any, default: Any, value: str
):
    found = Parameters(declared(p=TEXT | {"default": default}), {"p": given}, {"p": defaults})
    assert found.value("p") == value


@pytest.mark.parametrize("given", [{}, {"p": None}])
@pytest.mark.parametrize("body", [TEXT, TEXT | {"default": None}])
def test_a_value_that_nobody_gave_is_missing(given: Any, body: Any):
    found = Parameters(declared(p=body), given)
    for ask in (found.check, found.texts, lambda: found.value("p")):
        with pytest.raises(errors.UserParameterMissing, match=r"The Parameter \(p\)"):
            ask()


def test_what_is_given_must_be_declared_and_defaults_need_not():
    schemas = declared(image=TEXT | {"default": "x"})
    Parameters(schemas, {}, {"imge": "y"}).check()
    with pytest.raises(errors.UnknownUserParameter, match="Did you mean 'image'"):
        Parameters(schemas, {"imge": "y"}).check()
    with pytest.raises(errors.UnknownUserParameter):
        Parameters(schemas, {"imge": None}, lenient=True).check()
    with pytest.raises(errors.UnknownUserParameter):
        Parameters(schemas, {"OS::stack_name": "y"}, {}, Hot.pseudo_parameters(Identity())).check()


@pytest.mark.parametrize("name", ["imge", "OS::region", "", None, 5, ["image"], {}])
def test_a_name_that_is_not_there_has_no_value(name: Any):
    found = Parameters(declared(image=TEXT), {"image": "x"}, {}, Hot.pseudo_parameters(Identity()))
    with pytest.raises(errors.StackValidationFailed, match="was not provided"):
        found.value(name)
    assert "image" in found
    assert "imge" not in found


def test_a_default_is_not_looked_at_when_there_is_a_value():
    found = Parameters(declared(p={"type": "number", "default": "abc"}), {"p": "5"})
    found.check()
    assert found.value("p") == 5
    with pytest.raises(errors.StackValidationFailed):
        Parameters(declared(p={"type": "number", "default": "abc"})).check()


def test_pseudo_parameters_are_values_like_others():
    pseudo = Hot.pseudo_parameters(Identity(name="web", project_id="77"))
    found = Parameters(declared(p=TEXT), {"p": "x"}, {}, pseudo)
    found.check()
    assert found.value("OS::stack_id") == "None"
    assert list(found) == ["OS::stack_name", "OS::stack_id", "OS::project_id", "p"]
    assert found.texts() == {
        "OS::stack_name": "web",
        "OS::stack_id": "None",
        "OS::project_id": "77",
        "p": "x",
    }
    assert Hot.pseudo_parameters(Identity(id="5"))["OS::stack_id"] == "5"
    cfn = Cfn.pseudo_parameters(Identity(name="web", arn="arn:x"))
    assert cfn["AWS::StackName"] == "web"
    assert (cfn["AWS::StackId"], cfn["AWS::Region"]) == ("arn:x", "ap-southeast-1")
    assert list(found.validated()) == ["p"]


def test_parameters_are_shown_as_text_and_hidden_ones_masked():
    schemas = declared(
        s=TEXT,
        n={"type": "number"},
        b={"type": "boolean"},
        l={"type": "comma_delimited_list"},
        j={"type": "json"},
        h=TEXT | {"hidden": True},
    )
    given = {"s": 5, "n": "7.0", "b": "on", "l": ["a", " b", ""], "j": '{"k":[1]}', "h": "secret"}
    found = Parameters(schemas, given)
    assert found.texts() == {
        "s": "5",
        "n": "7.0",
        "b": "True",
        "l": "a, b,",
        "j": '{"k": [1]}',
        "h": "******",
    }
    assert found.value("h") == "secret"
    assert found.validated()["h"]["Value"] == "secret"


def test_leniently_what_is_missing_or_wrong_is_null():
    schemas = declared(
        missing=TEXT,
        wrong={"type": "number"},
        broken={"type": "number", "constraints": [{"range": {"max": 5}}]},
        l={"type": "comma_delimited_list"},
    )
    found = Parameters(schemas, {"wrong": "x", "broken": 9}, lenient=True)
    found.check()
    assert [found.value(name) for name in schemas] == [None, None, 9, None]
    assert found.texts() == {"missing": "", "wrong": "", "broken": "9", "l": ""}
    assert found.validated()["broken"]["Value"] == 9


def test_a_value_is_made_once():
    found = Parameters(declared(j={"type": "json"}), {"j": '{"k": 1}'})
    assert found.value("j") is found.value("j")


# ----------------------------------------------------------------------------------- immutable


IMMUTABLE = TEXT | {"immutable": True, "default": "d"}


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [("a", "b", True), ("a", "a", False), (None, "b", True), ("a", None, True), (None, "d", False)],
)
def test_what_is_immutable_keeps_its_value(old: Any, new: Any, changed: bool):
    schemas = declared(p=IMMUTABLE, free=TEXT)
    before = Parameters(schemas, {"p": old, "free": "x"})
    after = Parameters(schemas, {"p": new, "free": "y"})
    assert after.changed_immutables(before) == (["p"] if changed else [])
    if not changed:
        after.check_immutable(before)
        return
    with pytest.raises(errors.ImmutableParameterModified, match="p"):
        after.check_immutable(before)


def test_a_parameter_that_is_new_may_have_any_value():
    after = Parameters(declared(p=IMMUTABLE), {"p": "b"})
    after.check_immutable(Parameters(declared(q=TEXT), {"q": "x"}))


def test_the_new_template_says_what_is_immutable():
    before = Parameters(declared(p=IMMUTABLE), {"p": "a"})
    Parameters(declared(p=TEXT), {"p": "b"}).check_immutable(before)
    with pytest.raises(errors.ImmutableParameterModified):
        Parameters(declared(p=IMMUTABLE), {"p": "b"}).check_immutable(
            Parameters(declared(p=TEXT), {"p": "a"})
        )


# -------------------------------------------------------------------------------------- groups


GOOD_GROUPS = [
    None,
    [],
    {},
    [{"parameters": []}],
    [{"parameters": ["s"], "label": 5, "foo": 1}],
    [{"label": "L", "description": "D", "parameters": ["s"]}, {"parameters": ["t"]}],
]
BAD_GROUPS = [
    ("x", []),
    ({"a": 1}, []),
    (5, []),
    ([None], [0]),
    (["x"], [0]),
    ([{}], [0]),
    ([{"label": "x"}], [0]),
    ([{"parameters": None}], [0]),
    ([{"parameters": "s"}], [0]),
    ([{"parameters": ["s", "s"]}], [0, "parameters", 1]),
    ([{"parameters": ["t"]}, {"parameters": ["s", "t"]}], [1, "parameters", 1]),
    ([{"parameters": ["q"]}], [0, "parameters", 0]),
    ([{"parameters": [5]}], [0, "parameters", 0]),
    ([{"parameters": [["s"]]}], [0, "parameters", 0]),
    ([{"parameters": ["OS::stack_name"]}], [0, "parameters", 0]),
]


@pytest.mark.parametrize("section", GOOD_GROUPS)
def test_groups_are_kept_as_they_were_written(section: Any):
    assert parameters.check_groups(section, ["s", "t"]) == (section or [])


@pytest.mark.parametrize(("section", "path"), BAD_GROUPS)
def test_a_group_names_each_parameter_once(section: Any, path: Any):
    with pytest.raises(errors.StackValidationFailed) as caught:
        parameters.check_groups(section, ["s", "t"])
    assert caught.value.path == tuple(path)


# ------------------------------------------------------------------------------------- reading


class Get(base.Function):
    def references(self, asked: Any) -> Any:
        yield base.Reference(self.args, None)

    def resolve(self, asked: Any) -> Any:
        return asked.resource(self.args).reference_id()


def test_a_reader_resolves_and_knows_what_is_ready():
    reader = TreeReader(view.Plain(ids={"a": "1", "b": "2"}, attributes={"a": {}}))
    tree = {"k": [Get("get_resource", "a"), "x"]}
    assert reader.resolve(tree) == {"k": ["1", "x"]}
    assert reader.settled(tree)
    assert reader.settled("text")
    assert not reader.settled([tree, {"l": Get("get_resource", "b")}])
