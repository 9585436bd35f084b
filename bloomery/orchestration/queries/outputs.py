"""Outputs and details of stacks; only the resources that outputs refer to are fetched."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence
from typing import Final

from bloomery import errors
from bloomery.model import stacks as model
from bloomery.model.stack_views import Output, StackDetails, StackIdentity
from bloomery.operations.context import Services
from bloomery.orchestration.engine.runtime import EngineRuntime
from bloomery.orchestration.queries import access, lists
from bloomery.orchestration.queries.access import StackContext
from bloomery.orchestration.queries.stored_values import StoredStack
from bloomery.orchestration.resources.children import OtherStack, OtherStacks
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.stack.secrecy import Secrecy
from bloomery.orchestration.template.dialect import Section

_MOST_REASON: Final = 1000  # characters of an output's error


def show_stack(
    ctx: StackContext, identity: StackIdentity, *, resolve_outputs: bool = True
) -> StackDetails:
    row = access.stack(ctx, identity)
    stored = StoredStack(ctx, row)
    gone = row.action == Action.DELETE and row.status == Status.COMPLETE
    definition = stored.definition.definition
    return StackDetails(
        stack=row,
        description=definition.redaction.masked(definition.template.description),
        parameters=lists.parameters_of(stored.definition, stored.secrecy),
        outputs=_values(stored, definition.outputs) if resolve_outputs and not gone else None,
    )


def list_outputs(ctx: StackContext, identity: StackIdentity) -> list[Output]:
    stored = StoredStack(ctx, access.living(ctx, identity))
    return [
        Output(key=key, description=each.description)
        for key, each in stored.definition.outputs.items()
    ]


def show_output(ctx: StackContext, identity: StackIdentity, key: str) -> Output:
    stored = StoredStack(ctx, access.living(ctx, identity))
    if key not in stored.definition.outputs:
        near = errors.nearest(key, stored.definition.outputs)
        raise errors.NotFound(reason=f"cannot find output {key!r} of stack {identity.name}.{near}")
    [output] = _values(stored, [key])
    return output


def _values(stored: StoredStack, names: Collection[str]) -> list[Output]:
    stored.fetch_for(names)
    outputs = []
    for name in names:
        description = stored.definition.outputs[name].description
        try:
            output = Output(key=name, description=description, value=stored.output(name))
        except Exception as exc:  # noqa: BLE001  a kind of a plug-in may raise anything
            reason = str(exc) if isinstance(exc, errors.Failure) else f"{type(exc).__name__}: {exc}"
            reason = stored.definition.definition.redaction.masked(reason)
            output = Output(key=name, description=description, error=reason[:_MOST_REASON])
        outputs.append(output)
    return outputs


class ReadableStacks:
    """Stacks of other trees (``children.OtherStacks``), as one caller may see their outputs."""

    def __init__(self, context: Callable[[], StackContext], root_uuid: str | None) -> None:
        """``root_uuid``: of the tree of the caller's stack, None for a stack that is planned."""
        self._context, self._root_uuid = context, root_uuid

    def read(self, ident: str, names: Sequence[str] | None) -> OtherStack:
        ctx = self._context()
        access.authorize(ctx, "stacks:show_output")
        row = access.living(ctx, access.identify(ctx, ident))
        if row.root_uuid == self._root_uuid:
            raise errors.NotFound(
                reason=f"cannot read the outputs of stack {ident}: it is the same stack, or a part"
                " of it; use get_attr"
            )
        state, is_at_rest = f"{row.action}_{row.status}", row.status != Status.IN_PROGRESS
        other = OtherStack(uuid=row.uuid, name=row.name, state=state, is_at_rest=is_at_rest)
        if not is_at_rest:
            return other
        stored = StoredStack(ctx, row)
        defined = stored.definition.outputs
        for name in names or ():
            if name not in defined:
                near = errors.nearest(name, defined)
                raise errors.NotFound(reason=f"cannot find output {name!r} of stack {ident}.{near}")
        outputs = _values(stored, [*defined] if names is None else names)
        for each in outputs:
            if each.error and names is not None:
                reason = f"cannot read output {each.key} of stack {ident}: {each.error}"
                raise errors.NotFound(reason=reason)
        sealed = {name for name, each in stored.resources().items() if each.row.redacted}
        secrecy = Secrecy(stored.definition, sealed=sealed)
        written = stored.definition.definition.template.section(Section.OUTPUTS)
        return dataclasses.replace(
            other,
            outputs={each.key: each.value for each in outputs},
            hidden=[
                each.key for each in outputs
                if secrecy.hides_output(each.key, written[each.key])
                or secrecy.has_hidden(each.value)
            ],
        )  # fmt: skip


def stacks_of(services: Services) -> Callable[[EngineRuntime, model.Stack], OtherStacks]:
    """Return the function of an ``EngineRuntime``: other stacks, for a stack's last caller."""

    def context(runtime: EngineRuntime, stack: model.Stack) -> StackContext:
        request = dataclasses.replace(access.stored_caller(services, stack), project=stack.project)
        return StackContext(services=services, request=request, runtime=runtime)

    return lambda runtime, stack: ReadableStacks(lambda: context(runtime, stack), stack.root_uuid)
