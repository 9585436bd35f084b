"""Functions of templates, where they are easily got wrong."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from tests.kit.clients.stacks_api import StacksApi, document, value

INVALID = (400, "StackValidationFailed")
JSON = {"b": [1, 2.5], "a": "ü"}


def outputs(api: StacksApi, values: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return what each value becomes; one stack for all."""
    sections = {name: {"value": each} for name, each in values.items()}
    resources = more.pop("resources", {})
    return api.outputs(api.create(resources, outputs=sections, **more))


def refused(api: StacksApi, call: Any, **more: Any) -> tuple[int, str | None]:
    """How a resource's property with this value is refused."""
    return api.post(document({"a": value(call)}, **more)).refusal


def test_a_map_with_a_second_key_is_no_call(api: StacksApi) -> None:
    plain = {"get_param": "x", "other": 1}
    assert api.output(plain) == plain


def test_a_path_that_leads_nowhere_gives_an_empty_text_or_null(api: StacksApi) -> None:
    made = outputs(
        api,
        {"param": {"get_param": ["p", "x"]}, "attr": {"get_attr": ["a", "value", "x"]}},
        resources={"a": value({"y": 1})},
        declared={"p": {"type": "json", "default": {"y": 1}}},
    )
    assert made == {"param": "", "attr": None}
    assert refused(api, {"get_attr": ["b", "nope"]}) == (400, "InvalidTemplateReference")
    template = document({"b": value(1), "a": value({"get_attr": ["b", "nope"]})})
    assert api.post(template).refusal == INVALID


def test_a_path_into_a_parameter_takes_numeric_text_and_functions(api: StacksApi) -> None:
    made = outputs(
        api,
        {
            "text": {"get_param": ["p", "1"]},
            "call": {"get_param": ["p", {"get_param": "n"}]},
            "far": {"get_param": ["p", 9]},
            "word": {"get_param": ["p", "x"]},
        },
        declared={
            "p": {"type": "comma_delimited_list", "default": "a,b"},
            "n": {"type": "number", "default": 0},
        },
    )
    assert made == {"text": "b", "call": "a", "far": "", "word": ""}


def test_all_attributes_of_a_resource_come_without_show(api: StacksApi) -> None:
    calls = {"list": {"get_attr": ["a"]}, "text": {"get_attr": "a"}}
    made = outputs(api, calls, resources={"a": value(5)})
    assert made == {"list": {"value": 5}, "text": {"value": 5}}
    older = document({"a": value(5), "b": value({"get_attr": ["a"]})}, version="2014-10-16")
    assert api.post(older).status == 400


def test_a_cycle_is_refused_before_anything_is_stored(api: StacksApi) -> None:
    itself = document({"a": value({"get_attr": ["a", "value"]})})
    assert api.post(itself, "circle").refusal == (400, "CircularDependencyException")
    both = document({"a": value(1, depends_on="b"), "b": value(1, depends_on="a")})
    assert api.post(both, "circle").refusal == (400, "CircularDependencyException")
    assert api.ask("GET", "stacks/circle").status == 404


def test_placeholders_of_str_replace(api: StacksApi) -> None:
    def replace(params: dict[str, Any], template: str = "a aa b") -> dict[str, Any]:
        return {"str_replace": {"template": template, "params": params}}

    made = outputs(
        api,
        {
            "longest": replace({"a": "1", "aa": "2"}),
            "once": replace({"a": "b", "b": "c"}, "ab"),
            "unused": replace({"zz": "1"}),
            "null": replace({"b": None}),
            "bool": replace({"b": True}, "b"),
            "float": replace({"b": 1.5}, "b"),
            "map": replace({"b": {"y": 1, "x": [2]}}, "b"),
        },
    )
    assert made == {
        "longest": "1 2 b",
        "once": "bc",
        "unused": "a aa b",
        "null": "a aa ",
        "bool": "True",
        "float": "1.5",
        "map": '{"x": [2], "y": 1}',
    }
    strict = {"str_replace_strict": {"template": "a", "params": {"a": "1", "z": "2"}}}
    assert refused(api, strict) == INVALID
    vstrict = {"str_replace_vstrict": {"template": "a", "params": {"a": ""}}}
    assert refused(api, vstrict) == INVALID
    assert refused(api, replace({"b": {"x": 1}}), version="2014-10-16") == INVALID


