"""The orders of ``bloomery stack plan`` and ``up``: from a template, or back to a revision."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
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
PLAN: Final = click.option(
    "--plan", "plan_file", metavar="FILE",
    help="Carry out a plan that plan --out has written, unless something has changed since.",
)  # fmt: skip
OUT: Final = click.option(
    "--out", metavar="FILE",
    help="Write the plan for up --plan. It has the parameters, so that only you may read it.",
)  # fmt: skip
OVERRIDE: Final = click.option(
    "--override-checks", is_flag=True,
    help="Get past the operator's checks on plans, which takes a role.",
)  # fmt: skip
TARGET: Final = click.option(
    "--target", "targets", multiple=True, metavar="RESOURCE",
    help="Update this resource of the template alone; may be repeated. Keeps what --existing does.",
)  # fmt: skip
FORMAT: Final = "bloomery_plan"  # the key of a saved plan, and its version
CAPACITY: Final = ("nodes", "reserved", "free", "needed", "returned", "left")
_MOST_NAMED: Final = 10
_DECLARATIONS: Final = (  # sections that resources refer to
    "parameters", "conditions", "Parameters", "Conditions", "Mappings",
)  # fmt: skip
_VERSIONS: Final = ("heat_template_version", "HeatTemplateFormatVersion")
FILE: Final = click.argument("file", required=False)
NAME: Final = click.argument("name", required=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StackOrder:
    """``body``: of the request; ``source``: what a hint repeats, as the user typed it.

    ``saved``: the steps of the plan that the order carries out; None: no saved plan.
    ``text``: of the template's file; None: the order has another template than its file.
    """

    name: str
    body: Json
    source: str
    existing: bool = False
    saved: list[Json] | None = None
    text: str | None = None

    @property
    def request(self) -> Json:
        """The body with the template as its user wrote it, which the service keeps."""
        return self.body if self.text is None else self.body | {"template": self.text}


def read(
    file: str | None,
    name: str | None,
    environments: tuple[str, ...],
    parameters: tuple[str, ...],
    *,
    existing: bool = False,
    revision: int | None = None,
    targets: Sequence[str] = (),
) -> StackOrder:
    """Read the files of an order.  Raises UsageError for arguments that do not fit together."""
    if file is None:
        raise click.UsageError("Missing argument 'FILE'.")
    if revision is None:
        file = groups.DOCUMENT.convert(file, None, None)
        stack_name = loader.checked_name(loader.Source(file=file, name=name).stack_name)
        bundle = files.FileBundle()
        body = body_of(bundle, file, environments, parameters)
        return StackOrder(
            name=stack_name, body=body, source=f"{file} {stack_name}", existing=existing,
            text=bundle.verbatim.get(file),
        )  # fmt: skip
    if name is not None or environments or parameters or existing or targets:
        raise click.UsageError(
            "--revision takes the name of the stack alone: the revision has template, "
            "environment and parameters"
        )
    stack_name = loader.checked_name(file)
    source = f"{stack_name} --revision {revision}"
    return StackOrder(name=stack_name, body={"revision": revision}, source=source)


def body_of(
    bundle: files.FileBundle, file: str, environments: tuple[str, ...], parameters: tuple[str, ...]
) -> Json:
    """Return the request's template, files, environments and parameters."""
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


def preview(client: Any, order: StackOrder, present: Json | None, *, free: bool = False) -> Json:
    """Return the service's preview; name the parameters that return to their default.

    ``free``: the plan tells of the nodes that it needs and leaves free.
    """
    body, query = order.body, "?free=true" if free else ""
    if present is None and "revision" in body:
        raise stacks.StackNotThere(name=order.name)
    if present is None:
        document: Json = client.post(f"/stacks/preview{query}", {"stack_name": order.name, **body})
        return document
    path = stacks.path_of(present)
    send = client.patch if order.existing else client.put
    changes: Json = send(f"{path}/preview{query}", body)
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


