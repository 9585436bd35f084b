"""``bloomery export ironic``: hand machines to an Ironic, which drives them from then on.

No verb on the way boots or cleans a machine.

A node is in maintenance here from the moment at which the Ironic may order, and stays so.  An
export that was cut off goes on where it was.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import click

from bloomery.cli import cloud, groups
from bloomery.cli.client import ApiError
from bloomery.cli.imports import plan, site, terms, writing
from bloomery.cli.imports.plan import REFUSED, Row, Terms
from bloomery.cli.imports.site import HIDDEN, LET_GO, NOUNS, WAS_IN_MAINTENANCE, Site

Json = dict[str, Any]

HAND_OVER, HANDED_OVER = "hand over", "was handed over"
LEAVING: Final = "being handed over to another service"  # the maintenance reason begins with it
_VERBS: Final = {  # by the state there and the state here
    ("enroll", "manageable"): "manage",
    ("enroll", "available"): "manage",
    ("enroll", "active"): "manage",
    ("manageable", "available"): "provide",
    ("manageable", "active"): "adopt",
    ("adopt failed", "active"): "adopt",
    ("available", "manageable"): "manage",
    ("available", "active"): "manage",
}
_MOVED: Final = ("enroll", "manageable", "available", "active")
_POLL_S: Final = 0.5
_PATIENCE_S: Final = 300.0  # for a verb that asks the BMC
_NEVER_GOES: Final = (
    "not written, since Ironic takes none of it: history, inventory and erasures of nodes, stacks"
)


@click.group(name="export", cls=groups.Group)
def exports() -> None:
    """Hand machines to another service."""


@exports.command()
@click.argument("nodes", nargs=-1, metavar="[NODE...]")
@click.option("--to", "new_name", required=True, metavar="CLOUD",
              help="Of clouds.yaml: the Ironic that gets the machines.")  # fmt: skip
@click.option("--cloud", "name", metavar="CLOUD",
              help="Of clouds.yaml: the service that has them.  [default: $OS_CLOUD]")  # fmt: skip
@terms.SECRETS
@terms.INSTEAD
@terms.SKIP
@terms.DRY_RUN
@groups.AS_JSON
def ironic(
    nodes: tuple[str, ...], new_name: str, name: str | None, secrets: Path | None,
    instead: tuple[str, ...], skip: bool, dry_run: bool, as_json: bool,
) -> None:  # fmt: skip
    """Hand nodes and their records to a running Ironic: those of NODE, else all.

    Each node goes into maintenance here and stays so. The Ironic creates the node, unless the node
    came from there, and adopts an active machine: nothing is booted or cleaned. A second run goes
    on where the first was cut off. Nothing is written while a node is refused, except with --skip.
    Ends with 1 if something was refused.
    """
    if not as_json:
        click.echo(_NEVER_GOES)
    ours, theirs = site.read(cloud.find_nodes(name)), site.read(cloud.find_nodes(new_name))
    moves = make(ours, theirs, terms.of(secrets, instead), nodes)
    rows = [move.row for move in moves]
    is_stopped = not dry_run and terms.stops(rows, skip=skip)
    work = rows if dry_run or is_stopped else carry_out(ours, theirs, moves)
    done = terms.echoed(work, as_json=as_json)
    terms.end(done, is_stopped=is_stopped)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A node with its records; a record of the whole site alone."""

    row: Row
    records: Sequence[Row] = ()


def make(ours: Site, theirs: Site, terms: Terms, names: Sequence[str]) -> list[Move]:
    """Return what is written, in this order.  ``names``: nodes by name or UUID, else all."""
    moves: list[Move] = []
    of_nodes: dict[str, list[Row]] = {}
    for kind in NOUNS:
        for record in ours.records[kind].values():
            row = plan.record_row(kind, record, theirs, set())
            if node := record.get("node_uuid"):
                of_nodes.setdefault(node, []).append(row)
            elif kind != "allocation":  # one without a node waits for a machine of ours
                moves.append(Move(row=row))
    unknown = set(names)
    for node in plan.parents_first(ours.nodes):
        known_as = {node["uuid"], node["name"]}
        if not names or known_as & set(names):
            row = _node_row(node, theirs, terms)
            moves.append(Move(row=row, records=of_nodes.get(node["uuid"], ())))
        unknown -= known_as
    for name in sorted(unknown):
        row = Row(kind="node", uuid=name, name=name, action=REFUSED,
                  faults=("the service has no such node",))  # fmt: skip
        moves.append(Move(row=row))
    return moves


def _node_row(node: Json, theirs: Site, terms: Terms) -> Row:
    """Return the row of a node; it is refused if it cannot become there what it is here."""
    there = theirs.nodes.get(node["uuid"])
    body, faults = plan.translated(node, terms)
    del body["imported"]
    if there is not None:  # the Ironic has the passwords
        faults = []
        info = body["driver_info"].items()
        body["driver_info"] = {key: value for key, value in info if value != HIDDEN}
    faults += plan.not_served(body, theirs)
    here = node["provision_state"]
    state = here if there is None else there["provision_state"]
    if here not in _MOVED or node["reservation"]:
        states = ", ".join(_MOVED)
        faults.append(f"it is {here}: a node is handed over while it is {states}, and at rest")
    elif state != here and (state, here) not in _VERBS:
        faults.append(
            f"it is {here} here and {state} there, and no verb leads from one to the other"
        )
    action = REFUSED if faults else HAND_OVER
    if str(node["maintenance_reason"]).startswith(LET_GO):
        action, faults = HANDED_OVER, []
    return Row(
        kind="node", uuid=node["uuid"], name=node["name"] or node["uuid"], action=action,
        body=body, traits=node["traits"], faults=tuple(faults),
    )  # fmt: skip


