"""PUT states/provision: may this verb be asked of this node now, and with these arguments?

The order of the checks is Ironic's: who gets which error depends on it.  The conductor
asks the state again under the lock; what it refuses there is a race that was lost.

    provision.set_provision_state(ctx, "web-1", {"target": "active", "configdrive": "H4sI..."})
"""

from __future__ import annotations

import dataclasses
from typing import Any

from bloomery import errors
from bloomery.model.rules import attributes, verbs
from bloomery.operations import lookup, policy, provision_arguments
from bloomery.operations.context import Admit, Context, admit_all

Json = dict[str, Any]


def set_provision_state(ctx: Context, ident: str, body: Json, admit: Admit = admit_all) -> None:
    """Hand a provision verb to the node's conductor; returns once it is committed there.

    ``admit`` is asked for ("verb", verb), then for arguments (see ``provision_arguments.read``),
    at last for ("transition", verb, state).
    """
    policy.authorize_node(ctx, ident, "baremetal:node:set_provision_state", *_step_rules(body))
    node = lookup.row(ctx, ident)
    verb = body.get("target")
    admit("verb", verb)
    attributes.refuse_sealed_in(body)
    provision_arguments.check_allowed_steps(ctx.services.conf, body)
    if verb in ("active", "rebuild"):
        verbs.refuse_in_maintenance(node, verb)
    _check_state(node, verb)
    arguments = provision_arguments.read(ctx, str(verb), body, admit)
    admit("transition", verb, node.provision_state)
    lookup.conductor_of(ctx, node).do_provisioning_action(
        ctx.request, node.uuid, str(verb), dataclasses.asdict(arguments)
    )


def _step_rules(body: Json) -> list[str]:
    """Return the further rules that who names steps is asked; a runbook has a rule of its own."""
    named = [] if body.get("runbook") else ["clean_steps", "service_steps"]
    return [f"baremetal:node:set_provision_state:{name}" for name in named if body.get(name)]


def _check_state(node: Any, verb: Any) -> None:
    """The state must have an edge for the verb; a busy node is busy for any word."""
    try:
        verbs.require_edge(node, verb)
    except errors.InvalidStateRequested:
        if node.reservation is None:
            raise
        raise errors.NodeLocked(
            node=node.uuid,
            holder=node.reservation,
            action=node.reserved_for or "",
        ) from None
