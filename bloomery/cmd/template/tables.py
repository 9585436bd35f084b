"""What the commands print, for people; programs get the documents these lines are made from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.plan import secrets
from bloomery.orchestration.rehearsal import Event, Result
from bloomery.orchestration.stack import Stack
from bloomery.orchestration.template import environment
from bloomery.orchestration.template.functions import base
from bloomery.orchestration.template.functions.base import Function

SHOWN_CHARS: Final = 100  # of one value on one line


# -------------------------------------------------------------------------------- validate and show


def counted(stack: Stack) -> str:
    definition = stack.definition
    numbers = (
        (len(definition.resources), "resource"),
        (len(definition.parameters.schemas), "parameter"),
        (len(definition.outputs), "output"),
    )
    return ", ".join(f"{n} {word}{'' if n == 1 else 's'}" for n, word in numbers)


def document(stack: Stack) -> dict[str, Any]:
    """Everything that is known of a stack before it exists; hidden values are masked."""
    definition = stack.definition
    schemas = definition.parameters.schemas
    shown = definition.parameters.shown()
    return {
        "name": definition.identity.name,
        "description": definition.template.description,
        "parameters": {
            name: {
                "type": str(schema.kind),
                "value": shown[name],
                "description": schema.description or "",
            }
            for name, schema in schemas.items()
        },
        "resources": [_resource(stack, name) for name in stack.order],
        "outputs": {
            name: {"description": output.description, "enabled": output.enabled}
            for name, output in definition.outputs.items()
        },
    }


def _resource(stack: Stack, name: str) -> dict[str, Any]:
    found = stack.definitions[name]
    tree = found.properties if isinstance(found.properties, dict) else {}
    return {
        "name": name,
        "type": found.type,
        "requires": sorted(stack.graph.requires(name)),
        "properties": {key: _value(stack, value) for key, value in tree.items()},
    }


def _value(stack: Stack, tree: Any) -> Any:
    """What a property is: what asks for a resource stays a call, what asks for a secret is masked.

    A list or a map is looked into, so that one such part hides no other.
    """
    if isinstance(tree, dict):
        return {key: _value(stack, value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_value(stack, value) for value in tree]
    if not isinstance(tree, Function):
        return tree
    if secrets.asks_hidden(stack, tree, stack.hidden):
        return environment.MASKED
    if any(True for _ in base.references(tree, stack.view)):
        return repr(tree)
    try:
        return base.resolve(tree, stack.view)
    except errors.Failure as exc:
        return f"({exc})"


def text(shown: Mapping[str, Any]) -> str:
    lines = [f"{shown['name']}: {' '.join(shown['description'].split())}"]
    lines += _section("parameters", [*_parameters(shown["parameters"])])
    lines += _section("resources, in the order of creation", [*_resources(shown["resources"])])
    outputs = shown["outputs"].items()
    rows = [(name, one["description"] if one["enabled"] else "(off)") for name, one in outputs]
    return "\n".join([*lines, *_section("outputs", columns(rows))])


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", f"{title}:", *(f"  {line}" for line in lines)] if lines else []


def _parameters(parameters: Mapping[str, Any]) -> list[str]:
    return columns(
        (name, one["type"], brief(one["value"]), one["description"])
        for name, one in parameters.items()
    )


def _resources(resources: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for one in resources:
        after = f"  after {', '.join(one['requires'])}" if one["requires"] else ""
        yield f"{one['name']}  {one['type']}{after}"
        for key, value in one["properties"].items():
            yield f"    {key}: {brief(value)}"


# ------------------------------------------------------------------------------------------- run


class Events:
    """Prints each event when it comes."""

    def __init__(self, write: Callable[[str], object], began_s: float) -> None:
        self._write = write
        self._began_s = began_s

    def __call__(self, event: Event) -> None:
        since = f"{event.at_s - self._began_s:8.1f} s"
        name = f"{'  ' * event.depth}{event.resource}"
        self._write(f"{since}  {event.state:20}  {name:24}  {event.reason}".rstrip())


def quiet(event: Event) -> None:
    """Print nothing."""


def outcome(result: Result) -> str:
    lines = _section(
        "resources",
        columns(
            (one.name, one.state, one.type, one.physical_id or "-") for one in result.resources
        ),
    )
    rows = [
        (name, brief(output.value) if output.error is None else f"error: {output.error.message}")
        for name, output in result.outputs.items()
    ]
    lines += _section("outputs", columns(rows))
    return "\n".join([*lines, "", f"{result.status}: {result.reason}"])


# ----------------------------------------------------------------------------------------- helpers


def columns(rows: Any) -> list[str]:
    """Lay out rows of texts in columns as wide as their widest entries."""
    rows = [tuple(" ".join(str(cell).split()) for cell in row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def brief(value: Any) -> str:
    said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return said if len(said) <= SHOWN_CHARS else f"{said[: SHOWN_CHARS - 3]}..."
