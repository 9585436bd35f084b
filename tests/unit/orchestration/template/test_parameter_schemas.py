from __future__ import annotations

from typing import Any

import pytest

from bloomery import errors
from bloomery.orchestration.limits import Limits
from bloomery.orchestration.properties.custom import ConstraintContext
from bloomery.orchestration.properties.schema import Type
from bloomery.orchestration.template import parameter_schemas
from bloomery.orchestration.template.parameter_schemas import cfn_schema, hot_schema

REFUSED = [  # definition, path of the fault, a word of it
    (None, [], "must be a map"),
    ("string", [], "must be a map"),
    ([], [], "must be a map"),
    (5, [], "must be a map"),
    ({}, [], "needs a type"),
    ({"type": None}, ["type"], "no type"),
    ({"type": "String"}, ["type"], "write one of string, number"),
    ({"type": 5}, ["type"], "no type"),
    ({"type": ["string"]}, ["type"], "no type"),
    ({"type": "list"}, ["type"], "no type"),
    ({"type": "string", "foo": 1}, [], '"foo" is not a key'),
    ({"type": "string", "Default": 1}, [], "Did you mean 'default'?"),
    ({"type": "string", "tags": "x"}, ["tags"], "list"),
    ({"type": "string", "tags": None}, ["tags"], "list"),
    ({"type": "string", "tags": {}}, ["tags"], "list"),
    ({"type": "string", "constraints": {}}, [], "must be a list"),
    ({"type": "string", "constraints": "x"}, [], "must be a list"),
    ({"type": "string", "constraints": ["x"]}, ["constraints", 0], "must be a map"),
    ({"type": "string", "constraints": [None]}, ["constraints", 0], "must be a map"),
    ({"type": "string", "constraints": [{}]}, ["constraints", 0], "here are 0"),
    ({"type": "string", "constraints": [{"description": "x"}]}, ["constraints", 0], "here are 0"),
    ({"type": "string", "constraints": [{"foo": 1}]}, ["constraints", 0], '"foo" is not a key'),
    (
        {"type": "string", "constraints": [{"length": {"min": 1}, "allowed_pattern": "b"}]},
        ["constraints", 0],
        "here are 2",
    ),
    (
        {"type": "string", "constraints": [{"length": {"min": 1}}, {"lenght": {"max": 1}}]},
        ["constraints", 1],
        "Did you mean 'length'?",
    ),
]
BODIES = [  # type of the parameter, constraint: each refused
    ("string", {"length": None}), ("string", {"length": {}}), ("string", {"length": 5}),
    ("string", {"length": {"min": None}}), ("string", {"length": {"min": "x"}}),
    ("string", {"length": {"min": 1.5}}), ("string", {"length": {"min": "1.5"}}),
    ("string", {"length": {"min": [1]}}), ("string", {"length": {"foo": 1}}),
    ("string", {"length": {"min": 1, "foo": 1}}), ("string", {"length": {"max": "9" * 200}}),
    ("number", {"range": {"min": "x"}}), ("number", {"range": {}}), ("number", {"range": [1, 2]}),
    ("number", {"range": {"min": [1]}}), ("number", {"range": {"max": "inf"}}),
    ("number", {"modulo": {}}), ("number", {"modulo": {"step": 2}}),
    ("number", {"modulo": {"offset": 0}}), ("number", {"modulo": {"step": 2, "offset": None}}),
    ("number", {"modulo": {"step": 2.5, "offset": 0}}),
    ("number", {"modulo": {"step": 0, "offset": 0}}),
    ("number", {"modulo": {"step": 2, "offset": 2}}),
    ("number", {"modulo": {"step": 2, "offset": -1}}),
    ("string", {"allowed_values": "a"}), ("string", {"allowed_values": None}),
    ("string", {"allowed_values": {"a": 1}}), ("string", {"length": {"max": 2.0}}),
    ("string", {"allowed_pattern": "("}), ("string", {"allowed_pattern": None}),
    ("string", {"allowed_pattern": 5}), ("string", {"allowed_pattern": [1]}),
    ("string", {"allowed_pattern": "a" * 2000}),
    ("string", {"custom_constraint": None}), ("string", {"custom_constraint": {}}),
    # what does not fit the type
    ("number", {"length": {"min": 1}}), ("boolean", {"length": {"min": 1}}),
    ("string", {"range": {"min": 1}}), ("boolean", {"range": {"min": 1}}),
    ("json", {"range": {"min": 1}}), ("comma_delimited_list", {"range": {"min": 1}}),
    ("string", {"modulo": {"step": 1, "offset": 0}}),
    ("json", {"modulo": {"step": 1, "offset": 0}}),
    ("json", {"allowed_values": [{"a": 1}]}),
    ("number", {"allowed_pattern": "5"}), ("comma_delimited_list", {"allowed_pattern": "5"}),
    ("json", {"allowed_pattern": "x"}), ("boolean", {"allowed_pattern": "x"}),
    ("json", {"custom_constraint": "ip_addr"}),
]  # fmt: skip


