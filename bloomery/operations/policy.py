"""Policy checks; every operation calls them first with its rule.

    policy.authorize(ctx, "baremetal:conductor:get")
    node = policy.get_node(ctx, "web-1", "baremetal:node:set_power_state")
    project = policy.visible_project(ctx, "node", query.get("project"))

Without roles (``noauth``, ``http_basic``) every caller may do everything, and rules are not
checked, as in Ironic.  Two rules are checked in every mode: those that show secrets.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.db import nodes as db
from bloomery.db import records
from bloomery.model.fields import Column
from bloomery.model.noun import Noun
from bloomery.operations import lookup
from bloomery.operations.context import Context
from bloomery.operations.policy_engine import Target
from bloomery.operations.policy_rules import MASKS, RULES, STEP_RULES

READ: Final = "baremetal:node:get"  # without it, a node does not exist for the caller
GUARDED: Final = ("last_error", "reservation", "driver_internal_info", "driver_info")
# Rules of project admins for their own nodes, checked after a refusal of the first rule.
OWN: Final = {
    "baremetal:node:create": "baremetal:node:create:self_owned_node",
    "baremetal:node:delete": "baremetal:node:delete:self_owned_node",
}
_ASKED_RULES: Final = tuple(rule.name for rule in RULES if ":" in rule.name)
_OWNERS: Final = ("node.owner", "node.lessee", "runbook.owner", "allocation.owner", "project_id")
LOG = logging.getLogger(__name__)


def authorize(ctx: Context, rule: str, target: Target | None = None) -> None:
    """Raise Forbidden (403) unless the caller may."""
    if ctx.services.policies.enforced and not may(ctx, rule, target):
        raise _refused(ctx, rule)


def may(ctx: Context, rule: str, target: Target | None = None) -> bool:
    """May the caller do this?  Raises nothing."""
    policies = ctx.services.policies
    if not policies.enforced or policies.allow(ctx.request, rule, target or {}):
        return True
    own = OWN.get(rule)
    if own is None or not ctx.services.conf.api.project_admin_can_manage_own_nodes:
        return False
    return policies.allow(ctx.request, own, target or {})


def bare_fields(ctx: Context) -> tuple[str, ...]:
    """Return the fields of nodes with visible secrets, in any mode of login."""
    policies = ctx.services.policies
    if policies.enforcer is None:
        return ()
    return tuple(name for name, rule in MASKS.items() if policies.allow(ctx.request, rule, {}))


def guards_fields(ctx: Context) -> bool:
    """Do rules hide fields node by node?"""
    return not may(ctx, f"{READ}:filter_threshold")


def hidden_fields(ctx: Context, owner: str | None, lessee: str | None) -> tuple[str, ...]:
    """Return the fields of a readable node that the caller may not read."""
    target = {"node.owner": owner, "node.lessee": lessee}
    return tuple(name for name in GUARDED if not may(ctx, f"{READ}:{name}", target))


def authorize_steps(ctx: Context, node: Any, steps: Iterable[Any]) -> None:
    """Raise Forbidden unless the caller may run all of these steps on the node, a row.

    Only steps with a rule in a policy file are checked; malformed steps are ignored.
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
    """Return the target for rules, from a row with ``owner`` and ``lessee``."""
    return {"node.owner": node.owner, "node.lessee": node.lessee}


def authorize_node(ctx: Context, ident: str, *rules: str) -> None:
    """Raise Forbidden unless the caller may do all of ``rules`` to the node.

    Raises NodeNotFound (404) to callers who may not read the node.
    """
    if not ctx.services.policies.enforced:
        return
    node = lookup.row(ctx, ident, lookup.OWNED)
    authorize_part(ctx, node, errors.NodeNotFound(node=ident), *rules)


