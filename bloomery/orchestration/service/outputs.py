"""Outputs and details of stacks; only the resources that outputs refer to are fetched."""

from __future__ import annotations

from typing import Final

from bloomery import errors
from bloomery.model.stack_views import Output, StackDetails, StackIdentity
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.service import access, lists
from bloomery.orchestration.service.access import StackContext
from bloomery.orchestration.service.stored_values import StoredStack
from bloomery.orchestration.template.definitions import OutputDefinition

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
        outputs=_values(stored) if resolve_outputs and not gone else None,
    )


def list_outputs(ctx: StackContext, identity: StackIdentity) -> list[Output]:
    stored = StoredStack(ctx, access.living(ctx, identity))
    return [Output(key=key, description=each.description) for key, each in stored.outputs.items()]


def show_output(ctx: StackContext, identity: StackIdentity, key: str) -> Output:
    stored = StoredStack(ctx, access.living(ctx, identity))
    output = stored.outputs.get(key)
    if output is None:
        near = errors.nearest(key, stored.outputs)
        raise errors.NotFound(reason=f"cannot find output {key!r} of stack {identity.name}.{near}")
    stored.fetch_for([output])
    return _value(stored, output)


def _values(stored: StoredStack) -> list[Output]:
    outputs = list(stored.outputs.values())
    stored.fetch_for(outputs)
    return [_value(stored, output) for output in outputs]


def _value(stored: StoredStack, output: OutputDefinition) -> Output:
    try:
        value = stored.value_of(output)
    except Exception as exc:  # noqa: BLE001  a kind of a plug-in may raise anything
        redaction = stored.definition.definition.redaction
        reason = redaction.masked(str(exc) if isinstance(exc, errors.Failure) else _named(exc))
        return Output(key=output.name, description=output.description, error=reason[:_MOST_REASON])
    return Output(key=output.name, description=output.description, value=value)


def _named(exc: Exception) -> str:
    return f"{type(exc).__name__}: {exc}"
