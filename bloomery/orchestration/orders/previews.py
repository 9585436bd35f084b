"""Previews of create and update: the plan and the resources, without any change."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.db import resources, stack_drift
from bloomery.model.stack_views import (
    Output,
    PreviewedStack,
    ResourceDetails,
    StackArguments,
    StackIdentity,
    UpdatePreview,
)
from bloomery.model.stacks import StoredResource
from bloomery.orchestration import foresight
from bloomery.orchestration.orders import (
    checks,
    images,
    inputs,
    plan_basis,
    plan_checks,
    planning,
    stacks,
)
from bloomery.orchestration.plan.builder import ExistingStack
from bloomery.orchestration.plan.plans import CLEAN, MAKE, Key, Verb
from bloomery.orchestration.queries import access, lists, step_times, why
from bloomery.orchestration.queries.access import StackContext
from bloomery.orchestration.queries.stored_values import StackMember, StoredStack
from bloomery.orchestration.resources.composite import Composite
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


def preview_stack(
    ctx: StackContext, name: object, arguments: StackArguments, *, with_capacity: bool = False
) -> PreviewedStack:
    """Return what a create would make; ``with_capacity``: with the free nodes that it leaves."""
    new = stacks.read_new(ctx, name, arguments)
    with ctx.services.heavy_jobs.enter():
        reads = planning.NodeReads(ctx)
        planned = foresight.create(new.stack, ExistingStack(records={}, **reads.functions()))
        laid_out = step_times.document(ctx, None, planned)
    if with_capacity:
        laid_out["capacity"] = reads.capacity(planned, laid_out)
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
    required_by: dict[str, list[str]] = {}
    for name in stack.definitions:
        for other in stack.required(name):
            required_by.setdefault(other, []).append(name)
    for name, resource in stack.definitions.items():
        child = _child_stack(stack, name)
        if child is None:
            try:
                values = stack.properties(name, stack.view).items()
                resolved = {key: each for key, each in values if each is not None}
                properties = secrets.serialized(name, resolved)
            except errors.Failure:
                properties = {}
            yield ResourceDetails(
                resource=StoredResource(uuid=_NOT_STORED, name=name, type=resource.type),
                stack=identity,
                parent=parent,
                required_by=required_by.get(name, []),
                description=str(resource.description or ""),
                attributes=dict.fromkeys(stack.kind(name).listed_attributes()),
                properties=properties,
            )
        else:
            child_name = f"{identity.name}-{name}"  # a stored name has a short ID, too
            child_identity = dataclasses.replace(identity, name=child_name)
            child_secrecy = Secrecy(child, parent=(secrets, name))
            yield list(_previewed(child, child_identity, child_secrecy, name))


def _child_stack(stack: Stack, name: str) -> Stack | None:
    if not issubclass(stack.kind(name), Composite):
        return None
    try:
        resource = children.preview(stack, name, stack.properties(name, stack.view), {})
        assert isinstance(resource, Composite)
        return children.child_stack(stack, resource)
    except errors.Failure:  # its members depend on values that come later
        return None


# ---------------------------------------------------------------------------------------- update


def preview_update_stack(
    ctx: StackContext,
    identity: StackIdentity,
    arguments: StackArguments,
    *,
    show_nested: bool = False,
    with_capacity: bool = False,
) -> UpdatePreview:
    """Return what an update would do to each resource; some kinds decide only in the update.

    With the basis of an earlier plan, raises PlanStale if that does not hold any more.
    """
    rule = "preview_update_patch" if arguments.existing else "preview_update"
    access.authorize(ctx, f"stacks:{rule}")
    row = access.living(ctx, identity)
    if arguments.plan_basis is not None:
        plan_basis.check_nodes(ctx, row, arguments.plan_basis)
    with ctx.services.db.read() as conn:  # first, so that a change meanwhile makes the plan stale
        rows = resources.list_of_tree(conn, row.root_uuid, ctx.sealer)
        basis = plan_basis.read(conn, row, rows)
    if arguments.plan_basis is not None:
        plan_basis.check(row, arguments.plan_basis, basis)
    paused = plan_basis.list_paused(rows)
    stored = stacks.with_orders(StoredStack(ctx, row), arguments)
    _, new = stacks.read_update(stored, arguments)
    checks.definition(ctx, new)
    checks.immutable(stored.definition, new)
    with ctx.services.heavy_jobs.enter():
        planned, laid_out, reads = planning.plan(
            stored, new, converges=stacks.converges(ctx, arguments)
        )
    mended = {  # a lookup that is updated reads its values again
        key.name
        for key, action in planned
        if action.verb is Verb.REPLACE
        or (action.verb is Verb.UPDATE and action.type == stack_drift.OUTPUTS)
    }
    drifted = [each for each in why.list_drifted(ctx, row) if each["path"] not in mended]
    refusals = plan_checks.refusals(ctx, laid_out, basis)
    warnings = list(laid_out["warnings"])
    if arguments.revision is not None:  # whose images may be older than the server keeps them
        urls = images.urls_of(planned, new)
        found = images.list_warnings(inputs.fetcher_of(ctx.services.conf), urls)
        warnings += [new.definition.redaction.masked(each) for each in found]
    basis |= reads.basis()
    if arguments.plan_basis is not None:
        plan_basis.check_values(row, arguments.plan_basis, basis[plan_basis.VALUES])
    document = {
        **laid_out, "warnings": warnings, "refusals": refusals, "drifted": drifted,
        "basis": basis, "paused": paused,
    }  # fmt: skip
    if with_capacity:
        document["capacity"] = reads.capacity(planned, laid_out)
    # As in Heat, an unchanged resource that owns a child stack counts as updated.  A resource of
    # a child stack has its own name, without the path.
    by_kind: dict[str, list[ResourceDetails]] = {kind: [] for kind in _KINDS.values()}
    foreseen = {key.name.rpartition(SEPARATOR)[0] for key, _ in planned}
    for key, action in planned:
        kind = _KINDS.get(action.verb)
        *parents, name = key.name.split(SEPARATOR)
        others = [Key(key.name, MAKE), *([Key(key.name, CLEAN)] if key.part else [])]
        only_deletes_row = key.phase != MAKE and any(each in planned.actions for each in others)
        if kind is None or (parents and not show_nested) or only_deletes_row:
            continue
        owner: StoredStack | None = stored
        for parent in parents:
            above = None if owner is None else owner.resources().get(parent)
            owner = None if above is None else planning.child_of(above)
        member = None if owner is None else owner.resources().get(name)
        kind = _kind_of(kind, member)
        details = _details(
            owner or stored, name, action.type, member, parents[-1] if parents else None
        )
        by_kind[kind].append(details)
        if show_nested and key.name not in foreseen:
            for nested_kind, nested in _all_nested(member, kind):
                by_kind[nested_kind].append(nested)
    return UpdatePreview(**by_kind, plan=document)


def _kind_of(kind: str, member: StackMember | None) -> str:
    is_stack = member is not None and planning.child_of(member) is not None
    return "updated" if kind == "unchanged" and is_stack else kind


def _all_nested(member: StackMember | None, kind: str) -> Iterator[tuple[str, ResourceDetails]]:
    """Yield all resources below a resource whose child stack has no vertices in the plan."""
    child = None if member is None else planning.child_of(member)
    if member is None or child is None or kind == "added":
        return
    child_kind = "deleted" if kind in {"deleted", "replaced"} else "unchanged"
    for name, each in child.resources().items():
        inner = _kind_of(child_kind, each)
        yield inner, _details(child, name, each.row.type, each, member.row.name)
        yield from _all_nested(each, inner)


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
    child = planning.child_of(member)
    return ResourceDetails(
        resource=member.row, stack=identity, parent=parent,
        description=owner.description_of(name),
        nested=None if child is None else StackIdentity.of(child.row),
    )  # fmt: skip
