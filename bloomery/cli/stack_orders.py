"""The orders of ``bloomery stack plan`` and ``up``: from a template, or back to a revision."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import click

from bloomery import errors
from bloomery.cli import groups, stacks, terminal
from bloomery.cli.stacks import Json
from bloomery.cli.template import files, loader

REVISION: Final = click.option(
    "--revision", type=click.IntRange(min=1), metavar="NUMBER",
    help="Go back to a revision: its template, files and parameters. Name the stack alone.",
)  # fmt: skip
FILE: Final = click.argument("file", required=False)
NAME: Final = click.argument("name", required=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StackOrder:
    """``body``: of the request; ``source``: what a hint repeats, as the user typed it."""

    name: str
    body: Json
    source: str
    existing: bool = False


def read(
    file: str | None,
    name: str | None,
    environments: tuple[str, ...],
    parameters: tuple[str, ...],
    *,
    existing: bool = False,
    revision: int | None = None,
) -> StackOrder:
    """Read the files of an order.  Raises UsageError for arguments that do not fit together."""
    if file is None:
        raise click.UsageError("Missing argument 'FILE'.")
    if revision is None:
        file = groups.DOCUMENT.convert(file, None, None)
        stack_name = loader.checked_name(loader.Source(file=file, name=name).stack_name)
        body = body_of(file, environments, parameters)
        return StackOrder(
            name=stack_name, body=body, source=f"{file} {stack_name}", existing=existing
        )
    if name is not None or environments or parameters or existing:
        raise click.UsageError(
            "--revision takes the name of the stack alone: the revision has template, "
            "environment and parameters"
        )
    stack_name = loader.checked_name(file)
    source = f"{stack_name} --revision {revision}"
    return StackOrder(name=stack_name, body={"revision": revision}, source=source)


def body_of(file: str, environments: tuple[str, ...], parameters: tuple[str, ...]) -> Json:
    """Return the request's template, files, environments and parameters."""
    bundle = files.FileBundle()
    template = read_document(bundle.template, file)
    inputs = inputs_of(bundle, environments, parameters)
    for key, reason in bundle.unread.items():
        terminal.echo(f"{file}: hint: cannot read {key}: {reason}", err=True)
    return {"template": template, **inputs}


def inputs_of(
    bundle: files.FileBundle, environments: tuple[str, ...], parameters: tuple[str, ...]
) -> Json:
    """Return what a request has beside its template."""
    texts = {each: json.dumps(read_document(bundle.environment, each)) for each in environments}
    return {
        "files": bundle.files | texts,
        "environment_files": list(environments),
        "parameters": loader.parameters(parameters),
    }


def read_document(document: Callable[[str], Json], file: str) -> Json:
    """Return the document of ``file``; its faults name the file."""
    try:
        return document(file)
    except (errors.TemplateUnreadable, errors.RequestLimitExceeded) as exc:
        if file in str(exc):
            raise
        raise click.ClickException(terminal.visible(f"cannot read {file}: {exc}")) from exc


def find_updatable(client: Any, name: str) -> Json | None:
    """Return the stack, or None; refuse a stack that takes no update before a plan is shown."""
    present = stacks.find(client, name)
    state = "" if present is None else present["stack_status"]
    ways_out = {
        "DELETE_IN_PROGRESS": f"look on with: bloomery stack events {name} --follow",
        "DELETE_FAILED": f"delete it again: bloomery stack down {name}",
    }
    if way_out := ways_out.get(state):
        raise click.ClickException(f"cannot update stack {name}: it is {state}; {way_out}")
    return present


def preview(client: Any, order: StackOrder, present: Json | None) -> Json:
    """Return the service's preview; name the parameters that return to their default."""
    body = order.body
    if present is None and "revision" in body:
        raise stacks.StackNotThere(name=order.name)
    if present is None:
        document: Json = client.post("/stacks/preview", {"stack_name": order.name, **body})
        return document
    path = stacks.path_of(present)
    send = client.patch if order.existing else client.put
    changes: Json = send(f"{path}/preview", body)
    if order.existing or "revision" in body:
        return changes
    # the template's parameters that the stack has set and the request leaves out
    template, stored = body["template"], client.get(f"{path}/environment")
    texts = [json.loads(body["files"][each]) for each in body.get("environment_files", ())]
    repeated = set(body.get("parameters", ())).union(*map(_values, texts))
    for key in template.get("parameters") or template.get("Parameters") or {}:
        if key in _values(stored) and key not in repeated:
            line = f"{key} goes back to its default (keep it with --existing)"
            terminal.echo(line, err=True)
    return changes


def _values(environment: Json) -> set[str]:
    """Return the names of the parameters in an environment."""
    sections = ("parameters", "parameter_defaults")
    return {key for section in sections for key in environment.get(section) or {}}
