"""Many nodes in one request: /ext/v1/nodes:batch and /ext/v1/nodes:act."""

from __future__ import annotations

from typing import Any, Final

from bloomery import errors
from bloomery.api.controllers.v1 import records
from bloomery.api.declare import Call, endpoint
from bloomery.api.routing import Rest
from bloomery.api.schemas import bulk as schemas
from bloomery.api.schemas import node as node_schemas
from bloomery.model import nouns
from bloomery.operations import bulk

Json = dict[str, Any]

_PORT: Final = records.creation(nouns.PORT)
_SOME_NODE: Final = {"node_uuid": "00000000-0000-4000-8000-000000000000"}


class Batch(Rest):
    @endpoint(rule=bulk.ENROL_RULE, body=schemas.ENROL)
    def post(self, call: Call, *, body: Json) -> Json:
        """Enrol many machines with their ports; each has its own result.

        The key of a machine is its uuid, else its name: a repeated request creates what is missing.
        """
        return {"results": bulk.enrol(call.context, [_machine(each) for each in body["nodes"]])}


def _machine(document: Json) -> bulk.Machine:
    """Return the machine of an item; a faulty one with its fault."""
    ports = document.get("ports", [])
    imported = document.get("imported")
    fields = {n: value for n, value in document.items() if n not in ("imported", "ports")}
    try:
        node_schemas.CREATE.check(fields)
        for port in ports:
            _PORT.check(_SOME_NODE | port)
    except errors.Invalid as exc:
        return bulk.Machine(fields=fields, fault=exc)
    return bulk.Machine(fields=fields, ports=ports, imported=imported)


class Act(Rest):
    @endpoint(rule=bulk.ACT_RULE, body=schemas.ACT)
    def post(self, call: Call, *, body: Json) -> Json:
        """Order one action of many nodes: provision, power or maintenance, as of one node."""
        actions = sorted(body.keys() & bulk.ACTIONS.keys())
        if len(actions) != 1:
            raise errors.Invalid(
                reason=f"give exactly one of {', '.join(bulk.ACTIONS)} beside nodes, not "
                f"{' and '.join(actions) or 'none'}",
            )
        action = actions[0]
        return {"results": bulk.act(call.context, body["nodes"], action, body[action])}
