"""What a plan was made on, so that an update can be refused when this has changed since.

    basis = read(conn, row, resources)  # a preview answers with it
    check(row, basis, current)  # the update that carries it: PlanStale names the changes

A basis has the traversal of each stack of the tree, the state of each resource, the provision state
of each machine and of other nodes that the plan depends on, and the values of its lookups.  Its
values are texts that a client stores and sends back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import nodes, stacks
from bloomery.model.stack_views import Json
from bloomery.model.stacks import Stack, StoredResource
from bloomery.orchestration.orders import machine_pages
from bloomery.orchestration.orders.machine_pages import PageMachines
from bloomery.orchestration.queries.access import StackContext
from bloomery.orchestration.resources import drains, machine_group
from bloomery.orchestration.resources.machines import Busy, find_node
from bloomery.orchestration.resources.states import Action, Status

STACKS: Final = "stacks"
RESOURCES: Final = "resources"
MACHINES: Final = "machines"
NODES: Final = "nodes"  # that the template names, and are no machines of the stack
VALUES: Final = "values"  # of lookups, as the plan has read them
SECTIONS: Final = (STACKS, RESOURCES, MACHINES)
_MOST_NAMED: Final = 10  # changes in an error
_COLUMNS: Final = ("uuid", "provision_state", "maintenance")


def read(conn: sa.Connection, row: Stack, rows: Sequence[StoredResource]) -> Json:
    """Return the basis of a plan for the tree of ``row``, which has the resources ``rows``."""
    owners = {each.physical_id: each.name for each in rows if each.physical_id}
    machines = {}
    for node in nodes.list_rows_of(conn, owners, _COLUMNS):
        upkeep = ", in maintenance" if node.maintenance else ""
        machines[node.uuid] = f"machine of {owners[node.uuid]}: {node.provision_state}{upkeep}"
    return {
        STACKS: {
            each.uuid: f"stack {each.name}: order {each.traversal}"
            for each in stacks.list_of_tree(conn, row.root_uuid)
        },
        RESOURCES: {each.uuid: f"resource {each.name}: {each.state}" for each in rows},
        MACHINES: machines,
    }


def list_paused(rows: Sequence[StoredResource]) -> list[Json]:
    """Return which resources of a tree wait for what an update ends: pauses, windows, drains."""
    return [
        {"resource": each.name, "reason": each.reason}
        for each in rows
        if each.status == Status.IN_PROGRESS
        and (
            machine_group.InstanceGroup.is_held(each.data)
            or (each.action == Action.UPDATE and drains.is_waiting(each.data))
        )
    ]


def check(row: Stack, basis: Mapping[str, Any], current: Mapping[str, Any]) -> None:
    """Raise PlanStale if the tree or its machines are not as they were in ``basis``."""
    _refuse(
        row,
        [
            change
            for section in SECTIONS
            for change in _changes(basis.get(section) or {}, current[section])
        ],
    )


def check_nodes(ctx: StackContext, row: Stack, basis: Mapping[str, Any]) -> None:
    """Raise PlanStale if nodes that the plan depends on, as the caller sees them, have changed."""
    before = basis.get(NODES) or {}
    with ctx.services.db.read() as conn:
        page = machine_pages.read(conn, {"node": list(before)})
    machines, current = PageMachines(ctx.services, ctx.request, page), {}
    for uuid in page.nodes:
        try:
            node = find_node(machines, uuid)
        except Busy:
            current[uuid] = f"node {page.nodes[uuid].name or uuid}: it is worked at"
        else:
            current |= {} if node is None else {uuid: node_text(node)}
    _refuse(row, list(_changes(before, current)))


def check_values(row: Stack, basis: Mapping[str, Any], current: Mapping[str, str]) -> None:
    """Raise PlanStale if lookups have other values than in ``basis``."""
    _refuse(row, list(_changes(basis.get(VALUES) or {}, current)))


def values_text(name: str, values: Json, *, digest: str, is_hidden: bool) -> str:
    """Return the values of a lookup as a text that differs where they differ."""
    text = json.dumps(values, sort_keys=True)
    if is_hidden or len(text) > errors.MOST_CHARS:
        text = f"{'hidden' if is_hidden else errors.shortened(text)} ({digest})"
    return f"values of {name}: {text}"


def node_text(node: Mapping[str, Any]) -> str:
    upkeep = ", in maintenance" if node["maintenance"] else ""
    return f"node {node['name'] or node['uuid']}: {node['provision_state']}{upkeep}"


def _refuse(row: Stack, changes: Sequence[str]) -> None:
    if changes:
        more = len(changes) - _MOST_NAMED
        named = "; ".join(changes[:_MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")
        raise errors.PlanStale(stack_name=row.name, changes=named)


def _changes(before: Mapping[str, Any], after: Mapping[str, str]) -> Iterator[str]:
    for ident, text in after.items():
        if ident not in before:
            yield f"{text} (new)"
        elif before[ident] != text:
            yield f"{text} (was {str(before[ident]).partition(': ')[2][:200]})"
    for ident, text in before.items():
        if ident not in after:
            yield f"{str(text)[:200]} (gone)"
