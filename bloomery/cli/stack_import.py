"""``bloomery stack import``: machines that run become a stack, which adopts them as they are.

The properties of an Instance are read from its node, so that the first update changes nothing.
What no property stands for stays on the node, and is named.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from bloomery.cli import cloud, stack_orders, stacks, terminal
from bloomery.cli.client import ApiError
from bloomery.cli.imports.site import HIDDEN
from bloomery.cli.node_orders import NodeNotThere, path_of
from bloomery.cli.stack_machines import INSTANCE, MARK
from bloomery.cli.stacks import Json
from bloomery.orchestration.resources import instance_fields
from bloomery.orchestration.template import write as template_writer

ACTIVE: Final = "active"
_NOT_FOUND: Final = 404
_WHAT: Final = ("image_source", "boot_iso", "deploy_interface")  # one of them deploys something


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """An Instance, and its node.  ``left``: keys of instance_info that no property stands for."""

    name: str
    node: Json
    properties: Json
    left: Sequence[str]


def read(service: cloud.Cloud, idents: Sequence[str], stack_name: str) -> list[Machine]:
    """Return the machines of these nodes; print what the template leaves out.

    Raises ClickException with each node that cannot be imported.
    """
    if stacks.find(service.orchestration, stack_name) is not None:
        raise click.ClickException(f"a stack called {stack_name} is there")
    machines: dict[str, Machine] = {}
    refusals: list[str] = []
    for ident in idents:
        try:
            node = service.nodes.get(path_of(ident))
        except ApiError as exc:
            if exc.facts["answer"] != _NOT_FOUND:
                raise
            refusals.append(str(NodeNotThere(node=ident)))
            continue
        machine = _machine(node, service.nodes.get(f"{path_of(node['uuid'])}/vifs")["vifs"])
        refusals += _refusals(service, machine)
        machines[node["uuid"]] = machine
    if refusals:
        raise click.ClickException(terminal.visible("\n".join(refusals)))
    for each in machines.values():
        if each.left:
            line = f"{each.name}: the template leaves out {', '.join(each.left)} of instance_info"
            terminal.echo(f"{line}; the node keeps that", err=True)
    return [*machines.values()]


def _machine(node: Json, vifs: Sequence[Json]) -> Machine:
    name = node["name"] or f"node-{node['uuid'][:8]}"
    properties, left = instance_fields.properties_of(node["instance_info"])
    place: Json = {"node": node["uuid"]}
    if node["resource_class"]:
        traits = {"traits": properties["traits"]} if "traits" in properties else {}
        place = {"selector": {"resource_class": node["resource_class"], **traits}}
    properties = {**place, "name": node["instance_name"] or name, **properties}
    if node["power_state"] == "power off":
        properties["power"] = "off"
    if node["protected"]:
        properties["protected"] = True
    if vifs:
        properties["networks"] = [{"vif": each["id"]} for each in vifs]
    return Machine(name=name, node=node, properties=properties, left=left)


def _refusals(service: cloud.Cloud, machine: Machine) -> Iterator[str]:
    """Yield why a machine cannot be imported."""
    name, node, properties = machine.name, machine.node, machine.properties
    if node["provision_state"] != ACTIVE:
        yield f"{name}: it is {node['provision_state']}, not active"
        return
    mark = node["instance_info"].get(MARK)
    if mark and not (isinstance(mark, dict) and "stack_id" in mark):
        yield f"{name}: its instance_info has a key {MARK} of another purpose"
    elif mark:
        holder = stacks.find(service.orchestration, str(mark["stack_id"]))
        if holder is not None and holder["stack_status"] != "DELETE_COMPLETE":
            yield f"{name}: stack {holder['stack_name']} has it, as {mark['resource']}"
    if not any(node["instance_info"].get(key) for key in _WHAT):
        yield f"{name}: its instance_info has no {', '.join(_WHAT[:-1])} or {_WHAT[-1]}"
    for key, value in properties.items():
        if HIDDEN in json.dumps(value):
            yield f"{name}: the API hides a part of {key}, so that no template can have it"


def adopt_data(name: str, machines: Sequence[Machine], group: str | None = None) -> Json:
    """Return the document that adopts the machines: template, environment and resources.

    Each image is a parameter, since it is what updates change.  ``group``: the resource whose
    members they become.  Raises ClickException if they differ in more than their names.
    """
    images: list[Json] = []
    for each in machines:
        image = each.properties.get("image")
        if image and image not in images:
            images.append(image)
    names = ["image"] if len(images) == 1 else [f"image_{n + 1}" for n in range(len(images))]
    definitions: Json = {}
    entries: Json = {}
    for each in machines:
        properties = dict(each.properties)
        if image := properties.get("image"):
            properties["image"] = {"get_param": names[images.index(image)]}
        definitions[each.name] = {"type": INSTANCE, "properties": properties}
        entries[each.name] = {
            "name": each.name, "type": INSTANCE, "resource_id": each.node["uuid"],
            "action": "CREATE", "status": "COMPLETE", "metadata": {},
            "resource_data": {"instance": each.node["instance_uuid"]},
        }  # fmt: skip
    if group is not None:
        first = definitions[machines[0].name]["properties"]
        member = {**first, "name": _pattern(machines, group)}
        properties = {"count": len(machines), "member": member}
        definitions = {group: {"type": stacks.GROUP, "properties": properties}}
        members = {str(n): each | {"name": str(n)} for n, each in enumerate(entries.values())}
        entries = {group: {"name": group, "type": stacks.GROUP, "resources": members}}
    template: Json = {
        "heat_template_version": "2021-04-16",
        "description": "Machines that ran before this stack adopted them",
        "parameters": {each: {"type": "json"} for each in names},
        "resources": definitions,
    }
    environment = {"parameters": dict(zip(names, images, strict=True))}
    return {
        "name": name, "action": "CREATE", "status": "COMPLETE", "template": template,
        "environment": environment, "files": {}, "resources": entries,
    }  # fmt: skip


def _pattern(machines: Sequence[Machine], group: str) -> str:
    """Return the name of the members of a group, with %index%; print who is renamed by it."""
    first = machines[0]
    for each in machines:
        if "node" in each.properties:
            raise click.ClickException(
                f"cannot make a group of {each.name}, which has no resource class"
            )
        keys = sorted((each.properties.keys() | first.properties.keys()) - {"name"})
        if other := [k for k in keys if each.properties.get(k) != first.properties.get(k)]:
            raise click.ClickException(
                f"cannot make a group of them: {each.name} differs from {first.name} in "
                f"{', '.join(other)}"
            )
    instances = {n: name for n, each in enumerate(machines) if (name := each.node["instance_name"])}
    prefix = next((name.removesuffix(str(n)) for n, name in instances.items()), f"{group}-")
    if any(name != f"{prefix}{n}" for n, name in instances.items()):
        prefix = f"{group}-"
    for number, name in instances.items():
        if name != f"{prefix}{number}":
            line = f"{machines[number].name}: its instance is called {name}, and is to be "
            terminal.echo(f"{line}{prefix}{number} by the next update", err=True)
    return f"{prefix}%index%"


def paths(folder: Path, name: str) -> tuple[Path, Path, Path]:
    """Return the files of template, environment and adopt document."""
    return (
        folder / f"{name}.yaml",
        folder / f"{name}-environment.yaml",
        folder / f"{name}-adopt.json",
    )


def write(folder: Path, name: str, data: Json) -> None:
    """Write the files.  Raises ClickException if one is there with another content."""
    parts = (data["template"], data["environment"])
    texts = [template_writer.text(part) for part in parts]
    texts.append(json.dumps(data, indent=2) + "\n")
    files = dict(zip(paths(folder, name), texts, strict=True))
    for path, text in files.items():
        if path.exists() and path.read_text(encoding="utf-8") != text:
            raise click.ClickException(f"cannot write {path}: another file is there")
    for path, text in files.items():
        stack_orders.write(path, text)
