"""What may be asked of templates without a stack."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.engine import Engine, Orchestration
from bloomery.model.request import Request
from bloomery.model.stack_views import StackArguments
from bloomery.operations.heavy_jobs import HeavyJobs
from bloomery.operations.policy_engine import Policies
from bloomery.orchestration.engine.runtime import EngineRuntime
from bloomery.orchestration.orders import inputs, templates
from bloomery.orchestration.template import parse
from bloomery.orchestration.template.environment import Environment
from tests.kit.servers import web

HEAD = "heat_template_version: 2018-08-31\n"
INNER = (
    f"{HEAD}description: inside\n"
    "parameters: {size: {type: number, default: 1}, name: {type: string}}\n"
    "resources: {v: {type: OS::Heat::Value, properties: {value: {get_param: size}}}}"
)


@pytest.fixture
def ctx() -> Any:
    return context(Conf())


def context(
    conf: Conf, policies: Policies | None = None, request: Request | None = None, **runtime: Any
) -> Any:
    services = SimpleNamespace(
        conf=conf, heavy_jobs=HeavyJobs(), policies=policies or Policies(conf)
    )
    return SimpleNamespace(
        services=services,
        request=request or Request.new(user="u", project="p"),
        runtime=EngineRuntime(limits=inputs.limits_of(conf), **runtime),
    )


def validated(ctx: Any, text: str, **more: Any) -> dict[str, Any]:
    asked = {key: more.pop(key) for key in ("show_nested", "ignore_errors") if key in more}
    arguments = StackArguments(template=parse.document(HEAD + text), **more)
    return templates.validate_template(ctx, arguments, **asked)


def test_answer_has_what_the_template_declares(ctx: Any) -> None:
    answer = validated(
        ctx,
        "description: mine\n"
        "parameter_groups: [{label: all, parameters: [size]}]\n"
        "parameters: {size: {type: number, default: 1, constraints: [{range: {min: 1}}]}}",
        environment={"parameter_defaults": {"x": 1}},
        parameters={"size": 12345678901234567890123},
    )
    assert answer == {
        "Description": "mine",
        "ParameterGroups": [{"label": "all", "parameters": ["size"]}],
        "Parameters": {
            "size": {
                "Type": "Number", "Description": "", "NoEcho": "false", "Label": "size",
                "Default": 1, "Value": 12345678901234567890123, "MinValue": 1,
            }
        },
        "Environment": {
            "parameters": {"size": 12345678901234567890123}, "parameter_defaults": {"x": 1},
            "resource_registry": {"resources": {}}, "event_sinks": [],
        },
    }  # fmt: skip


def test_nested_parameters_have_the_values_that_are_passed_down(ctx: Any) -> None:
    answer = validated(
        ctx,
        "parameters: {n: {type: string}}\n"
        "resources:\n"
        "  a: {type: inner.yaml, properties: {size: 5, name: {get_param: n}}}\n"
        "  b: {type: OS::Heat::ResourceGroup, properties: {count: 1, resource_def: "
        "{type: inner.yaml, properties: {name: x}}}}\n",
        files={"inner.yaml": INNER},
        show_nested=True,
    )
    nested = answer["NestedParameters"]
    assert nested["a"]["Type"] == "inner.yaml"
    assert nested["a"]["Description"] == "inside"
    assert nested["a"]["Parameters"]["size"]["Value"] == 5
    assert nested["b"]["Type"] == "OS::Heat::ResourceGroup"
    member = nested["b"]["NestedParameters"]["0"]
    assert member["Parameters"]["name"]["Value"] == "x"


def test_templates_that_stand_as_types_are_shown_in_the_registry(ctx: Any) -> None:
    answer = validated(
        ctx,
        "resources: {a: {type: i.yaml}, b: {type: Our::Kind}, c: {type: OS::Heat::None}}",
        files={"i.yaml": INNER, "k.yaml": INNER},
        environment={"resource_registry": {"Our::Kind": "k.yaml"}},
    )
    shown = answer["Environment"]["resource_registry"]
    assert shown == {"i.yaml": "i.yaml", "Our::Kind": "k.yaml", "resources": {}}


def test_group_whose_members_have_no_type_yet_is_shown_without_them(ctx: Any) -> None:
    text = "resources: {a: {type: OS::Heat::AutoScalingGroup, properties: {resource: {}, "
    text += "max_size: 2, min_size: 1}}}"
    group = validated(ctx, text, show_nested=True)["NestedParameters"]["a"]
    assert "NestedParameters" not in group


def test_nested_parameters_are_left_out_unless_asked_for(ctx: Any) -> None:
    answer = validated(ctx, "resources: {a: {type: i.yaml}}", files={"i.yaml": INNER})
    assert "NestedParameters" not in answer


FAULTS = {
    "unknown type": ("resources: {a: {type: nobody}}", "HTTPBadRequest"),
    "unknown property": (
        "resources: {a: {type: OS::Heat::RandomString, properties: {lenth: 1}}}", "HTTPBadRequest"
    ),
    "function": (
        "resources: {a: {type: OS::Heat::Value, properties: {value: {list_join: 4}}}}",
        "HTTPBadRequest",
    ),
    "parameter definition": ("parameters: {p: {type: String}}", "InvalidSchemaError"),
    "reference": ("resources: {a: {type: OS::Heat::None, depends_on: b}}",
                  "InvalidTemplateReference"),
    "cycle": (("resources: {a: {type: OS::Heat::None, depends_on: b},"
              " b: {type: OS::Heat::None, depends_on: a}}"), "CircularDependencyException"),
    "attribute in an output": (("resources: {a: {type: OS::Heat::RandomString}}\n"
                               "outputs: {o: {value: {get_attr: [a, x]}}}"), "HTTPBadRequest"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_has_the_type_that_heat_gives_it(ctx: Any, fault: str) -> None:
    text, wire_type = FAULTS[fault]
    with pytest.raises(errors.Failure) as info:
        validated(ctx, text)
    assert info.value.status == 400
    assert getattr(info.value, "wire_type", type(info.value).__name__) == wire_type


def test_values_are_not_looked_at(ctx: Any) -> None:
    text = "parameters: {p: {type: number, constraints: [{range: {max: 3}}]}}"
    assert validated(ctx, text, parameters={"p": 7})["Parameters"]["p"]["Value"] == 7
    assert "Value" not in validated(ctx, text)["Parameters"]["p"]


def test_parameter_that_is_not_declared_is_refused(ctx: Any) -> None:
    with pytest.raises(errors.UnknownUserParameter):
        validated(ctx, "", parameters={"p": 7})


def test_parameters_of_the_request_win_over_environment_files(ctx: Any) -> None:
    answer = validated(
        ctx,
        "parameters: {a: {type: string}, b: {type: string}}",
        environment={"parameters": {"a": "inline", "b": "inline"}},
        environment_files=["e.yaml"],
        files={"e.yaml": json.dumps({"parameters": {"a": "file", "b": "file"}})},
        parameters={"a": "request"},
    )
    values = {name: entry["Value"] for name, entry in answer["Parameters"].items()}
    assert values == {"a": "request", "b": "file"}


def test_unknown_code_to_ignore_is_refused(ctx: Any) -> None:
    assert validated(ctx, "", ignore_errors=["99001"])
    with pytest.raises(errors.TemplateRefused, match="Invalid codes in ignore_errors: 5"):
        validated(ctx, "", ignore_errors=["99001", "5"])


def test_files_container_is_refused_by_name(ctx: Any) -> None:
    with pytest.raises(errors.NotSupported, match="files_container"):
        validated(ctx, "", files_container="box")


def test_no_template_is_refused(ctx: Any) -> None:
    with pytest.raises(errors.TemplateUnreadable, match="No template"):
        templates.validate_template(ctx, StackArguments())


def test_nested_template_behind_a_url_is_fetched() -> None:
    with web.serving({"/inner.yaml": web.text(INNER)}) as site:
        allowed = Orchestration(template_fetch_networks=("127.0.0.1/32",))
        text = f"resources: {{a: {{type: '{site.url('/inner.yaml')}'}}}}"
        answer = validated(context(Conf(orchestration=allowed)), text, show_nested=True)
        assert answer["NestedParameters"]["a"]["Description"] == "inside"


def test_nested_template_of_this_machine_is_refused_with_the_reason(ctx: Any) -> None:
    with web.serving({"/inner.yaml": web.text(INNER)}) as site:
        with pytest.raises(errors.TemplateRefused, match="not public"):
            validated(ctx, f"resources: {{a: {{type: '{site.url('/inner.yaml')}'}}}}")
        assert site.asked == []


def test_limits_of_the_operator_hold() -> None:
    ctx = context(Conf(engine=Engine(max_resources_per_stack=1)))
    with pytest.raises(errors.RequestLimitExceeded):
        validated(ctx, "resources: {a: {type: OS::Heat::None}, b: {type: OS::Heat::None}}")


def test_environment_of_the_operator_stands_below_that_of_the_request() -> None:
    mapped = {"resource_registry": {"My::*": "OS::Heat::*"}, "parameter_defaults": {"size": 4}}
    ctx = context(Conf(), operators=Environment.of(mapped))
    assert validated(ctx, "resources: {a: {type: My::Value}}")


# ---------------------------------------------------------------------------------- resource types


def test_types_are_listed_by_name(ctx: Any) -> None:
    every = templates.list_resource_types(ctx)
    assert "OS::Heat::Value" in every
    assert templates.list_resource_types(ctx, name="OS::Heat::Val") == ["OS::Heat::Value"]
    assert templates.list_resource_types(ctx, name="Value") == []  # from the start


@pytest.mark.parametrize("pattern", ["(", "(x|xx)+$", "*"])
def test_bad_expression_lists_nothing(ctx: Any, pattern: str) -> None:
    assert templates.list_resource_types(ctx, name=pattern) == []


def test_types_are_listed_with_descriptions(ctx: Any) -> None:
    (entry,) = templates.list_resource_types(ctx, name="OS::Heat::Value$", with_description=True)
    assert entry["resource_type"] == "OS::Heat::Value"
    assert entry["description"]


def test_unknown_support_status_is_refused(ctx: Any) -> None:
    assert templates.list_resource_types(ctx, support_status="DEPRECATED") == []
    with pytest.raises(errors.Invalid, match="Invalid support status"):
        templates.list_resource_types(ctx, support_status="GREAT")


def test_schema_of_a_type_is_shown(ctx: Any) -> None:
    schema = templates.resource_schema(ctx, "OS::Heat::RandomString", with_description=True)
    assert schema["properties"]["length"]["constraints"] == [{"range": {"min": 1, "max": 512}}]
    assert "show" in schema["attributes"]
    assert schema["description"]


def test_type_that_is_none_is_not_there(ctx: Any) -> None:
    for ask in (templates.resource_schema, templates.generate_template):
        with pytest.raises(errors.EntityNotFound):
            ask(ctx, "OS::Heat::Nothing")


@pytest.mark.parametrize("dialect", ["hot", "cfn"])
def test_generated_template_is_sound(ctx: Any, dialect: str) -> None:
    for type_name in templates.list_resource_types(ctx):
        document = templates.generate_template(ctx, type_name, dialect=dialect)
        templates.validate_template(ctx, StackArguments(template=document))


def test_dialect_that_is_none_is_refused(ctx: Any) -> None:
    with pytest.raises(errors.TemplateRefused, match="Template type"):
        templates.generate_template(ctx, "OS::Heat::Value", dialect="tosca")


def test_type_that_a_policy_forbids_is_not_listed_and_cannot_be_read(tmp_path: Any) -> None:
    conf = Conf()
    (tmp_path / "policy.yaml").write_text('"resource_types:OS::Heat::Value": "!"\n')
    reader = Request(request_id="r", project="p", roles=("reader",))
    ctx = context(conf, Policies(conf, [tmp_path], enforced=True), reader)
    assert "OS::Heat::Value" not in templates.list_resource_types(ctx)
    assert "OS::Heat::None" in templates.list_resource_types(ctx)
    for ask in (templates.resource_schema, templates.generate_template):
        with pytest.raises(errors.Forbidden, match="resource_types:OS::Heat::Value"):
            ask(ctx, "OS::Heat::Value")


# --------------------------------------------------------------------------------------- languages


def test_versions_are_listed_with_their_aliases(ctx: Any) -> None:
    listed = {entry["version"]: entry for entry in templates.list_template_versions(ctx)}
    wallaby = listed["heat_template_version.2021-04-16"]
    assert wallaby["type"] == "hot"
    assert wallaby["aliases"] == ["heat_template_version.wallaby"]


def test_functions_of_a_version_are_listed(ctx: Any) -> None:
    version = "heat_template_version.2016-10-14"
    names = {entry["functions"] for entry in templates.list_template_functions(ctx, version)}
    assert "repeat" in names
    assert "equals" not in names
    more = templates.list_template_functions(ctx, version, with_condition=True)
    assert "equals" in {entry["functions"] for entry in more}


def test_functions_of_a_version_that_is_none_are_not_there(ctx: Any) -> None:
    with pytest.raises(errors.NotFound):
        templates.list_template_functions(ctx, "heat_template_version.1999-01-01")


def test_revision_is_told(ctx: Any) -> None:
    revision = templates.get_revision(ctx)
    assert revision["api"] == revision["engine"]
    assert revision["api"]["revision"]


# ------------------------------------------------------------------------------------ what is kept


def test_files_of_environments_are_not_kept_with_a_stack(ctx: Any) -> None:
    """They may hold values of hidden parameters, and are merged already."""
    secret = json.dumps({"parameters": {"a": "hunter2"}})
    arguments = StackArguments(
        template=parse.document(f"{HEAD}parameters: {{a: {{type: string, hidden: true}}}}"),
        environment_files=["e.yaml"],
        files={"e.yaml": secret, "run.sh": "true"},
    )
    made = inputs.of(ctx, arguments).template
    assert made.files == {"run.sh": "true"}
    assert made.environment["parameters"] == {"a": "hunter2"}
