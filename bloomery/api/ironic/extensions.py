"""Extensions about machines, below /ext/v1: short rows, many nodes at once, and why one waits.

Microversions do not apply here: names are always accepted.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

from bloomery import errors
from bloomery.api import arguments, schemas
from bloomery.api.arguments import Arg
from bloomery.api.declare import Call, Reply
from bloomery.api.ironic import records
from bloomery.model import nouns
from bloomery.model.request import Page
from bloomery.operations import (
    allocation_why,
    bulk,
    conductors,
    firmware,
    hardware,
    node_facts,
    node_rows,
    nodes,
    provision,
    timeline,
    why,
)

Json = dict[str, Any]

_USUAL_PAGE: Final = 100
_ROWS: Final = 1000
_PHASES: Final = ("clean", "deploy", "service")
PAGE: Final = {"limit": Arg(arguments.count), "marker": Arg(arguments.text)}
PHASE: Final = {"phase": Arg(arguments.text, form={"enum": list(_PHASES)})}
CONSOLE: Final = {"read_only": Arg(arguments.boolean)}
FORCE: Final = {"force": Arg(arguments.boolean)}


def list_nodes(call: Call, *, limit: int | None = None, marker: str | None = None) -> Json:
    """The nodes that the caller may list in short rows, each with its problem."""
    page = Page(limit=_limit(call, limit, _ROWS), marker=marker)
    rows, last, last_event_id = node_rows.list_page(call.context, page)
    document = {"nodes": rows, "last_event_id": last_event_id}
    if last is not None:
        query = urlencode({"limit": page.limit, "marker": last})
        document["next"] = f"{call.url}/ext/v1/nodes?{query}"
    return document


def get_node(call: Call, node: str) -> Json:
    """The row of one node, as the list shows it."""
    row, last_event_id = node_rows.get(call.context, node)
    return {"node": row, "last_event_id": last_event_id}


def list_firmware(call: Call, *, limit: int | None = None, marker: str | None = None) -> Json:
    """The firmware of the machines that the caller may list, beside that of the catalogue."""
    page = Page(limit=_limit(call, limit, _ROWS), marker=marker)
    machines, last, digest = firmware.list_page(call.context, page)
    document = {"machines": machines, "catalogue": digest}
    if last is not None:
        query = urlencode({"limit": page.limit, "marker": last})
        document["next"] = f"{call.url}/ext/v1/firmware?{query}"
    return document


def get_firmware(call: Call, node: str) -> Json:
    """The firmware of one machine, as the list shows it."""
    machine, digest = firmware.get(call.context, node)
    return {"machine": machine, "catalogue": digest}


def explain_node(call: Call, node: str) -> Json:
    """Explain why the node is in its state."""
    return why.explain(call.context, node)


def examine_bmc(call: Call, node: str) -> Json:
    """Check the node's BMC by reads: what works, what is missing, and its latency."""
    return hardware.examine_bmc(call.context, node)


def read_bmc_log(call: Call, node: str) -> Json:
    """Read the newest entries of the BMC's own log (SEL)."""
    return hardware.read_bmc_log(call.context, node)


def get_sensors(call: Call, node: str) -> Json:
    """Show what the node's sensors measured in the last hours."""
    return hardware.get_sensors(call.context, node)


def open_console(call: Call, node: str, *, read_only: bool = False) -> Reply | Json:
    """Open a web socket to the serial console, or tell other requests whether that is possible.

    Binary messages are what the machine writes, and what the caller types.  Messages of text are
    JSON about the connection: ``state`` (open, lost, ended), ``message``, ``may_type``, ``again``.
    """
    from bloomery.operations import consoles  # few processes need it

    if call.upgrade is None:
        return consoles.describe(call.context, node, read_only=read_only)
    begin = consoles.open_(call.context, node, read_only=read_only, address=call.caller)
    return Reply(web_socket=begin)


def prove_erasure(call: Call, node: str) -> Json:
    """Prove what was erased on the node: disks, methods and times, signed."""
    return node_facts.prove_erasure(call.context, node)


def get_timeline(
    call: Call, node: str, *, limit: int | None = None, marker: str | None = None
) -> Json:
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


def list_steps(call: Call, node: str, *, phase: str = "clean") -> Json:
    """List the steps that the node offers to clean, deploy or service."""
    if phase not in _PHASES:
        raise errors.InvalidParameterValue(
            reason=f"phase must be one of {', '.join(_PHASES)}, not {errors.shortened(phase)!r}"
        )
    return {"steps": provision.list_steps(call.context, node, phase)}


def bring_past(call: Call, node: str, *, body: Json) -> None:
    """Bring the history and the inventory of an imported node, which is in maintenance."""
    node_facts.bring_past(call.context, node, body["history"], body.get("inspected"))


def forget_node(call: Call, node: str, *, force: bool = False) -> None:
    """End all work on the node, and remove its record; power and disks stay as they are.

    409 while an instance is on it; ``force`` removes it nevertheless.
    """
    nodes.forget(call.context, node, force=force)


def explain_allocation(call: Call, allocation: str) -> Json:
    """Explain why the allocation has no node yet, or failed."""
    return allocation_why.explain(call.context, allocation)


# ----------------------------------------------------------------------- many nodes in one request

_PORT: Final = records.creation(nouns.PORT)
_SOME_NODE: Final = {"node_uuid": "00000000-0000-4000-8000-000000000000"}


def enrol(call: Call, *, body: Json) -> Json:
    """Enrol many machines with their ports; each has its own result.

    The key of a machine is its uuid, else its name: a repeated request creates what is missing.
    """
    machines = []
    for document in body["nodes"]:
        fields = {n: value for n, value in document.items() if n not in ("imported", "ports")}
        ports = document.get("ports", [])
        try:
            schemas.NODE.check(fields)
            for port in ports:
                _PORT.check(_SOME_NODE | port)
        except errors.Invalid as exc:
            machines.append(bulk.Machine(fields=fields, fault=exc))
        else:
            imported = document.get("imported")
            machines.append(bulk.Machine(fields=fields, ports=ports, imported=imported))
    return {"results": bulk.enrol(call.context, machines)}


def act(call: Call, *, body: Json) -> Json:
    """Order one action of many nodes, each as of one: provision, power, maintenance, firmware."""
    actions = sorted(body.keys() & bulk.ACTIONS.keys())
    if len(actions) != 1:
        raise errors.Invalid(
            reason=f"give exactly one of {', '.join(bulk.ACTIONS)} beside nodes, not "
            f"{' and '.join(actions) or 'none'}",
        )
    action = actions[0]
    return {"results": bulk.act(call.context, body["nodes"], action, body[action])}


# ---------------------------------------------------------------------------------- conductors


def list_conductors(call: Call) -> Json:
    """List the conductors with their state and their load."""
    return {"conductors": conductors.describe_all(call.context)}


def list_bmcs(call: Call, conductor: str) -> Json:
    """List the BMCs that the conductor has called: latency, breaker, sessions, logins."""
    return {"bmcs": conductors.list_bmcs(call.context, conductor)}


def drain(call: Call, conductor: str, *, force: bool = False) -> None:
    """Let the conductor take no new nodes, end its work, and stop.

    409 where no other conductor would serve its nodes; ``force`` drains it nevertheless.
    """
    conductors.drain(call.context, conductor, force=force)
