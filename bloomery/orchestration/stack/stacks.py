"""The stack: the kinds of its resources, and their dependencies."""

from __future__ import annotations

import contextlib
import enum
import functools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from bloomery import errors
from bloomery.orchestration import graph
from bloomery.orchestration.properties import values
from bloomery.orchestration.properties.schema import Schemas
from bloomery.orchestration.resources.base import Resource
from bloomery.orchestration.stack.nesting import Tree
from bloomery.orchestration.template.definition import Definition, View
from bloomery.orchestration.template.dialect import Key, Section, Template
from bloomery.orchestration.template.entries import OutputDefinition, ResourceDefinition
from bloomery.orchestration.template.functions.base import TreeReader
from bloomery.orchestration.template.redaction import Redaction
from bloomery.orchestration.template.view import StackView


class ValidationLevel(enum.Enum):
    """The extent of a validation."""

    VALUES = "values"  # create, update, preview
    MEMBERS = "members"  # what a group or a chain makes
    SHAPE = "shape"  # POST validate


class Stack:
    """A definition with the kinds of its resources.  Each value is computed once, on first use."""

    def __init__(
        self,
        definition: Definition,
        *,
        tree: Tree | None = None,
        depth: int = 0,
        timeout_s: float = 3600,
        is_counted: bool = True,
    ) -> None:
        """``tree``: of the parent stack; None for a root.  ``depth``: levels below the root.

        ``is_counted``: its resources count for the limit of the tree.
        """
        template = definition.template
        self.definition = definition
        self.tree = tree or Tree(definition.limits, template.files)
        self.depth = depth
        self.timeout_s = timeout_s
        self.is_counted = is_counted
        self.validated: set[ValidationLevel] = set()  # passed so far, see validation.py
        self._kinds: dict[str, type[Resource]] = {}
        self._required: dict[str, Sequence[str]] = {}

    # -------------------------------------------------------------------------------------- kinds

    @functools.cached_property
    def definitions(self) -> Mapping[str, ResourceDefinition]:
        """The resources of the template whose condition holds."""
        return self.definition.resources

    def kind(self, name: str) -> type[Resource]:
        """Return the kind of a resource.

        Raises StackValidationFailed for an unknown type or an unreadable template; for the content
        of such a template InvalidTemplateVersion and InvalidSchemaError.
        """
        if name not in self._kinds:
            kind = self._kinds[name] = self.kind_of_type(name, self.definitions[name].type)
            self.tree.timeout_mins = max(self.tree.timeout_mins, kind.default_timeout_mins or 0)
        return self._kinds[name]

    @functools.cached_property
    def names_by_kind(self) -> Mapping[type[Resource], Sequence[str]]:
        """The resources of each kind.  Raises as ``kind`` does."""
        names: dict[type[Resource], list[str]] = {}
        for name in self.definitions:
            names.setdefault(self.kind(name), []).append(name)
        return names

    def kind_of_type(self, name: str, type_name: str) -> type[Resource]:
        """Return the kind of a type for a resource name, which need not be in the template.

        Raises as ``kind`` does.
        """
        registry = self.definition.environment.registry
        try:
            rule = registry.find(type_name, name)
            return rule.kind or self._nested(name, type_name, str(rule.template))
        except errors.StackValidationFailed as exc:
            raise exc.under(*self.path(name, Key.TYPE)) from exc

    def _nested(self, name: str, type_name: str, source: str) -> type[Resource]:
        """Return the kind of the template ``source``, and what it replaces for one resource.

        That is the built-in kind, or the template to which the registry maps the type for all.
        """
        environment, facade = self.definition.environment, None
        registry, defaults = environment.registry, environment.parameter_defaults
        try:
            if (built_in := registry.kind(type_name)) is not None:
                facade = type_name, built_in
            else:
                usual = None
                with contextlib.suppress(errors.StackValidationFailed):  # no other has the type
                    usual = registry.find(type_name).template
                if usual not in {None, source}:
                    facade = type_name, self.tree.kind(str(usual), None, defaults)
            return self.tree.kind(source, facade, defaults)
        except errors.InvalidSchemaError as exc:
            section, name = self.path(name)
            raise exc.under(section, f"{name}<{source}>") from exc

    def path(self, name: str, *keys: Key) -> tuple[str, ...]:
        """Return the path of a resource, or of a key of it, as the template spells it."""
        template = self.definition.template
        spelled = (template.features.resource_keys[key] for key in keys)
        return (template.section_name(Section.RESOURCES), name, *spelled)

    # --------------------------------------------------------------------------------------- order

    def required(self, name: str) -> Sequence[str]:
        """Return the resources that must come before ``name``."""
        if name not in self._required:
            names, definition = [*self.definition.required(name)], self.definitions[name]
            if definition.external_id is None:
                names += self.kind(name).implicit_dependencies(definition, self.definitions)
            self._required[name] = tuple(dict.fromkeys(names))
        return self._required[name]

    @functools.cached_property
    def graph(self) -> graph.Graph[str]:
        """The dependency graph.  Raises InvalidTemplateReference; ``order`` finds cycles."""
        requirements = graph.Graph[str]()
        for name in self.definitions:
            requirements.add(name)
            for other in self.required(name):
                requirements.add(name, other)
        return requirements

    @functools.cached_property
    def order(self) -> Sequence[str]:
        """The names in the order of creation.  Raises CircularDependencyException."""
        try:
            return self.graph.order()
        except graph.Cycle as exc:
            raise errors.CircularDependencyException(cycle=str(exc)) from exc

    # ---------------------------------------------------------------------------- values for plans

    @property
    def outputs(self) -> Mapping[str, OutputDefinition]:
        return self.definition.outputs

    @functools.cached_property
    def view(self) -> View:
        """The stack before its creation: attributes are null, IDs are names."""
        return self.definition.view(
            {name: PendingResource(name, self) for name in self.definitions}
        )

    @functools.cached_property
    def context(self) -> object:
        """The inputs of ``view``: if two are equal, equal trees have equal values."""
        definition, template = self.definition, self.definition.template
        values = {name: definition.parameters.value(name) for name in definition.parameters}
        sections = [template.section(one) for one in (Section.CONDITIONS, Section.MAPPINGS)]
        return values, template.files, sections, definition.facade

    @property
    def content(self) -> object:
        """The document of the template, and the context."""
        return self.definition.template.document, self.context

    @property
    def parameters(self) -> Collection[str]:
        """The names that ``view.parameter`` knows."""
        return tuple(self.definition.parameters)

    @functools.cached_property
    def hidden(self) -> Collection[str]:
        """The hidden parameters; all of the environment if the schemas cannot be read."""
        nested = self.definition.hidden_defaults
        try:
            schemas = self.definition.parameters.schemas
        except errors.Failure:
            return {*nested, *self.definition.environment.parameters}
        return {*nested, *(name for name, schema in schemas.items() if schema.hidden)}

    @property
    def redaction(self) -> Redaction:
        """Masks the values of hidden parameters, here and in the parents."""
        return self.definition.redaction

    def written_conditions(self) -> Mapping[str, Any]:
        """Return the conditions of the document, with functions not resolved."""
        conditions = self.definition.template.section(Section.CONDITIONS)
        return conditions if isinstance(conditions, Mapping) else {}

    def written(self, name: str, part: str) -> Any:
        """Return a part of a resource as the document has it, or None."""
        template = self.definition.template
        section = template.section(Section.RESOURCES)
        body = section.get(name) if isinstance(section, Mapping) else None
        key = template.features.resource_keys.get(Key(part))
        return body.get(key) if isinstance(body, Mapping) else None

    def properties(
        self, name: str, view: StackView, without: Collection[str] = ()
    ) -> Mapping[str, Any]:
        """Return properties but ``without``: converted, not checked, and with defaults."""
        kind, tree = self.kind(name), self.definitions[name].properties
        if kind.ignores_properties:
            return {}
        schemas = kind.properties_schema
        if without:
            schemas = {key: one for key, one in schemas.items() if key not in without}
            if isinstance(tree, dict):
                tree = {key: value for key, value in tree.items() if key not in without}
        with self.definition.redacted():
            return self.reading(name, schemas, tree, view).resolved()

    def reading(self, name: str, schemas: Schemas, tree: Any, view: StackView) -> values.Properties:
        """Return a reader for a map of properties of the resource ``name``."""
        return values.Properties(
            schemas,
            tree,
            TreeReader(view),
            rules=self.kind(name).translation_rules,
            context=self.definition.constraint_context,
            description=self.definitions[name].description,
        )

    def restricted(self, name: str) -> Collection[str]:
        """Return the actions that the environment restricts: ``update``, ``replace``."""
        return self.definition.environment.registry.restricted_actions(name)

    # ------------------------------------------------------------------------------------ variants

    def relaxed(self) -> Stack:
        """Return the same stack, with parameters that may lack values."""
        return self if self.definition.lenient else self._with(self.definition.relaxed())

    def only(self, names: Collection[str]) -> Stack:
        """Return the same stack with no other resources than ``names``."""
        return self._with(self.definition.only(names), self.validated)

    def amended(self, template: Template, part: Stack) -> Stack:
        """Return the same stack with another template, which differs in the resources of ``part``.

        Nothing else is parsed or validated again.
        """
        return self._with(self.definition.amended(template, part.definition), self.validated)

    def _with(self, definition: Definition, validated: Collection[ValidationLevel] = ()) -> Stack:
        variant = Stack(
            definition,
            tree=self.tree,
            depth=self.depth,
            timeout_s=self.timeout_s,
            is_counted=self.is_counted,
        )
        variant.validated.update(validated)
        return variant


class PendingResource:
    """A resource that does not exist yet, as functions see it (a ``ResourceView``)."""

    __slots__ = ("_stack", "name")
    ready = False

    def __init__(self, name: str, stack: Stack) -> None:
        self.name = name
        self._stack = stack

    def reference_id(self) -> str:
        return self.name

    def has_attribute(self, name: str) -> bool:
        return name == "show" or self._stack.kind(self.name).offers_attribute(name)

    def attribute(self, name: str, path: Sequence[Any] = ()) -> None:
        return None

    def attributes(self) -> Mapping[str, Any]:
        return {}
