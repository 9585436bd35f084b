"""``bloomery stack``: stacks of a service, over its REST API.

clouds.yaml names the service (cloud.py).  Files that a template names are sent along, as ``bloomery
template`` finds them.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import click

from bloomery.cli import (
    cloud,
    groups,
    plan_text,
    stack_history,
    stack_import,
    stack_machines,
    stack_orders,
    stacks,
    terminal,
)
from bloomery.cli.client import ApiError, Outage
from bloomery.cli.stack_orders import StackOrder
from bloomery.cli.stacks import Json
from bloomery.cli.template import commands as template_commands
from bloomery.cli.template import files, loader

EMPTY: Final = {"heat_template_version": "2021-04-16"}
POLL_S: Final = 1.0
NAME = click.argument("name")
RESOURCE = click.argument("resource")
REASON = click.option("--reason", metavar="TEXT", help="Why, for the history of the resource.")
CONVERGE = click.option(
    "--converge", is_flag=True, help="Compare with what is really there, and bring it back."
)
EXISTING = click.option(
    "--existing", is_flag=True, help="Keep parameters and environment that are not said again."
)


@click.group(cls=groups.Group)
@click.option("--cloud", "name", metavar="NAME", help="Of clouds.yaml.  [default: $OS_CLOUD]")
@click.pass_context
def stack(ctx: click.Context, name: str | None) -> None:
    """Plan, create, change, watch and delete stacks of a running service."""
    ctx.obj = lambda: cloud.find(name)


stack.add_command(stack_history.history)
stack.add_command(stack_history.diff)
stack.add_command(stack_machines.act)
Find = Callable[[], cloud.Cloud]


@stack.command("list")
@groups.AS_JSON
@click.pass_obj
def list_(find: Find, as_json: bool) -> None:
    """List the stacks of the project, newest first."""
    documents = find().orchestration.get("/stacks")["stacks"]
    if as_json:
        click.echo(json.dumps(documents, indent=2))
        return
    if not documents:
        click.echo("no stacks in this project; bloomery stack up FILE makes one", err=True)
        return
    rows = [
        (each["stack_name"], each["stack_status"], each["updated_time"] or each["creation_time"],
         each["id"])
        for each in documents
    ]  # fmt: skip
    _echo_rows([("NAME", "STATUS", "CHANGED", "ID"), *rows])


@stack.command()
@NAME
@groups.AS_JSON
@click.pass_obj
def show(find: Find, name: str, as_json: bool) -> None:
    """Show the state of a stack, its resources and its outputs."""
    service = find()
    client = service.orchestration
    path = stacks.path_of(stacks.get(client, name))
    document = stacks.document(client, path)
    resources = document["resources"]
    explanation = stacks.why(service.extensions, document["id"])
    leftovers = explanation.get("leftover", [])
    if as_json:
        click.echo(json.dumps(document | {"leftover": leftovers}, indent=2))
        return
    terminal.echo(f"{document['stack_name']}: {_state(document)}")
    owners, leaving = stacks.by_physical_id(resources), stacks.leaving(explanation)
    rows = []
    for each in resources:
        path, state = stacks.path_of_resource(owners, each), each["resource_status"]
        reason = str(each["resource_status_reason"] or "")
        if path in leaving:
            reason = stacks.LEAVING
        elif not state.endswith("FAILED") and not stacks.says_more(state, reason):
            reason = ""
        physical_id = each["physical_resource_id"] or "-"
        rows.append((path, state, each["resource_type"], physical_id, reason))
    rows += [
        (each["path"], each["state"], each["type"], each["physical_resource_id"] or "-",
         stacks.LEFT_OVER)
        for each in leftovers
    ]  # fmt: skip
    _echo_rows(rows)
    _echo_outputs(document["outputs"])


@stack.command()
@NAME
@groups.AS_JSON
@click.pass_obj
def why(find: Find, name: str, as_json: bool) -> None:
    """Explain what a stack waits for, what failed or differs, and what to do next."""
    service = find()
    uuid = stacks.get(service.orchestration, name)["id"]
    document = service.extensions.get(f"/ext/v1/stacks/{uuid}/why")
    if as_json:
        click.echo(json.dumps(document, indent=2))
        return
    terminal.echo(f"{document['stack_name']}: {_state(document)}")
    for each in document["waiting"]:
        span = plan_text.span(each["age_s"])
        line = f"{_place(each)} waits for {each['for']}; {each['state']} for {span}"
        terminal.echo(f"  {line}")
    for each in document["failed"]:
        terminal.echo(f"  {_place(each)} is {each['state']}: {each['reason']}")
        node = each.get("node")
        if node and node["next_action"] not in each["reason"]:
            line = f"node {node['name'] or node['uuid']} is {node['provision_state']}; "
            terminal.echo(f"    {line}{node['next_action']}")
    for each in document["drifted"]:
        terminal.echo(f"  {_drift_line(each)}")
    for each in document.get("leaving", ()):
        terminal.echo(f"  {_place(each)} {stacks.LEAVING}")
    for each in document.get("leftover", ()):
        node = each["node"] or {}
        place = f"on node {node.get('name') or node['uuid']}" if node else each["type"]
        terminal.echo(f"  {_place(each)} {place}, {each['state']}: {stacks.LEFT_OVER}")
    terminal.echo(f"next: {document['next_action']}")


@stack.command()
@NAME
@click.option("--follow", "-f", is_flag=True, help="Go on with those that come, until Ctrl-C.")
@click.pass_obj
def events(find: Find, name: str, follow: bool) -> None:
    """Print the events of a stack and of its nested stacks, oldest first."""
    client = find().orchestration
    log = stacks.EventLog(client, stacks.path_of(stacks.get(client, name)))
    for each in log.new_events():
        _echo_event(each)
    outage = Outage(lambda sentence: click.echo(sentence, err=True))
    try:
        while follow:
            time.sleep(POLL_S)
            try:
                for each in log.new_events():
                    _echo_event(each)
                outage.end()
            except ApiError as exc:
                outage.tolerate(exc)
    except KeyboardInterrupt:
        return


@stack.command()
@stack_orders.FILE
@stack_orders.NAME
@template_commands.stack_options()
@EXISTING
@stack_orders.REVISION
@stack_orders.TARGET
@CONVERGE
@stack_orders.OUT
@click.option("--free", is_flag=True,
              help="Show the machines of each class: reserved, free, needed, left.")  # fmt: skip
@groups.AS_JSON
@click.pass_obj
def plan(
    find: Find,
    file: str | None,
    name: str | None,
    environments: tuple[str, ...],
    parameters: tuple[str, ...],
    existing: bool,
    revision: int | None,
    targets: tuple[str, ...],
    converge: bool,
    out: str | None,
    free: bool,
    as_json: bool,
) -> None:
    """Show what up with the same arguments would do; nothing is changed.

    NAME is the stack's; made from the file's if not given.
    """
    client = find().orchestration
    order = stack_orders.read(
        file, name, environments, parameters, existing=existing, revision=revision,
        targets=targets,
    )  # fmt: skip
    present = stack_orders.find_updatable(client, order.name)
    order.body.update({"converge": True} if converge and present else {})
    order, document = stack_orders.plan(client, order, present, targets, free=free)
    if out is not None:
        stack_orders.save(out, order, present, document)
    if as_json:
        click.echo(json.dumps(document, indent=2))
    else:
        _echo_plan(document["plan"], order, converge=converge)
    if free and not as_json:
        rows = [
            (each["resource_class"], ",".join(each["traits"]) or "-",
             *(str(each[key]) for key in stack_orders.CAPACITY))
            for each in document["plan"].get("capacity", ())
        ]  # fmt: skip
        heads = ("CLASS", "TRAITS", *(key.upper() for key in stack_orders.CAPACITY))
        click.echo()
        _echo_rows([heads, *rows] if rows else [("no machine is needed or given back",)])


@stack.command()
@stack_orders.FILE
@stack_orders.NAME
@template_commands.stack_options()
@EXISTING
@stack_orders.REVISION
@stack_orders.TARGET
@stack_orders.PLAN
@CONVERGE
@stack_orders.OVERRIDE
@groups.YES
@click.option("--rollback", is_flag=True, help="Take back what was done if something fails.")
@click.option("--timeout", "timeout_s", type=groups.DURATION, metavar="TIME",
              help="How long the service may take, in full minutes: 15m, 4h.")  # fmt: skip
@groups.AS_JSON
@click.pass_obj
def up(
    find: Find,
    file: str | None,
    name: str | None,
    environments: tuple[str, ...],
    parameters: tuple[str, ...],
    existing: bool,
    revision: int | None,
    targets: tuple[str, ...],
    plan_file: str | None,
    converge: bool,
    override_checks: bool,
    yes: bool,
    rollback: bool,
    timeout_s: float | None,
    as_json: bool,
) -> None:
    """Create the stack of FILE, or update it: show the plan, ask, and watch.

    NAME is the stack's; made from the file's if not given. Ends with 0 if the stack is complete.
    Ctrl-C ends the watching; the stack goes on. With --json standard output has the stack alone.
    """
    service = find()
    client = service.orchestration
    if plan_file is None:
        order = stack_orders.read(
            file, name, environments, parameters, existing=existing, revision=revision,
            targets=targets,
        )  # fmt: skip
    elif file or name or environments or parameters or existing or revision or targets or converge:
        raise click.UsageError("--plan has the stack and all of its options: leave them out")
    else:
        order = stack_orders.load(client, plan_file)
    stack_name, present = order.name, stack_orders.find_updatable(client, order.name)
    order.body.update({"converge": True} if converge and present else {})
    order, document = stack_orders.plan(client, order, present, targets)
    stack_orders.check_steps(order, document)
    _echo_plan(document["plan"], order, converge=converge, err=as_json)
    is_complete = present is not None and present["stack_status"].endswith("COMPLETE")
    if is_complete and not plan_text.changes_anything(document["plan"]):
        if as_json and present is not None:
            click.echo(json.dumps(stacks.document(client, stacks.path_of(present)), indent=2))
        return
    groups.confirm(f"{'Update' if present else 'Create'} stack {stack_name}?", yes=yes)
    body: Json = {"disable_rollback": not rollback}
    body |= {"timeout_mins": math.ceil(timeout_s / 60)} if timeout_s else {}
    body |= {"override_checks": True} if override_checks and present else {}
    _carry_out(service, order, present, document, body, as_json=as_json)


@stack.command()
@NAME
@RESOURCE
@REASON
@click.option("--keep-in-pool", is_flag=True,
              help="Let others have the old machine, once it is clean.")  # fmt: skip
@stack_orders.OVERRIDE
@groups.YES
@groups.AS_JSON
@click.pass_obj
def replace(
    find: Find, name: str, resource: str, reason: str | None, keep_in_pool: bool,
    override_checks: bool, yes: bool, as_json: bool,
) -> None:  # fmt: skip
    """Give an Instance another machine: show the plan, ask, and watch.

    RESOURCE is its name, or GROUP/MEMBER. The old machine is erased, retired with the reason, and
    becomes manageable: nobody gets it until somebody has ended its retirement.
    """
    order = {"action": "replace", "reason": reason, "quarantine": not keep_in_pool}
    _order_machine(
        find(), name, resource, order, override=override_checks, yes=yes, as_json=as_json
    )


@stack.command()
@NAME
@RESOURCE
@REASON
@stack_orders.OVERRIDE
@groups.YES
@groups.AS_JSON
@click.pass_obj
def rebuild(
    find: Find, name: str, resource: str, reason: str | None, override_checks: bool, yes: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Write the system of an Instance again, on the machine that it has: plan, ask, and watch.

    RESOURCE is its name, or GROUP/MEMBER. The data on its root disk is lost, unless the machine
    only boots an ISO.
    """
    order = {"action": "rebuild", "reason": reason}
    _order_machine(
        find(), name, resource, order, override=override_checks, yes=yes, as_json=as_json
    )


