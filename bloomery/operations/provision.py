"""PUT states/provision: may this verb be asked of this node now, and with these arguments?

The order of the checks is Ironic's: who gets which error depends on it.  The conductor
asks the state again under the lock; what it refuses there is a race that was lost.

    provision.set_provision_state(ctx, "web-1", {"target": "active", "configdrive": "H4sI..."})
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from bloomery import errors
from bloomery.model.rules import attributes, verbs
from bloomery.operations import lookup, policy, provision_arguments
from bloomery.operations.context import Admit, Context, admit_all
from bloomery.rpc.contract import Conductor

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionRequest:
    """A verb with what came along, ready to go to the conductor."""

    ctx: Context
    conductor: Conductor
    node_uuid: str
    verb: str
    arguments: provision_arguments.ProvisionArguments


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
    request = ProvisionRequest(
        ctx=ctx,
        conductor=lookup.conductor_of(ctx, node),
        node_uuid=node.uuid,
        verb=str(verb),
        arguments=arguments,
    )
    CALLS[str(verb)](request)


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


def _deploy(request: ProvisionRequest) -> None:
    request.conductor.do_node_deploy(
        request.ctx.request,
        request.node_uuid,
        rebuild=request.verb == "rebuild",
        configdrive=request.arguments.configdrive,
        deploy_steps=request.arguments.steps or None,
    )


def _tear_down(request: ProvisionRequest) -> None:
    request.conductor.do_node_tear_down(request.ctx.request, request.node_uuid)


def _clean(request: ProvisionRequest) -> None:
    request.conductor.do_node_clean(
        request.ctx.request,
        request.node_uuid,
        clean_steps=request.arguments.steps,
        disable_ramdisk=request.arguments.disable_ramdisk,
    )


def _service(request: ProvisionRequest) -> None:
    request.conductor.do_node_service(
        request.ctx.request,
        request.node_uuid,
        service_steps=request.arguments.steps,
        disable_ramdisk=request.arguments.disable_ramdisk,
    )


def _inspect(request: ProvisionRequest) -> None:
    request.conductor.inspect_hardware(request.ctx.request, request.node_uuid)


def _rescue(request: ProvisionRequest) -> None:
    request.conductor.do_node_rescue(
        request.ctx.request,
        request.node_uuid,
        rescue_password=request.arguments.rescue_password or "",
    )


def _unrescue(request: ProvisionRequest) -> None:
    request.conductor.do_node_unrescue(request.ctx.request, request.node_uuid)


def _act(request: ProvisionRequest) -> None:
    request.conductor.do_provisioning_action(request.ctx.request, request.node_uuid, request.verb)


CALLS: Final[dict[str, Callable[[ProvisionRequest], None]]] = {
    "active": _deploy, "deploy": _deploy, "rebuild": _deploy,
    "deleted": _tear_down, "undeploy": _tear_down,
    "clean": _clean, "service": _service, "inspect": _inspect,
    "rescue": _rescue, "unrescue": _unrescue,
    "manage": _act, "provide": _act, "abort": _act, "adopt": _act, "unhold": _act,
}  # fmt: skip
