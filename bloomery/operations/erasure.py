"""The signed proof of what was erased on a node.

erasure.prove(ctx, "web-1")["proof"]["erasures"][0]["disks"]
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from bloomery.db import hardware, nodes
from bloomery.operations import policy
from bloomery.operations.context import Context

Json = dict[str, Any]

_RULE: Final = "baremetal:node:inventory:get"
_NAMES: Final = ("wwn", "serial")  # of a disk, whatever its name is after a boot


def prove(ctx: Context, ident: str) -> Json:
    """Return the erasures of the node, newest first, signed as a whole.

    ``missing``: disks of the last inspection that the newest erasure of whole disks did not erase.
    ``signature``: see ``signatures``; null without a sealing key.  Raises NodeNotFound.
    """
    uuid = policy.get_uuid(ctx, ident, _RULE)
    with ctx.services.db.read() as conn:
        node = nodes.get(conn, uuid)
        erasures = hardware.list_erasures(conn, uuid)
        inspected = hardware.find_inventory(conn, uuid)
    proof = {
        "node_uuid": node.uuid,
        "node_name": node.name,
        "issued_at": datetime.now(UTC).isoformat(),
        "erasures": erasures,
        "missing": _missing(erasures, inspected),
    }
    sealer = ctx.services.sealer
    return {"proof": proof, "signature": None if sealer is None else sealer.sign(proof)}


def _missing(erasures: list[Json], inspected: Json | None) -> list[Json]:
    whole = next((each for each in erasures if each["step"] == "erase_devices"), None)
    erased = {
        disk[name]
        for disk in (whole["disks"] if whole else ()) for name in _NAMES
        if disk["is_erased"] and disk.get(name)
    }  # fmt: skip
    disks = (inspected or {}).get("inventory", {}).get("disks") or ()
    return [
        {name: disk.get(name) for name in ("name", "model", "size", *_NAMES)}
        for disk in disks
        if not erased.intersection(disk.get(name) for name in _NAMES)
    ]