@pytest.mark.parametrize(("body", "path", "word"), REFUSED)
def test_a_wrong_definition_is_a_fault_of_the_schema(body: Any, path: Any, word: str):
    with pytest.raises(errors.InvalidSchemaError) as caught:
        hot_schema("p", body)
    assert caught.value.path == tuple(path)
    assert word in str(caught.value)


@pytest.mark.parametrize(("kind", "rule"), BODIES)
def test_a_wrong_constraint_is_a_fault_of_the_schema(kind: str, rule: dict[str, Any]):
    with pytest.raises(errors.InvalidSchemaError) as caught:
        hot_schema("p", {"type": kind, "constraints": [rule]})
    (word,) = rule
    assert caught.value.path[:3] == ("constraints", 0, word)


@pytest.mark.parametrize(
    "rule",
    [
        {"length": {"min": "1"}}, {"length": {"min": None, "max": 5}}, {"length": {"min": True}},
        {"length": {"min": -1}}, {"length": {"min": 5, "max": 1}},
        {"length": {"min": 1}, "description": None},
        {"allowed_values": []}, {"allowed_values": [["a"], 5]}, {"custom_constraint": "nope"},
    ],
)  # fmt: skip
def test_what_heat_takes_for_a_constraint_is_one(rule: dict[str, Any]):
    (found,) = hot_schema("p", {"type": "string", "constraints": [rule]}).constraints
    assert found.key in rule


@pytest.mark.parametrize(
    ("offered", "body"),
    [
        ("tags", {"type": "string", "tags": ["a"]}),
        (
            "modulo",
            {"type": "number", "constraints": [{"modulo": {"step": 2, "offset": 1}}]},
        ),
    ],
)
def test_a_word_is_known_only_from_its_version_on(offered: str, body: Any):
    hot_schema("p", body, {offered})
    hot_schema("p", body)
    with pytest.raises(errors.InvalidSchemaError, match="is not a key"):
        hot_schema("p", body, parameter_schemas.OPTIONAL_KEYS - {offered})


@pytest.mark.parametrize(
    ("read", "name"),
    [
        (hot_schema, "OS::stack_name"),
        (hot_schema, "OS::stack_id"),
        (hot_schema, "OS::project_id"),
        (hot_schema, "OS::region"),
        (hot_schema, 5),
        (hot_schema, None),
        (cfn_schema, "AWS::Region"),
        (cfn_schema, "AWS::StackName"),
        (cfn_schema, "AWS::StackId"),
        (cfn_schema, 5),
    ],
)
def test_some_names_are_not_for_templates(read: Any, name: Any):
    with pytest.raises(errors.InvalidSchemaError):
        read(name, {"type": "string", "Type": "String"})


