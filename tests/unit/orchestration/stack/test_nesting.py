"""Stacks below stacks; rows of heat-hot.md, sections 9.1 and 14.2."""

from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.model.stacks import StoredResource
from bloomery.orchestration.limits import Limits
from bloomery.orchestration.resources import base, nested
from bloomery.orchestration.stack import validate as validate_stack
from bloomery.orchestration.template import hot
from tests.unit.orchestration.stack import kit

HEAD = "heat_template_version: 2018-08-31\n"
ROOT = "resources: {a: {type: a.yaml}}"
SIZE = "parameters: {size: {type: number, constraints: [{range: {min: 3}}]}}"
RANDOM = {"resource_registry": {"OS::Heat::RandomString": "a.yaml"}}


def validate(root, inner, env=None, *, strict=True, files=None, **more):
    files = {"a.yaml": HEAD + inner} | (files or {})
    return kit.validate(kit.hot(root), env, files=files, strict=strict, **more)


def refusal(root, inner, env=None, kind=errors.StackValidationFailed, **more):
    with pytest.raises(errors.Failure) as told:
        validate(root, inner, env, **more)
    assert type(told.value) is kind
    return str(told.value)


# ------------------------------------------------------------------ parameters are properties


def test_parameters_are_properties_and_outputs_attributes():
    inner = f"{SIZE}\noutputs: {{ip: {{value: 1, description: The address.}}}}"
    root = (
        "resources: {a: {type: a.yaml, properties: {size: 4}}}\n"
        "outputs: {o: {value: {get_attr: [a, ip]}}}"
    )
    kind = validate(root, inner).kind("a")
    assert issubclass(kind, nested.NestedStack)
    assert kind.properties_schema["size"].required
    assert kind.properties_schema["size"].update_allowed
    assert kind.attributes_schema["ip"].description == "The address."


@pytest.mark.parametrize(
    ("properties", "begins"),
    [
        ("{size: 2}", "Property error: resources.a.properties.size: 2 is not 3 or more"),
        ("{}", "Property error: resources.a.properties: Property size not assigned"),
        ("{size: 4, q: 5}", "Property error: resources.a.properties: Unknown Property q"),
    ],
)
def test_a_property_is_refused_where_the_parent_writes_it(properties, begins):
    root = f"resources: {{a: {{type: a.yaml, properties: {properties}}}}}"
    assert refusal(root, SIZE).startswith(begins)


def test_a_parameter_with_a_default_of_the_environment_is_no_required_property():
    validate(ROOT, SIZE, {"parameter_defaults": {"size": 5}})


def test_a_default_of_the_environment_that_breaks_a_constraint_is_found_below():
    said = refusal(ROOT, SIZE, {"parameter_defaults": {"size": 2}})
    assert said.startswith("resources.a<a.yaml>: Parameter 'size' is invalid: 2 is not 3 or more")


def test_lists_maps_and_booleans_reach_the_parameters():
    inner = """
parameters:
  l: {type: comma_delimited_list}
  j: {type: json}
  b: {type: boolean}
  n: {type: number}
conditions:
  right:
    and:
    - equals: [{get_param: l}, [x, '', '1']]
    - equals: [{get_param: j}, {k: [1]}]
    - equals: [{get_param: b}, true]
    - equals: [{get_param: n}, 1.5]
resources:
  wrong: {type: nobody, condition: {not: right}}
"""
    validate(
        "resources: {a: {type: a.yaml, properties:"
        " {l: [x, null, 1], j: {k: [1]}, b: true, n: 1.5}}}",
        inner,
    )


def test_what_has_no_value_is_not_passed_on():
    kind = nested.kind_of(hot.Hot20180831({"parameters": {}}), "a.yaml")
    record = StoredResource(name="a", type="a.yaml", uuid="0" * 32)
    around = base.ResourceContext(stack_name="", stack_id="", utc=float, random=float)
    made = kind(record, {"size": 0, "names": None}, around)
    assert made.child_parameters() == {"size": 0}
    assert made.child_document() == {"parameters": {}}


@pytest.mark.parametrize(
    ("value", "passed"),
    [
        ("text", "text"),
        (5, 5),
        (["a", None, 3], "a,,3"),
        ([], ""),
        ({"a": [1]}, '{"a": [1]}'),
        ([{"k": "v"}, {"k": "w"}], ".member.0.k=v,.member.1.k=w"),
    ],
)
def test_values_are_passed_as_heat_spells_them(value, passed):
    assert nested.as_parameter(value) == passed