# ------------------------------------------------------------------------------- carrying out


def carry_out(ours: Site, theirs: Site, moves: Sequence[Move]) -> Iterator[Row]:
    """Hand the nodes over; yield each row, as refused where a service refuses it.

    Raises ApiError when a service does not answer.
    """
    for move in moves:
        if move.row.kind != "node":
            yield from writing.write(theirs.client, [move.row])
            continue
        row = move.row
        if row.action == HAND_OVER:
            why = writing.refusal(_hand_over, ours, theirs, move)
            row = replace(row, action=REFUSED, faults=(why,)) if why else row
        yield row


def _hand_over(ours: Site, theirs: Site, move: Move) -> str | None:
    """Hand a node over; return why that is not possible."""
    row, path = move.row, f"/v1/nodes/{move.row.uuid}"
    node = ours.nodes[row.uuid]
    reason = str(node["maintenance_reason"])
    if not reason.startswith(LEAVING):
        reason = LEAVING
        if node["maintenance"]:  # the reason keeps the one from before
            reason += f"{WAS_IN_MAINTENANCE}{node['maintenance_reason'] or 'no reason given'}"
        ours.client.put(f"{path}/maintenance", {"reason": reason})
    here = ours.client.get(path)
    if here["reservation"] or here["provision_state"] != node["provision_state"]:
        ours.release(row.uuid, reason)
        return f"it is {here['provision_state']} now: try again"
    if row.uuid not in theirs.nodes:
        theirs.client.post("/v1/nodes", row.body)
    elif why := _wake(theirs, row, here["power_state"]):
        return why
    last = [each for each in move.records if each.kind == "allocation"]
    first = [each for each in move.records if each.kind != "allocation"]
    _write(theirs, first)
    if why := _lead(theirs, row, node["provision_state"]):
        return why
    _equal(theirs, row.body, path)
    theirs.client.put(f"{path}/traits", {"traits": list(row.traits)})
    _write(theirs, last)
    theirs.protect(node)
    if reason != LEAVING:
        theirs.release(row.uuid, reason)
    ours.client.put(f"{path}/maintenance", {"reason": reason.replace(LEAVING, LET_GO)})
    return None


def _wake(theirs: Site, row: Row, power: str | None) -> str | None:
    """End the maintenance with which a node was let go there; return why that is not possible.

    The node first gets the fields and the power state of here: its own are as old as the take-over,
    and power sync drives a machine to the recorded state.  The machine is in ``power`` already, so
    that the order switches nothing.
    """
    path = f"/v1/nodes/{row.uuid}"
    there = theirs.client.get(path)
    if there["maintenance_reason"] != LET_GO:
        return None
    _equal(theirs, row.body, path)
    if power in plan.POWER and there["power_state"] != power:
        theirs.client.put(f"{path}/states/power", {"target": power})
        until = time.monotonic() + _PATIENCE_S
        while (there := theirs.client.get(path))["power_state"] != power or there["reservation"]:
            if time.monotonic() > until or (there["last_error"] and not there["reservation"]):
                return f"it is not seen as {power} there: {there['last_error'] or 'try again'}"
            time.sleep(_POLL_S)
    theirs.client.delete(f"{path}/maintenance")
    return None


def _write(theirs: Site, rows: Sequence[Row]) -> None:
    """Write records of a node.  Raises ApiError with the first refusal."""
    for row in writing.write(theirs.client, rows):
        if row.action == REFUSED:
            raise ApiError(reason=f"{row.kind} {row.name}: {row.faults[-1]}", answer=409)


def _lead(theirs: Site, row: Row, state: str) -> str | None:
    """Lead a node there to the state; return why that is not possible."""
    path = f"/v1/nodes/{row.uuid}"
    until = time.monotonic() + _PATIENCE_S
    ordered: str | None = None
    while (node := theirs.client.get(path))["provision_state"] != state or node["reservation"]:
        there = node["provision_state"]
        verb = _VERBS.get((there, state))
        is_at_rest = not node["target_provision_state"] and not node["reservation"]
        if is_at_rest and verb is not None and verb != ordered:
            changes = {**row.body, "automated_clean": False} if verb == "provide" else row.body
            _equal(theirs, changes, path)
            theirs.client.put(f"{path}/states/provision", {"target": verb})
            ordered = verb
        elif is_at_rest:
            return f"it is {there} there: {node['last_error'] or 'no verb leads on'}"
        elif time.monotonic() > until:
            return f"it stays {there} there; try again later"
        time.sleep(_POLL_S)
    return None


def _equal(theirs: Site, body: Json, path: str) -> None:
    """Give a node there the fields that differ; members that are hidden there stay as they are."""
    there = theirs.client.get(path)
    patch: list[Json] = []
    for field, value in {"automated_clean": None, **body}.items():
        if field not in there:
            continue
        pointer, stored = f"/{field}", there[field]
        if isinstance(value, dict) and isinstance(stored, dict):
            patch += (
                {"op": "remove", "path": f"{pointer}/{name}"}
                for name in stored.keys() - value.keys() if stored[name] != HIDDEN
            )  # fmt: skip
            patch += (
                {"op": "add", "path": f"{pointer}/{name}", "value": each}
                for name, each in value.items() if each != stored.get(name)
            )  # fmt: skip
        elif plan.is_other(value, stored):
            patch.append(
                {"op": "remove", "path": pointer} if value is None
                else {"op": "add", "path": pointer, "value": value}
            )  # fmt: skip
    if patch:
        theirs.client.patch(path, patch)
