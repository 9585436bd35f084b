"""Tables and drawings of the commands; JSON output has the documents behind the lines."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from bloomery import errors
from bloomery.cli.terminal import MOST_CHARS, as_json, brief, columns, visible
from bloomery.orchestration.drawing import Box, Picture
from bloomery.orchestration.resources import composite
from bloomery.orchestration.resources.states import STACK_TYPE
from bloomery.orchestration.simulation import Event, Result
from bloomery.orchestration.simulation.results import Error
from bloomery.orchestration.stack import Stack, children
from bloomery.orchestration.stack.secrecy import Secrecy
from bloomery.orchestration.template import environment
from bloomery.orchestration.template.functions import base
from bloomery.orchestration.template.functions.base import Function

NAME_WIDTH: Final = 24  # of the column of names in events
LEAST_WIDTH: Final = 12  # of a name in it, at any depth
INTERRUPTED: Final = "Interrupted"  # in JSON output after Ctrl-C
UNDESCRIBED: Final = ("No description", "No description given")


# -------------------------------------------------------------------------------- validate and show


def summary(stack: Stack) -> str:
    definition = stack.definition
    numbers = (
        (len(definition.resources), "resource"),
        (len(definition.parameters.schemas), "parameter"),
        (len(definition.outputs), "output"),
    )
    return ", ".join(f"{n} {word}{'' if n == 1 else 's'}" for n, word in numbers)


def document(stack: Stack) -> dict[str, Any]:
    """Return all that is known of a stack before its creation; hidden values are masked."""
    definition = stack.definition
    schemas = definition.parameters.schemas
    secrecy = Secrecy(stack)
    values = secrecy.serialized_parameters(definition.parameters)
    resources = []
    for name in stack.order:
        resource = stack.definitions[name]
        tree = resource.properties if isinstance(resource.properties, dict) else {}
        properties = {}
        for key, value in tree.items():
            is_leaf = not isinstance(value, dict | list | Function)
            is_secret = is_leaf and secrecy.is_secret(name, key)
            properties[key] = environment.MASKED if is_secret else _value(stack, secrecy, value)
        requires = sorted(stack.graph.requires(name))
        resources.append(
            {"name": name, "type": resource.type, "requires": requires, "properties": properties}
        )
    return {
        "name": definition.identity.name,
        "description": definition.template.description,
        "parameters": {
            name: {
                "type": str(schema.kind),
                "value": values[name],
                "description": schema.description or "",
            }
            for name, schema in schemas.items()
        },
        "resources": resources,
        "outputs": {
            name: {"description": output.description, "enabled": output.enabled}
            for name, output in definition.outputs.items()
        },
    }


def _value(stack: Stack, secrecy: Secrecy, tree: Any) -> Any:
    """Return a property: calls for resources stay calls, calls for secrets are masked.

    Lists and maps are masked part by part.
    """
    if isinstance(tree, dict):
        return {key: _value(stack, secrecy, value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [_value(stack, secrecy, value) for value in tree]
    if not isinstance(tree, Function):
        return tree
    if secrecy.secret_names_in(tree):
        return environment.MASKED
    if any(True for _ in base.references(tree, stack.view)):
        return _call(tree)
    try:
        return base.resolve(tree, stack.view)
    except errors.Failure as exc:
        return f"({exc})"


def _call(tree: Any) -> Any:
    """Return a call as in the template."""
    if isinstance(tree, Function):
        return {tree.name: _call(tree.args)}
    if isinstance(tree, dict):
        return {key: _call(value) for key, value in tree.items()}
    return [_call(value) for value in tree] if isinstance(tree, list | tuple) else tree


def text(document: Mapping[str, Any]) -> str:
    """Return the document of a stack as sections of lines."""
    described = _described(document["description"])
    lines = [visible(f"{document['name']}: {described}" if described else document["name"])]
    parameters = (
        (name, entry["type"], brief(entry["value"]), entry["description"])
        for name, entry in document["parameters"].items()
    )
    lines += _section("parameters", columns(parameters))
    resources = []
    for entry in document["resources"]:
        after = f"  after {', '.join(entry['requires'])}" if entry["requires"] else ""
        resources.append(visible(f"{entry['name']}  {entry['type']}{after}"))
        values = entry["properties"].items()
        resources += (visible(f"    {key}: {brief(value)}") for key, value in values)
    lines += _section("resources, in the order of creation", resources)
    outputs = document["outputs"].items()
    rows = [
        (name, _described(entry["description"]) if entry["enabled"] else "(off)")
        for name, entry in outputs
    ]
    return "\n".join([*lines, *_section("outputs", columns(rows))])


def _described(description: str) -> str:
    """Return a description on one line; "" for the default description."""
    return "" if description in UNDESCRIBED else " ".join(description.split())


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return ["", f"{title}:", *(f"  {line}" for line in lines)] if lines else []


# ------------------------------------------------------------------------------------------- run


class Events:
    """Print each event when it arrives."""

    def __init__(self, write: Callable[[str], object], began_s: float) -> None:
        self._write = write
        self._began_s = began_s

    def __call__(self, event: Event) -> None:
        since = f"{event.at_s - self._began_s:8.1f} s"
        indent, name = "  " * event.depth, event.resource
        room = max(NAME_WIDTH - len(indent), LEAST_WIDTH)
        if event.type == STACK_TYPE and len(name) > room:  # a long path of stacks
            tail = (room - 3) // 2  # distinguishes nested stacks of one resource
            name = f"{name[: room - 3 - tail]}...{name[-tail:]}"
        line = f"{since}  {event.state:20}  {indent + name:{NAME_WIDTH}}  {event.reason}"
        self._write(visible(line.rstrip()))


def quiet(event: Event) -> None:
    """Print no events."""


def interrupted(events: Sequence[Event]) -> Result:
    """Return the document of an interrupted simulation."""
    whole = (event for event in reversed(events) if event.type == STACK_TYPE and not event.depth)
    reason = "interrupted before the end; what was made was in memory only and is gone"
    error = Error(type=INTERRUPTED, message=reason)
    return Result(status=next((event.state for event in whole), None), reason=reason, error=error)


def outcome(result: Result, timeout_s: float) -> str:
    lines = _section(
        "resources",
        columns(
            (entry.name, entry.state, entry.type, entry.physical_id or "-")
            for entry in result.resources
        ),
    )
    outputs: list[str] = []  # each in full: beside its name, or in lines below it
    width = max(map(len, result.outputs), default=0)
    for name, output in result.outputs.items():
        text = whole(output.value) if output.error is None else f"error: {output.error.message}"
        if "\n" not in text:
            outputs.append(visible(f"{name:{width}}  {text}".rstrip()))
            continue
        outputs.append(visible(f"{name}:"))
        value_lines = text.removesuffix("\n").split("\n")
        outputs += (visible(f"    {line}").rstrip() for line in value_lines)
    lines += _section("outputs", outputs)
    begun = f"{result.status}: " if result.status else ""
    reason = result.reason or (result.error.message if result.error else "")
    if result.error and result.error.type == "StackTimedOut":
        reason += f" after {timeout_s / 60:g} minutes; --timeout allows for more"
    return "\n".join([*lines, "", visible(f"{begun}{reason}")])


# ------------------------------------------------------------------------------------------ graph


def picture(stack: Stack) -> Picture:
    """Draw ``stack`` from its template."""
    edges: list[tuple[str, str]] = []
    boxes = _boxes(stack, "", edges)
    return Picture(title=stack.definition.identity.name, boxes=boxes, edges=edges)


def _boxes(stack: Stack, prefix: str, edges: list[tuple[str, str]]) -> list[Box]:
    """Return the resources of a stack, with ``prefix`` before their keys.  Add to ``edges``.

    A nested stack that depends on later values has no boxes.
    """
    boxes = []
    for name in stack.order:
        key, nested = f"{prefix}{name}", None
        edges.extend((key, f"{prefix}{each}") for each in sorted(stack.graph.requires(name)))
        if issubclass(stack.kind(name), composite.Composite):
            with contextlib.suppress(errors.Failure):
                child = children.preview(stack, name, stack.properties(name, stack.view), {})
                assert isinstance(child, composite.Composite)
                nested = children.child_stack(stack, child)
        inside = None if nested is None else _boxes(nested, f"{key}/", edges)
        boxes.append(Box(key=key, name=name, kind=stack.definitions[name].type, inside=inside))
    return boxes


# ----------------------------------------------------------------------------------------- helpers


def whole(value: Any) -> str:
    """Return a whole value: a text as it is, a list or map on one line if it fits, else on many."""
    if isinstance(value, str):
        return value
    text = as_json(value)
    return text if len(text) <= MOST_CHARS else as_json(value, indent=2)
