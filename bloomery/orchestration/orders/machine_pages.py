"""Machines from rows that are read together, in place of one query for each machine.

    with services.db.snapshot() as conn:
        page = machine_pages.read(conn, physical_ids)
    PageMachines(services, request, page).get_node(uuid)

Results are those of ``ServiceMachines``, with the same rights: a record that the owner of a stack
may not see is not found.  A row that is not in the page is read by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import nodes as node_rows
from bloomery.db import records as record_rows
from bloomery.db import resources
from bloomery.model import nouns
from bloomery.model.request import Request
from bloomery.operations import policy
from bloomery.operations.context import Context, Services
from bloomery.orchestration.orders import machines as service_machines
from bloomery.orchestration.orders.machines import ServiceMachines
from bloomery.orchestration.resources import machines
from bloomery.orchestration.resources.machines import Busy, Json

_NOUNS = (
    machines.ALLOCATION, machines.PORT, machines.PORTGROUP, machines.VOLUME_CONNECTOR,
    machines.VOLUME_TARGET, machines.DEPLOY_TEMPLATE, machines.RUNBOOK,
)  # fmt: skip


@dataclass(slots=True)
class MachinePage:
    """Rows of nodes by UUID, their UUIDs by name, and rows of records by noun and UUID."""

    nodes: Mapping[str, sa.Row[Any]] = field(default_factory=dict)
    uuids: Mapping[str, str] = field(default_factory=dict)
    records: Mapping[str, Mapping[str, sa.Row[Any]]] = field(default_factory=dict)


def read(conn: sa.Connection, uuids: Mapping[str, Collection[str]]) -> MachinePage:
    """Read the rows of a page; ``uuids``: of nodes under "node", of records under their noun.

    Under "ports_of" are nodes whose ports are read.  Nodes of the records are read as well.
    """
    idents = set(uuids.get("node", ()))
    records_by_noun: dict[str, dict[str, sa.Row[Any]]] = {}
    for word in _NOUNS:
        if of_noun := uuids.get(word):
            declared = nouns.BY_NAME[word]
            records = record_rows.list_rows_where(conn, declared, "uuid", of_noun)
            records_by_noun[word] = {row.uuid: row for row in records}
            if "node_uuid" in declared.columns:
                idents |= {row.node_uuid for row in records if row.node_uuid}
    if owners := uuids.get("ports_of"):
        ports = record_rows.list_rows_where(conn, nouns.PORT, "node_uuid", owners)
        records_by_noun.setdefault(machines.PORT, {}).update({row.uuid: row for row in ports})
    nodes = node_rows.list_rows_of(conn, idents, service_machines.COLUMNS)
    return MachinePage(
        nodes={row.uuid: row for row in nodes},
        uuids={row.name: row.uuid for row in nodes if row.name},
        records=records_by_noun,
    )


def read_tree(conn: sa.Connection, root_uuid: str) -> MachinePage:
    """Read the nodes that the resources of a tree of stacks have."""
    return read(conn, {"node": resources.list_physical_ids(conn, root_uuid)})


class PageMachines(ServiceMachines):
    """The machines of the owner of one stack, read from a page where it has them.

    A node that a conductor has reserved raises ``Busy``, because its result is not known yet;
    ``with_reserved``: it is read as it is.
    """

    def __init__(
        self,
        services: Services,
        request: Request,
        page: MachinePage,
        *,
        with_reserved: bool = False,
    ) -> None:
        self._services, self._page, self._with_reserved = services, page, with_reserved
        self._caller = Context(services=services, request=request)

    def _context(self) -> Context:
        return self._caller

    def get_node(self, ident: str) -> Json:
        row = self._page.nodes.get(self._page.uuids.get(ident, ident))
        if row is None:
            return super().get_node(ident)
        policy.authorize_part(self._caller, row, errors.NodeNotFound(node=ident))
        if row.reservation is not None and not self._with_reserved:
            raise Busy(f"node {ident} is worked at", ident)
        return service_machines.shown_node(self._caller, row)

    def find(self, noun: str, ident: str) -> Json | None:
        declared = nouns.BY_NAME[noun]
        row = self._page.records.get(noun, {}).get(ident)
        node = None if row is None or not declared.of_node else self._page.nodes.get(row.node_uuid)
        if row is None or (declared.of_node and node is None):
            return super().find(noun, ident)
        try:
            policy.authorize_record_row(self._caller, declared, row, node, "get")
        except errors.NotFound:
            return None
        return service_machines.shown_record(self._caller, declared, row)