def authorize_part(ctx: Context, node: Any, hidden: errors.Failure, *rules: str) -> None:
    """Raise Forbidden unless the caller may do all of ``rules`` to a child of ``node``, a row.

    Raises ``hidden`` to callers who may not read the node.
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
    """As ``authorize_part``, for a node in a body."""
    if ctx.services.policies.enforced:
        authorize_part(ctx, lookup.row(ctx, uuid, lookup.OWNED), hidden, *rules)


def get_node(
    ctx: Context, ident: str, *rules: str, columns: tuple[Column, ...] = lookup.BRIEF
) -> Any:
    """Return columns of a readable node, if the caller may do all of ``rules`` to it.

    Raises NodeNotFound, Forbidden: see ``authorize_node``.
    """
    authorize_node(ctx, ident, *rules)
    return lookup.row(ctx, ident, columns)


def get_uuid(ctx: Context, ident: str, *rules: str) -> str:
    """As ``get_node``, for the UUID alone."""
    return str(get_node(ctx, ident, *rules, columns=("uuid",)).uuid)


def visible_project(ctx: Context, noun: str, project: str | None = None) -> str | None:
    """Return the project that limits the caller's list; None: no limit.

    ``project``: the requested one.  Callers who may not list everything see their own project, and
    may request no other.  Raises Forbidden.
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
    """Raise unless the caller may do the verb to a record; without a verb: read the record.

    A record of a node that the caller may not read is missing (404).
    """
    if not ctx.services.policies.enforced:
        return
    record: Any = None
    wanted = ("node_uuid",) if noun.of_node else ("owner", "public")
    if columns := [name for name in wanted if name in noun.columns]:
        with ctx.services.db.read() as conn:
            record = records.find_row(conn, noun, ident, columns)
        if record is None:
            raise noun.missing(ident)
    node = lookup.row(ctx, record.node_uuid, lookup.OWNED) if noun.of_node else None
    authorize_record_row(ctx, noun, record, node, verb, ident)


def authorize_new_record(ctx: Context, noun: Noun, body: Mapping[str, Any]) -> None:
    """Raise unless the caller may add a record to the node in ``body``, if any.

    A missing node has no owner: callers with rights on all nodes get a later error.
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


def authorize_record_row(
    ctx: Context, noun: Noun, record: Any, node: Any, verb: str | None, ident: str | None = None
) -> None:
    """As ``authorize_record``, for a row that was read; ``node``: the row of its node.

    ``ident``: the record's in errors, by default its UUID.  Public records are readable for all.
    """
    if not ctx.services.policies.enforced:
        return
    rules = [] if verb is None else [f"baremetal:{noun.policy}:{verb}"]
    if noun.of_node:
        authorize_part(ctx, node, noun.missing(ident or record.uuid), *rules)
        return
    target: Target = {}
    if "owner" in noun.columns:
        read, target = f"baremetal:{noun.policy}:get", {f"{noun.policy}.owner": record.owner}
        if not (getattr(record, "public", False) or may(ctx, read, target)):
            _refused(ctx, read)
            raise noun.missing(ident or record.uuid)
        rules = [rule for rule in rules if rule != read]
    for rule in rules:
        authorize(ctx, rule, target)


def visible_records(ctx: Context, noun: Noun, owner: str | None = None) -> str | None:
    """As ``visible_project``, for records; ``owner``: the requested one."""
    if noun.of_node or "owner" in noun.columns:
        return visible_project(ctx, noun.policy, owner)
    authorize(ctx, f"baremetal:{noun.policy}:get")
    return None


def _refused(ctx: Context, rule: str) -> errors.Forbidden:
    who = ctx.request
    LOG.info("request %s refused: policy %s, user %s, project %s, roles %s",
             who.request_id, rule, who.user, who.project, who.roles)  # fmt: skip
    return errors.Forbidden(rule=rule)


def describe_caller(ctx: Context) -> dict[str, Any]:
    """Return user, project, roles, and each rule with whether it is granted.

    A rule is asked about an object of the caller's own project.  Raises Forbidden.
    """
    authorize(ctx, "baremetal:caller:get")
    own = dict.fromkeys(_OWNERS, ctx.request.project)
    return {
        "auth_strategy": ctx.services.conf.default.auth_strategy,
        "user": ctx.request.user_name or ctx.request.user,
        "project": ctx.request.project,
        "roles": list(ctx.request.roles),
        "rules": {rule: may(ctx, rule, own) for rule in _ASKED_RULES},
    }