DEFAULTS = [  # type, default, constraint, whether the definition is refused
    ("string", "abc", {"length": {"min": 4}}, True),
    ("string", "abc", {"length": {"min": 3}}, False),
    ("string", "", {"length": {"min": 1}}, True),
    ("string", 12, {"length": {"min": 2}}, False),
    ("string", None, {"length": {"min": 4}}, False),
    ("string", "abc", {"allowed_pattern": "b"}, True),
    ("string", "a", {"allowed_values": ["b"]}, True),
    ("string", "1", {"allowed_values": [1]}, False),
    ("string", "True", {"allowed_values": [True]}, False),
    ("string", "true", {"allowed_values": [True]}, True),
    ("string", "x", {"custom_constraint": "ip_addr"}, False),
    ("string", "x", {"custom_constraint": "nope"}, False),
    ("number", 3, {"range": {"min": 4}}, True),
    ("number", "3", {"range": {"min": "1.5", "max": "1e3"}}, False),
    ("number", "x", {"range": {"min": 1}}, True),
    ("number", True, {"range": {"min": 1}}, False),
    ("number", 4.5, {"modulo": {"step": 2, "offset": 0}}, True),
    ("number", "5", {"modulo": {"step": "2", "offset": 1.0}}, False),
    ("number", 1.0, {"allowed_values": ["1"]}, False),
    ("boolean", "on", {"allowed_values": ["true"]}, False),
    ("boolean", "off", {"allowed_values": [True]}, True),
    ("comma_delimited_list", "a,b", {"allowed_values": ["a", "b", "c"]}, False),
    ("comma_delimited_list", "a,d", {"allowed_values": ["a", "b"]}, True),
    ("comma_delimited_list", "a,b", {"length": {"max": 1}}, True),
    ("comma_delimited_list", "", {"length": {"min": 1}}, True),
    ("number", 1, {"allowed_values": ["x", 1]}, False),
    ("number", 1, {"allowed_values": ["x"]}, True),
    ("boolean", True, {"allowed_values": [5, "maybe", "yes"]}, False),
    ("boolean", True, {"allowed_values": [1.0, "no"]}, True),
    ("json", "{bad", {"length": {"min": 1}}, False),
    ("comma_delimited_list", "1", {"allowed_values": [1]}, False),
    ("comma_delimited_list", 5, {"length": {"max": 1}}, True),
    ("json", {"a": 1}, {"length": {"min": 2}}, True),
    ("json", "[1]", {"length": {"min": 2}}, True),
    ("json", "", {"length": {"min": 1}}, True),
    ("json", "5", {"length": {"min": 1}}, True),
    ("json", '"abc"', {"length": {"min": 3}}, False),
]


@pytest.mark.parametrize(("kind", "default", "rule", "refused"), DEFAULTS)
def test_a_default_keeps_to_the_constraints(kind: str, default: Any, rule: Any, refused: bool):
    body = {"type": kind, "default": default, "constraints": [rule]}
    if not refused:
        assert hot_schema("p", body).default == default
        return
    with pytest.raises(errors.InvalidSchemaError) as caught:
        hot_schema("p", body)
    assert caught.value.path == ("default",)


@pytest.mark.parametrize("default", [5, {}, True])
def test_a_default_of_a_list_is_a_list_or_text(default: Any):
    with pytest.raises(errors.InvalidSchemaError):
        hot_schema("p", {"type": "comma_delimited_list", "default": default})


def test_a_default_of_the_wrong_type_is_found_when_it_is_used():
    declared = hot_schema("p", {"type": "number", "default": "abc"})
    with pytest.raises(errors.StackValidationFailed):
        declared.value(declared.default)
    assert declared.lenient(declared.default) is None


# ---------------------------------------------------------------------------------- values

