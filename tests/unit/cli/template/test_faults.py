"""What a new user gets wrong, and what is said: file, line, class, and what to change."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.kit.clients.templates import Command, written

HEAD = "heat_template_version: 2021-04-16\n"
CFN = "AWSTemplateFormatVersion: 2010-09-09\n"


class Fault(NamedTuple):
    template: str
    place: str
    kind: str
    says: tuple[str, ...]
    words: tuple[str, ...] = ()


FAULTS = {
    "misspelt type": Fault(
        "resources:\n  a:\n    type: OS::Heat::Valu\n",
        "t.yaml:4",
        "StackValidationFailed",
        ("OS::Heat::Valu", "Did you mean 'OS::Heat::Value'?"),
    ),
    "misspelt property": Fault(
        "resources:\n  a:\n    type: OS::Heat::Value\n    properties:\n      valeu: 1\n",
        "t.yaml:6",
        "StackValidationFailed",
        ("resources.a.properties", "valeu", "Did you mean 'value'?"),
    ),
    "misspelt key of a resource": Fault(
        "resources:\n  a:\n    type: OS::Heat::None\n    propertees: {}\n",
        "t.yaml:5",
        "StackValidationFailed",
        ("propertees", "Did you mean 'properties'?"),
    ),
    "misspelt section": Fault(
        "resurces: {}\n", "t.yaml:2", "StackValidationFailed", ("Did you mean 'resources'?",)
    ),
    "misspelt parameter": Fault(
        "parameters:\n  size: {type: number, default: 1}\n"
        "resources:\n  a:\n    type: OS::Heat::Value\n"
        "    properties: {value: {get_param: sise}}\n",
        "t.yaml:7",
        "StackValidationFailed",
        ("sise", "Did you mean 'size'?"),
    ),
    "misspelt parameter type": Fault(
        "parameters:\n  size:\n    type: strnig\n",
        "t.yaml:4",
        "InvalidSchemaError",
        ("strnig", "write one of string, number"),
    ),
    "misspelt resource": Fault(
        "resources:\n  first: {type: OS::Heat::None}\n"
        "  second:\n    type: OS::Heat::None\n    depends_on: frist\n",
        "t.yaml:6",
        "InvalidTemplateReference",
        ("frist", "Did you mean 'first'?"),
    ),
    "cycle": Fault(
        "resources:\n  a: {type: OS::Heat::None, depends_on: b}\n"
        "  b: {type: OS::Heat::None, depends_on: a}\n",
        "t.yaml:3",
        "CircularDependencyException",
        ("a -> b -> a",),
    ),
    "unclosed bracket": Fault(
        "resources:\n  a: {type: OS::Heat::None\n", "t.yaml:4", "HTTPBadRequest", ("comma",)
    ),
    "octal": Fault(
        "outputs:\n  mode: {value: 0644}\n",
        "t.yaml:3",
        "HTTPBadRequest",
        ("420", "quote it"),
    ),
    "value missing": Fault(
        "parameters:\n  size: {type: number}\n", "t.yaml:3", "UserParameterMissing", ("size",)
    ),
    "value out of range": Fault(
        "parameters:\n  size: {type: number, constraints: [{range: {max: 5}}]}\n",
        "t.yaml:3",
        "StackValidationFailed",
        ("size", "5"),
        ("-P", "size=6"),
    ),
    "value for nobody": Fault(
        "parameters:\n  size: {type: number, default: 1}\n",
        "t.yaml:2",
        "UnknownUserParameter",
        ("sise", "Did you mean 'size'?"),
        ("-P", "sise=6"),
    ),
    "file missing": Fault(
        "resources:\n  a:\n    type: nowhere.yaml\n",
        "t.yaml:4",
        "StackValidationFailed",
        ("nowhere.yaml",),
    ),
    "fault in a nested template": Fault(
        "resources:\n  a:\n    type: child.yaml\n",
        "child.yaml:5",
        "StackValidationFailed",
        ("resources.a<child.yaml>.resources.i.properties.length", "between 1 and 512"),
    ),
    "environment of a wrong section": Fault(
        "resources: {}\n",
        "e.yaml:1",
        "HTTPBadRequest",
        ("parametrs", "Did you mean 'parameters'?"),
        ("-e", "e.yaml"),
    ),
    "environment with an unknown hook": Fault(
        "resources: {}\n",
        "hooks.yaml:1",
        "InvalidBreakPointHook",
        ("pre-evrything", "pre-create"),
        ("-e", "hooks.yaml"),
    ),
}
CHILD = f"{HEAD}resources:\n  i:\n    type: OS::Heat::RandomString\n    properties: {{length: 0}}\n"


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_says_where_and_what_to_change(
    name: str, here: Path, typed: Command, document: Callable[..., Any]
) -> None:
    fault = FAULTS[name]
    written(
        here,
        t__yaml=HEAD + fault.template,
        child__yaml=CHILD,
        e__yaml="parametrs: {}\n",
        hooks__yaml="resource_registry: {resources: {a: {hooks: pre-evrything}}}\n",
    )
    done = typed("validate", "t.yaml", *fault.words)
    (line,) = (line for line in done.stderr.splitlines() if ": hint: " not in line)
    assert done.exit_code == 1
    kind = "" if fault.kind == "HTTPBadRequest" else f"{fault.kind}: "
    assert line.startswith(f"{fault.place}: {kind}"), line
    assert "HTTP" not in line
    assert [word for word in fault.says if word not in line] == []
    told = document("run", "t.yaml", *fault.words)
    assert (told["status"], told["outputs"], told["error"]["type"]) == (None, {}, fault.kind)
    assert typed("run", "t.yaml", *fault.words, "--json").exit_code == 1


def test_a_template_that_is_not_there_is_named(here: Path, typed: Command) -> None:
    done = typed("validate", "nowhere.yaml")
    assert done.exit_code == 2
    assert "there is no file nowhere.yaml" in done.stderr


@pytest.mark.parametrize(
    "resource", ["{type: gone.x.yaml}", "{type: OS::Heat::Value, properties: {value: %s}}"]
)
def test_a_file_that_a_fault_names_gets_no_hint_beside_it(
    resource: str, here: Path, typed: Command
) -> None:
    text = resource.replace("%s", "{get_file: gone.x.yaml}")
    written(here, t__yaml=HEAD + f"resources:\n  a: {text}\n")
    (line,) = typed("validate", "t.yaml").stderr.splitlines()
    assert line.count("gone.x.yaml") == 1, line
    assert line.startswith("t.yaml:"), line
    assert line.endswith(". Cannot read it: No such file or directory"), line


@pytest.mark.parametrize("command", ["run", "show"])
def test_a_parameter_without_a_value_is_told_its_form(
    command: str, here: Path, typed: Command, document: Callable[..., Any]
) -> None:
    written(here, t__yaml=HEAD)
    done = typed(command, "t.yaml", "-P", "size")
    assert done.exit_code == 1
    assert "t.yaml: cannot use -P 'size': write -P KEY=VALUE" in done.stderr
    assert document(command, "t.yaml", "-P", "size")["error"]["type"] == "HTTPBadRequest"


def test_a_plan_that_is_refused_is_a_document_too(
    here: Path, typed: Command, document: Callable[..., Any]
) -> None:
    written(here, t__yaml=HEAD)
    written(here, cut__yaml="[")
    refusal = document("plan", "t.yaml", "cut.yaml")
    assert refusal["error"]["type"] == "HTTPBadRequest"
    assert "line 2" in refusal["error"]["message"]
    assert typed("plan", "t.yaml", "cut.yaml", "--json").exit_code == 1


@pytest.mark.parametrize("name", ["", "1st", "a b", "a/b", "a" * 256])
def test_a_name_that_no_stack_may_have_is_refused(name: str, here: Path, typed: Command) -> None:
    written(here, t__yaml=HEAD)
    done = typed("run", "t.yaml", "--name", name)
    assert (done.exit_code, "cannot call a stack" in done.stderr) == (1, True)


def test_a_type_that_is_like_none_is_told_what_there_is(here: Path, typed: Command) -> None:
    written(here, t__yaml=HEAD + "resources:\n  a: {type: Qq::Zz}\n")
    said = typed("validate", "t.yaml").stderr
    assert "OS::Heat::Value" in said
    assert "resource_registry" in said


IN_ENVIRONMENTS = {
    "value": ("parameters:\n  p: many\n", "2: StackValidationFailed: Parameter 'p' is invalid"),
    "default": ("parameter_defaults:\n  p: many\n", "2: StackValidationFailed: Parameter 'p'"),
    "nobody": ("parameters:\n\n  q: 1\n", "3: UnknownUserParameter: "),
    "action": (
        "resource_registry:\n  resources:\n    a: {restricted_actions: foo}\n",
        "3: InvalidRestrictedAction: ",
    ),
}


@pytest.mark.parametrize("name", IN_ENVIRONMENTS)
def test_what_an_environment_gives_is_placed_there(name: str, here: Path, typed: Command) -> None:
    text, place = IN_ENVIRONMENTS[name]
    written(
        here,
        t__yaml=HEAD + "parameters:\n  p: {type: number, default: 1}\n",
        e__yaml=text,
        empty__yaml="",
    )
    done = typed("validate", "t.yaml", "-e", "e.yaml", "-e", "empty.yaml")
    assert done.stderr.startswith(f"e.yaml:{place}"), done.stderr


def test_a_conflict_of_environments_is_placed_in_the_one_it_names(
    here: Path, typed: Command
) -> None:
    written(
        here,
        t__yaml=HEAD + "parameters:\n  p: {type: json, default: {}}\n",
        e1__yaml="parameters: {p: {a: 1}}\n",
        e2__yaml="parameters: {p: {b: 1}}\nparameter_merge_strategies:\n  p: merge\n",
    )
    said = typed("validate", "t.yaml", "-e", "e1.yaml", "-e", "e2.yaml").stderr
    assert said.startswith("e2.yaml:3: ConflictingMergeStrategyForParam: "), said


def test_a_nested_template_that_cannot_be_parsed_is_the_place(here: Path, typed: Command) -> None:
    written(
        here,
        t__yaml=HEAD + "resources:\n  a: {type: child.yaml}\n",
        child__yaml=HEAD + "\n\n\nresources: {a: [\n",
    )
    assert typed("validate", "t.yaml").stderr.startswith("child.yaml:6: StackValidationFailed: ")


def test_a_template_that_contains_itself_is_told_so_at_the_resource(
    here: Path, typed: Command
) -> None:
    written(here, t__yaml=HEAD + "resources:\n  b: {type: OS::Heat::None}\n  a: {type: t.yaml}\n")
    said = typed("validate", "t.yaml").stderr
    assert said.startswith("t.yaml:4: StackValidationFailed: RequestLimitExceeded: resources.a<")
    assert "t.yaml contains itself (t.yaml -> t.yaml)" in said


def test_a_file_below_that_is_no_template_is_told_at_its_resource(
    here: Path, typed: Command
) -> None:
    child = "resources:\n  x: {type: OS::Heat::None}\n"
    written(here, t__yaml=HEAD + "resources:\n\n  a: {type: child.yaml}\n", child__yaml=child)
    assert typed("validate", "t.yaml").stderr.startswith("t.yaml:4: StackValidationFailed: ")


def test_a_template_of_cloudformation_has_lines_too(here: Path, typed: Command) -> None:
    text = "AWSTemplateFormatVersion: '2010-09-09'\nParameters:\n  P:\n    Type: Number\n"
    written(here, t__yaml=text)
    assert typed("validate", "t.yaml").stderr.startswith("t.yaml:3: UserParameterMissing: ")
    assert typed("validate", "t.yaml", "-P", "P=x").stderr.startswith("t.yaml:3: ")


HINTS = {
    "misspelt function": (
        HEAD + "outputs:\n  o:\n    value: {get_parm: x}\n",
        "t.yaml:4: hint: get_parm is no function and is taken as plain data; get_param is one",
    ),
    "function of a later version": (
        "heat_template_version: 2015-10-15\noutputs:\n  o: {value: {yaql: {expression: a}}}\n",
        "t.yaml:3: hint: yaql is a function from 2016-10-14 on; in 2015-10-15 it is plain data",
    ),
    "key that stands twice": (
        HEAD + "outputs:\n  o: {value: 1}\n  p: {value: 2}\n  o: {value: 3}\n",
        "t.yaml:5: hint: o stands in line 3 already, whose value is dropped",
    ),
    "misspelt function of a later version": (
        "heat_template_version: 2015-10-15\noutputs:\n  o: {value: [{list_concatt: []}]}\n",
        (
            "t.yaml:3: hint: list_concatt is no function and is taken as plain data; "
            "list_concat is one, from version 2017-09-01 on"
        ),
    ),
    "key of a resource of another dialect": (
        CFN + "Resources:\n  a:\n    Type: OS::Heat::None\n    properties: {a: 1}\n",
        (
            "t.yaml:5: hint: properties is no key of a resource in 2010-09-09 and is ignored; "
            "Properties is one"
        ),
    ),
    "key that AWS has": (
        CFN + "Resources:\n  a:\n    Type: OS::Heat::None\n    CreationPolicy: {}\n",
        "t.yaml:5: hint: CreationPolicy is no key of a resource in 2010-09-09 and is ignored",
    ),
    "misspelt key of an output": (
        HEAD + "outputs:\n  o:\n    value: 1\n    conditon: false\n",
        (
            "t.yaml:5: hint: conditon is no key of an output in 2021-04-16 and is ignored; "
            "condition is one"
        ),
    ),
    "key of an output of a later version": (
        "heat_template_version: 2015-10-15\noutputs:\n  o:\n    value: 1\n    condition: x\n",
        "t.yaml:5: hint: condition is no key of an output in 2015-10-15 and is ignored",
    ),
}


@pytest.mark.parametrize("name", HINTS)
def test_what_is_taken_without_a_word_is_hinted_at(name: str, here: Path, typed: Command) -> None:
    text, hint = HINTS[name]
    written(here, t__yaml=text)
    done = typed("validate", "t.yaml")
    assert (done.exit_code, done.stderr.strip()) == (0, hint)


def test_plain_data_gives_no_hint(here: Path, typed: Command) -> None:
    written(
        here, t__yaml=HEAD + "outputs:\n  o: {value: {colour: {get_param: 'OS::stack_name'}}}\n"
    )
    assert typed("validate", "t.yaml").stderr == ""


@pytest.mark.parametrize("body", ["[]", "1", "{o: 1}", "{o: {value: 1, description: x}}"])
@pytest.mark.parametrize("section", ["outputs: ", "resources: "])
def test_sections_of_any_shape_give_no_hint(
    section: str, body: str, here: Path, typed: Command
) -> None:
    written(here, t__yaml=HEAD + section + body)
    assert "hint" not in typed("validate", "t.yaml").stderr


def test_a_failure_in_the_middle_is_told_with_its_events(here: Path, typed: Command) -> None:
    body = "resources:\n  bad: {type: OS::Heat::TestResource, properties: {fail: true}}\n"
    written(here, t__yaml=HEAD + body)
    done = typed("run", "t.yaml")
    assert done.exit_code == 1
    assert "CREATE_FAILED" in done.stdout
    assert "Resource CREATE failed: ValueError: resources.bad: " in done.stdout


def test_a_failure_in_the_middle_is_told_to_programs(
    here: Path, document: Callable[..., Any]
) -> None:
    body = (
        "resources:\n  bad: {type: OS::Heat::TestResource, properties: {fail: true}}\n"
        "outputs:\n  o: {value: 1}\n  none: {value: {get_param: nope}}\n"
    )
    written(here, t__yaml=HEAD + body)
    told = document("run", "t.yaml")
    assert told["status"] == "CREATE_FAILED"
    assert told["error"]["type"] == "ResourceFailure"
    assert told["error"]["message"].startswith("Resource CREATE failed: ValueError: resources.bad")
    assert told["outputs"]["o"] == {"value": 1}
    assert set(told["outputs"]["none"]) == {"error"}


def test_an_immutable_parameter_is_refused_by_the_plan(here: Path, typed: Command) -> None:
    body = "parameters:\n  a: {type: string, default: x, immutable: true}\n"
    written(here, t__yaml=HEAD + body)
    done = typed("plan", "t.yaml", "t.yaml", "--new-parameter", "a=y")
    assert done.exit_code == 1
    assert "immutable" in done.stderr


# ------------------------------------------------------------------------------ what fresh eyes saw

GROUP = (
    "resources:\n  g:\n    type: OS::Heat::ResourceGroup\n    properties:\n      count: 2\n"
    "      resource_def:\n        type: OS::Heat::RandomString\n        properties:\n"
)


def test_every_missing_parameter_is_named(here: Path, typed: Command) -> None:
    body = (
        "parameters:\n  a: {type: string}\n  b: {type: string, default: x}\n  c: {type: number}\n"
    )
    written(here, t__yaml=HEAD + body)
    done = typed("validate", "t.yaml")
    assert done.exit_code == 1
    assert [line.partition(" Give")[0] for line in done.stderr.splitlines()] == [
        "t.yaml:3: UserParameterMissing: The Parameter (a) was not provided.",
        "t.yaml:5: UserParameterMissing: The Parameter (c) was not provided.",
    ]
    assert "-P a=" in done.stderr


def test_shape_alone_needs_no_values(here: Path, typed: Command) -> None:
    body = "parameters:\n  a: {type: string}\nresources:\n  r: {type: OS::Heat::Value}\n"
    written(here, t__yaml=HEAD + body)
    done = typed("validate", "--shape", "t.yaml")
    assert done.exit_code == 0
    assert "its shape is sound" in done.stdout
    written(here, t__yaml=HEAD + body + "  s: {type: OS::Heat::Valu}\n")
    assert typed("validate", "--shape", "t.yaml").exit_code == 1


def test_fault_in_a_member_of_a_group_has_its_line(here: Path, typed: Command) -> None:
    written(here, t__yaml=HEAD + GROUP + "          lenght: 3\n")
    assert typed("validate", "t.yaml").stderr.startswith("t.yaml:10: StackValidationFailed: ")


def test_fault_in_a_member_of_a_chain_has_its_line(here: Path, typed: Command) -> None:
    body = (
        "resources:\n  c:\n    type: OS::Heat::ResourceChain\n    properties:\n"
        "      resources: [OS::Heat::RandomString]\n      resource_properties:\n"
        "        lenght: 3\n"
    )
    written(here, t__yaml=HEAD + body)
    assert typed("validate", "t.yaml").stderr.startswith("t.yaml:8: StackValidationFailed: ")


def test_fault_in_the_template_of_a_member_has_its_line(here: Path, typed: Command) -> None:
    group = GROUP.replace("OS::Heat::RandomString", "child.yaml") + "          n: 1\n"
    child = "parameters: {n: {type: number}}\nresources:\n  a: {type: OS::Heat::Valu}\n"
    written(here, t__yaml=HEAD + group, child__yaml=HEAD + child)
    assert typed("validate", "t.yaml").stderr.startswith("child.yaml:4: StackValidationFailed: ")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("short", 'it breaks the constraint length: {"min": 8} (eight or more)'),
        ("tooooooolong", "it breaks the constraint allowed_pattern"),
    ],
)
def test_of_a_hidden_value_the_constraint_is_named_and_the_value_is_not(
    value: str, says: str, here: Path, typed: Command
) -> None:
    body = (
        "parameters:\n  p:\n    type: string\n    hidden: true\n    constraints:\n"
        "    - {length: {min: 8}, description: eight or more}\n"
        "    - {allowed_pattern: '[0-9]+'}\n"
    )
    written(here, t__yaml=HEAD + body)
    done = typed("validate", "t.yaml", "-P", f"p={value}")
    assert says in done.stderr
    assert value not in done.stderr


def test_hidden_value_of_the_wrong_type_is_told_the_type(here: Path, typed: Command) -> None:
    written(here, t__yaml=HEAD + "parameters:\n  p: {type: number, hidden: true}\n")
    done = typed("validate", "t.yaml", "-P", "p=hunter2")
    assert "it is no number; the value is hidden" in done.stderr
    assert "hunter2" not in done.stderr


def test_constraint_that_is_not_known_says_so_though_it_has_a_description(
    here: Path, typed: Command
) -> None:
    body = (
        "parameters:\n  p:\n    type: string\n    constraints:\n"
        "    - {custom_constraint: mac_adr, description: a MAC please}\n"
    )
    written(here, t__yaml=HEAD + body)
    done = typed("validate", "t.yaml", "-P", "p=x")
    assert "\"mac_adr\" is not known here. Did you mean 'mac_addr'?" in done.stderr


@pytest.mark.parametrize(
    ("written_type", "meant"),
    [
        ("Value", "OS::Heat::Value"),
        ("My::Random", "OS::Heat::RandomString"),
        ("My::Nova::Delai", "OS::Heat::Delay"),
    ],
)
def test_last_word_of_a_type_is_compared(
    written_type: str, meant: str, here: Path, typed: Command
) -> None:
    written(here, t__yaml=HEAD + f"resources:\n  a: {{type: '{written_type}'}}\n")
    assert f"Did you mean '{meant}'?" in typed("validate", "t.yaml").stderr


def test_type_that_is_alike_in_its_first_words_alone_is_not_proposed(
    here: Path, typed: Command
) -> None:
    written(here, t__yaml=HEAD + "resources:\n  a: {type: 'OS::Heat::Keypair'}\n")
    stderr = typed("validate", "t.yaml").stderr
    assert "Did you mean" not in stderr
    assert "There are " in stderr
