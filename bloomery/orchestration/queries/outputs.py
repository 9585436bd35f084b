"""Outputs and details of stacks; only the resources that outputs refer to are fetched."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from bloomery import errors
from bloomery.model.stack_views import Output, StackDetails, StackIdentity
from bloomery.orchestration.queries import access, lists
from bloomery.orchestration.queries.access import StackContext
from bloomery.orchestration.queries.stored_values import StoredStack
from bloomery.orchestration.resources.states import Action, Status

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