def plan(
    client: Any, order: StackOrder, present: Json | None, targets: Sequence[str], *,
    free: bool = False,
) -> tuple[StackOrder, Json]:  # fmt: skip
    """Return the order for these resources alone (none: for all), and its preview.

    Its plan has ``left_open``: the steps and outputs that an update of all would have beside.
    Raises ClickException if another resource would change, too.
    """
    if not targets:
        return order, preview(client, order, present, free=free)
    if present is None:
        raise stacks.StackNotThere(name=order.name)
    order, path = replace(order, existing=True), stacks.path_of(present)
    whole = preview(client, order, present)["plan"]
    new, stored = order.body["template"], client.get(f"{path}/template")
    key = "resources" if "resources" in new else "Resources"
    resources = dict(stored.get(key) or {})
    for target in targets:
        if target in (new.get(key) or {}):
            resources[target] = new[key][target]
        elif resources.pop(target, None) is None:
            raise click.ClickException(
                f"neither the file nor stack {order.name} has a resource {target}"
            )
    declared = {
        section: {**(stored.get(section) or {}), **(new.get(section) or {})}
        for section in _DECLARATIONS if section in stored or section in new
    }  # fmt: skip
    versions = {name: new[name] for name in _VERSIONS if name in new}
    body = order.body | {
        "template": {**stored, **versions, **declared, key: resources},
        "files": client.get(f"{path}/files") | order.body["files"],
    }
    options = " ".join(f"--target {target}" for target in targets)
    order = replace(order, body=body, text=None, source=f"{order.source} {options}")
    document = preview(client, order, present, free=free)

    def others(steps: list[Json]) -> list[Json]:
        return [each for each in steps if each["resource"].partition("/")[0] not in targets]

    outputs = whole["outputs"].items() - document["plan"]["outputs"].items()
    document["plan"]["left_open"] = {"steps": others(whole["steps"]), "outputs": dict(outputs)}
    if follow := others(document["plan"]["steps"]):
        named = "; ".join(_steps(follow[:_MOST_NAMED]))
        raise click.ClickException(
            terminal.visible(f"cannot update {', '.join(targets)} alone: {named} would follow")
        )
    return order, document


def save(file: str, order: StackOrder, present: Json | None, document: Json) -> None:
    """Write a plan for ``load``, readable by the user alone."""
    plan = document["plan"]
    body = order.body | ({"plan_basis": plan["basis"]} if "basis" in plan else {})
    saved = {
        FORMAT: 1, "stack_name": order.name, "stack_id": present and present["id"],
        "existing": order.existing, "body": body, "plan": plan, "template_text": order.text,
    }  # fmt: skip
    write(Path(file), json.dumps(saved, indent=2) + "\n")


def write(path: Path, text: str) -> None:
    """Write a file that the user alone may read.  Raises ClickException."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.chmod(0o600)
        path.write_text(text, encoding="utf-8")
    except OSError as exc:
        raise click.ClickException(f"cannot write {path}: {exc.strerror}") from exc


def load(client: Any, file: str) -> StackOrder:
    """Read a saved plan, for the stack that it was made for.

    Raises ClickException if the file is no plan, or if that stack is not there, or there by now.
    """
    try:
        saved = json.loads(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else "it is no JSON"
        raise click.ClickException(f"cannot read {file}: {why}") from exc
    if not isinstance(saved, dict) or saved.get(FORMAT) != 1:
        raise click.ClickException(
            f"cannot read {file}: it is no plan that bloomery stack plan --out has written"
        )
    name, uuid = saved["stack_name"], saved["stack_id"]
    present = stacks.find(client, name)
    if (present and present["id"]) != uuid:
        if uuid is None:
            now = "a stack of this name is there by now"
        else:
            now = "it is gone" if present is None else "another one has its name now"
        raise click.ClickException(
            f"cannot carry out the plan for stack {name}: {now}. Make the plan again."
        )
    return StackOrder(
        name=name, body=saved["body"], source=f"--plan {file}", existing=saved["existing"],
        saved=saved["plan"]["steps"], text=saved.get("template_text"),
    )  # fmt: skip


def check_steps(order: StackOrder, document: Json) -> None:
    """Raise ClickException if the steps are not those of the saved plan.

    The basis of a plan does not have free nodes, nor the configuration of the service.
    """
    if order.saved is None:
        return
    before, after = _steps(order.saved), _steps(document["plan"]["steps"])
    changes = [f"{each} (new)" for each in after if each not in before]
    changes += [f"{each} (gone)" for each in before if each not in after]
    if changes:
        more = len(changes) - _MOST_NAMED
        named = "; ".join(changes[:_MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")
        raise click.ClickException(
            terminal.visible(
                f"cannot carry out the plan for stack {order.name}: it would do something else "
                f"now: {named}. Make the plan again."
            )
        )


def left_open(plan: Json) -> list[str]:
    """Return what an update of a part leaves for the next one."""
    rest = plan.get("left_open", {"steps": [], "outputs": {}})
    outputs = [f"output {name}: {action}" for name, action in sorted(rest["outputs"].items())]
    return [f"left open: {each}" for each in [*_steps(rest["steps"]), *outputs]]


def _steps(steps: list[Json]) -> list[str]:
    return [
        f"{each['resource']}: {each['action']}"
        + (f" on node {each['node']}" if each["node"] else "")
        + (", data lost" if each["loses_data"] else "")
        + "".join(
            f", {value['path']} {value['after']}"  # that the plan of a new lookup has read
            for value in (each["differences"] if each["action"] == "create" else ())
        )
        for each in steps
    ]


def _values(environment: Json) -> set[str]:
    """Return the names of the parameters in an environment."""
    sections = ("parameters", "parameter_defaults")
    return {key for section in sections for key in environment.get(section) or {}}
