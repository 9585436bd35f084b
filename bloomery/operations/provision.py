"""PUT states/provision: may this verb be asked of this node now, and with these arguments?

The order of the checks is the reference's: who gets which error depends on it.  The conductor
asks the state again under the lock; what it refuses there is a race that was lost.

    provision.set_provision_state(ctx, "web-1", {"target": "active", "configdrive": "H4sI..."})
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from bloomery import errors
from bloomery.conductor.states import State
from bloomery.model.rules import attributes, verbs
from bloomery.operations import lookup, policy, provision_arguments, versions
from bloomery.operations.context import Context
from bloomery.rpc.contract import Conductor

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvisionRequest:
    """A verb with what came along, ready to go to the conductor."""

    ctx: Context
    conductor: Conductor
    node_uuid: str
    verb: str
    said: provision_arguments.ProvisionArguments


SINCE: Final = {
    "manage": 4, "provide": 4, "inspect": 6, "abort": 13, "clean": 15, "adopt": 17,
    "rescue": 38, "unrescue": 38, "deploy": 73,
}  # fmt: skip
SINCE_AFTER_STATE: Final = {"unhold": 85, "service": 87}  # an old client is told of the state first
ABORT_SINCE: Final = {State.INSPECTWAIT: 41, State.DEPLOYWAIT: 110}


def set_provision_state(ctx: Context, ident: str, body: Json) -> None:
    """Hand a provision verb to the node's conductor; returns once it is committed there."""
    policy.authorize_node(ctx, ident, "baremetal:node:set_provision_state", *_step_rules(body))
    node = lookup.row(ctx, ident)
    verb = body.get("target")
    if verb in SINCE:
        versions.require(ctx.version, SINCE[verb], f"the verb {verb}")
    attributes.refuse_sealed_in(body)
    provision_arguments.check_allowed_steps(ctx.services.conf, body)
    if verb in ("active", "rebuild"):
        verbs.refuse_in_maintenance(node, verb)
    _check_state(node, verb)
    said = provision_arguments.read(ctx, str(verb), body)
    _check_late_versions(ctx, node, str(verb))
    order = ProvisionRequest(
        ctx=ctx,
        conductor=lookup.conductor_of(ctx, node),
        node_uuid=node.uuid,
        verb=str(verb),
        said=said,
    )
    ORDERS[str(verb)](order)


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


def _check_late_versions(ctx: Context, node: Any, verb: str) -> None:
    if verb == "abort" and node.provision_state in ABORT_SINCE:
        since = ABORT_SINCE[node.provision_state]
        versions.require(ctx.version, since, f"abort in state {node.provision_state}")
    if verb in SINCE_AFTER_STATE:
        versions.require(ctx.version, SINCE_AFTER_STATE[verb], f"the verb {verb}")


def _deploy(order: ProvisionRequest) -> None:
    order.conductor.do_node_deploy(
        order.ctx.request,
        order.node_uuid,
        rebuild=order.verb == "rebuild",
        configdrive=order.said.configdrive,
        deploy_steps=order.said.steps or None,
    )


def _tear_down(order: ProvisionRequest) -> None:
    order.conductor.do_node_tear_down(order.ctx.request, order.node_uuid)


def _clean(order: ProvisionRequest) -> None:
    order.conductor.do_node_clean(
        order.ctx.request,
        order.node_uuid,
        clean_steps=order.said.steps,
        disable_ramdisk=order.said.disable_ramdisk,
    )


def _service(order: ProvisionRequest) -> None:
    order.conductor.do_node_service(
        order.ctx.request,
        order.node_uuid,
        service_steps=order.said.steps,
        disable_ramdisk=order.said.disable_ramdisk,
    )


def _inspect(order: ProvisionRequest) -> None:
    order.conductor.inspect_hardware(order.ctx.request, order.node_uuid)


def _rescue(order: ProvisionRequest) -> None:
    order.conductor.do_node_rescue(
        order.ctx.request,
        order.node_uuid,
        rescue_password=order.said.rescue_password or "",
    )


def _unrescue(order: ProvisionRequest) -> None:
    order.conductor.do_node_unrescue(order.ctx.request, order.node_uuid)


def _act(order: ProvisionRequest) -> None:
    order.conductor.do_provisioning_action(order.ctx.request, order.node_uuid, order.verb)


ORDERS: Final[dict[str, Callable[[ProvisionRequest], None]]] = {
    "active": _deploy, "deploy": _deploy, "rebuild": _deploy,
    "deleted": _tear_down, "undeploy": _tear_down,
    "clean": _clean, "service": _service, "inspect": _inspect,
    "rescue": _rescue, "unrescue": _unrescue,
    "manage": _act, "provide": _act, "abort": _act, "adopt": _act, "unhold": _act,
}  # fmt: skip
