"""Bad input gets an error within limits of time and memory: each row of the table, gone over.

Everything is done at the limits as they are, in a process that ends at CPU_S and MEMORY_MIB.
"""

from __future__ import annotations

import dataclasses
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bloomery import errors, patterns
from bloomery.orchestration import simulation
from bloomery.orchestration.limits import LIMITS, Limits
from bloomery.orchestration.orders import remote_templates
from bloomery.orchestration.orders.fetching import Fetcher
from bloomery.orchestration.properties import constraints
from bloomery.orchestration.stack import validate
from bloomery.orchestration.template import environment, files, merging, parse, versions, view
from bloomery.orchestration.template.definition import Definition
from bloomery.orchestration.template.functions import base
from bloomery.orchestration.template.functions.parser import Parser
from tests.kit import apart
from tests.kit.stacks.simulations import stack

CPU_S = 20  # most take less than one; a busy machine takes three times as long
MEMORY_MIB = 250
HEAD = "heat_template_version: 2021-04-16\n"
NUMBERS = [str(number) for number in range(1000)]
PAGE = Path(__file__).parents[3] / "doc/reference/templates-limits.md"


def resolved(snippet: Any, limits: Limits = LIMITS, **parameters: Any) -> Any:
    """What a function of the newest version makes."""
    seen = view.Plain(parameters=parameters, limits=limits)
    offered = versions.installed()["heat_template_version.2021-04-16"].features.offered
    parser = Parser(functions=offered.functions, conditions=offered.conditions, view=seen)
    return base.resolve(parser.parse(snippet), seen)


def repeat(template: Any, **for_each: Any) -> Any:
    return {"repeat": {"template": template, "for_each": for_each}}


def yaql(expression: str, data: Any = None, limits: Limits = LIMITS) -> Any:
    return resolved({"yaql": {"expression": expression, "data": data}}, limits)


def valid(text: str, *, limits: Limits = LIMITS, **more: Any) -> None:
    """Validate a stack from text, at other limits where the true ones would take too long."""
    found = stack(text, **more)
    if limits is LIMITS:
        return validate(found)
    template = type(found.definition.template)
    made = template(found.definition.template.document, limits=limits)
    definition = Definition(template=made, environment=found.definition.environment)
    return validate(type(found)(definition))


def environments(count: int, size: int) -> Any:
    texts = {f"{at}.env": "# " + "x" * size for at in range(count)}
    return merging.merged(list(texts), texts, {})


def registry(lines: dict[str, Any]) -> environment.Environment:
    return environment.Environment.of({"resource_registry": lines})


def bomb(levels: int, width: int = 9) -> str:
    """Lists of lists of lists, each naming the one before it many times."""
    lines = ["a0: &a0 [x]"]
    names = [f"[{', '.join([f'*a{at}'] * width)}]" for at in range(levels)]
    lines += [f"a{at + 1}: &a{at + 1} {inner}" for at, inner in enumerate(names)]
    return HEAD + "\n".join(lines)


def created(text: str, **more: Any) -> None:
    """Create a stack in memory; raise what it failed with."""
    result = simulation.run(stack(text, **more))
    assert result.error is not None
    raise errors.StackValidationFailed(reason=result.error.message)


def alike(call: str) -> str:
    """Resources that each hold a large value, and together too much."""
    body = f"{{type: OS::Heat::Value, properties: {{value: {call}}}}}"
    return "resources:\n" + "".join(f"  r{at}: {body}\n" for at in range(20))


LOOP = f"""{HEAD}resources:
  again: {{type: loop.yaml}}
"""


def fetched(count: int) -> Any:
    """A stack that names so many templates by URLs which lead nowhere."""
    types = {f"r{at}": {"type": f"http://[::1]/{at}.yaml"} for at in range(count)}
    return remote_templates.completed({"resources": types}, {}, {}, Fetcher())


SLOW = "range(0, 20).select(range(0, 20).select($ * $).sum()).sum()"  # 0.1 s
LARGE = "list($.data.select([$]))"
WRONG = "StackValidationFailed"
OVER = "RequestLimitExceeded"
UNREADABLE = "TemplateUnreadable"


