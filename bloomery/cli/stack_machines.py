"""``bloomery stack act``: order something of the machines of a stack, as they are.

The template is not asked, and does not change.  An order is one of ``nodes:act``, with the rights
of the caller for each node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import click
import yaml

from bloomery import parsing
from bloomery.cli import cloud, groups, stacks, terminal
from bloomery.cli.client import ApiError
from bloomery.cli.fleet import Watch
from bloomery.cli.node_orders import POWER, Orders, Watching, power_order
from bloomery.cli.stacks import Json

INSTANCE: Final = "OS::Ironic::Instance"
MARK: Final = "stack"  # in instance_info: the resource that has the node
_SERVICE: Final = "service"
_ACTIONS: Final = {"reboot": "reboot", "power on": "on", "power off": "off", _SERVICE: _SERVICE}
_OFF: Final = (
    "a machine that is off differs from its template, unless that says power: off; openstack "
    "stack suspend {name} switches off what resume switches on again"
)


@click.command()
@click.argument("name")
@click.argument("words", nargs=-1, required=True, metavar="ACTION")
@click.option("--resource", "paths", multiple=True, metavar="RESOURCE",
              help="Only machines of this resource, such as a group; may be repeated.")  # fmt: skip
@click.option("--steps", metavar="FILE", help="The steps of service: a list in JSON or YAML.")
@click.option("--runbook", metavar="NAME", help="The runbook of service, instead of steps.")
@click.option("--soft", is_flag=True, help="Ask the operating systems to stop.")
@groups.batched(1)
@click.pass_obj
def act(
    find: Callable[[], cloud.Cloud], name: str, words: tuple[str, ...], paths: tuple[str, ...],
    steps: str | None, runbook: str | None, soft: bool, size: int, budget: int, limit_s: float,
    yes: bool, as_json: bool,
) -> None:  # fmt: skip
    """Order ACTION of the machines of a stack, batch by batch, and watch them.

    ACTION is reboot, power on, power off, or service. The stack stays as it is, and no further
    batch begins once it has changed. The exit code is 1 where a machine was refused or has failed.
    """
    action = " ".join(words)
    if action not in _ACTIONS:
        raise click.UsageError(f"there is no action {action!r}: {', '.join(_ACTIONS)}")
    if action == _SERVICE:
        if steps and runbook:
            raise click.UsageError("give --steps or --runbook, not both")
        if not (steps or runbook):
            raise click.UsageError("service takes --steps FILE, or --runbook NAME")
        if soft:
            raise click.UsageError("--soft is for off and reboot")
        how = {"runbook": runbook} if steps is None else {"service_steps": _steps(steps)}
        order, state, field = (
            {"provision": {"target": _SERVICE} | how}, "active", "provision_state",
        )  # fmt: skip
    elif steps or runbook:
        raise click.UsageError("--steps and --runbook are for service")
    else:
        order, field = power_order(_ACTIONS[action], soft=soft), "power_state"
        state = POWER[_ACTIONS[action]]
    service = find()
    client = service.orchestration
    present = stacks.get(client, name)
    if present["stack_status"].endswith("IN_PROGRESS"):
        raise click.ClickException(
            f"cannot act on stack {name}: it is {present['stack_status']}; look on with: bloomery "
            f"stack events {name} --follow"
        )
    machines = list_machines(service, present, paths)
    number = terminal.amount(len(machines), "machine")
    groups.confirm(
        f"{action.capitalize()} {number} of stack {present['stack_name']}, {size} at a time?",
        yes=yes,
    )

    def hindrance() -> str | None:
        path = f"{stacks.path_of(present)}?resolve_outputs=false"
        try:
            now = Watch(client, limit_s).read(path)["stack"]
        except ApiError as exc:
            return f"cannot look at the stack: {exc}"
        keys = ("stack_status", "updated_time")
        if [now[key] for key in keys] == [present[key] for key in keys]:
            return None
        return f"stack {present['stack_name']} has changed since: {now['stack_status']}"

    watching = Watching(wait=True, limit_s=limit_s, as_json=as_json)
    orders = Orders(service.nodes, list(machines), action, watching, machines)
    orders.refuse({uuid: each["error"] for uuid, each in machines.items() if each["error"]})
    orders.roll(order, state, field, size=size, budget=budget, hindrance=hindrance)
    if action == "power off":
        terminal.echo(_OFF.format(name=present["stack_name"]), err=True)
    orders.end()


def _steps(file: str) -> list[Any]:
    try:
        document = parsing.load_yaml(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else exc
        raise click.ClickException(terminal.visible(f"cannot read {file}: {why}")) from exc
    if not isinstance(document, list):
        raise click.ClickException(f"cannot read {file}: it is no list of steps")
    return document


def list_machines(service: cloud.Cloud, stack: Json, paths: Sequence[str]) -> dict[str, Json]:
    """Return the machines of a stack by UUID: resource, node and error.

    A machine is a node whose mark names a resource of the stack, of whatever type the resource is.
    ``paths`` limits the resources.  ``error``: why a node of an Instance is not its machine.
    """
    rows = stacks.resources(service.orchestration, stacks.path_of(stack))
    owners, name = stacks.by_physical_id(rows), stack["stack_name"]
    nodes = {
        node["uuid"]: node
        for node in service.nodes.pages("/v1/nodes?fields=uuid,name,instance_info", "nodes")
    }
    machines: dict[str, Json] = {}
    places = {stacks.path_of_resource(owners, row): row for row in rows}
    for path, row in places.items():
        uuid = row["physical_resource_id"]
        if uuid is None or not _is_within(path, paths or [path]):
            continue
        node = nodes.get(uuid)
        mark = node["instance_info"].get(MARK) if node else None
        holder = (mark.get("stack_id"), mark.get("resource")) if isinstance(mark, dict) else None
        label = uuid if node is None else node["name"] or uuid
        place = (stacks.stack_id_of(row), row["resource_name"])
        if holder == place:
            machines[uuid] = {"resource": path, "node": label, "error": None}
        elif row["resource_type"] == INSTANCE:
            why = "this resource's any more" if node else "there, or you may not see it"
            machines[uuid] = {"resource": path, "node": label, "error": f"it is not {why}"}
    for wanted in paths:
        if not any(_is_within(path, [wanted]) for path in places):
            raise click.ClickException(f"stack {name} has no resource {wanted}")
        if not any(_is_within(each["resource"], [wanted]) for each in machines.values()):
            raise click.ClickException(f"{wanted} of stack {name} has no machine")
    if not machines:
        raise click.ClickException(f"stack {name} has no machine")
    return machines


def _is_within(path: str, paths: Sequence[str]) -> bool:
    return any(path == each or path.startswith(f"{each}/") for each in paths)
