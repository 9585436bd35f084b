"""The definitions of resources and outputs, read from the bodies in a template.

A definition is immutable.  ``properties`` and similar fields are trees (see functions/base.py):
resolve them against a view.  Compare definitions of two templates with ``==``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from bloomery import errors
from bloomery.orchestration.template import sections
from bloomery.orchestration.template.conditions import Conditions
from bloomery.orchestration.template.dialect import DeletionPolicy, Key, Template
from bloomery.orchestration.template.functions import base
from bloomery.orchestration.template.functions.base import ABSENT
from bloomery.orchestration.template.functions.parser import Parser
from bloomery.orchestration.template.view import StackView

T = TypeVar("T")


NO_DESCRIPTION: Final = "No description given"  # Heat's text for an output without one


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceDefinition:
    """One entry of ``resources``; absent parts are empty."""

    name: str
    type: str
    properties: Any = field(default_factory=dict)  # a tree whose value is a map
    metadata: Any = field(default_factory=dict)  # a tree whose value is a map
    depends_on: tuple[str, ...] = ()
    update_policy: Any = field(default_factory=dict)  # a tree whose value is a map
    deletion_policy: DeletionPolicy = DeletionPolicy.DELETE
    external_id: Any = None  # a tree whose value is text; set: not managed by the stack
    description: str = ""

    def references(self, view: StackView) -> Iterator[base.Reference]:
        """Yield the references in properties and metadata; policies do not count."""
        yield from base.references(self.properties, view)
        yield from base.references(self.metadata, view)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputDefinition:
    """One entry of ``outputs``; a disabled one stays listed, but its value is never parsed."""

    name: str
    value: Any = None  # a tree
    description: str = NO_DESCRIPTION
    enabled: bool = True


Resources = Mapping[str, ResourceDefinition]


class DefinitionReader:
    """Reads the bodies of resources and outputs; the spelling of keys is looked up once."""

    __slots__ = ("_conditions", "_keys", "_output_keys", "_parser", "_policies")

    def __init__(self, template: Template, parser: Parser, conditions: Conditions) -> None:
        features = template.features
        self._parser = parser
        self._conditions = conditions
        self._policies = features.deletion_policies
        nowhere = "\0"  # in no document: a key unknown to the version is never read
        self._keys = {key: features.resource_keys.get(key, nowhere) for key in Key}
        self._output_keys = {key: features.output_keys.get(key, nowhere) for key in Key}

    def resource(self, name: str, body: Mapping[str, Any]) -> tuple[ResourceDefinition, bool]:
        """Return the definition, and whether its condition holds."""
        keys, get = self._keys, body.get
        depends_on = get(keys[Key.DEPENDS_ON], ())
        external_id = self._tree(keys[Key.EXTERNAL_ID], body, None)
        policy = DeletionPolicy.DELETE
        if keys[Key.DELETION_POLICY] in body:
            policy = _under(keys[Key.DELETION_POLICY], self._policy, body)
        definition = ResourceDefinition(
            name=name,
            type=body[keys[Key.TYPE]],
            properties=self._tree(keys[Key.PROPERTIES], body, {}),
            metadata=self._tree(keys[Key.METADATA], body, {}),
            depends_on=(depends_on,) if isinstance(depends_on, str) else tuple(depends_on),
            update_policy=self._tree(keys[Key.UPDATE_POLICY], body, {}),
            deletion_policy=policy if external_id is None else DeletionPolicy.RETAIN,
            external_id=external_id,
            description=get(keys[Key.DESCRIPTION], ""),
        )
        if external_id is not None and definition.depends_on:
            raise errors.InvalidExternalResourceDependency(
                resource_type=definition.type, external_id=external_id
            )
        return definition, self._holds(keys[Key.CONDITION], body)

    def output(self, name: str, body: Mapping[str, Any]) -> OutputDefinition:
        keys = self._output_keys
        description = body.get(keys[Key.DESCRIPTION])
        description = NO_DESCRIPTION if description is None else str(description)
        if not self._holds(keys[Key.CONDITION], body):
            return OutputDefinition(name=name, description=description, enabled=False)
        value = self._tree(keys[Key.VALUE], body, None)
        return OutputDefinition(name=name, value=value, description=description)

    def _holds(self, key: str, body: Mapping[str, Any]) -> bool:
        condition = body.get(key)
        return condition is None or _under(key, self._conditions.holds, condition)

    def _tree(self, key: str, body: Mapping[str, Any], default: Any) -> Any:
        if key not in body:
            return default
        tree = _under(key, self._parser.parse, body[key])
        return default if tree is ABSENT else tree

    def _policy(self, body: Mapping[str, Any]) -> DeletionPolicy:
        tree = self._parser.parse(body[self._keys[Key.DELETION_POLICY]])
        name = base.resolve(tree, self._parser.view)
        policy = self._policies.get(name) if isinstance(name, str) else None
        if policy is None:
            policies = ", ".join(self._policies)
            near = errors.nearest(name, self._policies)
            raise sections.fault(
                f'Invalid deletion policy "{name}": it is one of {policies}.{near}'
            )
        return policy


def _under(key: str, function: Callable[[Any], T], value: Any) -> T:
    """Call ``function``; put ``key`` before the path of its errors."""
    try:
        return function(value)
    except errors.Misplaced as exc:
        raise exc.under(key) from exc
