"""Nodes in short rows, and what explains one: <ident>/why, /timeline, /steps, /bmc, /erasure.

<ident>/past brings what another service knew of an imported node.

Microversions do not apply here: names are always accepted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final
from urllib.parse import urlencode

from webob import exc as statuses

from bloomery import errors
from bloomery.api import arguments
from bloomery.api.arguments import Arg
from bloomery.api.declare import Call, endpoint
from bloomery.api.routing import Rest
from bloomery.api.schemas import bulk as schemas
from bloomery.model.page import Page
from bloomery.operations import bulk, erasure, hardware, node_rows, past, provision, timeline, why

_USUAL_PAGE: Final = 100
_ROWS: Final = 1000
_PHASES: Final = ("clean", "deploy", "service")
PAGE: Final = {"limit": Arg(arguments.count), "marker": Arg(arguments.text)}


class Why(Rest):
    @endpoint(rule="baremetal:node:history:get")
    def get(self, call: Call, node: str) -> dict[str, Any]:
        """Explain why the node is in its state."""
        return why.explain(call.context, node)


class Bmc(Rest):
    @endpoint(rule="baremetal:node:get_boot_device")
    def get(self, call: Call, node: str) -> dict[str, Any]:
        """Check the node's BMC by reads: what works, what is missing, and its latency."""
        return hardware.examine_bmc(call.context, node)


class Erasure(Rest):
    @endpoint(rule="baremetal:node:inventory:get")
    def get(self, call: Call, node: str) -> dict[str, Any]:
        """Prove what was erased on the node: disks, methods and times, signed."""
        return erasure.prove(call.context, node)


class Timeline(Rest):
    @endpoint(rule="baremetal:node:history:get", query=PAGE)
    def get(
        self, call: Call, node: str, *, limit: int | None = None, marker: str | None = None
    ) -> dict[str, Any]:
        """List the events of the node, newest first, with the expected end of running actions."""
        limit = _limit(call, limit)
        document = timeline.get_page(call.context, node, limit=limit, marker=marker)
        entries = document["timeline"]
        if len(entries) == limit:
            query = urlencode({"limit": limit, "marker": entries[-1]["marker"]})
            document["next"] = f"{call.url}/ext/v1/nodes/{node}/timeline?{query}"
        return document


def _limit(call: Call, limit: int | None, usual: int = _USUAL_PAGE) -> int:
    if limit is not None and limit <= 0:
        raise errors.InvalidParameterValue(reason=f"limit must be positive, not {limit}")
    return min(limit or usual, call.context.services.conf.api.max_limit)


class Steps(Rest):
    @endpoint(rule="baremetal:node:set_provision_state", query={"phase": Arg(arguments.text)})
    def get(self, call: Call, node: str, *, phase: str = "clean") -> dict[str, Any]:
        """List the steps that the node offers to clean, deploy or service."""
        if phase not in _PHASES:
            raise errors.InvalidParameterValue(
                reason=f"phase must be one of {', '.join(_PHASES)}, not {errors.shortened(phase)!r}"
            )
        return {"steps": provision.list_steps(call.context, node, phase)}


class Past(Rest):
    @endpoint(status=204, rule=bulk.IMPORT_RULE, body=schemas.PAST)
    def post(self, call: Call, node: str, *, body: dict[str, Any]) -> None:
        """Bring the history and the inventory of an imported node, which is in maintenance."""
        past.bring(call.context, node, history=body["history"], inspected=body.get("inspected"))


class Parts(Rest):
    """A node's path that answers only below itself."""

    def walk_on(self, call: Call, segments: list[str]) -> Any:
        if len(segments) < 2 or segments[1] not in self.subresources:
            raise statuses.HTTPNotFound
        return super().walk_on(call, segments)


class Nodes(Parts):
    subresources: ClassVar[Mapping[str, Rest]] = {
        "bmc": Bmc(), "erasure": Erasure(), "past": Past(), "steps": Steps(),
        "timeline": Timeline(), "why": Why(),
    }  # fmt: skip

    @endpoint(rule="baremetal:node:list", query=PAGE)
    def get_all(
        self, call: Call, *, limit: int | None = None, marker: str | None = None
    ) -> dict[str, Any]:
        """The nodes that the caller may list in short rows, each with its problem."""
        page = Page(limit=_limit(call, limit, _ROWS), marker=marker)
        rows, last, last_event_id = node_rows.list_page(call.context, page)
        document = {"nodes": rows, "last_event_id": last_event_id}
        if last is not None:
            query = urlencode({"limit": page.limit, "marker": last})
            document["next"] = f"{call.url}/ext/v1/nodes?{query}"
        return document

    @endpoint(rule="baremetal:node:get")
    def get_one(self, call: Call, node: str) -> dict[str, Any]:
        """The row of one node, as the list shows it."""
        row, last_event_id = node_rows.get(call.context, node)
        return {"node": row, "last_event_id": last_event_id}

    def walk_on(self, call: Call, segments: list[str]) -> Any:
        return (Rest if len(segments) < 2 else Parts).walk_on(self, call, segments)
