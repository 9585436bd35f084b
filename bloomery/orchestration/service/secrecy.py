"""What a hidden parameter has reached in a stack: whose values are not shown, wherever they went.

A property is secret if its tree names a hidden parameter, a condition that does, or an attribute of
a resource with such a property, and so on.  In a stack below, those parameters are hidden, too, for
which the resource above has a secret property; members of a group, all of it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Mapping
from typing import Any, TypeAlias

from bloomery import errors
from bloomery.db import stacks
from bloomery.model import stacks as model
from bloomery.orchestration.resources import base, groups
from bloomery.orchestration.resources.composite import Composite, Membered
from bloomery.orchestration.resources.nested import NestedStack
from bloomery.orchestration.resources.template_stack import TemplateStack
from bloomery.orchestration.service import definitions
from bloomery.orchestration.service.access import StackContext
from bloomery.orchestration.stack import Stack
from bloomery.orchestration.template.definitions import ResourceDefinition
from bloomery.orchestration.template.dialect import Key, Section
from bloomery.orchestration.template.environment import MASKED
from bloomery.orchestration.template.functions import base as functions
from bloomery.orchestration.template.redaction import Redaction

Path: TypeAlias = tuple[str | int, ...]


class Secrecy:
    """The secrets of one stack.  ``above``: of the stack above, and the resource that owns this."""

    def __init__(self, stack: Stack, above: tuple[Secrecy, str] | None = None) -> None:
        self._stack = stack
        self._above = above

    def shown(self, name: str, properties: Mapping[str, Any]) -> dict[str, Any]:
        """Return values of a resource as they may be shown.

        Stars stand for secret ones, and for values of hidden parameters wherever they have come to.
        """
        redaction, kind = self._stack.definition.redaction, self._kind(name)
        paths = set() if kind is None else {*kind.secrets_in(properties)}
        return {
            key: MASKED
            if self.is_secret(name, key)
            else _starred(definitions.masked(value, redaction), paths, (key,))
            for key, value in properties.items()
        }

    def shown_attributes(
        self, name: str, attributes: Mapping[str, Any], properties: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return attributes of a resource as they may be shown.

        Stars stand for those named as a secret property, for values of such wherever they have
        come to, and for all that comes from a stack below that was given one.
        """
        if self._whole or (self._has_stack(name) and name in self._secretive):
            return {key: _star(value) for key, value in attributes.items()}
        secret = {key for key in properties if self._is_reached(name, key)}
        values = Redaction([properties[key] for key in secret])
        redaction = self._stack.definition.redaction | values
        return {
            key: _star(value) if key in secret else definitions.masked(value, redaction)
            for key, value in attributes.items()
        }

    def _has_stack(self, name: str) -> bool:
        """May attributes of a resource be values of a stack below?"""
        kind = self._kind(name)
        return kind is None or issubclass(kind, Composite)

    def shown_template(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return the template of the stack as it may be shown.

        That of a group has the values of its members, and that of OS::Heat::Stack is a value
        itself; others are as somebody wrote them.
        """
        if self._above is None:
            return dict(document)
        above, owner = self._above
        if above.is_secret_template(owner):
            return _names_and_types(document, self._stack.definition.template.features.version_key)
        if not above.is_group(owner):
            return dict(document)
        members = {
            name: {**body, "properties": self.shown(name, body["properties"])}
            if body.get("properties")
            else body
            for name, body in groups.members_of(document).items()
        }
        return {**document, **groups.document(members)}

    def is_group(self, name: str) -> bool:
        """Does a resource make the template of its members?"""
        kind = self._kind(name)
        return kind is not None and issubclass(kind, Membered)

    def is_secret_template(self, name: str) -> bool:
        """Is the template of the stack that a resource owns a value that is not to be shown?"""
        kind = self._kind(name)
        is_value = kind is not None and issubclass(kind, TemplateStack)
        return is_value and self.is_secret(name, "template")

    def secret_parameters(self) -> Collection[str]:
        """Return the parameters of the stack whose values are not to be shown."""
        if self._whole:
            return [*self._stack.definition.template.section(Section.PARAMETERS)]
        return self._secret_names

    def is_secret(self, name: str, key: str) -> bool:
        """Is a property of a resource not to be shown?"""
        if self._whole:
            return True
        kind = self._kind(name)
        if kind is not None and key in kind.secret_properties:
            return True
        return self._is_reached(name, key)

    def _is_reached(self, name: str, key: str) -> bool:
        """May the value of a hidden parameter be in a property?"""
        definition, body = self._definitions.get(name), self._body(name)
        if isinstance(body, Mapping) and self._is_key_by_key(name, definition):
            body = body.get(key)
        if self._names_secret(body):
            return True
        return definition is not None and self._asks_secret(_tree(definition, key))

    def _is_key_by_key(self, name: str, definition: ResourceDefinition | None) -> bool:
        """Does the template have each property under its own name?

        Not in one call for all of them, and not where a kind takes old names.
        """
        if definition is None:
            return bool(self._definitions)
        if isinstance(definition.properties, functions.Function):
            return False
        kind = self._kind(name)
        return kind is not None and not kind.translation_rules

    # ------------------------------------------------------------------------- what is reached

    @functools.cached_property
    def _whole(self) -> bool:
        """Is nothing of it to be shown?"""
        return self._above is not None and self._above[0].hides_below(self._above[1])

    def hides_below(self, owner: str) -> bool:
        """Is nothing to be shown of the stack that a resource owns?"""
        if self._whole or owner not in self._definitions:
            return True
        kind = self._kind(owner)
        is_nested = kind is not None and issubclass(kind, NestedStack)
        return not is_nested and owner in self._secretive

    @functools.cached_property
    def _secret_names(self) -> Collection[str]:
        """Hidden parameters, and the conditions that depend on them."""
        names = {*definitions.hidden_names(self._stack)}
        if self._above is not None:
            above, owner = self._above
            declared = self._stack.definition.template.section(Section.PARAMETERS)
            names |= {each for each in declared if above.is_secret(owner, each)}
        bodies = self._stack.definition.template.section(Section.CONDITIONS)
        waiting = dict(bodies) if isinstance(bodies, Mapping) else {}
        while names:
            reached = {name for name, body in waiting.items() if _names(body, names)}
            if not reached:
                break
            names |= reached
            waiting = {name: body for name, body in waiting.items() if name not in reached}
        return names

    @functools.cached_property
    def _secretive(self) -> set[str]:
        """The resources whose attributes may tell a secret."""
        reached = {name for name in self._definitions if self._names_secret(self._body(name))}
        users: dict[str, set[str]] = {}
        for name, definition in self._definitions.items():
            for reference in self._references(definition.properties):
                users.setdefault(reference.resource, set()).add(name)
        waiting = list(reached)
        while waiting:
            new = users.get(waiting.pop(), set()) - reached
            reached |= new
            waiting += new
        return reached

    def _asks_secret(self, tree: Any) -> bool:
        return any(each.resource in self._secretive for each in self._references(tree))

    def _references(self, tree: Any) -> list[functions.Reference]:
        """Return what is asked of resources; an id tells nothing, unless an output is one."""
        return [
            each
            for each in functions.references(tree, self._stack.view)
            if each.attribute is not None or self._gives_output(each.resource)
        ]

    def _gives_output(self, name: str) -> bool:
        kind = self._kind(name)
        return kind is None or issubclass(kind, NestedStack)

    def _kind(self, name: str) -> type[base.Resource] | None:
        """Return the kind of a resource; None where nothing offers it any more."""
        try:
            return self._stack.kind(name) if name in self._definitions else None
        except errors.Failure:
            return None

    def _names_secret(self, body: Any) -> bool:
        return _names(body, self._secret_names)

    # ---------------------------------------------------------------------------- the template

    @functools.cached_property
    def _definitions(self) -> Mapping[str, ResourceDefinition]:
        try:
            return self._stack.definitions
        except errors.Failure:  # what was accepted may not be readable any more
            return {}

    def _body(self, name: str) -> Any:
        """Return the properties of a resource as its template has them."""
        template = self._stack.definition.template
        section = template.section(Section.RESOURCES)
        body = section.get(name) if isinstance(section, Mapping) else None
        word = template.features.resource_keys[Key.PROPERTIES]
        return body.get(word) if isinstance(body, Mapping) else None


def of(ctx: StackContext, row: model.Stack, stack: Stack | None = None) -> Secrecy:
    """Return the secrets of a stored stack; ``stack``: its definition, if it was read before."""
    return Secrecy(stack or definitions.of(ctx, row), _above(ctx, row))


def _above(ctx: StackContext, row: model.Stack) -> tuple[Secrecy, str] | None:
    if row.owner_uuid is None:
        return None
    with ctx.services.db.read() as conn:
        owner = stacks.find(conn, row.owner_uuid)
    return None if owner is None else (of(ctx, owner), str(row.owner_resource))


def _names(body: Any, names: Collection[str]) -> bool:
    """Does a part of a template name one of ``names``, rather once too often?"""
    if not names or body is None:
        return False
    text = json.dumps(body, default=str)
    return any(json.dumps(each) in text for each in names)


def _star(value: Any) -> str | None:
    return None if value is None else MASKED


def _starred(value: Any, paths: Collection[Path], path: Path) -> Any:
    """Return a value, which is at ``path``, with stars at those paths."""
    if path in paths:
        return MASKED
    if paths and isinstance(value, dict):
        return {key: _starred(inner, paths, (*path, key)) for key, inner in value.items()}
    if paths and isinstance(value, list):
        return [_starred(inner, paths, (*path, key)) for key, inner in enumerate(value)]
    return value


def _names_and_types(document: Mapping[str, Any], version_key: str) -> dict[str, Any]:
    """Return a template with stars for all that is no name, no type and no version."""
    return {
        key: {name: _type_alone(body) for name, body in section.items()}
        if isinstance(section, Mapping)
        else (section if key == version_key else MASKED)
        for key, section in document.items()
    }


def _type_alone(body: Any) -> Any:
    if not isinstance(body, Mapping):
        return MASKED
    return {key: each if key.lower() == Key.TYPE else MASKED for key, each in body.items()}


def _tree(definition: ResourceDefinition, key: str) -> Any:
    tree = definition.properties
    return tree if isinstance(tree, functions.Function) else tree.get(key)