VALUES = [  # type, given, what the template sees, as text; asked of the published Heat
    ("string", "", "", ""), ("string", "5", "5", "5"), ("string", 5, "5", "5"),
    ("string", 1.5, "1.5", "1.5"), ("string", True, "True", "True"), ("string", [], "[]", "[]"),
    ("string", {"a": 1, "b": None}, "{'a': 1, 'b': None}", "{'a': 1, 'b': None}"),
    ("string", [1, None, "x"], "[1, None, 'x']", "[1, None, 'x']"),
    ("string", " on ", " on ", " on "),
    ("number", "5", 5, "5"), ("number", "5.0", 5.0, "5.0"), ("number", "7.0", 7.0, "7.0"),
    ("number", "1e3", 1000.0, "1000.0"), ("number", " 5 ", 5, "5"),
    ("number", "1_000", 1000, "1000"),
    ("number", "05", 5, "5"), ("number", "+5", 5, "5"), ("number", 5, 5, "5"),
    ("number", 1.5, 1.5, "1.5"), ("number", 1.0, 1.0, "1.0"), ("number", True, True, "True"),
    ("number", False, False, "False"), ("number", "-3", -3, "-3"),
    ("boolean", True, True, "True"), ("boolean", 1, True, "True"), ("boolean", 0, False, "False"),
    ("boolean", " on ", True, "True"), ("boolean", False, False, "False"),
    *(("boolean", word, True, "True") for word in ("t", "true", "y", "yes", "on", "1", "T")),
    *(("boolean", word, False, "False") for word in ("f", "false", "n", "no", "off", "0", "OFF")),
    ("comma_delimited_list", "", [], ""), ("comma_delimited_list", "abc", ["abc"], "abc"),
    ("comma_delimited_list", "a, b,c", ["a", " b", "c"], "a, b,c"),
    ("comma_delimited_list", "a, b,", ["a", " b", ""], "a, b,"),
    ("comma_delimited_list", [], [], ""),
    ("comma_delimited_list", [1, None, True, "x", {"a": 1}, 1.5],
     ["1", "None", "True", "x", "{'a': 1}", "1.5"], "1,None,True,x,{'a': 1},1.5"),
    ("json", "", "", '""'), ("json", "5", 5, "5"), ("json", " 5 ", 5, "5"),
    ("json", "1e3", 1000.0, "1000.0"),
    ("json", "true", True, "true"), ("json", 5, 5, "5"), ("json", True, True, "true"),
    ("json", [], [], "[]"),
    ("json", {"a": 1, "b": None}, {"a": 1, "b": None}, '{"a": 1, "b": null}'),
    ("json", '{"k":[1,{"z":"q"}]}', {"k": [1, {"z": "q"}]}, '{"k": [1, {"z": "q"}]}'),
    ("json", "null", None, "null"), ("json", '"x"', "x", '"x"'),
    ("json", {"b": "ü", "a": 1}, {"b": "ü", "a": 1}, '{"b": "\\u00fc", "a": 1}'),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "given", "value", "text"), VALUES)
def test_a_value_becomes_what_its_type_makes_of_it(kind: str, given: Any, value: Any, text: str):
    declared = hot_schema("p", {"type": kind})
    found = declared.value(given)
    assert (found, type(found)) == (value, type(value))
    assert declared.lenient(given) == value
    assert declared.text(found) == text


UNFIT = [
    *(("number", given) for given in ["", "abc", "0x10", "true", " on ", [], {}, [1], "null", "ü"]),
    *(("number", given) for given in ["inf", "nan", "1e400", float("nan"), float("inf")]),
    *(("boolean", given) for given in ["", "abc", "5", "2", 2, -1, 1.0, 0.0, 1.5, [], {}, "tru"]),
    *(("comma_delimited_list", given) for given in [5, 0, 1.5, True, {}, {"a": 1}]),
    *(
        ("json", given)
        for given in ["abc", "1_000", "nan", "NaN", "True", "{bad", "a,b", "[1", "'x'"]
    ),
]


@pytest.mark.parametrize(("kind", "given"), UNFIT)
def test_a_value_that_does_not_fit_its_type_is_refused(kind: str, given: Any):
    declared = hot_schema("p", {"type": kind})
    with pytest.raises(errors.StackValidationFailed, match=r"^Parameter 'p' is invalid: "):
        declared.value(given)
    assert declared.lenient(given) is None


BROKEN = [
    ("string", "xx", {"length": {"max": 1}}),
    ("string", {"a": 1}, {"length": {"max": 7}}),
    ("number", "6", {"range": {"max": 5}}),
    ("number", 2, {"modulo": {"step": 2, "offset": 1}}),
    ("number", 8, {"allowed_values": [5, "7"]}),
    ("boolean", "no", {"allowed_values": ["yes"]}),
    ("comma_delimited_list", "a,x", {"allowed_values": ["a"]}),
    ("comma_delimited_list", ["a", "b"], {"length": {"max": 1}}),
    ("string", "abc", {"allowed_pattern": "b"}),
    ("string", "abc\n", {"allowed_pattern": "abc"}),
    ("json", "5", {"length": {"min": 1}}),
    ("json", '{"a": 1}', {"length": {"min": 2}}),
    ("string", "x", {"custom_constraint": "ip_addr"}),
    ("string", "x", {"custom_constraint": "nope"}),
    ("boolean", True, {"custom_constraint": "nope"}),
]


