"""Who may: every operation asks here first, with the name of its rule.

    policy.authorize(ctx, "baremetal:conductor:get")
    node = policy.get_node(ctx, "web-1", "baremetal:node:set_power_state")
    project = policy.visible_project(ctx, "node", asked.get("project"))

Where callers have no roles (``noauth``, ``http_basic``) whoever got in may do everything, and no
rule is looked at, as in Ironic.  Two rules are asked in every mode: those that show secrets.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.db import nodes as db
from bloomery.db import records
from bloomery.model.noun import Noun
from bloomery.operations import lookup
from bloomery.operations.context import Context
from bloomery.operations.policy_engine import Target
from bloomery.operations.policy_rules import MASKS, STEP_RULES

READ: Final = "baremetal:node:get"  # without it, a node is not there
GUARDED: Final = ("last_error", "reservation", "driver_internal_info", "driver_info")
# What an admin of a project may do to nodes of that project: asked when the first rule refuses.
OWN: Final = {
    "baremetal:node:create": "baremetal:node:create:self_owned_node",
    "baremetal:node:delete": "baremetal:node:delete:self_owned_node",
}
LOG = logging.getLogger(__name__)


def authorize(ctx: Context, rule: str, target: Target | None = None) -> None:
    """Return if the caller may.  Raises Forbidden (403)."""
    if ctx.services.policies.enforced and not may(ctx, rule, target):
        raise _refused(ctx, rule)


def may(ctx: Context, rule: str, target: Target | None = None) -> bool:
    """Tell whether the caller may, without an error."""
    policies = ctx.services.policies
    if not policies.enforced or policies.allow(ctx.request, rule, target or {}):
        return True
    own = OWN.get(rule)
    return own is not None and _manages_own(ctx) and policies.allow(ctx.request, own, target or {})


def _manages_own(ctx: Context) -> bool:
    return ctx.services.conf.api.project_admin_can_manage_own_nodes


def bare_fields(ctx: Context) -> tuple[str, ...]:
    """Return the fields of nodes whose secrets the caller may see; no mode of login grants it."""
    policies = ctx.services.policies
    if policies.enforcer is None:
        return ()
    return tuple(name for name, rule in MASKS.items() if policies.allow(ctx.request, rule, {}))


def guards_fields(ctx: Context) -> bool:
    """Must each node be asked which of its fields the caller may not read?"""
    return not may(ctx, f"{READ}:filter_threshold")


def hidden_fields(ctx: Context, owner: str | None, lessee: str | None) -> tuple[str, ...]:
    """Return the fields that the caller may not read of a node that may be read."""
    target = {"node.owner": owner, "node.lessee": lessee}
    return tuple(name for name in GUARDED if not may(ctx, f"{READ}:{name}", target))


def authorize_steps(ctx: Context, node: Any, steps: Iterable[Any]) -> None:
    """Return if the caller may have all of these steps run on the node, a row.

    Asked of steps for which a policy file has a rule; what is no step is not looked at.
    Raises Forbidden.
    """
    policies = ctx.services.policies
    if not policies.enforced:
        return
    target = node_target(node)
    for step in steps:
        if isinstance(step, Mapping):
            name = f"{step.get('interface')}.{step.get('step')}"
            if not policies.allow_step(ctx.request, name, target):
                raise _refused(ctx, f"{STEP_RULES}{name}")


def node_target(node: Any) -> Target:
    """Return what rules may compare with, of a row with ``owner`` and ``lessee``."""
    return {"node.owner": node.owner, "node.lessee": node.lessee}


def authorize_node(ctx: Context, ident: str, *rules: str) -> None:
    """Return if the caller may do all of ``rules`` to the node.

    Raises NodeNotFound (404) also to those who may not read it, else Forbidden.
    """
    if not ctx.services.policies.enforced:
        return
    node = lookup.row(ctx, ident, lookup.OWNED)
    authorize_part(ctx, node, errors.NodeNotFound(node=ident), *rules)


def authorize_part(ctx: Context, node: Any, hidden: errors.Failure, *rules: str) -> None:
    """Return if the caller may do all of ``rules`` to what belongs to ``node``, a row.

    Raises ``hidden`` to those who may not read the node, else Forbidden.
    """
    if not ctx.services.policies.enforced:
        return
    target = node_target(node)
    if not may(ctx, READ, target):
        _refused(ctx, READ)
        raise hidden
    for rule in rules:
        if rule != READ:
            authorize(ctx, rule, target)


def authorize_named(ctx: Context, uuid: str, hidden: errors.Failure, *rules: str) -> None:
    """As ``authorize_part``, for a node that a body names."""
    if ctx.services.policies.enforced:
        authorize_part(ctx, lookup.row(ctx, uuid, lookup.OWNED), hidden, *rules)


def get_node(ctx: Context, ident: str, *rules: str, columns: tuple[str, ...] = lookup.BRIEF) -> Any:
    """Return columns of a node to which the caller may do all of ``rules``, and which may be read.

    Raises NodeNotFound, Forbidden: see ``authorize_node``.
    """
    authorize_node(ctx, ident, *rules)
    return lookup.row(ctx, ident, columns)


def get_uuid(ctx: Context, ident: str, *rules: str) -> str:
    """Return the UUID of a node as ``get_node`` does its columns."""
    return str(get_node(ctx, ident, *rules, columns=("uuid",)).uuid)


def visible_project(ctx: Context, noun: str, project: str | None = None) -> str | None:
    """Return the project that a list of the caller's is limited to; None: it is not.

    ``project``: the one asked for.  Who may not list everything sees what is of the own project,
    and may ask for no other.  Raises Forbidden.
    """
    if may(ctx, f"baremetal:{noun}:list_all"):
        return project
    own = ctx.request.project
    if own is None or project not in (None, own):
        raise _refused(ctx, f"baremetal:{noun}:list_all")
    authorize(ctx, f"baremetal:{noun}:list")
    return own


# ---------------------------------------------------------------------------- records of nouns


def authorize_record(ctx: Context, noun: Noun, ident: str, verb: str | None = None) -> None:
    """Return if the caller may do that to a record; without a verb: if it may be known at all.

    What belongs to a node is not there (404) for those who may not read the node.
    """
    rules = [] if verb is None else [f"baremetal:{noun.policy}:{verb}"]
    if not ctx.services.policies.enforced:
        return
    if not noun.of_node:
        if "owner" in noun.columns:
            _authorize_owned(ctx, noun, ident, *rules)
            return
        for rule in rules:
            authorize(ctx, rule)
        return
    with ctx.services.db.read() as conn:
        record = records.find_row(conn, noun, ident, ("node_uuid",))
    if record is None:
        raise noun.missing(ident)
    node = lookup.row(ctx, record.node_uuid, lookup.OWNED)
    authorize_part(ctx, node, noun.missing(ident), *rules)


def authorize_new_record(ctx: Context, noun: Noun, body: Mapping[str, Any]) -> None:
    """Return if the caller may add a record to the node that ``body`` names, if it names one.

    A node that is not there owns nothing: who may create for any node learns of it later.
    """
    if not ctx.services.policies.enforced:
        return
    rule = f"baremetal:{noun.policy}:create"
    idents = [str(body[name]) for name in noun.node_arguments if body.get(name)]
    with ctx.services.db.read() as conn:
        nodes = [db.find_row(conn, ident, lookup.OWNED) for ident in idents]
    targets = [node_target(node) for node in nodes if node is not None]
    for target in targets or [{}]:
        authorize(ctx, rule, target)


def _authorize_owned(ctx: Context, noun: Noun, ident: str, *rules: str) -> None:
    """As ``authorize_record``, for what belongs to a project, or is public: for all to read."""
    columns = [name for name in ("owner", "public") if name in noun.columns]
    with ctx.services.db.read() as conn:
        record = records.find_row(conn, noun, ident, columns)
    if record is None:
        raise noun.missing(ident)
    _authorize_owned_row(ctx, noun, record, ident, *rules)


def _authorize_owned_row(ctx: Context, noun: Noun, record: Any, ident: str, *rules: str) -> None:
    read, target = f"baremetal:{noun.policy}:get", owner_target(noun, record)
    if not (getattr(record, "public", False) or may(ctx, read, target)):
        _refused(ctx, read)
        raise noun.missing(ident)
    for rule in rules:
        if rule != read:
            authorize(ctx, rule, target)


def authorize_record_row(ctx: Context, noun: Noun, record: Any, node: Any, verb: str) -> None:
    """As ``authorize_record``, of a row that was read; ``node``: the row of what it belongs to."""
    rule = f"baremetal:{noun.policy}:{verb}"
    if not ctx.services.policies.enforced:
        return
    if noun.of_node:
        authorize_part(ctx, node, noun.missing(record.uuid), rule)
    elif "owner" in noun.columns:
        _authorize_owned_row(ctx, noun, record, record.uuid, rule)
    else:
        authorize(ctx, rule)


def owner_target(noun: Noun, record: Any) -> Target:
    return {f"{noun.policy}.owner": record.owner}


def visible_records(ctx: Context, noun: Noun, owner: str | None = None) -> str | None:
    """Return the project that a list is limited to: see ``visible_project``; ``owner``: asked."""
    if noun.of_node or "owner" in noun.columns:
        return visible_project(ctx, noun.policy, owner)
    authorize(ctx, f"baremetal:{noun.policy}:get")
    return None


def _refused(ctx: Context, rule: str) -> errors.Forbidden:
    who = ctx.request
    LOG.info("request %s refused: policy %s, user %s, project %s, roles %s",
             who.request_id, rule, who.user, who.project, who.roles)  # fmt: skip
    return errors.Forbidden(rule=rule)
