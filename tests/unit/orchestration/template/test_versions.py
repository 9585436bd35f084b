from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.orchestration.template import cfn, hot, versions
from bloomery.orchestration.template.dialect import Identity, Key, Section

RELEASES = {
    "newton": "2016-10-14",
    "ocata": "2017-02-24",
    "pike": "2017-09-01",
    "queens": "2018-03-02",
    "rocky": "2018-08-31",
    "wallaby": "2021-04-16",
}
DATES = (
    "2013-05-23", "2014-10-16", "2015-04-30", "2015-10-15", "2016-04-08", "2016-10-14",
    "2017-02-24", "2017-09-01", "2018-03-02", "2018-08-31", "2021-04-16",
)  # fmt: skip


@pytest.mark.parametrize("date", DATES)
def test_each_date_has_a_class_of_its_own_version(date):
    found = versions.template_class({"heat_template_version": date})
    assert (found.features.version_key, found.features.version) == ("heat_template_version", date)


@pytest.mark.parametrize(("release", "date"), RELEASES.items())
def test_a_release_is_another_name_for_its_date(release, date):
    by_release = versions.template_class({"heat_template_version": release})
    assert by_release is versions.template_class({"heat_template_version": date})


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        ("AWSTemplateFormatVersion", "2010-09-09", cfn.CfnWithConditions),
        ("HeatTemplateFormatVersion", "2012-12-12", cfn.Cfn),
    ],
)
def test_the_cloudformation_dialect_has_two_keys(key, value, found):
    assert versions.template_class({key: value}) is found


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "The template version is invalid: Template version was not provided"),
        ({"resources": {}}, "The template version is invalid: Template version was not provided"),
        ({"heat_template_version": 2018}, "The template version is invalid: Template version was"),
        ({"heat_template_version": None}, "The template version is invalid: Template version was"),
        ({"heat_template_version": []}, "The template version is invalid: Template version was"),
        (
            {"heat_template_version": "2018-08-31", "AWSTemplateFormatVersion": "2010-09-09"},
            "The template version is invalid: Ambiguous versions (heat_template_version, AWS",
        ),
        (
            {"heat_template_version": "2018-08-32"},
            (
                'The template version is invalid: "heat_template_version: 2018-08-32". '
                '"heat_template_version" should be one of: 2013-05-23, 2014-10-16, 2015-04-30, '
                "2015-10-15, 2016-04-08, 2016-10-14, 2017-02-24, 2017-09-01, 2018-03-02, "
                "2018-08-31, 2021-04-16, newton, ocata, pike, queens, rocky, wallaby. "
                "Did you mean '2018-08-31'?"
            ),
        ),
        (
            {"AWSTemplateFormatVersion": "2012-12-12"},
            (
                'The template version is invalid: "AWSTemplateFormatVersion: 2012-12-12". '
                '"AWSTemplateFormatVersion" should be: 2010-09-09.'
            ),
        ),
    ],
)
def test_what_names_no_version_is_refused_with_those_that_are_known(document, said):
    with pytest.raises(errors.InvalidTemplateVersion) as told:
        versions.template_class(document)
    assert str(told.value).startswith(said)


def test_a_version_that_is_no_text_is_as_good_as_none_beside_another():
    document = {"heat_template_version": 5, "AWSTemplateFormatVersion": "2010-09-09"}
    assert versions.template_class(document) is cfn.CfnWithConditions


def test_whether_a_version_is_there_at_all_can_be_asked():
    assert versions.has_version({"heat_template_version": "never"})
    assert not versions.has_version({"resources": {}})


def test_a_plugin_adds_a_version_by_its_entry_point():
    class Own(hot.Hot20210416):
        __slots__ = ()

    classes = {"heat_template_version.own": Own}
    assert versions.template_class({"heat_template_version": "own"}, classes) is Own


def test_the_list_of_versions_has_each_once_with_its_aliases():
    listed = versions.listed()
    assert len(listed) == 13
    assert {
        "version": "heat_template_version.2021-04-16",
        "type": "hot",
        "aliases": ["heat_template_version.wallaby"],
    } in listed
    assert {
        "version": "AWSTemplateFormatVersion.2010-09-09",
        "type": "cfn",
        "aliases": [],
    } in listed


def test_functions_are_listed_by_version_and_by_release():
    shown = versions.functions("heat_template_version.2018-08-31")
    assert shown == versions.functions("heat_template_version.rocky")
    names = [row["functions"] for row in shown]
    assert names == sorted(names)
    assert {"get_param", "if", "repeat"} < set(names)
    assert not {"Ref", "equals"} & set(names)
    assert all(row["description"] for row in shown)


def test_condition_functions_are_listed_when_they_are_asked_for():
    shown = versions.functions("heat_template_version.rocky", conditions=True)
    assert {"equals", "not", "and", "or"} < {row["functions"] for row in shown}


def test_functions_of_an_unknown_version_are_not_found():
    with pytest.raises(errors.NotFound, match=r"2018-08-32 was not found\. Did you mean"):
        versions.functions("heat_template_version.2018-08-32")


@pytest.mark.parametrize("date", DATES)
def test_what_came_with_conditions_is_there_from_newton_on(date):
    features = versions.template_class({"heat_template_version": date}).features
    has = date >= RELEASES["newton"]
    assert (Section.CONDITIONS in features.sections) is has
    assert (Key.CONDITION in features.resource_keys) is has
    assert (Key.EXTERNAL_ID in features.resource_keys) is has
    assert (Key.CONDITION in features.output_keys) is has
    assert ("retain" in features.deletion_policies) is has
    assert "Retain" in features.deletion_policies


@pytest.mark.parametrize("date", DATES)
def test_words_of_parameters_come_with_their_versions(date):
    found = versions.template_class({"heat_template_version": date})
    assert ("modulo" in found.parameter_keys) is (date >= RELEASES["ocata"])
    assert ("tags" in found.parameter_keys) is (date >= RELEASES["queens"])


def test_pseudo_parameters_are_those_of_the_dialect():
    identity = Identity(name="web", id="17", arn="arn:17", project_id="p")
    assert hot.Hot20180831.pseudo_parameters(identity) == {
        "OS::stack_name": "web",
        "OS::stack_id": "17",
        "OS::project_id": "p",
    }
    assert cfn.Cfn.pseudo_parameters(identity) == {
        "AWS::StackName": "web",
        "AWS::StackId": "arn:17",
        "AWS::Region": "ap-southeast-1",
    }


def test_the_id_of_a_stack_that_is_not_stored_is_the_text_none():
    assert hot.Hot20180831.pseudo_parameters(Identity(name="web"))["OS::stack_id"] == "None"


def test_a_description_has_a_text_of_its_own_when_there_is_none():
    assert hot.Hot20180831({}).description == "No description"
    assert hot.Hot20180831({"description": "Mine"}).description == "Mine"
