"""Firmware of the fleet: its versions, the operator's catalogue, and updates by it.

All is read from rows: of the versions that BMCs showed last, and of the catalogue, which is stored
in the database, since each process needs it.  An update is an ordinary cleaning or service with
the step firmware.update, whose settings come from the same rows as the plan.

    machines, marker, digest = firmware.list_page(ctx, Page(limit=100))
    firmware.order(ctx, "web-1", {"catalogue": digest})
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import hardware, nodes, settings
from bloomery.model.request import Page
from bloomery.model.rules import firmware as rules
from bloomery.model.rules.firmware import Catalogue
from bloomery.operations import policy, provision
from bloomery.operations.context import Context

Json = dict[str, Any]

_CATALOGUE: Final = "firmware_catalogue"  # the name of the setting
_READ: Final = "baremetal:node:firmware:get"
_COLUMNS: Final = (
    "uuid", "name", "provision_state", "maintenance", "driver", "resource_class",
    "conductor_group", "instance_uuid", "retired", "owner", "lessee",
)  # fmt: skip
_SHOWN: Final = _COLUMNS[:7]
_PART: Final = ("component", "vendor", "model", "serial_number", "current_version")

_parse = functools.lru_cache(maxsize=2)(rules.parse)


def list_page(ctx: Context, page: Page) -> tuple[list[Json], str | None, str | None]:
    """Return a page of machines with their firmware, the next page's marker, the digest.

    ``digest``: of the catalogue; None without one.  A component's ``catalogue_version`` is null
    where the catalogue has no entry for it.  ``verbs`` would update the machine, or ``refusal``
    says why none does.  No BMC is asked.  Raises Forbidden, NodeNotFound.
    """
    project = policy.visible_project(ctx, "node")
    query = nodes.Query(columns=_COLUMNS, project=project, marker=page.marker, limit=page.limit)
    with ctx.services.db.read() as conn:
        catalogue = _find_catalogue(conn)
        rows = nodes.list_rows(conn, query)
        components = hardware.list_firmware_of(conn, [row.uuid for row in rows])
    marker = rows[-1].uuid if page.is_full(rows) else None
    documents = [
        _document(row, components.get(row.uuid, []), catalogue)
        for row in rows
        if policy.may(ctx, _READ, policy.node_target(row))
    ]
    return documents, marker, catalogue.digest if catalogue else None


def get(ctx: Context, ident: str) -> tuple[Json, str | None]:
    """Return one machine as the list has it, and the digest.  Raises NodeNotFound, Forbidden."""
    row = policy.get_node(ctx, ident, _READ, columns=_COLUMNS)
    with ctx.services.db.read() as conn:
        catalogue = _find_catalogue(conn)
        components = hardware.list_firmware(conn, row.uuid)
    return _document(row, components, catalogue), catalogue.digest if catalogue else None


def _document(row: Any, components: Sequence[Json], catalogue: Catalogue | None) -> Json:
    vendor, model = rules.machine_of(components)
    wanted = {} if catalogue is None else rules.versions_of(catalogue, components)
    verbs, refusal = rules.find_way(row)
    document = {name: getattr(row, name) for name in _SHOWN} | {
        "maintenance": bool(row.maintenance), "vendor": vendor, "model": model,
        "verbs": list(verbs), "refusal": refusal,
    }  # fmt: skip
    document["components"] = [
        {name: each[name] for name in _PART} | {"catalogue_version": wanted.get(each["component"])}
        for each in components
    ]
    return document


def list_pending(conn: sa.Connection, uuid: str) -> list[Json]:
    """Return what the catalogue would change of a node, as documents of its components."""
    try:
        catalogue = _find_catalogue(conn)
    except errors.Invalid:  # an older release has stored it
        return []
    if catalogue is None:
        return []
    return [each.document for each in rules.pending(catalogue, hardware.list_firmware(conn, uuid))]


def list_updates(ctx: Context, ident: str) -> tuple[str | None, list[rules.Update], bool]:
    """Return the digest of the catalogue, or None, and what it would change of a node.

    The last value tells whether the catalogue has an entry for any component that was read.
    Raises NodeNotFound, Forbidden.
    """
    uuid = policy.get_uuid(ctx, ident, _READ)
    with ctx.services.db.read() as conn:
        catalogue = _find_catalogue(conn)
        if catalogue is None:
            return None, [], False
        components = hardware.list_firmware(conn, uuid)
    is_listed = bool(rules.match(catalogue, components))
    return catalogue.digest, rules.pending(catalogue, components), is_listed


def order(ctx: Context, ident: str, body: Json) -> None:
    """Clean or service a node with the updates that the catalogue has for it, or a rollback.

    ``body``: ``catalogue``, the digest of the plan, and ``components``, only these (bios, bmc,
    nic); or ``rollback``, the arguments of the step firmware.rollback.

    Raises Conflict for another catalogue, a node that cannot be updated now, or one that needs no
    update, and Invalid for a body of neither kind.
    """
    row = policy.get_node(ctx, ident, _READ, provision.RULE, columns=_COLUMNS)
    name = errors.name_of(row)
    if ("catalogue" in body) == ("rollback" in body):
        raise errors.Invalid(reason="give either catalogue or rollback as the order of firmware")
    if "rollback" in body:
        step: Json = {"step": "rollback", "args": body["rollback"]}
    else:
        step = {"step": "update", "args": {"settings": _settings(ctx, row, body)}}
    verbs, refusal = rules.find_way(row)
    if refusal is None and len(verbs) > 1:
        refusal = f"it is in {row.provision_state}: ask for {verbs[0]} first"
    if refusal is not None:
        raise errors.Conflict(reason=f"cannot update the firmware of node {name}: {refusal}")
    steps = [{"interface": "firmware"} | step]
    request = {"target": verbs[0], f"{verbs[0]}_steps": steps, "disable_ramdisk": True}
    provision.set_provision_state(ctx, row.uuid, request)


def _settings(ctx: Context, row: Any, body: Json) -> list[Json]:
    """Return the updates that a plan has shown of a node.  Raises Conflict."""
    digest, pending, _ = list_updates(ctx, row.uuid)
    if digest is None or digest != body["catalogue"]:
        raise errors.Conflict(
            reason="the catalogue of firmware is another one than the plan's: plan again",
        )
    chosen = body.get("components") or rules.COMPONENTS
    updates = [each.setting for each in pending if each.component.partition(":")[0] in chosen]
    if not updates:
        raise errors.Conflict(
            reason=f"node {errors.name_of(row)} needs no update: it is as the catalogue says",
        )
    return updates


# ------------------------------------------------------------------------------- the catalogue


def get_catalogue(ctx: Context) -> Json:
    """Return ``catalogue``, its text, with ``digest`` and number of ``entries``; null without."""
    policy.authorize(ctx, "baremetal:firmware_catalogue:get")
    with ctx.services.db.read() as conn:
        text = settings.find(conn, _CATALOGUE)
    if not text:
        return {"catalogue": None, "digest": None, "entries": 0}
    catalogue = _parse(text)
    return {"catalogue": text, "digest": catalogue.digest, "entries": len(catalogue.entries)}


def set_catalogue(ctx: Context, text: str) -> None:
    """Store a catalogue in the place of the former one.  Raises Invalid, which names the line."""
    policy.authorize(ctx, "baremetal:firmware_catalogue:set")
    _parse(text)
    ctx.services.db.transact(lambda conn: settings.put(conn, _CATALOGUE, text))


def delete_catalogue(ctx: Context) -> None:
    policy.authorize(ctx, "baremetal:firmware_catalogue:set")
    ctx.services.db.transact(lambda conn: settings.put(conn, _CATALOGUE, ""))


def _find_catalogue(conn: sa.Connection) -> Catalogue | None:
    text = settings.find(conn, _CATALOGUE)
    return _parse(text) if text else None