# ------------------------------------------------------------------------------- faults below


@pytest.mark.parametrize(
    ("inner", "begins"),
    [
        (
            "resources: {x: {type: nobody}}",
            "resources.a<a.yaml>.resources.x.type: The Resource Type (nobody) could not be found",
        ),
        (
            "resources: {x: {type: OS::Heat::Value, properties: {value: {list_join: 4}}}}",
            "resources.a<a.yaml>.resources.x.properties.value.list_join: ",
        ),
        (
            "resources: {x: {type: OS::Heat::Value}}",
            "Property error: resources.a<a.yaml>.resources.x.properties: Property value not",
        ),
        (
            "resources: {x: {type: OS::Heat::None, depends_on: x}}",
            "CircularDependencyException: resources.a<a.yaml>: Circular Dependency Found: x -> x",
        ),
        (
            "resources: {x: {type: OS::Heat::None, depends_on: y}}",
            "InvalidTemplateReference: resources.a<a.yaml>.resources.x.depends_on: The specified",
        ),
        ("foo: bar", "resources.a<a.yaml>: The template section is invalid: foo"),
        ("outputs: {o: 1}", "Output validation error: resources.a<a.yaml>.outputs.o: "),
    ],
)
def test_a_fault_below_is_one_of_the_resource_above(inner, begins):
    assert refusal(ROOT, inner).startswith(begins)


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("[a", "resources.a.type: Error parsing template a.yaml: "),
        ("", "resources.a.type: Error parsing template a.yaml: it is empty: write a map"),
        ("resources: {}", "resources.a.type: Template format version not found in a.yaml: write"),
    ],
)
def test_a_file_that_is_no_template_is_refused(text, begins):
    assert refusal(ROOT, "", files={"a.yaml": text}).startswith(begins)


def test_a_file_of_an_unknown_version_is_refused_as_such():
    with pytest.raises(errors.InvalidTemplateVersion):
        kit.validate(kit.hot(ROOT), files={"a.yaml": "heat_template_version: 2011-01-01"})


def test_a_wrong_parameter_of_a_file_is_refused_as_such():
    said = refusal(ROOT, "parameters: {p: {type: foo}}", kind=errors.InvalidSchemaError)
    assert said.startswith("resources.a<a.yaml>.parameters.p.type: ")


def test_a_file_that_did_not_come_is_named_with_the_one_that_did():
    said = refusal("resources: {a: {type: b.yaml}}", "")
    assert said == (
        'resources.a.type: Could not fetch remote template "b.yaml": no such file came with the '
        "template. Did you mean 'a.yaml'?"
    )


def test_an_unknown_attribute_of_a_nested_stack_is_no_fault():
    validate(f"{ROOT}\noutputs: {{o: {{value: {{get_attr: [a, foo, resource.x]}}}}}}", "")


def test_a_file_of_wrong_sections_is_found_out_when_it_is_validated():
    said = refusal(ROOT, "parameters: [p]\noutputs: [o]")
    assert said.startswith("resources.a<a.yaml>.parameters: must be a map")
    assert refusal(ROOT, "outputs: [o]").startswith("resources.a<a.yaml>.outputs: must be a map")


def test_the_other_dialect_nests_too():
    inner = '{"AWSTemplateFormatVersion": "2010-09-09", "Outputs": {"o": {"Value": 1}}}'
    kit.validate(kit.hot("resources: {a: {type: a.template}}"), files={"a.template": inner})


# ----------------------------------------------------------------------------------- the registry


def test_a_type_of_the_registry_is_a_template():
    env = {"resource_registry": {"My::Thing": "a.yaml"}}
    root = "resources: {a: {type: 'My::Thing', properties: {size: 2}}}"
    assert "properties.size: 2 is not 3 or more" in refusal(root, SIZE, env)


def test_a_template_that_overrides_a_type_may_use_the_original():
    inner = (
        "resources: {x: {type: OS::Heat::RandomString}}\n"
        "outputs: {value: {value: {get_attr: [x, value]}}}"
    )
    validate("resources: {a: {type: OS::Heat::RandomString}}", inner, RANDOM)