@pytest.mark.parametrize(("kind", "given", "rule"), BROKEN)
def test_a_value_that_breaks_a_constraint_is_refused(kind: str, given: Any, rule: Any):
    declared = hot_schema("p", {"type": kind, "constraints": [rule]})
    with pytest.raises(errors.StackValidationFailed, match=r"^Parameter 'p' is invalid: "):
        declared.value(given)
    declared.lenient(given)


def test_the_first_broken_constraint_speaks_in_its_own_words():
    rules = [
        {"range": {"max": 5}, "description": "five at most"},
        {"allowed_values": [1], "description": "one only"},
    ]
    declared = hot_schema("p", {"type": "number", "constraints": rules})
    with pytest.raises(errors.StackValidationFailed) as caught:
        declared.value("6")
    assert str(caught.value) == "Parameter 'p' is invalid: five at most"
    with pytest.raises(errors.StackValidationFailed, match="one only"):
        declared.value(5)


@pytest.mark.parametrize(("kind", "given"), [("number", "hunter2"), ("string", "hunter2")])
def test_a_hidden_value_is_in_no_message(kind: str, given: str):
    rule = {"length": {"max": 1}} if kind == "string" else {"range": {"max": 1}}
    declared = hot_schema("p", {"type": kind, "hidden": True, "constraints": [rule]})
    with pytest.raises(errors.StackValidationFailed) as caught:
        declared.value(given)
    assert "hunter2" not in str(caught.value)
    assert declared.text(given) == "******"


@pytest.mark.parametrize(
    ("given", "flag"),
    [
        (True, True),
        (False, False),
        (None, False),
        ("", False),
        (0, False),
        ("yes", True),
        (5, True),
    ],
)
def test_flags_are_whatever_is_true(given: Any, flag: bool):
    declared = hot_schema("p", {"type": "string", "hidden": given, "immutable": given})
    assert (declared.hidden, declared.immutable) == (flag, flag)


def test_limits_bound_what_a_value_may_cost():
    context = ConstraintContext(limits=Limits(scalar_digits=5, template_bytes=20, document_depth=3))

    def value(kind: str, given: Any) -> Any:
        return hot_schema("p", {"type": kind}).value(given, context)

    for given in ("1" * 6, 10**6, "1" * 10**6):
        with pytest.raises(errors.StackValidationFailed):
            value("number", given)
    with pytest.raises(errors.RequestLimitExceeded):
        value("json", " " * 21)
    with pytest.raises(errors.RequestLimitExceeded):
        value("json", "[[[[[1]]]]]")
    with pytest.raises(errors.StackValidationFailed):
        value("json", "1" * 7)
    with pytest.raises(errors.StackValidationFailed):
        hot_schema("p", {"type": "json"}).value("[" * 9000)
    with pytest.raises(errors.StackValidationFailed):
        hot_schema("p", {"type": "json"}).value("1" * 9000)
    for kind in ("string", "comma_delimited_list"):
        with pytest.raises(errors.StackValidationFailed):
            hot_schema("p", {"type": kind}).value([10**5000])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("abc", '"abc" is not a number'),
        ("", '"" is not a number'),
        ("x" * 200, "is not a number"),
        ("1e999", '"1e999" is not a number'),
        (float("nan"), "NaN is not a number"),
        ([], "[] is not a number"),
    ],
)
def test_what_is_no_number_is_told_nothing_of_digits(given: Any, says: str):
    with pytest.raises(errors.StackValidationFailed) as caught:
        hot_schema("p", {"type": "number"}).value(given)
    assert str(caught.value).endswith(says)


@pytest.mark.parametrize("given", ["1" * 101, "-0." + "1" * 101, 10**100, 1e101])
def test_a_number_that_is_too_long_is_told_the_limit(given: Any):
    with pytest.raises(errors.StackValidationFailed, match=r"at most 100 digits \(scalar_digits\)"):
        hot_schema("p", {"type": "number"}).value(given)


