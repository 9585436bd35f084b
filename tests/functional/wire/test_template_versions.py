"""What the version of a template lets it say."""

from __future__ import annotations

import pytest

from tests.kit.clients.stacks_api import StacksApi, document, value

REMOVED_IN_2014_10_16 = (
    "Ref", "Fn::Join", "Fn::Split", "Fn::Replace", "Fn::Base64", "Fn::GetAZs",
    "Fn::MemberListToMap", "Fn::ResourceFacade",
)  # fmt: skip
INVALID = (400, "StackValidationFailed")


def test_a_function_newer_than_the_version_is_data(api: StacksApi) -> None:
    split = {"str_split": [",", "a,b"]}
    assert api.output(split, version="2015-04-30") == split
    assert api.output({"Fn::If": ["a", "b"]}) == {"Fn::If": ["a", "b"]}


@pytest.mark.parametrize("name", REMOVED_IN_2014_10_16)
def test_a_function_that_the_version_removed_is_refused(api: StacksApi, name: str) -> None:
    removed = {"o": {"value": {name: "x"}}}
    template = document({}, version="2014-10-16", outputs=removed)
    assert api.post(template).refusal == INVALID


def test_select_of_aws_is_refused_from_2015_10_15(api: StacksApi) -> None:
    call = {"Fn::Select": ["0", ["a", "b"]]}
    assert api.output(call, version="2015-04-30") == "a"
    later = document({}, version="2015-10-15", outputs={"o": {"value": call}})
    assert api.post(later).refusal == INVALID


@pytest.mark.parametrize(
    ("version", "more"),
    [
        ("2016-04-08", {"conditions": {"c": True}}),
        ("2016-04-08", {"resources": {"a": value(1, condition=True)}}),
        ("2016-04-08", {"resources": {"a": value(1, external_id="x")}}),
        ("2016-04-08", {"resources": {"a": value(1, deletion_policy="retain")}}),
    ],
)
def test_a_section_or_key_newer_than_the_version_is_refused(
    api: StacksApi, version: str, more: dict
) -> None:
    assert api.post({"heat_template_version": version, **more}).refusal == INVALID


@pytest.mark.parametrize(
    ("version", "parameter"),
    [
        ("2016-10-14", {"type": "number", "constraints": [{"modulo": {"step": 2, "offset": 0}}]}),
        ("2018-02-28", {"type": "string", "tags": ["a"]}),
    ],
)
def test_a_parameter_says_only_what_its_version_knows(
    api: StacksApi, version: str, parameter: dict
) -> None:
    before = document({}, version="2017-09-01", parameters={"p": parameter})
    answer = api.post({**before, "heat_template_version": version}, parameters={"p": "2"})
    assert answer.status == 400


@pytest.mark.parametrize("alias", ["newton", "ocata", "pike", "queens", "rocky", "wallaby"])
def test_a_release_is_the_name_of_a_version(api: StacksApi, alias: str) -> None:
    assert api.output("v", version=alias) == "v"


def test_a_date_that_yaml_reads_is_a_version(api: StacksApi) -> None:
    path = api.begin("heat_template_version: 2018-08-31\nresources: {}\n")
    api.settle(path, "CREATE_COMPLETE")


def test_a_template_without_version_is_refused_by_its_form(api: StacksApi) -> None:
    assert api.post("resources: {}").refusal == (400, "HTTPBadRequest")
    assert api.post({"resources": {}}).refusal == (400, "InvalidTemplateVersion")


@pytest.mark.parametrize("more", [{}, {"resources": None}])
def test_a_template_without_resources_makes_an_empty_stack(api: StacksApi, more: dict) -> None:
    path = api.begin({"heat_template_version": "2021-04-16", **more})
    api.settle(path, "CREATE_COMPLETE")
    assert api.resources(path) == {}


def test_unknown_keys_are_refused_but_in_outputs(api: StacksApi) -> None:
    assert api.post(document({}, surprise={})).refusal == INVALID
    assert api.post(document({"a": value(1, surprise=1)})).refusal == INVALID
    parameter = {"p": {"type": "string", "surprise": 1, "default": "x"}}
    assert api.post(document({}, parameters=parameter)).refusal == (400, "InvalidSchemaError")
    path = api.begin(document({}, outputs={"o": {"value": 1, "surprise": 1}}))
    api.settle(path, "CREATE_COMPLETE")
