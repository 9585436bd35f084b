"""Resources of stacks: listed and shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bloomery import errors
from bloomery.db import resources as db
from bloomery.db import stacks
from bloomery.model.stack_views import ResourceDetails, ResourceQuery, StackIdentity
from bloomery.model.stacks import Stack, StoredResource
from bloomery.orchestration.queries import access
from bloomery.orchestration.queries.access import StackContext
from bloomery.orchestration.queries.stored_values import StackMember, StoredStack
from bloomery.orchestration.resources import signals
from bloomery.orchestration.template.redaction import Redaction

SHOW: Final = "show"
_EQUAL: Final = frozenset({"status", "name", "action", "uuid", "physical_id"})


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
    equal = {name: texts for name, texts in query.filters.items() if name in _EQUAL}
    types = query.filters.get("type")
    fitting = [
        row
        for row in rows
        if all(getattr(row, name) in texts for name, texts in equal.items())
        and (types is None or any(text in row.type for text in types))
    ]
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
    """Return the listed attributes and those in ``with_attr``; an attribute that fails is None.

    Secrets are masked, and so are tokens of signals unless the caller may signal.
    """
    description = stored.definition.definition.redaction.masked(stored.description_of(name))
    member = stored.member(name)
    if member is None:
        return {"description": description, "attributes": {}}
    try:
        listed = [each for each in member.kind.listed_attributes() if each != SHOW]
    except errors.Failure:  # a type that this installation does not offer any more
        listed = []
    values = {each: _attribute(member, each) for each in (*listed, *with_attr)}
    attributes = stored.secrecy.serialized_attributes(name, values, member.row.properties)
    if not access.may(stored.ctx, access.SIGNAL):
        tokens = [each for each in member.row.data.values() if signals.is_token(each)]
        attributes = dict(Redaction(tokens).document(attributes))
    return {"description": description, "attributes": attributes}


def _attribute(member: StackMember, name: str) -> Any:
    try:
        value = member.attribute(name) if member.has_attribute(name) else None
    except Exception:  # noqa: BLE001  a kind of a plug-in may raise anything
        return None
    return getattr(value, "value", value)


def stored_resource(ctx: StackContext, stack: Stack, name: str) -> StoredResource:
    with ctx.services.db.read() as conn:
        resource = db.find(conn, stack.uuid, name, ctx.sealer)
    if resource is None:
        raise missing(stack, name)
    return resource


def missing(stack: Stack, name: str) -> errors.ResourceNotFound:
    return errors.ResourceNotFound(resource_name=name, stack_name=stack.name)