# ---------------------------------------------------------------------------- CloudFormation


CFN_REFUSED = [
    ("x", [], "must be a map"),
    ({}, [], "needs a Type"),
    ({"Type": "string"}, ["Type"], "no type"),
    ({"Type": "List<String>"}, ["Type"], "no type"),
    ({"Type": None}, ["Type"], "no type"),
    ({"Type": "String", "Foo": 1}, [], "not a key"),
    ({"Type": "String", "CustomConstraint": "x"}, [], "not a key"),
    ({"Type": "String", "MaxLength": "x"}, ["MaxLength", "max"], "not a number"),
    ({"Type": "String", "MinLength": None}, ["MinLength"], "needs min"),
    ({"Type": "Number", "MinLength": 3}, ["MinLength"], "cannot have"),
    ({"Type": "String", "MinValue": 3}, ["MinValue"], "cannot have"),
    ({"Type": "Number", "AllowedPattern": "a"}, ["AllowedPattern"], "cannot have"),
    ({"Type": "CommaDelimitedList", "AllowedPattern": "a"}, ["AllowedPattern"], "cannot have"),
    ({"Type": "Number", "AllowedValues": "1"}, ["AllowedValues"], "list"),
    ({"Type": "String", "Default": "a", "MinLength": 3}, ["Default"], "length is 1"),
]


@pytest.mark.parametrize(("body", "path", "word"), CFN_REFUSED)
def test_a_wrong_definition_of_cloudformation(body: Any, path: Any, word: str):
    with pytest.raises(errors.InvalidSchemaError) as caught:
        cfn_schema("p", body)
    assert (caught.value.path, word in str(caught.value)) == (tuple(path), True)


CFN_VALUES = [  # definition, given, the value; None: refused
    ({"Type": "String"}, "a", "a"),
    ({"Type": "Number"}, "5", 5),
    ({"Type": "Number"}, "abc", None),
    ({"Type": "CommaDelimitedList"}, "a,b", ["a", "b"]),
    ({"Type": "Json"}, '{"a":1}', {"a": 1}),
    ({"Type": "Boolean"}, "on", True),
    ({"Type": "String", "MinLength": 3}, "ab", None),
    ({"Type": "String", "MinLength": "3", "MaxLength": 4}, "abc", "abc"),
    ({"Type": "String", "MinLength": "3", "MaxLength": 4}, "abcde", None),
    ({"Type": "Number", "MinValue": 3, "MaxValue": "5"}, "6", None),
    ({"Type": "Number", "MinValue": 3, "MaxValue": "5"}, "2", None),
    ({"Type": "Number", "MinValue": 3, "MaxValue": "5"}, 4, 4),
    ({"Type": "String", "AllowedValues": ["a", "b"]}, "c", None),
    ({"Type": "Number", "AllowedValues": ["1", "2"]}, "1", 1),
    ({"Type": "String", "AllowedPattern": "a"}, "ab", None),
    ({"Type": "CommaDelimitedList", "AllowedValues": ["a"]}, "a,b", None),
    ({"Type": "CommaDelimitedList", "MinLength": 3}, "a,b", None),
    ({"Type": "Json", "MinLength": 3}, "{}", None),
]


@pytest.mark.parametrize(("body", "given", "value"), CFN_VALUES)
def test_a_value_of_cloudformation(body: Any, given: Any, value: Any):
    declared = cfn_schema("p", body)
    if value is not None:
        assert declared.value(given) == value
        return
    with pytest.raises(errors.StackValidationFailed):
        declared.value(given)


def test_one_description_of_cloudformation_speaks_for_all_constraints():
    body = {"Type": "String", "MaxLength": 1, "AllowedPattern": "b", "ConstraintDescription": "CD"}
    declared = cfn_schema("p", body)
    for given in ("ab", "a"):
        with pytest.raises(errors.StackValidationFailed, match=r"invalid: CD$"):
            declared.value(given)


@pytest.mark.parametrize(
    ("given", "hidden"),
    [("true", True), (True, True), ("TRUE", True), ("yes", False), ("false", False), (None, False)],
)
def test_no_echo_is_the_word_true(given: Any, hidden: bool):
    assert cfn_schema("p", {"Type": "String", "NoEcho": given}).hidden is hidden