def machine_group(count: int) -> str:
    return f"""resources:
  workers:
    type: OS::Ironic::InstanceGroup
    properties:
      count: {count}
      member: {{image: {{source: a}}, selector: {{resource_class: c}}}}
"""


# Which row, who says no, and how it was gone over.
ROWS: list[tuple[str, str, Callable[[], Any]]] = [
    ("template_bytes", OVER, lambda: parse.document(HEAD + "#" * LIMITS.template_bytes)),
    ("document_depth", OVER, lambda: parse.document(HEAD + "a: " + "[" * 1000 + "]" * 1000)),
    ("document_nodes", OVER, lambda: parse.document(bomb(20))),
    ("scalar_digits", UNREADABLE, lambda: parse.document(HEAD + "a: " + "9" * 101)),
    ("environment_files", OVER, lambda: environments(101, 1)),
    ("environment_bytes", OVER, lambda: environments(5, 500_000)),
    ("files_bytes", OVER, lambda: files.Files.of({str(at): "x" * 2**20 for at in range(11)})),
    ("fetched_templates", OVER, lambda: fetched(21)),
    ("type_chars", WRONG, lambda: registry({"x" * 256: "y"})),
    (
        "registry_names",
        OVER,
        lambda: registry({f"T{at}": f"T{at + 1}" for at in range(40)}).registry.find("T0"),
    ),
    (
        "registry_patterns",
        OVER,
        lambda: registry({"resources": {f"{at}*": {"hooks": "pre-create"} for at in range(501)}}),
    ),
    (
        "resources",
        OVER,
        lambda: valid(
            "resources:\n" + "".join(f"  r{at}: {{type: OS::Heat::None}}\n" for at in range(1001))
        ),
    ),
    (
        "group_machines",
        OVER,
        lambda: valid(machine_group(LIMITS.group_machines + 1)),
    ),
    (
        "nested_depth",
        WRONG,
        lambda: valid("resources: {a: {type: loop.yaml}}", files={"loop.yaml": LOOP}),
    ),
    (
        "condition_depth",
        WRONG,
        lambda: valid(
            "resources: {}\nconditions:\n"
            + "".join(f"  c{at}: {{not: c{at + 1}}}\n" for at in range(60))
            + "  c60: true"
        ),
    ),
    ("result_nodes", WRONG, lambda: resolved(repeat("a-b-c", a=NUMBERS, b=NUMBERS, c=NUMBERS))),
    ("result_chars", WRONG, lambda: resolved(repeat("a" * 1000, a=["x" * 100_000]))),
    (
        "stack_nodes",
        WRONG,
        lambda: created(alike(json.dumps(repeat("ab", a=NUMBERS, b=NUMBERS[:400])))),
    ),
    (
        "stack_chars",
        WRONG,
        lambda: created(alike(json.dumps({"list_join": ["x" * 5000, NUMBERS]}))),
    ),
    (
        "replaced_chars",
        WRONG,
        lambda: resolved(
            {"str_replace": {"template": {"get_param": "t"}, "params": {"get_param": "p"}}},
            t="x" * 1_000_000,
            p=dict.fromkeys(NUMBERS, "y"),
        ),
    ),
    ("url_chars", WRONG, lambda: resolved({"make_url": {"path": "x" * 65_537}})),
    ("pattern_chars", WRONG, lambda: patterns.fullmatch("x" * 1001, "", LIMITS)),
    ("pattern_text_chars", WRONG, lambda: patterns.fullmatch("x*", "x" * 1_000_001, LIMITS)),
    ("pattern_s", WRONG, lambda: patterns.fullmatch("(x|xx)+y", "x" * 5000, LIMITS)),
    (
        "custom_text_chars",
        WRONG,
        lambda: valid(
            "parameters: {p: {type: string, constraints: [{custom_constraint: cron_expression}]}}",
            given={"p": "*" * 10_001},
        ),
    ),
    ("yaql_chars", WRONG, lambda: yaql("1" + " + 1" * 3000)),
    ("yaql_elements", WRONG, lambda: yaql("range(0, 10000000000).len()")),
    ("yaql_bytes", WRONG, lambda: yaql("'x' * 1000000000")),
    ("yaql_calls", WRONG, lambda: yaql(f"range(0, 190).select({SLOW}).sum()")),
    ("yaql_s", WRONG, lambda: yaql(SLOW, limits=Limits(yaql_s=0.01))),
    (
        "validation_s",
        OVER,
        lambda: valid(
            "resources:\n"
            + "".join(
                f"  r{at}: {{type: OS::Heat::Value, properties: "
                f"{{value: {{yaql: {{expression: '{SLOW} + {at}'}}}}}}}}\n"
                for at in range(200)
            ),
            limits=Limits(validation_s=0.5),
        ),
    ),
]
NAMES = [name for name, _, _ in ROWS]


