"""Previews of create and update: the plan and the resources, without any change."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from bloomery import errors
from bloomery.model.stack_views import (
    Output,
    PreviewedStack,
    ResourceDetails,
    StackArguments,
    StackIdentity,
    UpdatePreview,
)
from bloomery.model.stacks import StoredResource
from bloomery.orchestration import foresight, plan
from bloomery.orchestration.orders import checks, plan_basis, stacks
from bloomery.orchestration.orders.machine_pages import MachinePage, PageMachines
from bloomery.orchestration.plan.builder import ExistingStack
from bloomery.orchestration.plan.plans import CLEAN, MAKE, Key, Verb
from bloomery.orchestration.queries import access, lists, step_times, why
from bloomery.orchestration.queries.access import StackContext
from bloomery.orchestration.queries.stored_values import StackMember, StoredStack
from bloomery.orchestration.resources.composite import Composite
from bloomery.orchestration.resources.machines import find_node
from bloomery.orchestration.stack import Stack, children
from bloomery.orchestration.stack.secrecy import Secrecy

_NOT_STORED: Final = "None"  # the ID of a stack or resource without a row, as Heat writes it
SEPARATOR: Final = "/"  # in the names that plans have for resources of child stacks
_KINDS: Final[Mapping[Verb, str]] = {
    Verb.CREATE: "added",
    Verb.ADOPT: "added",
    Verb.RECREATE: "added",
    Verb.UPDATE: "updated",
    Verb.REFUSE: "updated",
    Verb.TAKE_BACK: "updated",
    Verb.REPLACE: "replaced",
    Verb.UNCHANGED: "unchanged",
    Verb.DELETE: "deleted",
    Verb.KEEP: "deleted",
}


# ---------------------------------------------------------------------------------------- create


def preview_stack(ctx: StackContext, name: object, arguments: StackArguments) -> PreviewedStack:
    new = stacks.read_new(ctx, name, arguments)
    with ctx.services.heavy_jobs.enter():
        planned = foresight.create(new.stack, ExistingStack(records={}, **_nodes(ctx)))
        laid_out = step_times.document(ctx, None, planned)
    definition, secrecy = new.stack.definition, Secrecy(new.stack)
    identity = StackIdentity(project=ctx.project, name=new.name, uuid=_NOT_STORED)
    return PreviewedStack(
        identity=identity,
        description=definition.template.description,
        parameters=lists.parameters_of(new.stack, secrecy),
        disable_rollback=arguments.disable_rollback is not False,
        timeout_mins=arguments.timeout_mins or None,
        user=ctx.request.user_name or ctx.request.user,
        tags=tuple(arguments.tags or ()),
        resources=list(_previewed(new.stack, identity, secrecy)),
        outputs=[
            Output(key=key, description=each.description) for key, each in new.stack.outputs.items()
        ],
        plan=laid_out,
    )


def _previewed(
    stack: Stack, identity: StackIdentity, secrets: Secrecy, parent: str | None = None
) -> Iterator[Any]:
    required_by = _required_by(stack)
    for name in stack.definitions:
        details = _new_details(stack, identity, name, required_by.get(name, []), secrets)
        child = _child_stack(stack, name)
        if child is None:
            yield dataclasses.replace(details, parent=parent)
        else:
            child_name = f"{identity.name}-{name}"  # a stored name has a short ID, too
            inner = StackIdentity(project=identity.project, name=child_name, uuid=_NOT_STORED)
            yield list(_previewed(child, inner, Secrecy(child, parent=(secrets, name)), name))


def _required_by(stack: Stack) -> dict[str, list[str]]:
    required: dict[str, list[str]] = {}
    for name in stack.definitions:
        for other in dict.fromkeys(stack.required(name)):
            required.setdefault(other, []).append(name)
    return required


def _child_stack(stack: Stack, name: str) -> Stack | None:
    if not issubclass(stack.kind(name), Composite):
        return None
    try:
        resource = children.preview(stack, name, stack.properties(name, stack.view), {})
        assert isinstance(resource, Composite)
        return children.child_stack(stack, resource)
    except errors.Failure:  # its members depend on values that come later
        return None


def _new_details(
    stack: Stack, identity: StackIdentity, name: str, required_by: list[str], secrets: Secrecy
) -> ResourceDetails:
    try:
        values = stack.properties(name, stack.view).items()
        properties = secrets.serialized(
            name, {key: each for key, each in values if each is not None}
        )
    except errors.Failure:
        properties = {}
    return ResourceDetails(
        resource=StoredResource(uuid=_NOT_STORED, name=name, type=stack.definitions[name].type),
        stack=identity,
        required_by=required_by,
        description=str(stack.definitions[name].description or ""),
        attributes=dict.fromkeys(stack.kind(name).listed_attributes()),
        properties=properties,
    )


# ---------------------------------------------------------------------------------------- update


def preview_update_stack(
    ctx: StackContext,
    identity: StackIdentity,
    arguments: StackArguments,
    *,
    show_nested: bool = False,
) -> UpdatePreview:
    """Return what an update would do to each resource; some kinds decide only in the update."""
    rule = "preview_update_patch" if arguments.existing else "preview_update"
    access.authorize(ctx, f"stacks:{rule}")
    row = access.living(ctx, identity)
    with ctx.services.db.read() as conn:  # first, so that a change meanwhile makes the plan stale
        basis = plan_basis.read(conn, row, ctx.sealer)
        paused = plan_basis.list_paused(conn, row, ctx.sealer)
    stored = StoredStack(ctx, row)
    _, new = stacks.read_update(stored, arguments)
    checks.definition(ctx, new)
    checks.immutable(stored.definition, new)
    with ctx.services.heavy_jobs.enter():
        converges = stacks.converges(ctx, arguments)
        planned = foresight.plan(stored.definition, new, _present(stored, converges=converges))
        laid_out = step_times.document(ctx, row, planned)
    replaced = {key.name for key, action in planned if action.verb is Verb.REPLACE}
    left = [each for each in why.list_drifted(ctx, row) if each["path"] not in replaced]
    laid_out["drifted"] = left
    laid_out["basis"] = basis
    laid_out["paused"] = paused
    by_kind: dict[str, list[ResourceDetails]] = {kind: [] for kind in _KINDS.values()}
    for kind, details in _changes(stored, planned, show_nested=show_nested):
        by_kind[kind].append(details)
    return UpdatePreview(**by_kind, plan=laid_out)


def _changes(
    stored: StoredStack, planned: plan.Plan, *, show_nested: bool
) -> Iterator[tuple[str, ResourceDetails]]:
    """Yield each resource with the kind of its change.

    As in Heat, an unchanged resource that owns a child stack counts as updated.  A resource of a
    child stack has its own name, without the path.
    """
    foreseen = {key.name.rpartition(SEPARATOR)[0] for key, _ in planned}
    for key, action in planned:
        kind = _KINDS.get(action.verb)
        *parents, name = key.name.split(SEPARATOR)
        if kind is None or (parents and not show_nested) or _is_old_one(planned, key):
            continue
        owner = _nested_stack(stored, parents)
        member = None if owner is None else owner.resources().get(name)
        kind = _kind_of(kind, member)
        parent = parents[-1] if parents else None
        yield kind, _details(owner or stored, name, action.type, member, parent)
        if show_nested and key.name not in foreseen:
            yield from _all_nested(member, kind)


def _kind_of(kind: str, member: StackMember | None) -> str:
    is_stack = member is not None and _child_of(member) is not None
    return "updated" if kind == "unchanged" and is_stack else kind


def _nested_stack(stored: StoredStack, names: Sequence[str]) -> StoredStack | None:
    stack = stored
    for name in names:
        member = stack.resources().get(name)
        child = None if member is None else _child_of(member)
        if child is None:
            return None
        stack = child
    return stack


def _all_nested(member: StackMember | None, kind: str) -> Iterator[tuple[str, ResourceDetails]]:
    """Yield all resources below a resource whose child stack has no vertices in the plan."""
    child = None if member is None else _child_of(member)
    if member is None or child is None or kind == "added":
        return
    child_kind = "deleted" if kind in {"deleted", "replaced"} else "unchanged"
    for name, each in child.resources().items():
        inner = _kind_of(child_kind, each)
        yield inner, _details(child, name, each.row.type, each, member.row.name)
        yield from _all_nested(each, inner)


def _child_of(member: StackMember) -> StoredStack | None:
    resource = member.resource()
    child = resource.child() if isinstance(resource, Composite) else None
    return child if isinstance(child, StoredStack) else None


def _present(stored: StoredStack, *, converges: bool) -> ExistingStack:
    return ExistingStack.of_rows(
        stored.definition,
        stored.resources(),
        stored.leftovers(),
        child=lambda member: _child_present(member, converges=converges),
        template=stored.definition,
        **_nodes(stored.ctx),
        converges=converges,
    )


def _nodes(ctx: StackContext) -> dict[str, Any]:
    """Return the reads of nodes for a plan, with the rights of the caller."""
    if ctx.runtime.machines is None:
        return {}
    seen = PageMachines(ctx.services, ctx.request, MachinePage())
    return {"find_node": functools.partial(find_node, seen), "list_free": seen.list_available}


def _child_present(member: StackMember, *, converges: bool) -> ExistingStack | None:
    child = _child_of(member)
    return None if child is None else _present(child, converges=converges)


def _is_old_one(planned: Any, key: Key) -> bool:
    """Return whether the vertex only deletes a row of a resource that has another vertex."""
    others = [Key(key.name, MAKE), *([Key(key.name, CLEAN)] if key.part else [])]
    return key.phase != MAKE and any(other in planned.actions for other in others)


def _details(
    owner: StoredStack,
    name: str,
    type_name: str,
    member: StackMember | None,
    parent: str | None,
) -> ResourceDetails:
    identity = StackIdentity.of(owner.row)
    if member is None:
        resource = StoredResource(uuid=_NOT_STORED, name=name, type=type_name)
        return ResourceDetails(resource=resource, stack=identity, parent=parent)
    child = _child_of(member)
    return ResourceDetails(
        resource=member.row, stack=identity, parent=parent,
        description=owner.description_of(name),
        nested=None if child is None else StackIdentity.of(child.row),
    )  # fmt: skip
