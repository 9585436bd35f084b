"""Write the rows of a plan, and hand machines over; a refused row stops no other one.

When a machine is handed over, the old service lets go of it before the new one may order.  At every
moment the node is in maintenance in one of the services at least, and no service works on a node in
maintenance by itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from bloomery.cli import fleet
from bloomery.cli.client import ApiError, Client
from bloomery.cli.imports.plan import CHANGE, CREATE, REFUSED, THERE, Row
from bloomery.cli.imports.site import NOUNS, OldSite, Site

Json = dict[str, Any]

TAKE_OVER: Final = "take over"


def write(client: Client, rows: Sequence[Row]) -> Iterator[Row]:
    """Carry out the rows in order; yield each, as refused where the service refuses it.

    Raises ApiError when the service does not answer.
    """
    failed: set[str] = set()  # nodes whose records cannot be written
    for is_node, group in itertools.groupby(rows, lambda row: row.kind == "node"):
        if is_node:
            for row in _write_nodes(client, list(group)):
                if row.action == REFUSED:
                    failed.add(row.uuid)
                yield row
            continue
        for row in group:
            node = row.body.get("node_uuid") or row.body.get("node")
            why = None
            if node in failed:
                why = f"its node {node} was refused"
            elif row.action == CREATE:
                why = refusal(client.post, NOUNS[row.kind].path, row.body)
            elif row.action == CHANGE:
                patch = [{"op": "add", "path": f"/{name}", "value": value}
                         for name, value in row.changes.items()]  # fmt: skip
                why = refusal(client.patch, _path(row), patch)
            yield _refused(row, why) if why else row


def _write_nodes(client: Client, rows: Sequence[Row]) -> Iterator[Row]:
    """Delete a node that has changed and create it anew: nothing has begun to work on it."""
    for batch in fleet.batches(rows):
        begun = []
        for row in batch:
            why = refusal(client.delete, _path(row)) if row.action == CHANGE else None
            if why:
                yield _refused(row, why)
            elif row.action in (CHANGE, CREATE):
                begun.append(row)
            else:
                yield row
        if not begun:
            continue
        body = {"nodes": [row.body for row in begun]}
        results = client.post("/ext/v1/nodes:batch", body)["results"]
        for row, result in zip(begun, results, strict=True):
            why = None if result["error"] is None else result["error"]["message"]
            if why is None and row.traits:
                traits = {"traits": list(row.traits)}
                why = refusal(client.put, f"{_path(row)}/traits", traits)
            yield _refused(row, why) if why is not None else row


def refusal(work: Callable[..., Any], *args: Any) -> str | None:
    """Do work by requests; return why the service refuses it, None where it does not.

    Work may return such a reason itself.  Raises ApiError when the service does not answer.
    """
    try:
        reason = work(*args)
    except ApiError as exc:
        if exc.facts["answer"] is None:
            raise
        return str(exc)
    return reason if isinstance(reason, str) else None


def _refused(row: Row, why: str) -> Row:
    return replace(row, action=REFUSED, faults=(*row.faults, why))


def _path(row: Row) -> str:
    root = "/v1/nodes" if row.kind == "node" else NOUNS[row.kind].path
    return f"{root}/{row.uuid}"


# ------------------------------------------------------------------------------------- taking over


def take_over_rows(plan: Sequence[Row], names: Sequence[str]) -> Iterator[Row]:
    """Yield a row for each node to take over: those of ``names``, else all that are there.

    A node that the import would still create or change is refused.
    """
    nodes = [row for row in plan if row.kind == "node"]
    unknown = set(names) - {each for row in nodes for each in (row.name, row.uuid)}
    for name in sorted(unknown):
        yield Row(kind="node", uuid=name, name=name, action=REFUSED,
                  faults=("the old service has no such node",))  # fmt: skip
    for row in nodes:
        if names and row.name not in names and row.uuid not in names:
            continue
        if row.action == THERE:
            yield replace(row, action=TAKE_OVER)
        elif names:
            why = f"the import says {row.action!r}: run it without --take-over first"
            yield replace(row, action=REFUSED, faults=(why,))


def take_over(old: OldSite, new: Site, orders: Sequence[Row]) -> Iterator[Row]:
    """Take the nodes over, one after the other; yield each row.

    A second run goes on with a node at which the first was cut off.  Raises ApiError when a service
    does not answer.
    """
    for row in orders:
        if row.action == REFUSED:
            yield row
            continue
        why = refusal(_take, old, new, row)
        yield replace(row, action=REFUSED, faults=(why,)) if why else row


def _take(old: OldSite, new: Site, row: Row) -> str | None:
    """Take a node over; return why that is not possible.

    The old service may have begun to work on the node since it was read.
    """
    reason = str(new.nodes[row.uuid]["maintenance_reason"])
    now = old.let_go(row.uuid)
    if now["reservation"] or now["provision_state"] != new.nodes[row.uuid]["provision_state"]:
        old.release(row.uuid, reason)
        return f"the old service works on it: it is {now['provision_state']}; run the import again"
    new.protect(old.nodes[row.uuid])
    new.client.post(f"/ext/v1/nodes/{row.uuid}/past", old.past(row.uuid))
    new.release(row.uuid, reason)
    return None