def test_every_row_is_gone_over() -> None:
    assert [field.name for field in dataclasses.fields(Limits)] == NAMES


@pytest.mark.sampled
@pytest.mark.parametrize(("row", "error", "verb"), ROWS, ids=NAMES)
def test_who_goes_over_a_row_is_told_which(row: str, error: str, verb: Callable[[], Any]) -> None:
    name, sentence = apart.failure_of(verb, cpu_s=CPU_S, memory_mib=MEMORY_MIB)
    assert name == error, sentence
    assert re.search(rf"\b{row}\b", sentence), sentence


# ------------------------------------------------------------------------- what bad input gets


def value(property_: str, parameters: str = "", **more: Any) -> None:
    valid(
        f"{parameters}\nresources:\n"
        f"  a: {{type: OS::Heat::Value, properties: {{value: {property_}}}}}",
        **more,
    )


def doubled(times: int) -> str:
    """Resources that each hold twice what the one before it holds."""
    lines = ["resources:", "  r0: {type: OS::Heat::Value, properties: {value: [x]}}"]
    for at in range(1, times):
        inner = f"{{get_attr: [r{at - 1}, value]}}"
        call = f"{{list_concat: [{inner}, {inner}]}}"
        lines.append(f"  r{at}: {{type: OS::Heat::Value, properties: {{value: {call}}}}}")
    return "\n".join(lines)


def grown(old: str, new: str, template: Any) -> Any:
    """A call that makes a thousand characters of each."""
    return {"str_replace": {"template": template, "params": {old: new * 1000}}}


