"""Runbooks: named steps for clean and service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bloomery import errors
from bloomery.db import nodes
from bloomery.db import records as db
from bloomery.model.nouns import RUNBOOK
from bloomery.model.rules import nodes as rules
from bloomery.model.rules.patches import Patch
from bloomery.operations import policy
from bloomery.operations.context import Context

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The steps of a runbook for a verb.

    ``of_project``: a project owns it, so that each of its steps needs permission.
    """

    steps: list[Json]
    disable_ramdisk: bool
    of_project: bool


def plan(ctx: Context, ident: str, node_uuid: str, *, by_name: bool = False) -> Plan:
    """Return the steps of a runbook in order, for a node with one of its traits.

    ``by_name``: the runbook's name is its only trait, as before runbooks had traits. Raises
    RunbookNotFound, InvalidRunbook.
    """
    policy.authorize_record(ctx, RUNBOOK, ident, "use")
    with ctx.services.db.read() as conn:
        runbook = db.get(conn, RUNBOOK, ident)
        node_traits = nodes.traits_of(conn, node_uuid)
    traits = [runbook.name] if by_name else runbook.traits
    if not traits:
        raise errors.InvalidRunbook(
            runbook=ident,
            reason="it has no traits configured; name one of the node's by: baremetal runbook "
            f"trait add {ident} TRAIT",
        )
    if not set(traits) & set(node_traits):
        raise errors.InvalidRunbook(
            runbook=ident, reason=f"the node has none of: {', '.join(traits)}"
        )
    steps = sorted(runbook.steps, key=lambda step: int(step["order"]))
    opened = steps if ctx.services.sealer is None else ctx.services.sealer.open(steps)
    return Plan(
        steps=[{name: step[name] for name in step if name != "order"} for step in opened],
        disable_ramdisk=runbook.disable_ramdisk,
        of_project=runbook.owner is not None and not runbook.public,
    )


# ----------------------------------------------------------------------------------------- owner


def with_owner(ctx: Context, body: Json) -> Json:
    """Return the body of a new runbook with its owner, the caller's project.

    Only system-scoped callers may make a runbook public or set another owner; without projects no
    owner may be set.  Raises Invalid, Forbidden.
    """
    policy.authorize(ctx, "baremetal:runbook:create")
    if ctx.services.policies.enforced:
        if not policy.may(ctx, "baremetal:runbook:update:owner"):
            if body.get("public"):
                policy.authorize(ctx, "baremetal:runbook:update:public")
            if body.get("owner") not in (None, ctx.request.project):
                policy.authorize(ctx, "baremetal:runbook:update:owner")
            return body | {"owner": ctx.request.project}
    elif body.get("owner") is not None:
        raise errors.Invalid(
            reason="cannot set the owner of a new runbook: no caller has a project here; "
            "change it afterwards",
        )
    return body


def authorize_change(ctx: Context, ident: str, patch: Patch) -> None:
    """Check the rules of attributes with restricted changes."""
    for name in ("public", "owner"):
        if any(str(each.get("path", "")).split("/")[1:2] == [name] for each in patch):
            policy.authorize_record(ctx, RUNBOOK, ident, f"update:{name}")


# ---------------------------------------------------------------------------------------- traits


def list_traits(ctx: Context, ident: str) -> list[str]:
    policy.authorize_record(ctx, RUNBOOK, ident, "get")
    return sorted(_get(ctx, ident).traits)


def set_traits(ctx: Context, ident: str, traits: list[Any]) -> None:
    """Set the traits of a runbook; its nodes have one of them."""
    policy.authorize_record(ctx, RUNBOOK, ident, "update")
    for trait in traits:
        rules.check_trait(trait)
    _write(ctx, _get(ctx, ident).uuid, traits)


def add_trait(ctx: Context, ident: str, trait: str) -> None:
    policy.authorize_record(ctx, RUNBOOK, ident, "update")
    rules.check_trait(trait)
    _write(ctx, _get(ctx, ident).uuid, trait, op="add", path="/traits/-")


def remove_trait(ctx: Context, ident: str, trait: str | None = None) -> None:
    """Remove one trait, or all; a missing trait is no error."""
    policy.authorize_record(ctx, RUNBOOK, ident, "update")
    runbook = _get(ctx, ident)
    _write(ctx, runbook.uuid, [each for each in runbook.traits if trait not in (None, each)])


def _get(ctx: Context, ident: str) -> Any:
    with ctx.services.db.read() as conn:
        return db.get(conn, RUNBOOK, ident)


def _write(
    ctx: Context, uuid: str, value: Any, *, op: str = "replace", path: str = "/traits"
) -> None:
    patch = [{"op": op, "path": path, "value": value}]
    ctx.services.rpc.any_conductor().update_record(ctx.request, RUNBOOK.name, uuid, patch)