def test_a_template_cannot_use_its_own_name_of_the_registry():
    env = {"resource_registry": {"My::Thing": "a.yaml"}}
    said = refusal(
        "resources: {a: {type: 'My::Thing'}}", "resources: {x: {type: 'My::Thing'}}", env
    )
    assert said.startswith("resources.a<a.yaml>.resources.x.type: The Resource Type (My::Thing)")


def test_rules_below_the_name_of_a_resource_reach_its_stack():
    env = {"resource_registry": {"resources": {"a": {"x": {"nobody": "OS::Heat::None"}}}}}
    validate(ROOT, "resources: {x: {type: nobody}}", env)
    refusal(ROOT, "resources: {y: {type: nobody}}", env)


@pytest.mark.parametrize(
    ("inner", "properties", "begins"),
    [
        ("outputs: {value: {value: 1}}", "{}", None),
        (
            "parameters: {foo: {type: string, default: x}}\noutputs: {value: {value: 1}}",
            "{}",
            None,
        ),
        (
            "parameters: {length: {type: number}}\noutputs: {value: {value: 1}}",
            "{length: 5}",
            None,
        ),
        (
            "parameters: {foo: {type: string}}\noutputs: {value: {value: 1}}",
            "{foo: x}",
            "Provider requires property foo unknown in facade OS::Heat::RandomString",
        ),
        (
            "parameters: {length: {type: string}}\noutputs: {value: {value: 1}}",
            "{length: x}",
            (
                "Property length type mismatch between facade OS::Heat::RandomString (Integer) and"
                " provider (String)"
            ),
        ),
        ("", "{}", "Attribute value for facade OS::Heat::RandomString missing in provider"),
    ],
)
def test_a_template_in_the_place_of_a_type_must_fit_it(inner, properties, begins):
    root = f"resources: {{a: {{type: OS::Heat::RandomString, properties: {properties}}}}}"
    if begins is None:
        validate(root, inner, RANDOM)
    else:
        assert refusal(root, inner, RANDOM).startswith(f"resources.a.properties: {begins}")
    validate(root, inner, RANDOM, strict=False)


def test_a_required_property_of_the_type_must_be_a_parameter():
    env = {"resource_registry": {"OS::Heat::Value": "a.yaml"}}
    said = refusal("resources: {a: {type: OS::Heat::Value}}", "outputs: {value: {value: 1}}", env)
    assert said.startswith("resources.a.properties: Required property value for facade OS::Heat::")


USUAL = (
    HEAD
    + """
parameters: {one: {type: string}, two: {type: string}}
outputs: {it: {value: 1}}
"""
)
SINGLED_OUT = {
    "resource_registry": {"My::Type": "usual.yaml", "resources": {"a": {"My::Type": "a.yaml"}}}
}


@pytest.mark.parametrize(
    ("inner", "begins"),
    [
        ("parameters: {one: {type: string}, two: {type: string}}\noutputs: {it: {value: 2}}", None),
        (
            "parameters: {one: {type: string}}\noutputs: {it: {value: 2}}",
            "Required property two for facade My::Type missing in provider",
        ),
        (
            "parameters: {one: {type: string}, two: {type: string}}",
            "Attribute it for facade My::Type missing in provider",
        ),
    ],
)
def test_a_template_for_one_resource_must_fit_that_which_the_others_have(inner, begins):
    properties = "{one: x}" if "two" in (begins or "") else "{one: x, two: y}"
    root = f"resources: {{a: {{type: My::Type, properties: {properties}}}}}"
    files = {"usual.yaml": USUAL}
    if begins is None:
        validate(root, inner, SINGLED_OUT, files=files)
        return
    with pytest.raises(errors.StackValidationFailed) as refused:
        validate(root, inner, SINGLED_OUT, files=files)
    assert str(refused.value).startswith(f"resources.a.properties: {begins}")


def test_a_parameter_of_any_type_fits_a_property_of_type_any():
    env = {"resource_registry": {"OS::Heat::Value": "a.yaml"}}
    inner = (
        "parameters: {value: {type: json}, type: {type: string, default: json}}\n"
        "outputs: {value: {value: {get_param: value}}}"
    )
    validate("resources: {a: {type: OS::Heat::Value, properties: {value: {}}}}", inner, env)


# ------------------------------------------------------------------------------------ the facade


