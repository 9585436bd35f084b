"""A template joined with what the user gave: what is decided, parsed, and seen by functions."""

from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.orchestration.limits import Limits
from bloomery.orchestration.template.dialect import DeletionPolicy
from bloomery.orchestration.template.entries import NO_DESCRIPTION
from bloomery.orchestration.template.functions import base
from bloomery.orchestration.template.view import PlainResource
from tests.unit.orchestration.stack import kit

WHOLE = """
parameters:
  size: {type: number, default: 3}
conditions:
  large: {equals: [{get_param: size}, 9]}
  small: {not: large}
resources:
  net: {type: OS::Heat::None, condition: large}
  server:
    type: OS::Heat::Value
    depends_on: [net]
    description: The server.
    deletion_policy: retain
    metadata: {size: {get_param: size}}
    update_policy: {x: 1}
    properties:
      value: {if: [large, {get_attr: [net, ip]}, none]}
  kept: {type: OS::Heat::None, external_id: {get_param: OS::stack_name}}
outputs:
  ip: {value: {get_attr: [net, ip]}, condition: large, description: Where it is.}
  name: {value: {get_resource: server}}
  gone: {value: {if: [large, 1]}}
"""


@pytest.fixture
def made():
    return kit.definition(kit.hot(WHOLE, "2021-04-16"))


def test_each_part_of_a_resource_is_a_tree(made):
    server = made.resources["server"]
    assert server.type == "OS::Heat::Value"
    assert server.description == "The server."
    assert server.depends_on == ("net",)
    assert server.deletion_policy is DeletionPolicy.RETAIN
    assert server.update_policy == {"x": 1}
    assert base.resolve(server.metadata, made.view({})) == {"size": 3}
    assert base.resolve(server.properties, made.view({})) == {"value": "none"}


def test_a_resource_is_parsed_once(made):
    assert made.resources["server"] is made.resources["server"]
    assert made.outputs is made.outputs


def test_a_resource_whose_condition_is_false_is_not_there(made):
    assert list(made.resources) == ["server", "kept"]
    assert made.disabled == {"net"}


def test_parameters_decide_which_resources_are_there():
    made = kit.definition(kit.hot(WHOLE, "2021-04-16"), user_parameters={"size": 9})
    assert list(made.resources) == ["net", "server", "kept"]
    assert [*made.required("server")] == ["net", "net"]


def test_what_depends_on_a_disabled_resource_needs_it_not(made):
    assert [*made.required("server")] == []


def test_what_is_there_already_is_kept_and_needs_nobody(made):
    kept = made.resources["kept"]
    assert kept.deletion_policy is DeletionPolicy.RETAIN
    assert base.resolve(kept.external_id, made.view({})) == "web"
    assert [*made.required("kept")] == []


def test_an_output_whose_condition_is_false_stays_listed(made):
    assert [(one.name, one.enabled, one.description) for one in made.outputs.values()] == [
        ("ip", False, "Where it is."),
        ("name", True, NO_DESCRIPTION),
        ("gone", True, NO_DESCRIPTION),
    ]


def test_an_output_that_an_if_leaves_out_is_null(made):
    assert made.outputs["gone"].value is None


def test_conditions_are_decided_when_they_are_asked_for_and_remembered():
    made = kit.definition(
        kit.hot("conditions: {a: {not: b}, b: {not: c}, c: true, d: {not: nobody}}")
    )
    assert made.conditions.value("a") is True
    assert made.conditions.value("b") is False
    with pytest.raises(errors.StackValidationFailed, match=r"^conditions\.d\.not: Invalid"):
        made.conditions.check(lenient=False)
    with pytest.raises(errors.StackValidationFailed, match=r"^conditions\.d\.not: Invalid"):
        made.conditions.value("d")
    assert made.conditions.value("a") is True


def test_a_fault_of_a_condition_is_told_where_it_stands():
    made = kit.definition(kit.hot("conditions: {a: {not: b}, b: {and: [c, true]}, c: {not: 5}}"))
    with pytest.raises(errors.StackValidationFailed, match=r"^conditions\.c\.not: Invalid"):
        made.conditions.value("a")


@pytest.mark.parametrize("name", ["nobody", None, 5, ["a"], {}])
def test_what_is_no_name_of_a_condition_is_refused(name):
    made = kit.definition(kit.hot("conditions: {a: true}"))
    with pytest.raises(errors.StackValidationFailed, match="Invalid condition"):
        made.view({}).condition(name)


def chain(length):
    links = [f"  c{index}: {{not: c{index + 1}}}\n" for index in range(length - 1)]
    return kit.hot("conditions:\n" + "".join(links) + f"  c{length - 1}: true\n")


