"""Checks of a stack before an order for it is accepted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from bloomery import errors
from bloomery.db import resources, stacks
from bloomery.model import stacks as model
from bloomery.orchestration.queries import access
from bloomery.orchestration.queries.access import StackContext
from bloomery.orchestration.resources.composite import Composite
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.stack import Stack, children, validate
from bloomery.orchestration.template.parse import SURROGATE

T = TypeVar("T")
NAME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9_.-]{0,254}")
_TAG_CHARS: Final = 80
_NAME_CHARS: Final = 255
_UPDATE_REFUSED: Final = {
    Action.SUSPEND: "Updating a stack when it is suspended",
    Action.DELETE: "Updating a stack when it is deleting",
}


def name(text: object) -> str:
    """Return the name of a new stack.  Raises StackValidationFailed."""
    if isinstance(text, str) and NAME.fullmatch(text):
        return text
    shown = errors.shortened(repr(text))[:300]
    raise errors.StackValidationFailed(
        reason=f'Invalid stack name {shown}: must contain only alphanumeric or "_-." characters, '
        "must start with alpha and must be 255 characters or less."
    )


def is_storable(text: str) -> bool:
    """Return whether every database can store and find a text: no NUL, no lone surrogate."""
    return "\0" not in text and not SURROGATE.search(text)


def tags(words: Sequence[str] | None) -> tuple[str, ...]:
    """Return tags, each once.  Raises InvalidParameterValue."""
    for word in words or ():
        if not (isinstance(word, str) and len(word) <= _TAG_CHARS and is_storable(word)):
            shown = errors.shortened(repr(word))[:100]
            raise errors.InvalidParameterValue(
                reason=f"cannot tag a stack with {shown}: a tag is text of {_TAG_CHARS} characters "
                "at most"
            )
    return tuple(dict.fromkeys(words or ()))


def snapshot_name(text: str | None) -> str | None:
    """Return the name of a snapshot.  Raises InvalidParameterValue."""
    if text is None or (len(text) <= _NAME_CHARS and is_storable(text)):
        return text
    raise errors.InvalidParameterValue(
        reason=f"cannot name a snapshot so: a name is text of {_NAME_CHARS} characters at most"
    )


def definition(ctx: StackContext, stack: Stack) -> None:
    """Validate a stack, one at a time in this process, and check the policies of its types.

    Raises the first validation error; Forbidden; EntityNotFound for another project's external ID.
    """
    with ctx.services.heavy_jobs.enter():
        validate(stack)
        if ctx.services.policies.enforced:
            access.authorize_types(ctx, types_in(stack))
        own(ctx, stack.tree.external_ids)


def types_in(stack: Stack) -> Iterator[str]:
    """Yield the resource types of a stack and its child stacks, and the types they are mapped to.

    Skip members that depend on unknown values: an engine checks them when it creates them.
    """
    for resource in stack.definitions.values():
        kind = stack.kind(resource.name)
        yield resource.type
        yield from _targets(stack, resource.name, kind)
        if issubclass(kind, Composite):
            yield from _child_types(stack, resource.name)


def _targets(stack: Stack, name: str, kind: type[Any]) -> Iterator[str]:
    rule = stack.definition.resolved_type(name).rule
    if rule is None:
        return
    if not rule.target.endswith("*"):
        yield rule.target
        return
    kinds = stack.definition.environment.registry.kinds
    names = (each for each in kinds if each.startswith(rule.target[:-1]))
    yield from (each for each in names if kinds.find(each) is kind)


def _child_types(stack: Stack, name: str) -> Iterator[str]:
    try:
        values = stack.properties(name, stack.view)
        resource = children.preview(stack, name, values, {})
        if isinstance(resource, Composite):
            yield from types_in(children.child_stack(stack, resource))
    except errors.Failure:
        return


def types_of_tree(ctx: StackContext, row: model.Stack) -> None:
    if ctx.services.policies.enforced:
        with ctx.services.db.read() as conn:
            types = resources.list_types(conn, row.root_uuid)
        access.authorize_types(ctx, types)


def immutable(old: Stack, new: Stack) -> None:
    try:
        before = old.definition.parameters
    except errors.Failure:  # the stored template may not be readable any more
        return
    new.definition.parameters.check_immutable(before)


# ------------------------------------------------------------------------------------ states


def may_update(ctx: StackContext, row: model.Stack) -> None:
    if row.action in _UPDATE_REFUSED:
        raise errors.NotSupported(feature=_UPDATE_REFUSED[Action(row.action)])
    not_busy(ctx, row)


def may_patch(ctx: StackContext, row: model.Stack) -> None:
    """Without convergence, refuse to patch an incomplete stack that has no previous template.

    Heat then patches the last requested template, of which it keeps a copy for each update and none
    for a create.  Here the last requested template is the stack's own.
    """
    if ctx.services.conf.engine.convergence or row.status == Status.COMPLETE:
        return
    if row.previous_template_uuid is None:
        state = f"{row.action}_{row.status}"
        raise errors.NotSupported(
            feature=f"PATCH of a stack that is {state} and has no previous template: send PUT with "
            "the whole template. Without convergence it"
        )


def not_deleting(row: model.Stack, what: str) -> None:
    """Refuse an action during a deletion.  In Heat the action begins, and the deletion is lost."""
    if row.action == Action.DELETE and row.status == Status.IN_PROGRESS:
        raise errors.NotSupported(feature=f"{what} a stack when it is deleting")


def not_busy(ctx: StackContext, row: model.Stack) -> None:
    """Without convergence, refuse to supersede an action in progress."""
    if row.status == Status.IN_PROGRESS and not ctx.services.conf.engine.convergence:
        raise busy(row)


def busy(row: model.Stack) -> errors.ActionInProgress:
    return errors.ActionInProgress(stack_name=row.name, action=row.action)


# -------------------------------------------------------------------- resources of other projects


def own(ctx: StackContext, ids: Mapping[str, str]) -> None:
    """Raise EntityNotFound for IDs of another project's stacks and physical resources.

    ``ids``: ID -> name of the resource that refers to it.
    """
    ids = {ident: name for ident, name in ids.items() if is_storable(ident)}
    if not ids:
        return
    with ctx.services.db.read() as conn:
        foreign = [
            *stacks.list_foreign(conn, ctx.project, list(ids)),
            *resources.list_foreign(conn, ctx.project, list(ids)),
        ]
    if foreign:
        raise errors.EntityNotFound(entity="Resource", name=ids[foreign[0]])
