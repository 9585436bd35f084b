"""Resources of stacks: listed, shown, signalled, marked."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import resources as db
from bloomery.db import stacks
from bloomery.model.stack_views import Json, ResourceDetails, ResourceQuery, StackIdentity
from bloomery.model.stacks import MARKED_UNHEALTHY, OrderKind, Stack, StoredResource
from bloomery.orchestration.resources import signals
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.service import acceptance, access
from bloomery.orchestration.service.acceptance import Change
from bloomery.orchestration.service.access import StackContext
from bloomery.orchestration.service.stored_values import StackMember, StoredStack
from bloomery.orchestration.template.redaction import Redaction
from bloomery.orchestration.template.resource_rules import HOOKS

SHOW: Final = "show"
UNSET_HOOK: Final = "unset_hook"
TOKEN: Final = "token"  # noqa: S105  its key in the data of a resource that hands out addresses for signals
MARKED: Final = "state changed by resource_mark_unhealthy api"
_EQUAL: Final = frozenset({"status", "name", "action", "uuid", "physical_id"})
_DEAF: Final = frozenset({Action.SUSPEND, Action.DELETE})


# ------------------------------------------------------------------------------------------ list


def list_stack_resources(
    ctx: StackContext, identity: StackIdentity, query: ResourceQuery
) -> list[ResourceDetails]:
    stack = access.stack(ctx, identity)
    depth = min(query.nested_depth, ctx.services.conf.engine.max_nested_stack_depth)
    with ctx.services.db.read() as conn:
        nested = stacks.list_children(conn, stack.uuid) if not depth else _tree(conn, stack, depth)
        listed = {stack.uuid: stack} | {
            each.uuid: each for each in nested if each.depth - stack.depth <= depth
        }
        rows = db.list_shown(conn, listed)
    identities = {each.uuid: StackIdentity.of(each) for each in (stack, *nested)}
    fitting = [row for row in rows if _fits(row, query.filters)]
    details = _Details(listed, identities, rows)
    if not query.with_detail:
        return [details.of(row) for row in fitting]
    stored = {uuid: StoredStack(ctx, each) for uuid, each in listed.items()}
    for each in stored.values():
        each.fetch(None)
    return [
        details.of(row, **_description_and_attributes(stored[row.stack_uuid], row.name))
        for row in fitting
    ]


def _tree(conn: Any, stack: Stack, depth: int) -> list[Stack]:
    """Return the live stacks below a stack, one level more than are listed, to link to them."""
    within = {stack.uuid}
    nested = []
    for each in stacks.list_of_tree(conn, stack.root_uuid):
        if each.owner_uuid in within and each.depth - stack.depth <= depth + 1:
            within.add(each.uuid)
            nested.append(each)
    return nested


def _fits(row: StoredResource, filters: Mapping[str, Sequence[str]]) -> bool:
    for name, values in filters.items():
        if name == "type":
            if not any(value in row.type for value in values):
                return False
        elif name in _EQUAL and getattr(row, name) not in values:
            return False
    return True


class _Details:
    """Makes the details of resources from the rows of several stacks."""

    def __init__(
        self,
        listed: Mapping[str, Stack],
        identities: Mapping[str, StackIdentity],
        rows: Sequence[StoredResource],
    ) -> None:
        self._stacks = listed
        self._identities = identities
        self._required_by: dict[tuple[str, str], list[str]] = {}
        for row in rows:
            for name in row.requires:
                self._required_by.setdefault((row.stack_uuid, name), []).append(row.name)

    def of(self, row: StoredResource, **more: Any) -> ResourceDetails:
        return ResourceDetails(
            resource=row,
            stack=self._identities[row.stack_uuid],
            required_by=self._required_by.get((row.stack_uuid, row.name), ()),
            nested=self._identities.get(row.physical_id or ""),
            parent=self._stacks[row.stack_uuid].owner_resource,
            **more,
        )


# ------------------------------------------------------------------------------------------ show


def describe_stack_resource(
    ctx: StackContext, identity: StackIdentity, name: str, with_attr: Sequence[str] = ()
) -> ResourceDetails:
    stack = access.living(ctx, identity)
    stored = StoredStack(ctx, stack)
    if stored.member(name) is None:
        raise missing(stack, name)
    with ctx.services.db.read() as conn:
        rows = db.list_shown(conn, [stack.uuid])
        nested = stacks.list_children(conn, stack.uuid)
    identities = {each.uuid: StackIdentity.of(each) for each in (stack, *nested)}
    row = next(each for each in rows if each.name == name)
    details = _Details({stack.uuid: stack}, identities, rows)
    return details.of(row, **_description_and_attributes(stored, name, with_attr))


def _description_and_attributes(
    stored: StoredStack, name: str, with_attr: Sequence[str] = ()
) -> dict[str, Any]:
    definition = stored.definition.definition
    description = stored.description_of(name)
    return {
        "description": definition.redaction.masked(description),
        "attributes": _attributes(stored, name, with_attr),
    }


def _attributes(stored: StoredStack, name: str, extra: Sequence[str]) -> dict[str, Any]:
    """Return the listed attributes and those in ``extra``; an attribute that fails is None.

    Secrets are masked, and so are tokens of signals unless the caller may signal.
    """
    member = stored.member(name)
    if member is None:
        return {}
    names = dict.fromkeys([*_listed(member), *extra])
    values = {each: _attribute(member, each) for each in names}
    attributes = stored.secrecy.serialized_attributes(name, values, member.row.properties)
    if access.may(stored.ctx, access.SIGNAL):
        return attributes
    tokens = [each for each in member.row.data.values() if signals.is_token(each)]
    return dict(Redaction(tokens).document(attributes))


def _listed(member: StackMember) -> list[str]:
    try:
        return [name for name in member.kind.listed_attributes() if name != SHOW]
    except errors.Failure:  # a type that this installation does not offer any more
        return []


def _attribute(member: StackMember, name: str) -> Any:
    try:
        value = member.attribute(name) if member.has_attribute(name) else None
    except Exception:  # noqa: BLE001  a kind of a plug-in may raise anything
        return None
    return getattr(value, "value", value)


def get_resource_metadata(
    ctx: StackContext, identity: StackIdentity, name: str
) -> Mapping[str, Any]:
    stack = access.living(ctx, identity)
    return _row(ctx, stack, name).metadata


def _row(ctx: StackContext, stack: Stack, name: str) -> StoredResource:
    with ctx.services.db.read() as conn:
        resource = db.find(conn, stack.uuid, name, acceptance.sealer_of(ctx))
    if resource is None:
        raise missing(stack, name)
    return resource


def missing(stack: Stack, name: str) -> errors.ResourceNotFound:
    return errors.ResourceNotFound(resource_name=name, stack_name=stack.name)


# --------------------------------------------------------------------------------------- signals


def resource_signal(
    ctx: StackContext,
    identity: StackIdentity,
    name: str,
    details: Json | None,
    *,
    token: str | None = None,
) -> None:
    """Accept a signal, or with ``unset_hook`` the clearing of a hook.

    ``token``: of the resource's signal URL; a valid token replaces the check of a policy.
    Raises ResourceNotFound, InvalidBreakPointHook, ResourceActionNotSupported, NotSupported.
    """
    if token is None:
        access.authorize(ctx, access.SIGNAL)
        stack = access.living(ctx, identity)
        resource = _row(ctx, stack, name)
    else:
        stack, resource = _by_token(ctx, identity, name, token)
    if details is not None and UNSET_HOOK in details:
        hook = _hook(resource, details[UNSET_HOOK])
        kind, payload = OrderKind.UNSET_HOOK, Json(resource=resource.uuid, hook=hook)
    else:
        _check_hears(ctx, stack, resource, details)
        kind, payload = OrderKind.SIGNAL, Json(resource=resource.uuid, details=details)
    change = Change(stack=stack, kind=kind, payload=payload, renews=token is None)
    acceptance.accept(ctx, change)


def _by_token(
    ctx: StackContext, identity: StackIdentity, name: str, token: str
) -> tuple[Stack, StoredResource]:
    with ctx.services.db.read() as conn:
        stack = stacks.find(conn, identity.uuid)
        stored = stack and db.find(conn, stack.uuid, name, acceptance.sealer_of(ctx))
    if stack is None or not stored or stack.deleted_at or StackIdentity.of(stack) != identity:
        raise errors.ResourceNotFound(resource_name=name, stack_name=identity.name)
    own = stored.data.get(TOKEN)
    if not isinstance(own, str) or not secrets.compare_digest(own.encode(), token.encode()):
        raise missing(stack, name)
    return stack, stored


def _hook(resource: StoredResource, hook: object) -> str:
    if hook not in HOOKS:
        raise errors.InvalidBreakPointHook(
            reason=f"Invalid hook type {str(hook)[:100]!r}: it is one of {', '.join(HOOKS)}"
        )
    if not resource.data.get(str(hook)):
        raise errors.InvalidBreakPointHook(
            reason=f'The "{hook}" hook is not defined on resource {resource.name}'
        )
    return str(hook)


def _check_hears(
    ctx: StackContext, stack: Stack, resource: StoredResource, details: Json | None
) -> None:
    if resource.action == Action.DELETE and resource.status == Status.COMPLETE:
        raise missing(stack, resource.name)
    if resource.action in _DEAF:
        raise errors.NotSupported(feature=f"Signal resource during {resource.action}")
    kind = StoredStack(ctx, stack).kind_of(resource)
    if not callable(getattr(kind, "handle_signal", None)):
        raise errors.ResourceActionNotSupported(
            action="signal", name=resource.name, type=resource.type
        )
    kind.check_signal(resource, details)


# -------------------------------------------------------------------------------- mark unhealthy


def resource_mark_unhealthy(
    ctx: StackContext,
    identity: StackIdentity,
    ident: str,
    *,
    mark_unhealthy: bool,
    reason: str | None = None,
) -> None:
    """Accept an order that marks a resource unhealthy, or healthy again.

    ``ident``: its name, physical resource ID or reference ID.  Raises ResourceNotFound,
    PhysicalResourceIDAmbiguity, ActionInProgress.
    """
    stack = access.living(ctx, identity)
    resource = _identified(ctx, stack, ident)
    busy = errors.ActionInProgress(stack_name=stack.name, action=resource.action)
    if resource.status == Status.IN_PROGRESS:
        raise busy
    if not _changes(resource, mark_unhealthy=mark_unhealthy):
        return
    status = Status.FAILED if mark_unhealthy else Status.COMPLETE
    text = StoredStack(ctx, stack).redaction.masked(reason or MARKED)

    def mark(conn: sa.Connection) -> None:
        """Write the state for clients; the engine writes it again, with an event."""
        if not db.set_state(conn, resource.uuid, action=Action.CHECK, status=status, reason=text):
            raise busy
        db.set_flag(conn, resource.uuid, MARKED_UNHEALTHY, is_set=mark_unhealthy)

    payload = {
        "resource": resource.uuid, "unhealthy": mark_unhealthy, "reason": text, "by_hand": True,
    }  # fmt: skip
    change = Change(stack=stack, kind=OrderKind.MARK_UNHEALTHY, payload=payload, check=mark)
    acceptance.accept(ctx, change)


def _changes(resource: StoredResource, *, mark_unhealthy: bool) -> bool:
    """Return whether the mark has an effect; only a CHECK_FAILED resource can become healthy."""
    if mark_unhealthy:
        return resource.action != Action.DELETE
    return resource.action == Action.CHECK and resource.status == Status.FAILED


def _identified(ctx: StackContext, stack: Stack, ident: str) -> StoredResource:
    members = StoredStack(ctx, stack).resources()
    if ident in members:
        return members[ident].row
    fitting = [each.row for each in members.values() if each.row.physical_id == ident]
    if not fitting:
        fitting = [each.row for each in members.values() if _reference(each) == ident]
    if len(fitting) > 1:
        raise errors.PhysicalResourceIDAmbiguity(phys_id=ident)
    if not fitting:
        raise missing(stack, ident)
    return fitting[0]


def _reference(member: StackMember) -> Any:
    try:
        return member.reference_id()
    except Exception:  # noqa: BLE001  a kind of a plug-in may raise anything
        return None