@stack.command()
@NAME
@click.option("--adopt-file", "file", required=True, metavar="FILE",
              help="What export or abandon of a stack printed, here or in Heat.")  # fmt: skip
@template_commands.stack_options()
@groups.AS_JSON
@click.pass_obj
def adopt(
    find: Find,
    name: str,
    file: str,
    environments: tuple[str, ...],
    parameters: tuple[str, ...],
    as_json: bool,
) -> None:
    """Make a stack of resources that are there, and watch; nothing is created.

    Environments and parameters add to those of the file. Ends with 0 if the stack is complete.
    """
    bundle = files.FileBundle()
    data = stack_orders.read_document(bundle.document, file)
    inputs = stack_orders.inputs_of(bundle, environments, parameters)
    _adopt(find(), loader.checked_name(name), data, inputs, as_json=as_json)


@stack.command("import")
@click.argument("nodes", nargs=-1, required=True, metavar="NODE...")
@click.option("--as", "name", required=True, metavar="NAME", help="The name of the stack.")
@click.option("--group", metavar="RESOURCE",
              help="Make them the members of an InstanceGroup; they have to be alike.")  # fmt: skip
@click.option("--out", "folder", type=click.Path(file_okay=False, path_type=Path), default=".",
              metavar="FOLDER", show_default=True, help="Where the files are written.")  # fmt: skip
