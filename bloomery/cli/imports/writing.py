"""Write the rows of a plan; a row that the service refuses stops no other one."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from bloomery.cli import fleet
from bloomery.cli.client import ApiError, Client
from bloomery.cli.imports.plan import CHANGE, CREATE, REFUSED, Row
from bloomery.cli.imports.site import NOUNS

Json = dict[str, Any]


def write(client: Client, rows: Sequence[Row]) -> Iterator[Row]:
    """Carry out the rows in order; yield each, as refused where the service refuses it.

    Raises ApiError when the service does not answer.
    """
    failed: set[str] = set()  # nodes whose records cannot be written
    for is_node, group in itertools.groupby(rows, lambda row: row.kind == "node"):
        for row in (
            _write_nodes(client, list(group)) if is_node else _write_records(client, group, failed)
        ):
            if row.action == REFUSED:
                failed.add(row.uuid)
            yield row


def _write_nodes(client: Client, rows: Sequence[Row]) -> Iterator[Row]:
    """A node that has changed is deleted and created anew: nothing has begun to work on it."""
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
        if begun:
            body = {"nodes": [row.body for row in begun]}
            results = client.post("/ext/v1/nodes:batch", body)["results"]
            for row, result in zip(begun, results, strict=True):
                yield _with_traits(client, row, result)


def _with_traits(client: Client, row: Row, result: Json) -> Row:
    if result["error"] is not None:
        return _refused(row, result["error"]["message"])
    if not row.traits:
        return row
    why = refusal(client.put, f"{_path(row)}/traits", {"traits": list(row.traits)})
    return _refused(row, why) if why else row


def _write_records(client: Client, rows: Iterator[Row], failed: set[str]) -> Iterator[Row]:
    for row in rows:
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
