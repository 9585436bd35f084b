"""Audit records of the APIs: one before an order is carried out, one with its answer.

All requests are orders, except reads and the calls of agents.  A record has the names of changed
fields.  Of values it has targets and nodes alone, since bodies hold secrets.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import bloomery
from bloomery import errors
from bloomery.api import auth
from bloomery.audit import Trail
from bloomery.conf import Conf
from bloomery.model.request import Parking, Request

LOG = logging.getLogger(__name__)

_READS: Final = ("GET", "HEAD", "OPTIONS")
_REFUSED: Final = ("401", "403")
_MOST_CHARS, _MOST_FIELDS, _MOST_NODES = 255, 50, 200

Json = dict[str, Any]


class Auditor:
    """Records the orders of one API.  Raises AuditUnwritable."""

    def __init__(self, trail: Trail) -> None:
        self._trail = trail

    def begin(self, host: str) -> None:
        """Record that the APIs of a process have started."""
        self._trail.add("started", {"host": host, "release": bloomery.__version__}, is_durable=True)

    def ask(
        self, parking: Parking, request: Request, environ: Mapping[str, Any], body: bytes
    ) -> None:
        """Record an order, once in all passes of its request."""
        if parking.is_audited or not _is_order(environ):
            return
        who = {"user": request.user, "user_name": request.user_name, "project": request.project}
        facts = _place(parking, environ) | who | _order(body)
        self._trail.add("asked", facts, is_durable=True)
        parking.is_audited = True

    def answering(self, start_response: Any, parking: Parking, environ: Mapping[str, Any]) -> Any:
        """Record the answer to an order, and orders that are refused before they are recorded."""
        if not _is_order(environ):
            return start_response
        place = _place(parking, environ)

        def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
            answer = {"status": int(status[:3])}
            try:
                if parking.is_audited:
                    self._trail.add("answered", {"request_id": place["request_id"]} | answer)
                elif status.startswith(_REFUSED):
                    self._trail.add("refused", place | answer)
            except errors.AuditUnwritable as exc:
                LOG.warning("the answer %s to %s: %s", status, place["request_id"], exc)
            return start_response(status, headers, exc_info)

        return start


def make(conf: Conf) -> Auditor | None:
    """Return the auditor of an API, or None without a configured file."""
    return Auditor(Trail(Path(conf.audit.file))) if conf.audit.file else None


def begun(conf: Conf) -> Auditor | None:
    """Return an auditor that has recorded the start of the process.  Raises CannotStart."""
    auditor = make(conf)
    try:
        if auditor is not None:
            auditor.begin(str(conf.default.host))
    except errors.AuditUnwritable as exc:
        raise errors.CannotStart(
            reason=f"cannot start: cannot write [audit]file {conf.audit.file}: "
            f"{exc.facts['reason']}; name a file in a folder that this user may write"
        ) from exc
    return auditor


def _is_order(environ: Mapping[str, Any]) -> bool:
    is_read = environ["REQUEST_METHOD"] in _READS
    return not (is_read or auth.PUBLIC.fullmatch(environ.get("PATH_INFO", "")))


def _place(parking: Parking, environ: Mapping[str, Any]) -> Json:
    path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    return {
        "request_id": parking.request.request_id,
        "address": environ.get("REMOTE_ADDR", ""),
        "method": environ["REQUEST_METHOD"][:_MOST_CHARS],
        "path": path.encode("latin-1").decode(errors="replace")[: 2 * _MOST_CHARS],
    }


def _order(body: bytes) -> Json:
    """Return what a body orders: names of fields, targets, nodes."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    if isinstance(document, list):  # a JSON patch
        paths = [each.get("path") for each in document if isinstance(each, dict)]
        return {"fields": _texts(paths, _MOST_FIELDS)}
    if not isinstance(document, dict):
        return {}
    order: Json = {"fields": _texts(document, _MOST_FIELDS)}
    parts = [document, *(each for each in document.values() if isinstance(each, dict))]
    targets = [part["target"] for part in parts if isinstance(part.get("target"), str)]
    if targets:
        order["target"] = targets[0][:_MOST_CHARS]
    if isinstance(document.get("nodes"), list):
        order["nodes"] = _texts(map(_ident, document["nodes"]), _MOST_NODES)
    return order


def _ident(node: Any) -> Any:
    """Return the name or UUID of a node that many are ordered of, or that is enrolled."""
    return node.get("name") or node.get("uuid") if isinstance(node, dict) else node


def _texts(values: Any, most: int) -> list[str]:
    return [each[:_MOST_CHARS] for each in values if isinstance(each, str)][:most]
