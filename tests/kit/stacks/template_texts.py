"""What nobody should write in a template: values and whole texts, each hostile in its own way.

All of it is small enough for a request; what is large is made by what stands in it.
"""

from __future__ import annotations

from typing import Any, Final

HEAD: Final = "heat_template_version: 2021-04-16\n"

SCALARS: Final[tuple[Any, ...]] = (
    None, True, False, 0, -1, 1, 3, 2**31, 2**63, 10**99, 10**100, -(10**400), 0.5, -0.0, 1e308,
    5e-324, float("nan"), float("inf"), "", " ", "x", "x" * 300, "\0", "a\0b", "\ud800", "a\udfff",
    "\U0001f600", "\u202e", "\u2028", "\x85", "\ufeff", "ﷺ", "ß", "İ", "ﬁ", "e\u0301",
    "\U000e0041", "\U000f0000", "\U0010ffff", "\x1b[2J", "\r\n", "\t", "%", "%s%n{0}{}", "{a}",
    "$", "$.data", "*", "&a", "<<", "!!str", "0644", "12:30", "2012-12-12", "1_000", "0x_",
    "1e999", "yes", "No", "~", "null", ".inf", "1.", "-", "- a", "a: b", "[1, 2]", '{"a": 1}',
    '{"a":', "[" * 300, "\u0663", "\uff11", "²", "1" * 5000, "a,b,,c", ",", "(a+)+$", "(?R)",
    "(" * 99,
    "[[:alpha:]]", "a{99999}", "\\", "\\N{DASH}", "(?i", "(?<=a*)b", "^((a|b|ab)*)*c$", ":index:",
    "%index%", "resources", "OS::stack_id", "OS::Heat::None", "../x", "http://x/y.yaml",
    "file:///etc/passwd", "child.yaml", "a/b", "a" * 256, "resource.a.value", "__class__",
    "format", "True", "on", "-0", "+1", "1" * 99, "a" * 17 + "b",
)  # fmt: skip
NOT_JSON: Final[tuple[Any, ...]] = (
    b"x",
    (1, 2),
    {1, 2},
    1j,
    object,
    {1: "one"},
    {None: None},
    {(): {}},
)
YAQL: Final = (
    "$.data", "$.data.len()", "$", "$.data.select($ * 10)", "range(10000000000)", "range(0, 1, 0)",
    "repeat(1)", "[1] * 1000000000", "'x' * 1000000000", "2 ** 100000", "9 ** 9 ** 9 ** 9",
    "let(a => 'xxxxxxxxxx') -> $a * 99999", "def(f, f()) -> f()", "def(f, f($) + f($)) -> f(1)",
    "$.__class__", "$.data.__init__()", "call(len, [1])", "now()", "random()", "cycle([1,2])",
    "generate(0, true, $ + 1)", "generate(0, true, $ + 1).last()", "[1,2].aggregate($1 + $2)",
    "let(a => [1,1]) -> let(a => [$a,$a]) -> let(a => [$a,$a]) -> let(a => [$a,$a]) -> $a",
    "regex('(a+)+$').matches('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab')",
    "'a'.replaceBy(regex('('), 'b')", "'{0:>999999999}'.format(1)", "str($)", "dict($.data)",
    "1/0", "[1,2][9]", "{a => 1}.b", "", "(", "1 +", "not", "$.data.where($ > 1)", "null + 1",
    "max()", "$.data.join($)", "int('x')", "float('nan')", "'\\ud800'", "int('9' * 5000)",
    "hex(1)", "$.data.toDict($)", "assert(false)", "coalesce()", "switch(true => 1)",
    "[3,1,2].orderBy($)", "[1,'a'].orderBy($)", "set(1,2) <= set([1])", "$.data.groupBy($)",
    "memorize(repeat(1))", "$.data.flatten()", "zip([1],[2])", "chain(repeat(1))",
)  # fmt: skip


def _doubling(times: int) -> str:
    return "".join(
        f"  v{at}: &v{at} [" + ", ".join([f"*v{at - 1}"] * 9 if at else ["x"]) + "]\n"
        for at in range(times)
    )


def _merges(times: int) -> str:
    return "".join(
        f"  m{at}: &m{at} {{<<: [*m{at - 1}, *m{at - 1}], k{at}: 1}}\n"
        if at
        else "  m0: &m0 {a: 1}\n"
        for at in range(times)
    )


