"""A template with the user's input: conditions evaluated, resources and outputs parsed.

    definition = Definition(template=template, environment=environment)
    definition.resources["server"].properties  # a tree, see functions/base.py
    definition.view({"server": row}).resource("server").reference_id()

Each part is computed once, when it is first read, and errors carry their path.  ``Stack`` reads the
parts in the order in which Heat finds errors.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from bloomery import errors
from bloomery.orchestration.limits import Deadline, Limits
from bloomery.orchestration.properties.custom import CONSTRAINT_CONTEXT, ConstraintContext
from bloomery.orchestration.template import files, parameter_schemas, parameters, sections
from bloomery.orchestration.template.conditions import Conditions
from bloomery.orchestration.template.dialect import Identity, Key, Section, Template
from bloomery.orchestration.template.entries import (
    DefinitionReader,
    OutputDefinition,
    ResourceDefinition,
)
from bloomery.orchestration.template.environment import Environment
from bloomery.orchestration.template.functions.base import Function
from bloomery.orchestration.template.functions.parser import Parser
from bloomery.orchestration.template.redaction import Redaction
from bloomery.orchestration.template.registry import ResolvedType
from bloomery.orchestration.template.view import Facade, ResourceView

NOTHING_HIDDEN: Final = Redaction()


class Resources(NamedTuple):
    enabled: dict[str, ResourceDefinition]
    disabled: frozenset[str]


@dataclass(eq=False, repr=False, kw_only=True)
class Definition:
    """The template of one stack, and the input of its user."""

    template: Template
    environment: Environment
    identity: Identity = field(default_factory=Identity)
    user_parameters: Mapping[str, Any] = field(default_factory=dict)  # win over the environment's
    facade: Facade | None = None  # the parent resource of a child stack
    lenient: bool = False  # parameters may have no value, as in ``POST validate``
    constraint_context: ConstraintContext = CONSTRAINT_CONTEXT
    parent_redaction: Redaction = NOTHING_HIDDEN  # in the parent stack, which passes values down
    hidden_in_tree: Collection[str] | None = None  # defaults of the parent; None: read the files
    deadline: Deadline = None  # type: ignore[assignment]  # of the parent stack, or a new one
    parsed: Resources | None = None  # the resources of the template, if they are known already

    def __post_init__(self) -> None:
        self.deadline = self.deadline or Deadline(self.limits)
        self._required: dict[str, Sequence[str]] = {}

    @property
    def limits(self) -> Limits:
        return self.template.limits

    def view(self, resources: Mapping[str, ResourceView]) -> View:
        """Return the view of functions on the stack with these ``resources``."""
        return View(self, resources)

    def relaxed(self) -> Definition:
        """Return a copy whose parameters may have no value."""
        return replace(self, parsed=None, lenient=True)

    def stored_as(self, identity: Identity) -> Definition:
        """Return a copy with the name and ID of the stored stack."""
        return replace(self, parsed=None, identity=identity)

    def only(self, names: Collection[str]) -> Definition:
        """Return a copy with the resources ``names`` only."""
        enabled, disabled = self._parsed
        kept = {name: each for name, each in enabled.items() if name in names}
        return replace(self, parsed=Resources(kept, disabled & frozenset(names)))

    def amended(self, template: Template, part: Definition) -> Definition:
        """Return a copy with another template, reusing the resources parsed here and in ``part``.

        ``part``: a definition of only the resources in which the two templates differ.
        """
        names = template.section(Section.RESOURCES).keys()
        either = self.resources | part.resources
        enabled = {name: either[name] for name in names if name in either}
        disabled = (self.disabled | part.disabled) & names - enabled.keys()
        return replace(self, template=template, parsed=Resources(enabled, frozenset(disabled)))

    def child(
        self,
        template: Template,
        environment: Environment,
        *,
        identity: Identity,
        facade: Facade,
        user_parameters: Mapping[str, Any] | None = None,
    ) -> Definition:
        """Return the definition of a child stack; it shares the redaction and the deadline."""
        return Definition(
            template=template,
            environment=environment,
            identity=identity,
            user_parameters=user_parameters or {},
            facade=facade,
            constraint_context=self.constraint_context,
            parent_redaction=self.redaction,
            hidden_in_tree=self.hidden_defaults,
            deadline=self.deadline,
        )

    # ----------------------------------------------------------------------------------- redaction

    @functools.cached_property
    def hidden_defaults(self) -> Collection[str]:
        """The ``parameter_defaults`` that a nested template of the tree declares as hidden."""
        if self.hidden_in_tree is not None:
            return self.hidden_in_tree
        defaults = self.environment.parameter_defaults
        return files.hidden_in(self.template.files, defaults, self.limits) if defaults else ()

    @functools.cached_property
    def redaction(self) -> Redaction:
        """Masks the values of hidden parameters, of this stack and its tree, in messages."""
        defaults = self.environment.parameter_defaults
        nested = Redaction(defaults[name] for name in self.hidden_defaults if name in defaults)
        try:
            return self.parent_redaction | nested | Redaction(self.parameters.secrets())
        except errors.Failure:  # parameters that cannot be read
            return self.parent_redaction | nested

    @contextlib.contextmanager
    def redacted(self) -> Iterator[None]:
        """Mask the values of hidden parameters in errors raised inside."""
        try:
            yield
        except errors.Failure as exc:
            masked = self.redaction.fault(exc)
            if masked is exc:
                raise
            raise masked from None

    # --------------------------------------------------------------------------------- parameters

    @functools.cached_property
    def parameters(self) -> parameters.Parameters:
        """The parameters and their values.  Raises InvalidSchemaError for a declaration."""
        section = self.template.section(Section.PARAMETERS)
        try:
            declared = parameters.schemas(section, self._declared)
        except errors.Misplaced as exc:
            raise exc.under(self.template.section_name(Section.PARAMETERS)) from exc
        return parameters.Parameters(
            declared,
            {**self.environment.parameters, **self.user_parameters},
            self.environment.parameter_defaults,
            self.template.pseudo_parameters(self.identity),
            lenient=self.lenient,
            context=self.constraint_context,
            tick=self.deadline.tick,
        )

    def _declared(self, name: str, body: Any) -> parameter_schemas.Schema:
        self.deadline.tick()
        read, environment = self.template.parameter_schema, self.environment
        values = (environment.parameters, environment.parameter_defaults, self.user_parameters)
        if self.facade is not None and (self.lenient or any(name in each for each in values)):
            schema = parameter_schemas.unused_default(read, name, body)
            is_cleared = environment.parameter_defaults.get(name, body) is None
            return replace(schema, default=None) if is_cleared else schema
        return read(name, body)

    def check_groups(self) -> None:
        """Refuse parameter groups of the wrong shape, or with unknown parameters."""
        try:
            parameters.check_groups(
                self.template.section(Section.PARAMETER_GROUPS), self.parameters.schemas
            )
        except errors.Misplaced as exc:
            section_name = self.template.section_name(Section.PARAMETER_GROUPS)
            raise exc.under(section_name, error="Parameter Groups error") from exc

    # --------------------------------------------------------------------- readers of its parts

    @functools.cached_property
    def _plain_view(self) -> View:
        return _Unbuilt(self, {})

    @functools.cached_property
    def conditions(self) -> Conditions:
        return Conditions(self.template, self._plain_view)

    @functools.cached_property
    def _reader(self) -> DefinitionReader:
        offered = self.template.features.offered
        parser = Parser(
            functions=offered.functions, conditions=offered.conditions, view=self._plain_view
        )
        return DefinitionReader(self.template, parser, self.conditions)

    # ---------------------------------------------------------------------------------- resources

    @functools.cached_property
    def resources(self) -> dict[str, ResourceDefinition]:
        """The resources whose condition holds."""
        return self._parsed.enabled

    @property
    def disabled(self) -> frozenset[str]:
        return self._parsed.disabled

    @functools.cached_property
    def _parsed(self) -> Resources:
        if self.parsed is not None:
            return self.parsed
        section = self.template.section(Section.RESOURCES)
        bodies = sections.Bodies(self.template)
        for name, body in section.items():
            bodies.check(name, body)
        enabled: dict[str, ResourceDefinition] = {}
        disabled = set()
        for name, body in section.items():
            try:
                definition, holds = self._reader.resource(name, body)
            except errors.Misplaced as exc:
                raise exc.under(self.template.section_name(Section.RESOURCES), name) from exc
            if holds:
                enabled[name] = definition
            else:
                disabled.add(name)
        return Resources(enabled, frozenset(disabled))

    def resolved_type(self, name: str) -> ResolvedType:
        """Return the resolved type of a resource.  Raises StackValidationFailed."""
        return self.environment.registry.find(self.resources[name].type, name)

    def required(self, name: str) -> Sequence[str]:
        """Return the resources that ``name`` requires; ``depends_on`` of a disabled one is ignored.

        Raises InvalidTemplateReference.
        """
        if name in self._required:
            return self._required[name]
        enabled, disabled = self._parsed
        definition, view = enabled[name], self._plain_view
        keys, required = self.template.features.resource_keys, []
        try:
            for other in definition.depends_on:
                if other in enabled:
                    required.append(other)
                elif other not in disabled:
                    raise self.wrong_reference(other).under(keys[Key.DEPENDS_ON])
            references = () if definition.external_id is not None else definition.references(view)
            for target in [reference.resource for reference in references]:
                required.append(target)
                if target not in enabled:
                    path: Sequence[str | int] = ()
                    if (place := _place(definition.properties, target, view)) is not None:
                        path = (keys[Key.PROPERTIES], *place)
                    elif (place := _place(definition.metadata, target, view)) is not None:
                        path = (keys[Key.METADATA], *place)
                    raise self.wrong_reference(target).under(*path)
        except errors.Misplaced as exc:
            section_name = self.template.section_name(Section.RESOURCES)
            raise exc.under(section_name, definition.name) from exc
        self._required[name] = tuple(required)
        return self._required[name]

    def wrong_reference(self, name: Any) -> errors.InvalidTemplateReference:
        """Return the error for a reference to an unknown or disabled resource."""
        sentence = f'The specified reference "{name}" is incorrect'
        if isinstance(name, str) and name in self._parsed.disabled:
            why = f"the condition of {name} is false; ask for it in the same condition, with if"
        else:
            why = f"no resource has this name.{errors.nearest(name, self.resources)}"
        return errors.InvalidTemplateReference(reason=f"{sentence}: {why}")

    # ------------------------------------------------------------------------------------ outputs

    @functools.cached_property
    def outputs(self) -> Mapping[str, OutputDefinition]:
        """All outputs; the value of a disabled one is never parsed."""
        section = self.template.section(Section.OUTPUTS)
        for name, body in section.items():
            sections.check_output(self.template, name, body)
        outputs = {}
        for name, body in section.items():
            try:
                outputs[name] = self._reader.output(name, body)
            except errors.Misplaced as exc:
                raise exc.under(self.template.section_name(Section.OUTPUTS), name) from exc
        return outputs


def _place(tree: Any, target: str, view: View) -> tuple[str | int, ...] | None:
    """Return the path of the first reference to ``target`` in ``tree``, or None."""
    if isinstance(tree, Function):
        inner_path = _place(tree.args, target, view)
        if inner_path is not None:
            return (tree.name, *inner_path)
        targets = {reference.resource for reference in tree.references(view)}
        return (tree.name,) if target in targets else None
    items: Any = tree.items() if isinstance(tree, dict) else ()
    for key, value in enumerate(tree) if isinstance(tree, list) else items:
        inner_path = _place(value, target, view)
        if inner_path is not None:
            return (key, *inner_path)
    return None


class View:
    """A ``StackView`` (view.py) of a definition and the given resources."""

    __slots__ = ("_definition", "_resources")

    def __init__(self, definition: Definition, resources: Mapping[str, ResourceView]) -> None:
        self._definition = definition
        self._resources = resources

    @property
    def limits(self) -> Limits:
        return self._definition.limits

    def tick(self) -> None:
        self._definition.deadline.tick()

    @property
    def facade(self) -> Facade | None:
        return self._definition.facade

    def parameter(self, name: str) -> Any:
        return self._definition.parameters.value(name)

    def has_parameter(self, name: str) -> bool:
        return name in self._definition.parameters

    def file(self, key: str) -> str:
        files = self._definition.template.files
        text = files.get(key) if isinstance(key, str) else None
        if text is None:
            near = errors.nearest(key, files)
            raise sections.fault(f'No content found in the "files" section for {key!r}.{near}')
        return text

    def resource(self, name: str) -> ResourceView:
        resource = self._resources.get(name) if isinstance(name, str) else None
        if resource is None:
            raise self._definition.wrong_reference(name)
        return resource

    def condition(self, name: str) -> bool:
        return self._definition.conditions.value(name)

    def mapping(self, name: str) -> Mapping[str, Any]:
        mappings = self._definition.template.section(Section.MAPPINGS)
        mapping = mappings.get(name) if isinstance(name, str) else None
        if not isinstance(mapping, dict):
            raise sections.fault(f"No mapping is called {name!r}.{errors.nearest(name, mappings)}")
        return mapping


class _Unbuilt(View):
    """The view while the template is parsed: reading a resource raises StackValidationFailed."""

    __slots__ = ()

    def resource(self, name: str) -> ResourceView:
        raise sections.fault(f"resource {name} cannot be asked here: only parameters are known")
