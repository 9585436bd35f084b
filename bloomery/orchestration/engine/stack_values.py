"""The values of a stack: properties and metadata of its resources, and its outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.engine.resource import EngineResource
from bloomery.orchestration.engine.stacks import EngineStack
from bloomery.orchestration.stack import Stack
from bloomery.orchestration.template.dialect import Key
from bloomery.orchestration.template.functions import base as functions

PROPERTY_ERROR: Final = "Property error"
Values = tuple[Mapping[str, Any], Mapping[str, Any]]  # properties, metadata


def read(stack: EngineStack, row: EngineResource) -> Values:
    """Return the resolved properties and metadata of a resource; store its update policy."""
    template, name = stack.live_template, row.name
    kind, definition = row.kind, row.definition
    metadata = functions.resolve(definition.metadata, _view(stack))
    if kind.ignores_properties:
        return {}, metadata
    properties = _checked(
        stack, name, Key.PROPERTIES, kind.properties_schema, definition.properties
    )
    if kind.update_policy_schema:
        schemas, tree = kind.update_policy_schema, definition.update_policy
        row.policy = _checked(stack, name, Key.UPDATE_POLICY, schemas, tree)
    try:  # the kind may not have known these values at validation
        row.resource_with(properties).check_properties()
    except errors.Misplaced as exc:
        raise exc.under(*template.path(name, Key.PROPERTIES)) from exc
    return properties, metadata


def metadata(stack: EngineStack, row: EngineResource) -> Any:
    return functions.resolve(row.definition.metadata, _view(stack))


def _checked(
    stack: EngineStack, name: str, key: Key, schemas: Mapping[str, Any], tree: Any
) -> dict[str, Any]:
    template = stack.live_template
    try:
        return template.reading(name, schemas, tree, _view(stack)).resolved(check=True)
    except errors.Misplaced as exc:
        raise exc.under(*template.path(name, key), error=PROPERTY_ERROR) from exc


def _view(stack: EngineStack) -> Any:
    return stack.live_template.definition.view(stack.current_rows)


def external_id(stack: EngineStack, name: str) -> Any:
    return functions.resolve(stack.live_template.definitions[name].external_id, _view(stack))


def output(stack: EngineStack, name: str) -> Any:
    """Return the value of an output, or raise its fault.  A disabled output is None."""
    definition = stack.live_template.definition.outputs[name]
    return functions.resolve(definition.value, _view(stack)) if definition.enabled else None


def output_names(stack: EngineStack) -> Sequence[str]:
    return list(stack.template.definition.outputs) if isinstance(stack.template, Stack) else []