def test_a_nested_template_sees_the_resource_that_it_implements():
    root = (
        "resources: {a: {type: a.yaml, metadata: {x: {get_param: OS::stack_name}},"
        " deletion_policy: retain}}"
    )
    inner = """
resources:
  x:
    type: OS::Heat::Value
    properties: {type: json, value: {resource_facade: metadata}}
  y:
    type: OS::Heat::Delay
    properties: {actions: [{resource_facade: deletion_policy}]}
"""
    assert '"Retain" is not among' in refusal(root, inner)
    validate(root, inner.replace("{resource_facade: deletion_policy}", "CREATE"))
    update = "{value: {resource_facade: update_policy}}"
    validate(root, f"resources: {{x: {{type: OS::Heat::Value, properties: {update}}}}}")


def test_without_a_parent_there_is_no_facade():
    with pytest.raises(errors.StackValidationFailed, match="in a nested template only"):
        kit.validate(
            kit.hot(
                "resources: {a: {type: OS::Heat::Value,"
                " properties: {value: {resource_facade: metadata}}}}"
            )
        )


# ---------------------------------------------------------------------------------------- limits


def test_a_template_nested_in_itself_is_refused_with_the_whole_way():
    said = refusal(ROOT, "resources: {x: {type: a.yaml}}")
    way = "resources.a<a.yaml>" + 5 * ".resources.x<a.yaml>"
    assert said.startswith(f"RequestLimitExceeded: {way}: cannot take stacks 6 deep inside each")
    assert ", for a.yaml contains itself (a.yaml -> a.yaml): 5 levels is the most" in said


def test_a_template_nested_in_itself_by_others_is_refused_with_the_shortest_circle():
    group = "{type: OS::Heat::ResourceGroup, properties: {resource_def: {type: a.yaml}}}"
    files = {"b.yaml": f"{HEAD}resources: {{y: {group}}}"}
    said = refusal(ROOT, "resources: {x: {type: b.yaml}}", files=files)
    assert ", for b.yaml contains itself (b.yaml -> a.yaml -> b.yaml): 5 levels" in said


def test_templates_too_deep_that_are_others_contain_themselves_not():
    names = "bcdef"
    files = {
        f"{name}.yaml": f"{HEAD}resources: {{x: {{type: {below}.yaml}}}}"
        for name, below in zip(names, names[1:] + "g", strict=True)
    }
    files |= {"g.yaml": HEAD}
    said = refusal(ROOT, "resources: {x: {type: b.yaml}}", files=files)
    assert "stacks 6 deep inside each other: 5 levels is the most" in said


def test_the_depth_may_be_raised():
    said = refusal(ROOT, "resources: {x: {type: a.yaml}}", limits=Limits(nested_depth=2))
    assert said.startswith("RequestLimitExceeded: resources.a<a.yaml>.resources.x<a.yaml>.")
    assert said.count("<a.yaml>") == 3


def test_resources_are_counted_over_the_whole_tree():
    root = "resources: {a: {type: a.yaml}, b: {type: a.yaml}}"
    inner = "resources: {x: {type: OS::Heat::None}, y: {type: OS::Heat::None}}"
    validate(root, inner, limits=Limits(resources=6))
    said = refusal(root, inner, limits=Limits(resources=5))
    assert said.startswith("RequestLimitExceeded: resources.b<a.yaml>: cannot take a stack of 6")
    validate(root, inner, limits=Limits(resources=-1))


def test_the_root_alone_may_be_too_large():
    body = "resources: {a: {type: OS::Heat::None}, b: {type: OS::Heat::None}}"
    with pytest.raises(errors.RequestLimitExceeded, match="cannot take a stack of 2 resources"):
        kit.validate(kit.hot(body), limits=Limits(resources=1))


def test_who_was_refused_is_refused_alike_again():
    body = "resources: {a: {type: OS::Heat::None}, b: {type: OS::Heat::None}}"
    made = kit.stack(kit.hot(body), limits=Limits(resources=1))
    for _ in range(2):
        with pytest.raises(errors.RequestLimitExceeded, match="a stack of 2 resources"):
            validate_stack(made)