def test_json_in_texts_is_sorted_spaced_and_escaped(api: StacksApi) -> None:
    text = '{"a": "\\u00fc", "b": [1, 2.5]}'
    made = outputs(api, {"o": {"list_join": ["|", [JSON, "x"]]}})
    assert made == {"o": f"{text}|x"}


def test_parts_of_list_join(api: StacksApi) -> None:
    made = outputs(
        api,
        {
            "null": {"list_join": ["-", ["a", None, "b"]]},
            "lists": {"list_join": ["-", ["a"], None, ["b"]]},
        },
    )
    assert made == {"null": "a--b", "lists": "a-b"}
    for parts in (["-", ["a", 1]], ["-", [True]], ["-", "text"], [1, ["a"]]):
        assert refused(api, {"list_join": parts}) == INVALID
    several = {"list_join": ["-", ["a"], ["b"]]}
    assert refused(api, several, version="2014-10-16") == INVALID


def test_the_index_of_str_split(api: StacksApi) -> None:
    made = outputs(
        api,
        {"text": {"str_split": [",", "a,b", "1"]}, "null": {"str_split": [",", None]}},
    )
    assert made == {"text": "b", "null": None}
    assert refused(api, {"str_split": [",", "a,b", 5]}) == INVALID


def test_how_repeat_walks(api: StacksApi) -> None:
    def repeat(each: Any, template: Any = "x-y", **more: Any) -> dict[str, Any]:
        return {"repeat": {"for_each": each, "template": template, **more}}

    made = outputs(
        api,
        {
            "product": repeat({"x": ["1", "2"], "y": ["3", "4"]}),
            "keys": repeat({"x": {"k": "v"}}, "x"),
            "parallel": repeat({"x": ["1", "2"], "y": ["3", "4"]}, permutations=False),
            "empty": repeat({"x": []}),
            "null": repeat({"x": None}),
            "inside": repeat({"x": ["1", "2"]}, {"x": "v"}),
        },
    )
    assert made == {
        "product": ["1-3", "1-4", "2-3", "2-4"],
        "keys": ["k"],
        "parallel": ["1-3", "2-4"],
        "empty": [],
        "null": [],
        "inside": [{"1": "v"}, {"2": "v"}],
    }
    uneven = repeat({"x": ["1"], "y": ["3", "4"]}, permutations=False)
    assert refused(api, uneven) == INVALID
    assert refused(api, repeat({"x": ["1"]}, permutations="maybe")) == INVALID
    assert refused(api, repeat({"x": "text"})) == INVALID


def test_how_maps_and_lists_are_joined(api: StacksApi) -> None:
    made = outputs(
        api,
        {
            "shallow": {"map_merge": [{"a": {"x": 1}}, None, {"a": {"y": 2}}]},
            "concat": {"list_concat": [["a"], None, ["a"]]},
            "unique": {"list_concat_unique": [[{"a": 1}], [{"a": 1}, "b"]]},
        },
    )
    assert made == {"shallow": {"a": {"y": 2}}, "concat": ["a", "a"], "unique": [{"a": 1}, "b"]}
    clash = {"map_replace": [{"a": 1, "b": 2}, {"keys": {"a": "b"}}]}
    assert refused(api, clash) == INVALID
    assert refused(api, {"list_concat": [["a"], "text"]}) == INVALID


def test_a_digest_is_of_text_in_latin_1(api: StacksApi) -> None:
    made = outputs(api, {"o": {"digest": ["MD5", "ü"]}})
    assert made == {"o": hashlib.md5("ü".encode("latin-1")).hexdigest()}
    assert refused(api, {"digest": ["md5", 5]}) == INVALID