# ------------------------------------------------------------------------- how it is shown


SHOWN = [
    (
        {
            "type": "string", "default": "d", "description": "D", "label": "L", "tags": ["a", "b"],
            "constraints": [
                {"length": {"min": 1, "max": 9}, "description": "CD"},
                {"allowed_pattern": "[a-z]", "description": "CE"},
                {"custom_constraint": "nope"},
            ],
        },
        None,
        {
            "Type": "String", "Description": "D", "NoEcho": "false", "Label": "L", "Default": "d",
            "Tags": ["a", "b"], "MinLength": 1, "MaxLength": 9, "AllowedPattern": "[a-z]",
            "CustomConstraint": "nope", "ConstraintDescription": "CD CE",
        },
    ),
    (
        {"type": "string", "hidden": True},
        "x",
        {"Type": "String", "Description": "", "NoEcho": "true", "Label": "p", "Value": "x"},
    ),
    (
        {
            "type": "number", "default": "5",
            "constraints": [
                {"range": {"min": "1"}},
                {"modulo": {"step": 2, "offset": 1}},
                {"allowed_values": ["5", 7]},
            ],
        },
        7,
        {
            "Type": "Number", "Description": "", "NoEcho": "false", "Label": "p", "Default": "5",
            "Value": 7, "MinValue": 1, "Step": 2, "Offset": 1, "AllowedValues": ["5", 7],
        },
    ),
    (
        {"type": "comma_delimited_list", "default": ["a", 1]},
        "q,r",
        {
            "Type": "CommaDelimitedList", "Description": "", "NoEcho": "false", "Label": "p",
            "Default": ["a", 1], "Value": "q,r",
        },
    ),
    (
        {"type": "json", "default": {"a": 1}, "immutable": True, "label": "", "tags": []},
        '{"z":1}',
        {
            "Type": "Json", "Description": "", "NoEcho": "false", "Label": "p",
            "Default": {"a": 1}, "Value": '{"z":1}',
        },
    ),
    (
        {"type": "boolean", "default": "on", "label": 5, "description": 6},
        None,
        {"Type": "Boolean", "Description": 6, "NoEcho": "false", "Label": 5, "Default": "on"},
    ),
    (
        {"type": "string", "default": ""},
        "",
        {
            "Type": "String", "Description": "", "NoEcho": "false", "Label": "p", "Default": "",
            "Value": "",
        },
    ),
]  # fmt: skip


@pytest.mark.parametrize(("body", "given", "said"), SHOWN)
def test_a_parameter_is_shown_as_validate_answers(body: Any, given: Any, said: Any):
    assert parameter_schemas.document(hot_schema("p", body), given) == said


def test_a_parameter_of_cloudformation_is_shown_alike():
    body = {
        "Type": "Number", "Default": 3, "MinValue": 1, "MaxValue": "9", "NoEcho": "true",
        "ConstraintDescription": "CD", "AllowedValues": ["3", "4"], "Label": "q",
    }  # fmt: skip
    assert parameter_schemas.document(cfn_schema("p", body)) == {
        "Type": "Number", "Description": "", "NoEcho": "true", "Label": "q", "Default": 3,
        "MinValue": 1, "MaxValue": 9, "AllowedValues": ["3", "4"], "ConstraintDescription": "CD",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "of_property"),
    [
        ("string", Type.STRING),
        ("number", Type.NUMBER),
        ("boolean", Type.BOOLEAN),
        ("comma_delimited_list", Type.LIST),
        ("json", Type.MAP),
    ],
)
def test_a_parameter_of_a_nested_template_is_a_property(kind: str, of_property: Type):
    required = hot_schema("p", {"type": kind, "description": "D"}).as_property()
    assert (required.type, required.description) == (of_property, "D")
    assert required.required
    assert required.update_allowed
    assert required.takes_text
    default = {"comma_delimited_list": "a", "json": {}}.get(kind, "1")
    optional = hot_schema("p", {"type": kind, "default": default}).as_property()
    assert not optional.required
    assert optional.default is None
