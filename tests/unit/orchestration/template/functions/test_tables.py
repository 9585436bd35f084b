"""Which version has which function, written down a second time, and asked of the parser."""

from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.orchestration.template.functions import parser, tables
from tests.kit.stacks.function_vectors import AWS, VIEW

HEAT_CFN = "HeatTemplateFormatVersion.2012-12-12"
VERSIONS = (
    "2013-05-23", "2014-10-16", "2015-04-30", "2015-10-15", "2016-04-08", "2016-10-14",
    "2017-02-24", "2017-09-01", "2018-03-02", "2018-08-31", "2021-04-16",
)  # fmt: skip
ALWAYS = "get_param get_resource get_attr get_file list_join str_replace resource_facade"
FROM = {
    "repeat": "2015-04-30", "digest": "2015-04-30", "str_split": "2015-10-15",
    "map_merge": "2016-04-08", "yaql": "2016-10-14", "map_replace": "2016-10-14",
    "if": "2016-10-14", "filter": "2017-02-24", "str_replace_strict": "2017-02-24",
    "make_url": "2017-09-01", "list_concat": "2017-09-01", "list_concat_unique": "2017-09-01",
    "str_replace_vstrict": "2017-09-01", "contains": "2017-09-01",
} | dict.fromkeys(ALWAYS.split(), "2013-05-23")  # fmt: skip
UNTIL = {"Fn::Select": "2015-10-15"} | dict.fromkeys(
    [
        "Ref", "Fn::GetAZs", "Fn::Join", "Fn::Split", "Fn::Replace", "Fn::Base64",
        "Fn::MemberListToMap", "Fn::ResourceFacade",
    ],
    "2014-10-16",
)  # fmt: skip
DECIDING = {
    "get_param": "2016-10-14", "equals": "2016-10-14", "not": "2016-10-14", "and": "2016-10-14",
    "or": "2016-10-14", "yaql": "2017-09-01", "contains": "2017-09-01",
}  # fmt: skip
NEVER = ("Fn::GetAtt", "Fn::If", "Fn::FindInMap", "Fn::Equals", "nonsense")
NAMES = (*FROM, *UNTIL, *NEVER, "equals", "not", "and", "or")
IN_CFN = {*UNTIL, "Fn::GetAtt", "Fn::FindInMap"}
DECIDING_IN_CFN = {"Ref", "Fn::FindInMap", "Fn::Equals", "Fn::Not", "Fn::And", "Fn::Or"}


def parse(offered: tables.Offered, name: str, *, deciding: bool = False) -> object:
    """Return what becomes of a call with arguments that no function takes."""
    functions = offered.conditions if deciding else offered.functions
    asked = parser.Parser(functions=functions, conditions=offered.conditions, view=VIEW)
    try:
        return asked.parse({name: {"odd": 1, "shape": 2}})
    except errors.StackValidationFailed as exc:
        return str(exc)


def kind(found: object, name: str) -> str:
    if found == {name: {"odd": 1, "shape": 2}}:
        return "data"
    if isinstance(found, str) and "not supported in this version" in found:
        return "removed"
    return "barred" if isinstance(found, str) and "in this context" in found else "call"


def expected_at(version: str, name: str) -> str:
    if name in UNTIL:
        return "call" if version < UNTIL[name] else "removed"
    return "call" if name in FROM and version >= FROM[name] else "data"


def expected_in_conditions(version: str, name: str) -> str:
    if name in DECIDING and version >= DECIDING[name]:
        return "call"
    is_known = (name in FROM and version >= FROM[name]) or name in UNTIL
    return "barred" if is_known else "data"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_version_has_what_came_before_it_and_was_not_dropped(version):
    found = {name: kind(parse(tables.hot(version), name), name) for name in NAMES}
    assert found == {name: expected_at(version, name) for name in NAMES}


@pytest.mark.parametrize("version", [v for v in VERSIONS if v >= "2016-10-14"])
def test_a_condition_has_few_functions_and_bars_the_others(version):
    offered = tables.hot(version)
    found = {name: kind(parse(offered, name, deciding=True), name) for name in NAMES}
    assert found == {name: expected_in_conditions(version, name) for name in NAMES}


@pytest.mark.parametrize("version", [v for v in VERSIONS if v < "2016-10-14"])
def test_there_is_nothing_to_decide_with_before_conditions_came(version):
    assert not tables.hot(version).conditions


@pytest.mark.parametrize("name", [*NAMES, "Fn::Not"])
def test_the_dialect_has_its_own_functions(name):
    offered = tables.cfn(AWS)
    has = name in IN_CFN or name == "Fn::If"
    assert kind(parse(offered, name), name) == ("call" if has else "data")
    expected = "call" if name in DECIDING_IN_CFN else "barred" if has else "data"
    assert kind(parse(offered, name, deciding=True), name) == expected


@pytest.mark.parametrize("name", NAMES)
def test_heats_form_of_the_dialect_has_no_conditions(name):
    offered = tables.cfn(HEAT_CFN)
    assert kind(parse(offered, name), name) == ("call" if name in IN_CFN else "data")
    assert not offered.conditions


def test_each_release_is_a_version():
    assert {alias: tables.hot(alias) for alias in tables.ALIASES} == {
        "newton": tables.HOT["2016-10-14"],
        "ocata": tables.HOT["2017-02-24"],
        "pike": tables.HOT["2017-09-01"],
        "queens": tables.HOT["2018-03-02"],
        "rocky": tables.HOT["2018-08-31"],
        "wallaby": tables.HOT["2021-04-16"],
    }
    assert tuple(tables.HOT) == VERSIONS


@pytest.mark.parametrize("offered", [*tables.HOT.values(), *tables.CFN.values()])
def test_every_function_says_in_one_line_what_it_does(offered):
    shown = offered.lines(with_conditions=True)
    assert shown
    for name, says in shown.items():
        assert says.endswith("."), name
        assert "\n" not in says
        assert says[0].isupper() or says.startswith("str_"), name


def test_the_list_leaves_out_what_was_removed_and_keeps_conditions_apart():
    offered = tables.hot("2017-09-01")
    assert "Ref" not in offered.lines()
    assert "equals" not in offered.lines()
    assert "equals" in offered.lines(with_conditions=True)
    assert "get_attr" in offered.lines(with_conditions=True)
    assert list(offered.lines()) == sorted(offered.lines())
