"""All nodes in pages of short rows, each with its problem: by columns of the nodes alone.

The operation ``why.explain`` also asks the conductor and reads the steps of one node.

    list_page(ctx, Page(limit=100))[0][0]["cause_code"]        # "deploy_failed"
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import urlsplit

from bloomery import errors, secrets
from bloomery.db import events, nodes, rows
from bloomery.model.request import Page
from bloomery.model.rules import nodes as rules
from bloomery.operations import policy
from bloomery.operations.context import Context

Json = dict[str, Any]

_SHOWN: Final = (
    "uuid", "name", "provision_state", "target_provision_state", "power_state", "maintenance",
    "fault", "resource_class", "conductor_group", "chassis_uuid", "owner", "lessee", "description",
    "provision_updated_at", "updated_at", "health",
)  # fmt: skip
_COLUMNS: Final = (
    *_SHOWN, "driver", "properties", "extra", "driver_info", "last_error", "maintenance_reason",
    "macs",
)  # fmt: skip
_SERIALS: Final = ("serial_number", "serial")
_BMC_ADDRESSES: Final = ("redfish_address", "ipmi_address")


def list_page(ctx: Context, page: Page) -> tuple[list[Json], str | None, int]:
    """Return a page of rows, the marker of the next page, and the number of the last event.

    All that happened up to that event is in the rows.  Raises Forbidden, NodeNotFound.
    """
    project = policy.visible_project(ctx, "node")
    query = nodes.Query(columns=_COLUMNS, project=project, marker=page.marker, limit=page.limit)
    with ctx.services.db.read() as conn:
        last_event_id = events.last_id(conn)
        page_rows = nodes.list_rows(conn, query)
    marker = page_rows[-1].uuid if page.is_full(page_rows) else None
    return _documents(ctx, page_rows), marker, last_event_id


def get(ctx: Context, ident: str) -> tuple[Json, int]:
    """Return the row of one node, and the number of the last event.  Raises NodeNotFound."""
    uuid = policy.get_uuid(ctx, ident)
    with ctx.services.db.read() as conn:
        last_event_id = events.last_id(conn)
        row = nodes.list_rows_of(conn, [uuid], _COLUMNS)
    if not row:
        raise errors.NodeNotFound(node=ident)
    return _documents(ctx, row)[0], last_event_id


def _documents(ctx: Context, page_rows: Iterable[Any]) -> list[Json]:
    guards, documents = policy.guards_fields(ctx), []
    for row in page_rows:
        hidden = policy.hidden_fields(ctx, row.owner, row.lessee) if guards else ()
        host = ctx.services.rpc.ring.find_host(
            driver=row.driver, group=row.conductor_group, uuid=row.uuid
        )
        objects = rows.load(row.properties), rows.load(row.extra)
        bmc_host = None if "driver_info" in hidden else _bmc_host(rows.load(row.driver_info))
        document = dict(zip(_SHOWN, row, strict=False)) | {
            "conductor": host,
            **{name: _first(objects, (name,)) for name in ("rack", "slot")},
            "serial": _first(objects, _SERIALS),
            "bmc_address": bmc_host,
            "macs": sorted(row.macs.split(",")) if row.macs else [],
            **rules.describe_problem(row, host, secrets.mask, hides_error="last_error" in hidden),
        }
        documents.append(document)
    return documents


def _first(objects: tuple[Json, ...], names: tuple[str, ...]) -> str | None:
    """Return the first value of these names in the objects, as text."""
    values = (each[name] for each in objects for name in names if each.get(name) is not None)
    value = secrets.mask(next(values, None))
    return str(value) if isinstance(value, str | int) else None


def _bmc_host(driver_info: Json) -> str | None:
    """Return the host of the BMC, without scheme, login, port and path."""
    addresses = {name: driver_info[name] for name in _BMC_ADDRESSES if name in driver_info}
    address = _first((secrets.mask(addresses),), _BMC_ADDRESSES)
    if address is None:
        return None
    try:
        return urlsplit(address if "://" in address else f"//{address}").hostname
    except ValueError:
        return None