def test_a_tree_that_grows_with_every_level_is_refused_soon():
    def level(below):
        return "resources:\n" + "".join(f"  r{n}: {{type: {below}}}\n" for n in range(20))

    files = {f"l{n}.yaml": HEAD + level(f"l{n + 1}.yaml") for n in range(1, 5)}
    files |= {"l5.yaml": HEAD}
    with pytest.raises(errors.StackValidationFailed, match=r"cannot take a stack of 10[0-2]"):
        kit.validate(kit.hot(level("l1.yaml")), files=files)


def test_a_file_is_read_once_for_all_resources_of_it():
    root = "resources: {a: {type: a.yaml}, b: {type: a.yaml}}"
    made = validate(root, "")
    assert made.kind("a") is made.kind("b")
    assert made.kind("a").template is made.tree.template("a.yaml")
    assert isinstance(made.kind("a").template, hot.Hot20180831)


# ---------------------------------------------------------------------------------------- groups


GROUP = (
    "resources: {{v: {{type: OS::Heat::Value, properties: {{value: x}}}},"
    " g: {{type: OS::Heat::ResourceGroup,"
    " properties: {{count: {}, resource_def: {}}}}}}}"
)


@pytest.mark.parametrize(
    ("count", "definition", "begins"),
    [
        (0, "{type: nobody}", None),
        (1, "{type: OS::Heat::RandomString, properties: {length: {get_attr: [v, value]}}}", None),
        (0, "{type: OS::Heat::RandomString, properties: {length: x}}", None),
        (
            2,
            "{type: OS::Heat::RandomString, properties: {length: '%index%x'}}",
            "Property error: resources.g<nested_stack>.resources.0.properties.length: ",
        ),
        (
            1,
            "{type: OS::Heat::Value}",
            "Property error: resources.g<nested_stack>.resources.0.properties: Property value not",
        ),
        (
            1,
            "{type: nobody}",
            "resources.g<nested_stack>.resources.0.type: The Resource Type (nobody) could not be",
        ),
        (
            2,
            "{type: OS::Heat::RandomString, properties: {lenth: 1}}",
            "Property error: resources.g<nested_stack>.resources.0.properties: Unknown Property",
        ),
        (
            1,
            "{type: OS::Heat::RandomString, properties: {length: 3, character_classes: [{min: 4}]}}",  # noqa: E501
            "resources.g<nested_stack>.resources.0.properties: ",
        ),
    ],
)
def test_members_of_a_group_are_looked_at_with_the_values_that_are_known(count, definition, begins):
    document = kit.hot(GROUP.format(count, definition))
    if begins is None:
        kit.validate(document)
        return
    with pytest.raises(errors.StackValidationFailed) as told:
        kit.validate(document)
    assert str(told.value).startswith(begins)


def test_members_count_as_resources():
    document = kit.hot(GROUP.format(3, "{type: OS::Heat::None}"))
    kit.validate(document, limits=Limits(resources=5))
    with pytest.raises(errors.StackValidationFailed, match=r"RequestLimitExceeded: resources\.g"):
        kit.validate(document, limits=Limits(resources=4))


def test_a_group_of_templates_needs_the_values_of_its_parameters():
    root = GROUP.format(1, "{type: a.yaml}")
    assert "Property size not assigned" in refusal(root, SIZE)
    later = "{type: a.yaml, properties: {size: {get_attr: [v, value]}}}"
    validate(GROUP.format(1, later), SIZE)
    assert "resources.g<nested_stack>.resources.0<a.yaml>.resources.x.type" in refusal(
        root, "resources: {x: {type: nobody}}"
    )


@pytest.mark.parametrize(
    "root",
    [
        "resources: {a: {type: a.yaml}}",
        (
            "resources: {g: {type: OS::Heat::ResourceGroup, properties: "
            "{count: 1, resource_def: {type: a.yaml}}}}"
        ),
        (
            "resources: {g: {type: OS::Ironic::InstanceGroup, properties: {count: 1, member: "
            "{selector: {resource_class: c}, image: {source: i}}}}}"
        ),
    ],
)
def test_a_machine_anywhere_in_a_tree_gives_it_the_time_of_machines(root):
    port = "resources: {p: {type: OS::Ironic::Port, properties: {node: n, address: '0:1:2:3:4:5'}}}"
    inner = port.replace("0:1:2:3:4:5", "52:54:00:00:00:01")
    assert validate(root, inner).tree.timeout_mins == 240
    assert validate("resources: {a: {type: a.yaml}}", "resources: {}").tree.timeout_mins == 0