@click.option("--yes", "-y", is_flag=True, help="Adopt the machines, too.")
@groups.AS_JSON
@click.pass_obj
def import_(
    find: Find, nodes: tuple[str, ...], name: str, group: str | None, folder: Path, yes: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Write the template of a stack of machines that run, and with --yes adopt them, untouched.

    The files are NAME.yaml, NAME-environment.yaml and NAME-adopt.json, which stack adopt takes.
    """
    service = find()
    machines = stack_import.read(service, nodes, loader.checked_name(name))
    data = stack_import.adopt_data(name, machines, group)
    stack_import.write(folder, name, data)
    if yes:
        _adopt(service, name, data, {}, as_json=as_json)
    elif as_json:
        click.echo(json.dumps(data, indent=2))
    template, environment, document = stack_import.paths(folder, name)
    if not yes:
        terminal.echo(
            f"adopt them by: bloomery stack adopt {name} --adopt-file {document}", err=True
        )
    terminal.echo(
        f"then change them by: bloomery stack up {template} {name} -e {environment}", err=True
    )


@stack.command()
@NAME
@groups.AS_JSON
@click.pass_obj
def check(find: Find, name: str, as_json: bool) -> None:
    """Compare every machine of a stack with its template; nothing is changed.

    Each difference is shown as the reason of its resource. Ends with 0 if there is none.
    """
    client = find().orchestration
    present = stacks.get(client, name)
    run = stacks.StackRun(client, present["stack_name"], limit_s=None, to_stderr=as_json)
    _watched(run, present["stack_name"], lambda: run.check(present), as_json=as_json)


@stack.command()
@NAME
@groups.YES
@groups.AS_JSON
@click.pass_obj
def down(find: Find, name: str, yes: bool, as_json: bool) -> None:
    """Delete a stack and watch it; first name the machines that lose their data, and ask."""
    client = find().orchestration
    present = stacks.get(client, name)
    # the plan of an empty template names the machines that lose their disks
    empty = StackOrder(name=present["stack_name"], body={"template": EMPTY}, source="")
    preview = stack_orders.preview(client, empty, present)
    for step in preview["plan"]["steps"]:
        if step["loses_data"] and step["machine"]:
            why = ", left over from an earlier update" if step.get("leftover") else ""
            node = step.get("node") or step["machine"]
            ends = "deleted" in step["verbs"]
            if step["certain"]:
                fate = "undeployed, and its data is lost" if ends else "its data is lost"
            else:
                fate = "may be undeployed, and lose its data" if ends else "may lose its data"
                why += f": {step['reason'].removeprefix('no longer in the template; ')}"
            line = f"node {node}: {fate} ({step['resource']}{why})"
            terminal.echo(line, err=as_json)
    groups.confirm(f"Delete stack {present['stack_name']}?", yes=yes)
    run = stacks.StackRun(client, present["stack_name"], limit_s=None, to_stderr=as_json)
    _watched(run, present["stack_name"], lambda: run.delete(present), as_json=as_json)


# ------------------------------------------------------------------------------------- helpers


def _adopt(service: cloud.Cloud, name: str, data: Json, inputs: Json, *, as_json: bool) -> None:
    """Adopt a stack of this document, and watch it."""
    body = inputs | {"disable_rollback": True, "adopt_stack_data": json.dumps(data)}
    run = stacks.StackRun(
        service.orchestration, name, limit_s=None, extensions=service.extensions, to_stderr=as_json
    )
    try:
        _watched(run, name, lambda: run.create(body), as_json=as_json)
    except click.ClickException:
        line = f"openstack stack abandon {name} leaves what was adopted as it is; down undeploys it"
        click.echo(line, err=True)
        raise


def _order_machine(
    service: cloud.Cloud, name: str, resource: str, machine_order: Json, *, override: bool,
    yes: bool, as_json: bool,
) -> None:  # fmt: skip
    """Update a stack as it is, with an order for one of its machines."""
    client, body = service.orchestration, {"resource_orders": {resource: machine_order}}
    order = StackOrder(name=name, body=body, source=name, existing=True)
    present = stacks.get(client, name)
    document = stack_orders.preview(client, order, present)
    _echo_plan(document["plan"], order, converge=False, err=as_json)
    action = str(machine_order["action"]).capitalize()
    groups.confirm(f"{action} {resource} of stack {present['stack_name']}?", yes=yes)
    more = {"override_checks": True} if override else {}
    _carry_out(service, order, present, document, more, as_json=as_json)


def _carry_out(
    service: cloud.Cloud, order: StackOrder, present: Json | None, document: Json, more: Json, *,
    as_json: bool,
) -> None:  # fmt: skip
    """Send an order whose plan was shown, with ``more`` in its body, and watch it."""
    body = order.request | more
    if "basis" in document["plan"]:  # of a saved plan: its own
        body = {"plan_basis": document["plan"]["basis"]} | body
    run = stacks.StackRun(
        service.orchestration, order.name, limit_s=None, extensions=service.extensions,
        to_stderr=as_json,
    )  # fmt: skip
    _watched(run, order.name, lambda: run.update(present, body, existing=order.existing) if present
             else run.create(body), as_json=as_json)  # fmt: skip


def _echo_plan(plan: Json, order: StackOrder, *, converge: bool, err: bool = False) -> None:
    """Print a plan, the waits that an update ends, and machines that differ from the template."""
    click.echo(plan_text.text(plan), err=err)
    for line in stack_orders.left_open(plan):
        terminal.echo(line, err=err)
    for each in plan.get("paused", ()):
        line = f"{each['resource']}: {each['reason']}; an update ends this wait"
        terminal.echo(line, err=True)
    drifted = () if converge else plan.get("drifted", ())
    for each in drifted:
        terminal.echo(_drift_line(each), err=True)
    if drifted:
        command = f"bloomery stack up {order.source} --converge"
        terminal.echo(f"an update leaves that as it is, unless: {command}", err=True)


def _drift_line(entry: Json) -> str:
    differences = "; ".join(entry["differences"].values())
    return f"{_place(entry)} differs since {entry['since']}: {differences}"


def _watched(run: stacks.StackRun, name: str, order: Callable[[], None], *, as_json: bool) -> None:
    """Send the request, watch it, and print the outputs, or with --json the stack.

    Exit with 1 if it fails, with a hint on how to watch on.
    """
    order()
    try:
        stack = run.watch_to_end()
    except KeyboardInterrupt:
        click.echo(
            f"\nstack {name} goes on; look on with: bloomery stack events {name} --follow", err=True
        )
        raise SystemExit(groups.INTERRUPTED) from None
    if as_json:
        click.echo(json.dumps(run.document(), indent=2))
    if not stack["stack_status"].endswith("COMPLETE") or "ROLLBACK" in stack["stack_status"]:
        reason = terminal.visible(str(stack["stack_status_reason"]))
        why = "" if run.has_printed(reason) else f": {reason}"
        raise click.ClickException(f"stack {name} is {stack['stack_status']}{why}")
    if not as_json and not stack["stack_status"].startswith("DELETE"):
        _echo_outputs(run.document()["outputs"])


def _echo_event(event: Json) -> None:
    line = (
        f"{event['event_time']}  {event['resource_status']:20}  "
        f"{event['resource_name']}  {event['resource_status_reason'] or ''}"
    )
    terminal.echo(line.rstrip())


def _place(entry: Json) -> str:
    """Return the path of a resource; older services send its name alone."""
    return str(entry.get("path", entry["resource"]))


def _state(document: Json) -> str:
    return f"{document['stack_status']}: {document['stack_status_reason'] or ''}".rstrip(": ")


def _echo_rows(rows: Iterable[Iterable[Any]]) -> None:
    for line in terminal.columns([tuple(row) for row in rows]):
        click.echo(line)


def _echo_outputs(outputs: Iterable[Json]) -> None:
    for each in sorted(outputs, key=lambda each: str(each["output_key"])):
        value = each.get("output_error") or terminal.brief(each.get("output_value"))
        terminal.echo(f"{each['output_key']}: {value}")
