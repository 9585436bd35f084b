"""Parameters: what is taken for which type, what is refused, and how they are shown."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit.clients.stacks_api import StacksApi, document, value

INVALID = (400, "StackValidationFailed")
SCHEMA = (400, "InvalidSchemaError")


def output(api: StacksApi, declaration: dict[str, Any], **options: Any) -> Any:
    template = document(
        {}, parameters={"p": declaration}, outputs={"o": {"value": {"get_param": "p"}}}
    )
    path = api.begin(template, **options)
    api.settle(path, "CREATE_COMPLETE")
    return api.outputs(path)["o"]


@pytest.mark.parametrize(
    ("kind", "given", "seen"),
    [
        ("comma_delimited_list", "a, b,c", ["a", " b", "c"]),
        ("comma_delimited_list", "", []),
        ("comma_delimited_list", [1, "b"], ["1", "b"]),
        ("number", "5", 5),
        ("number", "5.0", 5.0),
        ("number", "1e3", 1000.0),
        ("string", True, "True"),
        ("json", "5", 5),
        ("boolean", "Y", True),
        ("boolean", "oN", True),
        ("boolean", "F", False),
        ("boolean", 0, False),
    ],
)
def test_a_value_is_read_by_its_type(api: StacksApi, kind: str, given: Any, seen: Any) -> None:
    made = output(api, {"type": kind}, parameters={"p": given})
    assert (made, type(made)) == (seen, type(seen))


@pytest.mark.parametrize("given", ["maybe", "2", "enabled", ""])
def test_a_boolean_takes_no_other_words(api: StacksApi, given: str) -> None:
    template = document({}, parameters={"p": {"type": "boolean"}})
    assert api.post(template, parameters={"p": given}).refusal == INVALID


def test_null_is_no_default_and_no_value_but_an_empty_text_is(api: StacksApi) -> None:
    missing = (400, "UserParameterMissing")
    nothing = document({}, parameters={"p": {"type": "string", "default": None}})
    assert api.post(nothing).refusal == missing
    required = document({}, parameters={"p": {"type": "string"}})
    assert api.post(required, parameters={"p": None}).refusal == missing
    assert output(api, {"type": "string", "default": ""}) == ""


@pytest.mark.parametrize(
    ("declaration", "refusal"),
    [
        ({"type": "String"}, SCHEMA),
        ({"type": "string", "default": "a", "constraints": [{"length": {"min": 3}}]}, SCHEMA),
        ({"type": "number", "default": "many"}, INVALID),
        ({"type": "string", "default": "a", "constraints": [{"custom_constraint": "x.y"}]},
         INVALID),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_declaration_has_its_class(
    api: StacksApi, declaration: dict, refusal: tuple
) -> None:
    assert api.post(document({}, parameters={"p": declaration})).refusal == refusal


def test_a_pattern_must_match_all_and_the_first_constraint_speaks(api: StacksApi) -> None:
    constraints = [
        {"allowed_pattern": "[a-z]+", "description": "only letters"},
        {"length": {"max": 2}, "description": "at most two"},
    ]
    template = document({}, parameters={"p": {"type": "string", "constraints": constraints}})
    answer = api.post(template, parameters={"p": "abc1"})
    assert answer.refusal == INVALID
    assert "only letters" in answer.document["error"]["message"]
    assert "at most two" not in answer.document["error"]["message"]


def test_unknown_parameters_are_refused_and_unknown_defaults_are_not(api: StacksApi) -> None:
    unknown = (400, "UnknownUserParameter")
    assert api.post(document({}), parameters={"p": 1}).refusal == unknown
    assert api.post(document({}), environment={"parameters": {"p": 1}}).refusal == unknown
    path = api.begin(document({}), environment={"parameter_defaults": {"p": 1}})
    api.settle(path, "CREATE_COMPLETE")


def test_parameter_defaults_reach_nested_templates(api: StacksApi) -> None:
    inner = document(
        {},
        parameters={"p": {"type": "string", "default": "inner"}},
        outputs={"o": {"value": {"get_param": "p"}}},
    )
    made = api.output(
        {"get_attr": ["n", "o"]},
        {"n": {"type": "inner.yaml"}},
        files={"inner.yaml": str(inner).replace("'", '"')},
        environment={"parameter_defaults": {"p": "default"}},
    )
    assert made == "default"


def test_an_immutable_parameter_keeps_its_value(api: StacksApi) -> None:
    parameters = {"p": {"type": "string", "immutable": True}}
    template = document({}, parameters=parameters)
    path = api.begin(template, parameters={"p": "a"})
    api.settle(path, "CREATE_COMPLETE")
    changed = api.ask("PUT", path, {"template": template, "parameters": {"p": "b"}})
    assert changed.refusal == (400, "ImmutableParameterModified")
    same = api.ask("PUT", path, {"template": template, "parameters": {"p": "a"}})
    assert same.status == 202
    api.settle(path, "UPDATE_COMPLETE")


def test_a_hidden_value_is_masked_wherever_it_is_shown(api: StacksApi) -> None:
    template = document({}, parameters={"p": {"type": "string", "hidden": True}})
    path = api.begin(template, parameters={"p": "secret-word"})
    shown = api.settle(path, "CREATE_COMPLETE")
    assert shown["parameters"]["p"] == "******"
    assert api.get(f"{path}/environment")["parameters"]["p"] == "******"


def test_show_gives_parameters_as_text_and_environment_as_they_were_sent(api: StacksApi) -> None:
    kinds = {"b": "boolean", "l": "comma_delimited_list", "j": "json", "n": "number"}
    given = {"b": True, "l": ["a", "b"], "j": {"y": 1, "x": [2]}, "n": 5}
    template = document({}, parameters={name: {"type": kind} for name, kind in kinds.items()})
    path = api.begin(template, parameters=given)
    shown = api.settle(path, "CREATE_COMPLETE")["parameters"]
    assert {name: shown[name] for name in given} == {
        "b": "True", "l": "a,b", "j": '{"y": 1, "x": [2]}', "n": "5"
    }  # fmt: skip
    assert api.get(f"{path}/environment")["parameters"] == given


def test_the_request_beats_the_environment_beats_its_defaults(api: StacksApi) -> None:
    names = ("template", "defaults", "environment", "request")
    declared = {name: {"type": "string", "default": "template"} for name in names}
    template = document(
        {}, parameters=declared, outputs={n: {"value": {"get_param": n}} for n in names}
    )
    path = api.begin(
        template,
        parameters={"request": "request"},
        environment={
            "parameters": {"request": "environment", "environment": "environment"},
            "parameter_defaults": dict.fromkeys(names[1:], "defaults"),
        },
    )
    api.settle(path, "CREATE_COMPLETE")
    assert api.outputs(path) == {name: name for name in names}


def test_environment_files_leave_the_environment_aside(api: StacksApi) -> None:
    made = output(
        api,
        {"type": "string", "default": "template"},
        environment={"parameters": {"p": "inline"}},
        environment_files=["env.yaml"],
        files={"env.yaml": '{"parameters": {"p": "file"}}'},
    )
    assert made == "file"


def test_the_first_file_with_a_value_fixes_how_files_are_merged(api: StacksApi) -> None:
    def env(value: str, strategy: str | None = None) -> str:
        section = f', "parameter_merge_strategies": {{"p": "{strategy}"}}' if strategy else ""
        return f'{{"parameters": {{"p": ["{value}"]}}{section}}}'

    declared = {"type": "comma_delimited_list"}
    files = {"1": env("a", "merge"), "2": env("b")}
    assert output(api, declared, environment_files=["1", "2"], files=files) == ["a", "b"]
    files = {"1": env("a"), "2": env("b")}
    assert output(api, declared, environment_files=["1", "2"], files=files) == ["b"]
    files = {"1": env("a"), "2": env("b", "merge")}
    answer = api.post(
        document({}, parameters={"p": declared}), environment_files=["1", "2"], files=files
    )
    assert answer.status in {400, 500}  # Heat answers 500 by accident


def test_a_type_mapped_to_none_takes_everything_and_tells_nothing(api: StacksApi) -> None:
    made = api.output(
        {"get_attr": ["a", "anything"]},
        {"a": {"type": "My::Type", "properties": {"what": "ever"}}},
        environment={"resource_registry": {"My::Type": "OS::Heat::None"}},
    )
    assert made is None


def test_a_nested_template_sets_its_reference_and_shows_what_is_inside(api: StacksApi) -> None:
    inner = """
