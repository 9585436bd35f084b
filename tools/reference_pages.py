#!/usr/bin/env python3
"""Write the reference pages that follow from declarations: options, policies and the like.

PAGES names each page and the function that writes it.  The pages are not committed;
``make docs`` writes them into the source of the site.

    tools/reference_pages.py FOLDER
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

import click

from bloomery import conf, metrics, plugins
from bloomery.api import openapi, routes
from bloomery.api.orchestration import description
from bloomery.api.orchestration import routes as stack_routes
from bloomery.cli.main import COMMANDS, main
from bloomery.cli.service import config
from bloomery.notifications.routes import RESOURCE_FIELDS, ROUTES
from bloomery.objects import payloads
from bloomery.operations import allocation_why, causes, policy_rules
from bloomery.orchestration.properties import resource_types
from bloomery.orchestration.properties.schema import OnChange, Policy, Schema
from bloomery.orchestration.queries import why as stack_why
from bloomery.orchestration.resources.base import Resource
from bloomery.orchestration.template import kinds

ROOT: Final = Path(__file__).resolve().parent.parent
GAUGES: Final = ROOT / "bloomery/cmd/gauges.py"
ENDINGS: Final = {"counter": "total", "timer": "seconds"}
BOUNDS: Final = ("# Minimum", "# Maximum", "# Possible")  # lines of the sample configuration
Lines: TypeAlias = Iterator[str]
CAUSES: Final[Mapping[str, tuple[causes.Rule[Any], ...]]] = {
    "Nodes": causes.OF_NODE,
    "Allocations": allocation_why.OF_ALLOCATION,
    "Stacks": stack_why.OF_STACK,
    "Resources that wait, of stacks": stack_why.OF_RESOURCE,
}
CHANGES = {
    OnChange.LATER: "counts from the next action that needs the value",
    OnChange.PATCH: "is written at once",
    OnChange.ATTACH: "attaches and detaches virtual interfaces",
    OnChange.POWER: "switches the machine",
    OnChange.RUN: "may order verbs or steps of the machine",
    OnChange.REBUILD: "writes the system anew; what is on the root disk is lost",
    OnChange.REPLACE: "replaces the resource",
    OnChange.MEMBERS: "updates the stack inside",
}


def options() -> Lines:
    yield from _head("Options", "Every option of the configuration file, by group.")
    for group, members in conf.list_opts():
        yield from ("", f"## [{group}]", "")
        for option in sorted(members, key=lambda each: str(each.name)):
            *facts, setting = config.described(option)
            bounds = [line.removeprefix("# ") for line in facts if line.startswith(BOUNDS)]
            default = option.sample_default or setting.partition(" = ")[2]
            shown = "none" if default == "<None>" else f"`{default}`" if default else "empty"
            yield from _entry(
                option.name,
                f"{_plain(str(option.help))}.",
                ". ".join([f"Default: {shown}", *bounds]) + ".",
            )


def policies() -> Lines:
    yield from _head("Policies", "Every rule that a policy file may change, with its default.")
    for rule in policy_rules.RULES:
        scopes = f" Scopes: {', '.join(rule.scopes)}." if rule.scopes else ""
        yield from _entry(rule.name, f"{_plain(rule.description)}.{scopes}", f"`{rule.check}`")


def endpoints() -> Lines:
    yield from _head("Endpoints of the bare-metal API", "Ironic's API, on port 6385.")
    yield from _operations(openapi.document(routes.ENDPOINTS))


def stack_endpoints() -> Lines:
    yield from _head("Endpoints of the orchestration API", "Heat's API, on port 8004.")
    yield from _operations(description.document(stack_routes.ENDPOINTS, ""))


def _operations(document: Mapping[str, Any]) -> Lines:
    for path, methods in sorted(document["paths"].items()):
        for method, operation in methods.items():
            yield from _entry(f"{method.upper()} {path}", *_operation(operation))


def _operation(operation: Mapping[str, Any]) -> Lines:
    summary = operation.get("summary", "")
    if " " in summary:
        yield _plain(summary)
    if rule := operation.get("x-policy"):
        yield f"Rule: `{rule}`. Since: {operation.get('x-since', '1.1')}."
    query = [each["name"] for each in operation["parameters"] if each.get("in") == "query"]
    if query:
        yield f"Query: {', '.join(f'`{name}`' for name in query)}."
    answers = [status for status in operation["responses"] if status.startswith("2")]
    yield f"Answer: {', '.join(answers) or 'see the other statuses'}."


def resource_kinds() -> Lines:
    yield from _head(
        "Properties of resource types", "Every type with its properties and attributes."
    )
    for name, load in sorted(plugins.loaders(kinds.GROUP).items()):
        declared = load()
        kind = resource_types.schema_document(name, declared, with_description=True)
        for each, facts in kind["properties"].items():
            facts["change"] = _change(declared, declared.properties_schema[each])
        yield from ("", f"## {name}", "", _plain(kind["description"].partition("\n\n")[0]), "")
        for rule in declared.presence_rules:
            yield from (_plain(rule.sentence()), "")
        yield from ("### Properties", "") if kind["properties"] else ()
        yield from _properties(kind["properties"])
        yield from ("### Attributes", "")
        for attribute, facts in kind["attributes"].items():
            yield from _entry(attribute, _plain(facts.get("description", "No description.")))


def _properties(properties: Mapping[str, Any], parent: str = "") -> Lines:
    for name, facts in properties.items():
        path = f"{parent}[]" if name == "*" else f"{parent}.{name}" if parent else name
        yield from _entry(path, _plain(facts.get("description", "")), _property_facts(facts))
        yield from _properties(facts.get("schema", {}), path)


def _change(kind: type[Resource], schema: Schema) -> str:
    """Return what a change of a property does."""
    change = schema.on_change or kind.on_change
    if schema.immutable:
        return "a change is refused"
    if not schema.update_allowed:
        change = OnChange.REPLACE
    if isinstance(change, Policy):
        return f"a change does what `{change.property}` says"
    return f"a change {CHANGES[change]}" if change else "a change is made in place"


def _property_facts(facts: Mapping[str, Any]) -> str:
    """Return type, default, constraints and what a change does in one line."""
    said = [facts["type"], "required" if facts["required"] else "", facts.get("change", "")]
    if "default" in facts:
        said.append(f"default `{facts['default']}`")
    for constraint in facts.get("constraints", ()):
        said += [
            f"{rule}: `{_value(value)}`"
            for rule, value in constraint.items()
            if rule != "description"
        ]
    return _capital("; ".join(part for part in said if part)) + "."


def _value(value: object) -> str:
    """Return a range as words; the rest as it is."""
    return (
        ", ".join(f"{key} {bound}" for key, bound in value.items())
        if isinstance(value, dict)
        else str(value)
    )


def metric_names() -> Lines:
    yield from _head(
        "Metrics", "`GET /metrics` answers in the text format of Prometheus, without a login."
    )
    yield from ("", "## Counted and timed", "")
    for name, metric in metrics.DECLARED.items():
        yield from _metric(f"{name}_{ENDINGS[metric.kind]}", metric.help, metric.labels)
    yield from ("## Read when asked", "")
    for name, text, labels in gauges():
        yield from _metric(name, text, labels)


def gauges() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield name, help and labels of each gauge; a process builds only those of its role."""
    for node in ast.walk(ast.parse(GAUGES.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Gauge":
            name, text, labels = (ast.literal_eval(each) for each in node.args[:3])
            yield name, text, labels


def _metric(name: str, text: str, labels: Iterable[str]) -> Lines:
    named = ", ".join(f"`{label}`" for label in labels)
    yield from _entry(f"bloomery_{name}", _plain(text) + (f" Labels: {named}." if named else ""))


def causes_of_why() -> Lines:
    yield from _head(
        "Causes",
        "What `why` of nodes, allocations and stacks answers as `cause_code`, `cause` and "
        "`next_action`.",
        "The first cause that applies is the answer. CODE stands for a fault, a failed state, or "
        "the cause of the first resource that waits.",
    )
    for subject, table in CAUSES.items():
        yield from ("", f"## {subject}", "")
        for rule in table:
            code = re.sub(r"{.*}", "CODE", rule.code) or "null"
            sentences = (_general(text) for text in (rule.cause, rule.next_action))
            yield from _entry(code, *map(_plain, sentences))


def _general(template: str) -> str:
    """Return a sentence with dots for what differs."""
    clauses = re.sub(r"{[^{}:]*:([^{}]*)%s([^{}]*)}", r"\1…\2", template)
    return re.sub(r"{[^{}]*}", "…", clauses)


def notifications() -> Lines:
    yield from _head(
        "Notifications",
        "Those of machines have Ironic's names, on the topic `ironic_versioned_notifications`.",
        "Those of stacks are Heat's: `orchestration.stack.ACTION.start`, `.end` and `.error`.",
        "Those of resources are our own, on Heat's topics: `orchestration.resource.ACTION.start`, "
        "`.end` and `.error`, with the payload of the stack and "
        + ", ".join(f"`{name}`" for name in RESOURCE_FIELDS)
        + ".",
    )
    yield from ("", "## Events", "")
    for (noun, action), route in sorted(ROUTES.items()):
        yield from _entry(
            f"baremetal.{noun}.{action}", f"`{route.notification}` with `{route.payload}`."
        )
    yield from ("## Payloads", "")
    for payload in payloads.PAYLOADS.values():
        fields = ", ".join(f"`{name}`" for name in sorted(payload.fields))
        yield from _entry(payload.name, f"Version {payload.version}.", f"Fields: {fields}.")


def commands() -> Lines:
    yield from _head("Commands", "`bloomery COMMAND --help` prints the same.")
    context = main.make_context("bloomery", [], resilient_parsing=True)
    for name in COMMANDS:
        command = main.get_command(context, name)
        assert command is not None
        yield from _command(command, click.Context(command, parent=context, info_name=name), 2)


def _command(command: click.Command, context: click.Context, level: int) -> Lines:
    yield from ("", f"{'#' * level} {context.command_path}", "")
    yield from ("```text", command.get_help(context), "```")
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from _command(
                child, click.Context(child, parent=context, info_name=name), level + 1
            )


def _head(title: str, *sentences: str) -> Lines:
    yield from (
        f"# {title}",
        "",
        *sentences,
        "This page is generated from declarations in the code.",
        "",
    )


def _entry(term: str, *paragraphs: str) -> Lines:
    """Yield one entry of a definition list."""
    told = [text for text in paragraphs if text] or ["No description."]
    yield from (f"`{term}`", f": {told[0]}", "")
    for text in told[1:]:
        yield from (f"  {text}", "")


def _plain(text: str) -> str:
    """Return text as one line that Markdown shows as it is; code between backticks stays code."""
    parts = " ".join(text.replace("``", "`").split()).split("`")
    parts[::2] = [re.sub(r"([*_<>{}$])", r"\\\1", part) for part in parts[::2]]
    return _capital("`".join(parts))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


PAGES: Final[Mapping[str, Callable[[], Lines]]] = {
    "options": options,
    "policies": policies,
    "endpoints": endpoints,
    "stack-endpoints": stack_endpoints,
    "properties": resource_kinds,
    "metrics": metric_names,
    "causes": causes_of_why,
    "notifications": notifications,
    "commands": commands,
}


def write(folder: Path) -> None:
    """Write every page into ``folder``."""
    for name, lines in PAGES.items():
        (folder / f"{name}.md").write_text("\n".join(lines()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