ALIASES = HEAD + "a: &a [" + ", ".join(["x"] * 400) + "]\nb: [" + ", ".join(["*a"] * 600) + "]"
HOSTILE: dict[str, tuple[str, str, Callable[[], Any]]] = {
    "a bomb of aliases": (OVER, "document_nodes", lambda: parse.document(bomb(100))),
    "aliases of one list": (OVER, "document_nodes", lambda: parse.document(ALIASES)),
    "aliases of no nodes": (OVER, "document_depth", lambda: parse.document(bomb(200, width=1))),
    "an alias of what it stands in": (
        UNREADABLE,
        "never end",
        lambda: parse.document(HEAD + "a: &a [*a]"),
    ),
    "merged maps that explode": (
        OVER,
        "document_nodes",
        lambda: parse.document(
            HEAD
            + "a0: &a0 {"
            + ", ".join(f"k{at}: 1" for at in range(1000))
            + "}\n"
            + "\n".join(f"a{at}: {{<<: [{', '.join(['*a0'] * 100)}]}}" for at in range(1, 99))
        ),
    ),
    "1,000 levels of YAML": (
        OVER,
        "document_depth",
        lambda: parse.document(HEAD + "".join(" " * at + "a:\n" for at in range(1000))),
    ),
    "1,000 levels of JSON": (
        OVER,
        "document_depth",
        lambda: parse.document('{"a":' * 1000 + "1" + "}" * 1000),
    ),
    "100,000 levels of JSON": (OVER, "document_depth", lambda: parse.document('{"a":' * 100_000)),
    "100,000 open brackets": (
        OVER,
        "document_depth",
        lambda: parse.document(HEAD + "a: " + "[" * 100_000),
    ),
    "1,000 levels of objects": (
        OVER,
        "document_depth",
        lambda: parse.check(json.loads('{"a":' * 900 + "1" + "}" * 900)),
    ),
    "levels of a parameter": (
        OVER,
        "document_depth",
        lambda: value(
            "{get_param: p}", "parameters: {p: {type: json}}", given={"p": "[" * 900 + "]" * 900}
        ),
    ),
    "a product of a billion": (
        WRONG,
        "result_nodes",
        lambda: value(json.dumps(repeat("a-b-c", a=NUMBERS, b=NUMBERS, c=NUMBERS))),
    ),
    "a product of products": (
        WRONG,
        "result_nodes",
        lambda: value(json.dumps(repeat(repeat(repeat("abc", a=NUMBERS), b=NUMBERS), c=NUMBERS))),
    ),
    "a text of 100 MB": (
        WRONG,
        "result_chars",
        lambda: value(json.dumps({"list_join": ["x" * 100_000, NUMBERS]})),
    ),
    "a text that is replaced into 100 MB": (
        WRONG,
        "result_chars",
        lambda: value(
            json.dumps({"str_replace": {"template": "a" * 10_000, "params": {"a": "b" * 10_000}}})
        ),
    ),
    "a text that grows from call to call": (
        WRONG,
        "result_chars",
        lambda: value(json.dumps(grown("c", "d", grown("b", "c", grown("a", "b", "a" * 1000))))),
    ),
    "one large parameter, in many places": (
        WRONG,
        "result_nodes",
        lambda: value(
            json.dumps([{"get_param": "p"}] * 20_000),
            "parameters: {p: {type: json}}",
            given={"p": NUMBERS},
        ),
    ),
    "resources that double": (WRONG, "result_nodes", lambda: created(doubled(40))),
    "a yaql that does not end": (
        WRONG,
        "yaql_elements",
        lambda: yaql("generate(0, true, $ + 1).last()"),
    ),
    "a yaql that calls itself": (WRONG, "itself", lambda: yaql("def(f, f($) + f($)) -> f(1)")),
    "a yaql that doubles": (
        WRONG,
        "result_nodes|yaql_bytes|yaql_elements",
        lambda: yaql("let(a => [1, 1]) -> " + "let(a => [$a, $a]) -> " * 40 + "$a"),
    ),
    "a yaql of a large power": (WRONG, "bits|yaql", lambda: yaql("pow(9, pow(9, pow(9, 9)))")),
    "a yaql with an expression that does not end": (
        WRONG,
        "pattern_s",
        lambda: yaql(f"regex('(x|xx)+y').matches('{'x' * 4000}')"),
    ),
    "an expression that does not end": (
        WRONG,
        "pattern_s",
        lambda: valid(
            "parameters: {p: {type: string, constraints: [{allowed_pattern: '(x|xx)+y'}]}}",
            given={"p": "x" * 5000},
        ),
    ),
    "an expression that unrolls": (
        WRONG,
        "counted repeats",
        lambda: patterns.compiled("((x{999}){999}){999}", LIMITS),
    ),
    "an expression nested deep": (
        WRONG,
        "deep|expression",
        lambda: patterns.compiled("(" * 400 + ")" * 400, LIMITS),
    ),
    "a group of a billion": (
        OVER,
        "resources",
        lambda: valid(
            "resources: {a: {type: OS::Heat::ResourceGroup, properties: "
            "{count: 1000000000, resource_def: {type: OS::Heat::None}}}}"
        ),
    ),
    "a group of groups of groups": (
        WRONG,
        "resources",
        lambda: valid(
            "resources: {a: {type: OS::Heat::ResourceGroup, properties: "
            "{count: 900, resource_def: {type: two.yaml}}}}",
            files={
                "two.yaml": f"{HEAD}resources: {{a: {{type: OS::Heat::ResourceGroup, properties: "
                "{count: 900, resource_def: {type: OS::Heat::None}}}}"
            },
        ),
    ),
    "a number of 5,000 digits in JSON": (
        UNREADABLE,
        "scalar_digits",
        lambda: parse.document('{"heat_template_version": "2021-04-16", "b": ' + "9" * 5000 + "}"),
    ),
    "a hex number of 300,000 digits": (
        UNREADABLE,
        "scalar_digits",
        lambda: parse.document(HEAD + "a: 0x" + "f" * 300_000),
    ),
    "a NUL": (UNREADABLE, "NUL|control", lambda: parse.document(HEAD + "a: \0")),
    "a NUL in quotes": (UNREADABLE, "NUL", lambda: parse.document(HEAD + 'a: "\\0"')),
    "a NUL in JSON": (UNREADABLE, "NUL", lambda: parse.document('{"a": "\\u0000"}')),
    "half a character": (UNREADABLE, "surrogate", lambda: parse.document('{"a": "\\ud800"}')),
    "a key that is a number": (UNREADABLE, "quote it", lambda: parse.document(HEAD + "1: a")),
    "a key that is a boolean": (UNREADABLE, "quote it", lambda: parse.document(HEAD + "yes: a")),
    "a key that is a list": (UNREADABLE, "quote it", lambda: parse.document(HEAD + "[a]: b")),
    "a key of an object": (UNREADABLE, "quote it", lambda: parse.check({1: "a"})),
    "an octal number": (UNREADABLE, "0644", lambda: parse.document(HEAD + "a: 0644")),
    "a number in sixties": (UNREADABLE, "12:30", lambda: parse.document(HEAD + "a: 12:30")),
    "a number beyond all": (UNREADABLE, "no number", lambda: parse.document(HEAD + "a: .inf")),
    "a version that is a date": (
        "InvalidTemplateVersion",
        "2021-04-17",
        lambda: versions.template_class(parse.document("heat_template_version: 2021-04-17")),
    ),
    "an object of Python": (
        UNREADABLE,
        "tag",
        lambda: parse.document(HEAD + "a: !!python/object/apply:os.getcwd []"),
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize(("error", "words", "verb"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_input_gets_its_error_in_time(
    error: str, words: str, verb: Callable[[], Any]
) -> None:
    name, sentence = apart.failure_of(verb, cpu_s=CPU_S, memory_mib=MEMORY_MIB)
    assert name == error, sentence
    assert re.search(words, sentence), sentence


def test_a_date_stays_text() -> None:
    assert parse.document("heat_template_version: 2021-04-16\na: 2012-12-12")["a"] == "2012-12-12"


# ----------------------------------------------------------------- the means of these tests


@pytest.mark.parametrize(
    ("verb", "found"),
    [
        (lambda: "x" * 2**30, "MemoryError"),
        (lambda: 1, "nothing"),
        (lambda: {}["a"], "KeyError"),
    ],
)
def test_who_takes_too_much_or_fails_otherwise_is_found(verb: Any, found: str) -> None:
    try:
        assert apart.failure_of(verb, cpu_s=CPU_S, memory_mib=MEMORY_MIB)[0] == found
    except AssertionError as exc:
        assert found in str(exc)  # noqa: PT017


def test_who_does_not_end_is_ended() -> None:
    def endless() -> None:
        while True:
            time.thread_time()

    with pytest.raises(AssertionError, match="ended by -"):
        apart.failure_of(endless, cpu_s=1, memory_mib=MEMORY_MIB)


# ---------------------------------------------------------------------------------- the page


def test_the_page_has_the_table_as_it_is() -> None:
    listed = re.findall(r"^\| `(\w+)` \| ([\d,.]+) \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    told = [(name, float(most.replace(",", ""))) for name, most, _ in listed]
    assert told == [(name, float(most)) for name, most in dataclasses.asdict(LIMITS).items()]


def test_constraints_look_at_the_same_limits() -> None:
    assert constraints.CONSTRAINT_CONTEXT.limits is LIMITS


def test_members_of_a_group_of_machines_are_no_resources_of_its_stack() -> None:
    valid(machine_group(LIMITS.resources + 1))