heat_template_version: 2021-04-16
resources: {in: {type: OS::Heat::Value, properties: {value: deep}}}
outputs: {"OS::stack_id": {value: my-reference}}
"""
    outputs = {
        "reference": {"value": {"get_resource": "n"}},
        "inside": {"value": {"get_attr": ["n", "resource.in", "value"]}},
    }
    path = api.create({"n": {"type": "inner.yaml"}}, files={"inner.yaml": inner}, outputs=outputs)
    assert api.outputs(path) == {"reference": "my-reference", "inside": "deep"}


def test_a_condition_is_named_where_names_are_taken(api: StacksApi) -> None:
    bare = document({}, conditions={"a": True, "b": "a"})
    assert api.post(bare).refusal == (400, "StackValidationFailed")
    made = api.output(
        {"if": ["both", "yes", "no"]}, conditions={"a": True, "both": {"and": ["a", "a"]}}
    )
    assert made == "yes"
    attribute = {"equals": [{"get_attr": ["a", "value"]}, 1]}
    template = document({"a": value(1)}, conditions={"c": attribute})
    assert api.post(template).refusal == (400, "StackValidationFailed")


def test_a_resource_whose_condition_is_false_cannot_be_named(api: StacksApi) -> None:
    def named(**more: Any) -> tuple[int, str | None]:
        off = value(1, condition="no")
        resources = {"off": off, **more.pop("resources", {})}
        return api.post(document(resources, conditions={"no": False}, **more)).refusal

    user = value({"get_resource": "off"})
    assert named(resources={"a": user}) == (400, "InvalidTemplateReference")
    output = {"o": {"value": {"get_attr": ["off", "value"]}}}
    assert named(outputs=output) == (400, "StackValidationFailed")
    path = api.create(
        {"off": value(1, condition="no"), "a": value(1, depends_on="off")},
        conditions={"no": False},
    )
    assert api.states(path) == {"a": "CREATE_COMPLETE"}


def test_an_output_whose_condition_is_false_is_null_and_not_validated(api: StacksApi) -> None:
    hidden = {"value": {"get_attr": ["nowhere", "x"]}, "condition": "no"}
    path = api.create({}, conditions={"no": False}, outputs={"o": hidden})
    [output] = api.show(path)["outputs"]
    assert (output["output_value"], "output_error" in output) == (None, False)


def test_a_resource_whose_condition_turns_false_is_deleted(api: StacksApi) -> None:
    resources = {"a": value(1, condition="on"), "b": value(2)}
    path = api.create(resources, conditions={"on": True})
    api.update(path, resources, conditions={"on": False})
    assert list(api.resources(path)) == ["b"]
    assert api.events(path, "a")[-2:] == ["DELETE_IN_PROGRESS", "DELETE_COMPLETE"]