TEXTS: Final[tuple[str | bytes, ...]] = (
    "", " ", "\n", "---\n", "...\n", "null", "[]", "5", "text", "{", "}", "a", "a:", ": a", "- a",
    "'", '"', HEAD + "parameter_defaults:\n" + _doubling(20), HEAD + "resources:\n" + _doubling(9),
    HEAD + "resources:\n" + _merges(40), HEAD + "resources: &r {a: *r}",
    HEAD + "resources: &r\n  a: {type: OS::Heat::None, properties: *r}",
    HEAD + "resources: *nowhere", HEAD + "a: " + "[" * 1000 + "]" * 1000,
    HEAD + "a: " + "{a: " * 1000 + "1" + "}" * 1000,
    HEAD + "".join(" " * at + "a:\n" for at in range(1000)), HEAD + "- " * 1000,
    HEAD + "? " * 1000, HEAD + "a: " + "[" * 100_000,
    '{"heat_template_version": "2021-04-16", "resources": ' + "[" * 1000 + "]" * 1000 + "}",
    '{"a": ' * 100_000, '{"heat_template_version": "2021-04-16", "a": 1e999}',
    '{"heat_template_version": "2021-04-16", "a": NaN}',
    '{"heat_template_version": "2021-04-16", "a": ' + "9" * 5000 + "}",
    '{"heat_template_version": "2021-04-16", "a": "\\ud800"}',
    '{"heat_template_version": "2021-04-16", "a": "\\u0000"}',
    '{"heat_template_version": "2021-04-16", "a": 1, "a": 2}', HEAD + "a: " + "9" * 300_000,
    HEAD + "a: 0x" + "f" * 300_000, HEAD + "a: " + "1:" * 50_000 + "1",
    HEAD + "a: 1" + "_" * 300_000, HEAD + "a: 1e999999999", HEAD + "1: a", HEAD + "true: a",
    HEAD + "~: a", HEAD + "2012-12-12: a", HEAD + "[a]: b", HEAD + "{a: b}: c",
    HEAD + "a: 2012-12-12", HEAD + "a: 0644", HEAD + "a: 12:30", HEAD + "a: 190:20:30.15",
    HEAD + "a: .nan", HEAD + "a: -.inf", HEAD + "a: 0b", HEAD + "a: 0x_", HEAD + "a: +",
    HEAD + "a: =", HEAD + "a: <<", HEAD + "a: !!python/object/apply:os.system [id]",
    HEAD + "a: !!binary aGVsbG8=", HEAD + "a: !!set {a, b}", HEAD + "a: !!omap [a: 1]",
    HEAD + "a: !!timestamp x", HEAD + "a: !!int x", HEAD + "a: !<tag> b", HEAD + "a: !!float 1_",
    HEAD + "a: !!str [a]", HEAD + "<<: 5", HEAD + "<<: [1]", HEAD + "a: {<<: {<<: {b: 1}}}",
    HEAD + "a: 1\na: 2", HEAD + "---\n" + HEAD, "%YAML 1.2\n---\n" + HEAD,
    "%TAG ! a\n" * 5000 + "---\n" + HEAD, HEAD + "\ta: 1", HEAD + "a: \x07", HEAD + "a: \0", "\0",
    HEAD + 'a: "\\ud800"', HEAD + 'a: "\\0"', HEAD + 'a: "\\U0010ffff"', HEAD + 'a: "\\U00110000"',
    HEAD + "a: \ud800", "\ufeff" + HEAD, "\ufeff\ufeff" + HEAD, HEAD + "a: |\n" + " x\n" * 50_000,
    HEAD + "a: >9\n x", HEAD + "#" * 300_000, HEAD + "a: '" + "'" * 200_001,
    HEAD + "a: " + "&a " * 1000 + "b", HEAD + "&a b: *a", HEAD + "*a : b", HEAD + "? a\n? b\n",
    HEAD + "\n" * 400_000, HEAD.encode() + b"a: \xff", b"\xff\xfe" + HEAD.encode("utf-16-le"),
    HEAD.encode("utf-32"), b"\xed\xa0\x80", HEAD.replace("\n", "\r") + "resources: {}",
    HEAD.replace("\n", "\u2028") + "resources: {}", "x" * 524_289,
    HEAD + "resources:\n" + "".join(f"  r{at}: {{type: OS::Heat::None}}\n" for at in range(1100)),
    HEAD + "conditions:\n" + "".join(f"  c{at}: {{not: c{at + 1}}}\n" for at in range(60)),
    "AWSTemplateFormatVersion: 2010-09-09\nHeatTemplateFormatVersion: 2012-12-12",
    "heat_template_version: 2021-04-17", "heat_template_version: 20210416",
    "heat_template_version: [wallaby]", "heat_template_version: wallaby",
    "HeatTemplateFormatVersion: 2012-12-12", "heat_template_version:",
)  # fmt: skip
BITS: Final = (
    "\0", "\t", "\n", "{", "}", "[", "]", ":", ": ", ",", "'", '"', "- ", "? ", "&a ", "*a", "!",
    "!!int ", "%", "#", "<<: ", "|", ">", "~", "\\", "\\ud800", "\ufeff", "\x85", "0o7", "1e9",
    "---\n", "...", "get_param", "resources", "type", "\u2028", "é", "@", "`", "   ",
)  # fmt: skip