def test_contains_and_filter(api: StacksApi) -> None:
    made = outputs(
        api,
        {
            "text": {"contains": ["ell", "hello"]},
            "list": {"contains": ["b", ["a", "b"]]},
            "null": {"filter": [[None, "x"], ["a", None, "x"]]},
        },
    )
    assert made == {"text": True, "list": True, "null": ["a"]}
    assert refused(api, {"contains": ["a", {"a": 1}]}) == INVALID


def test_the_parts_of_make_url(api: StacksApi) -> None:
    url = {"scheme": "http", "username": "a@b", "password": "p:w", "host": "::1", "port": "80",
           "path": "x", "query": {"k": "v w"}}  # fmt: skip
    assert api.output({"make_url": url}) == "http://a%40b:p%3Aw@[::1]:80/x?k=v+w"
    assert refused(api, {"make_url": {**url, "port": 70000}}) == INVALID
    assert refused(api, {"make_url": {**url, "colour": "red"}}) == INVALID


def test_equals_converts_nothing(api: StacksApi) -> None:
    pairs = {"text": [1, "1"], "word": ["true", True], "float": [1, 1.0], "bool": [1, True],
             "list": [["a"], ["a"]]}  # fmt: skip
    conditions = {name: {"equals": pair} for name, pair in pairs.items()}
    made = outputs(
        api, {name: {"if": [name, "yes", "no"]} for name in pairs}, conditions=conditions
    )
    assert made == {"text": "no", "word": "no", "float": "yes", "bool": "yes", "list": "yes"}


def test_the_branch_that_if_leaves_is_not_looked_at(api: StacksApi) -> None:
    conditions = {"no": False}
    nowhere = {"get_attr": ["nowhere", "x"]}
    made = outputs(
        api,
        {
            "left": {"if": ["no", nowhere, "taken"]},
            "item": ["a", {"if": ["no", "b"]}],
            "entry": {"a": 1, "b": {"if": ["no", 2]}},
            "whole": {"if": ["no", "x"]},
        },
        conditions=conditions,
    )
    assert made == {"left": "taken", "item": ["a"], "entry": {"a": 1}, "whole": None}
    assert refused(api, {"if": ["no", "x"]}, conditions=conditions) == INVALID
    older = document({"a": value({"if": ["no", "x"]})}, version="2018-08-31", conditions=conditions)
    assert api.post(older).refusal == INVALID


@pytest.mark.parametrize("call", [{"get_file": "none.txt"}, {"get_param": "none"}])
def test_what_is_missing_is_refused_in_a_property_and_an_error_in_an_output(
    api: StacksApi, call: dict
) -> None:
    assert api.post(document({"a": value(call)})).status == 400
    answer = api.post(document({}, outputs={"o": {"value": call}}))
    if answer.status == 201:
        path = "stacks" + answer.document["stack"]["links"][0]["href"].rpartition("/stacks")[2]
        [output] = api.settle(path, "CREATE_COMPLETE")["outputs"]
        assert output["output_value"] is None
        assert output["output_error"]
    else:
        assert answer.refusal == INVALID


def test_get_resource_of_nothing_passes_in_an_output(api: StacksApi) -> None:
    path = api.create({}, outputs={"o": {"value": {"get_resource": "none"}}})
    [output] = api.show(path)["outputs"]
    assert output["output_key"] == "o"


def test_a_value_says_of_what_type_it_must_be_and_converts_nothing(api: StacksApi) -> None:
    def typed(kind: str, content: Any) -> dict[str, Any]:
        properties = {"type": kind, "value": content}
        return {"a": {"type": "OS::Heat::Value", "properties": properties}}

    assert api.output({"get_attr": ["a", "value"]}, typed("number", "5")) == "5"
    for kind, content in (("json", '{"a": 1}'), ("comma_delimited_list", "a,b")):
        assert api.post(document(typed(kind, content))).refusal == INVALID