def test_conditions_may_ask_for_each_other_up_to_a_limit():
    assert kit.definition(chain(30)).conditions.value("c0") is False
    with pytest.raises(errors.StackValidationFailed, match="more than 30 conditions ask one for"):
        kit.definition(chain(31)).conditions.value("c0")


def test_the_limit_of_conditions_holds_before_the_stack_of_python():
    made = kit.definition(chain(2000), limits=Limits(condition_depth=10**6))
    with pytest.raises(errors.StackValidationFailed):
        made.conditions.value("c0")


# ---------------------------------------------------------------------------------------- the view


def test_the_view_answers_from_the_template_and_from_what_is_plugged_in():
    document = kit.cfn("Mappings: {M: {a: {b: c}}}\nParameters: {p: {Type: String, Default: x}}")
    made = kit.definition(document, files={"f.txt": "text"})
    plugged = PlainResource(name="server", id="17")
    view = made.view({"server": plugged})
    assert view.parameter("p") == "x"
    assert view.has_parameter("p")
    assert view.has_parameter("AWS::StackName")
    assert not view.has_parameter("q")
    assert view.file("f.txt") == "text"
    assert view.mapping("M") == {"a": {"b": "c"}}
    assert view.resource("server") is plugged
    assert view.facade is None
    assert view.limits is made.limits


@pytest.mark.parametrize(
    ("ask", "kind", "said"),
    [
        (
            lambda view: view.file("a.tx"),
            errors.StackValidationFailed,
            "No content found in the \"files\" section for 'a.tx'. Did you mean 'a.txt'?",
        ),
        (lambda view: view.file(["a"]), errors.StackValidationFailed, "No content found"),
        (
            lambda view: view.mapping("m"),
            errors.StackValidationFailed,
            "No mapping is called 'm'.",
        ),
        (lambda view: view.mapping(5), errors.StackValidationFailed, "No mapping is called 5."),
        (
            lambda view: view.resource("servr"),
            errors.InvalidTemplateReference,
            (
                'The specified reference "servr" is incorrect: no resource has this name. '
                "Did you mean 'server'?"
            ),
        ),
        (lambda view: view.resource(["a"]), errors.InvalidTemplateReference, "The specified"),
    ],
)
def test_the_view_names_what_is_not_there(ask, kind, said):
    body = "resources: {server: {type: OS::Heat::None}}"
    with pytest.raises(kind) as told:
        ask(kit.definition(kit.hot(body), files={"a.txt": ""}).view({}))
    assert str(told.value).startswith(said)


def test_pseudo_parameters_are_those_of_the_stack():
    made = kit.definition(kit.hot("resources: {}"), name="web", id="17", project_id="p")
    view = made.view({})
    named = ("OS::stack_name", "OS::stack_id", "OS::project_id")
    assert [view.parameter(name) for name in named] == ["web", "17", "p"]


# --------------------------------------------------------- two rules for missing functions (1.1)

VERSIONS = (
    "2013-05-23", "2014-10-16", "2015-04-30", "2015-10-15", "2016-04-08", "2016-10-14",
    "2017-02-24", "2017-09-01", "2018-03-02", "2018-08-31", "2021-04-16",
)  # fmt: skip
ADDED = {
    "digest": "2015-04-30",
    "str_split": "2015-10-15",
    "map_merge": "2016-04-08",
    "yaql": "2016-10-14",
    "if": "2016-10-14",
    "filter": "2017-02-24",
    "make_url": "2017-09-01",
    "Fn::GetAtt": "never",
    "Fn::If": "never",
    "nobody": "never",
}
REMOVED = {
    "Ref": "2014-10-16",
    "Fn::GetAZs": "2014-10-16",
    "Fn::Join": "2014-10-16",
    "Fn::Split": "2014-10-16",
    "Fn::Replace": "2014-10-16",
    "Fn::Base64": "2014-10-16",
    "Fn::MemberListToMap": "2014-10-16",
    "Fn::ResourceFacade": "2014-10-16",
    "Fn::Select": "2015-10-15",
}


def output(version, name):
    return kit.definition(
        kit.hot(f"outputs: {{o: {{value: {{'{name}': [x, {{y: z}}]}}}}}}", version)
    )


@pytest.mark.parametrize(
    ("version", "name"),
    [(version, name) for name, since in ADDED.items() for version in VERSIONS if version < since],
)
def test_a_function_that_is_not_added_yet_is_data(version, name):
    assert output(version, name).outputs["o"].value == {name: ["x", {"y": "z"}]}


@pytest.mark.parametrize(
    ("version", "name"),
    [(version, name) for name, gone in REMOVED.items() for version in VERSIONS if version >= gone],
)
def test_a_function_that_is_removed_is_refused(version, name):
    with pytest.raises(errors.StackValidationFailed) as told:
        _ = output(version, name).outputs
    assert str(told.value) == (
        f"outputs.o.value.{name}: The function {name} is not supported in this version of HOT."
    )
