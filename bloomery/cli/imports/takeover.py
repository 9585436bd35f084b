"""Hand machines over: the old service lets go of a machine before the new one may order.

At every moment the node is in maintenance in one of the services at least, and no service works on
a node in maintenance by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from bloomery.cli.imports import writing
from bloomery.cli.imports.plan import REFUSED, THERE, Row
from bloomery.cli.imports.site import OldSite, Site

TAKE_OVER: Final = "take over"


def rows(plan: Sequence[Row], names: Sequence[str]) -> Iterator[Row]:
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


def carry_out(old: OldSite, new: Site, orders: Sequence[Row]) -> Iterator[Row]:
    """Take the nodes over, one after the other; yield each row.

    A second run goes on with a node at which the first was cut off.  Raises ApiError when a service
    does not answer.
    """
    for row in orders:
        if row.action == REFUSED:
            yield row
            continue
        why = writing.refusal(_take, old, new, row)
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
