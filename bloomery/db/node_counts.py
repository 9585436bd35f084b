"""Counts of nodes by condition, which triggers of the table ``nodes`` keep.

Each change of a node's condition appends two rows in its transaction: one node less of the old
condition, one more of the new.  No two transactions write one row, so that conductors never wait
for each other here.  The sum over the rows is the count.  Housekeeping replaces rows by their sums.

    groups = node_counts.list_groups(conn)      # reads no node
    sum(each.nodes for each in groups if each.maintenance)
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import upserts
from bloomery.db.tables import NODE_COUNTS, NODES

_T = NODE_COUNTS.c


class Condition(NamedTuple):
    """The columns by which nodes are counted."""

    provision_state: str | None
    power_state: str | None
    fault: str | None
    maintenance: bool
    has_error: bool
    resource_class: str | None
    owner: str | None
    lessee: str | None
    driver: str
    conductor_group: str

    @property
    def last_error(self) -> bool:
        return self.has_error

    def is_of(self, project: str) -> bool:
        return project in (self.owner, self.lessee)


class Group(NamedTuple):
    """The nodes of one condition, and how many have come to its driver and group so far.

    The nodes and arrivals of a driver and group differ whenever other nodes are there.
    """

    condition: Condition
    nodes: int
    arrivals: int


_CONDITION: Final = [_T[name] for name in Condition._fields]
_SUMS: Final = sa.select(
    *_CONDITION, sa.func.sum(_T.nodes), sa.func.sum(_T.arrivals), sa.func.count()
).group_by(*_CONDITION)
_OLDEST: Final = sa.select(_T.id, *_CONDITION, _T.nodes, _T.arrivals).order_by(_T.id)
_OF_NODES: Final = [
    sa.func.coalesce(NODES.c.last_error, "") != "" if name == "has_error" else NODES.c[name]
    for name in Condition._fields
]


def list_groups(conn: sa.Connection) -> list[Group]:
    """Return the nodes of each condition; a group may be empty and have arrivals."""
    return [
        Group(Condition(*condition), int(nodes), int(arrivals))
        for *condition, nodes, arrivals, _rows in conn.execute(_SUMS)
    ]


def count_surplus(conn: sa.Connection) -> int:
    """Return how many rows ``fold`` would save."""
    return sum(row[-1] - 1 for row in conn.execute(_SUMS))


def fold(conn: sa.Connection, *, at_most: int) -> int:
    """Replace the rows of conditions with several by their sums; return how many were replaced.

    Ends with the condition that reaches ``at_most`` rows; 0: each condition has one row.  Raises
    Conflict where another conductor does the same.
    """
    ids, nodes, arrivals = list[int](), Counter[Condition](), Counter[Condition]()
    rows: dict[Condition, list[tuple[int, int, int]]] = {}
    for row_id, *condition, more, new in conn.execute(_OLDEST):
        rows.setdefault(Condition(*condition), []).append((row_id, more, new))
    for each, of_one in rows.items():
        if len(of_one) > 1 and len(ids) < at_most:
            ids += [row_id for row_id, _, _ in of_one]
            nodes[each] = sum(more for _, more, _ in of_one)
            arrivals[each] = sum(new for _, _, new in of_one)
    for part in upserts.chunks(ids):
        if conn.execute(sa.delete(NODE_COUNTS).where(_T.id.in_(part))).rowcount != len(part):
            raise errors.Conflict(reason="another conductor sums the counts of nodes")
    _add(conn, nodes, arrivals)
    return len(ids)


def compare(conn: sa.Connection) -> Counter[Condition]:
    """Return how many nodes the counts lack of each condition, negative: have too many.

    Reads each node.  The connection shows one commit (``Database.snapshot``).
    """
    stored = conn.execute(sa.select(*_OF_NODES, sa.func.count()).group_by(*_OF_NODES))
    lacking = Counter({Condition(*condition): nodes for *condition, nodes in stored})
    for group in list_groups(conn):
        lacking[group.condition] -= group.nodes
    return Counter({condition: nodes for condition, nodes in lacking.items() if nodes})


def mend(conn: sa.Connection, lacking: Counter[Condition]) -> None:
    """Add what ``compare`` returned; changes since then are counted by themselves."""
    _add(conn, lacking, Counter(lacking.keys()))


def _add(conn: sa.Connection, nodes: Counter[Condition], arrivals: Counter[Condition]) -> None:
    rows = [
        each._asdict() | {"nodes": nodes[each], "arrivals": arrivals[each]}
        for each in {*nodes, *arrivals}
        if nodes[each] or arrivals[each]
    ]
    if rows:
        conn.execute(sa.insert(NODE_COUNTS), rows)
