"""A template joined with what the user gave: conditions decided, resources and outputs parsed.

    found = Definition(template, environment, name="web", given={"size": 3})
    found.resources["server"].properties  # a tree, see functions/base.py
    found.view({"server": row}).resource("server").reference_id()

Everything is worked out when it is first asked for, once, and faults carry their place.  ``Stack``
asks in the order in which Heat finds faults.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from bloomery import errors
from bloomery.orchestration.limits import Deadline, Limits
from bloomery.orchestration.properties.constraints import CONSTRAINT_CONTEXT, ConstraintContext
from bloomery.orchestration.template import parameter_schemas, parameters, sections
from bloomery.orchestration.template.definitions import (
    NO_DESCRIPTION,
    DeletionPolicy,
    OutputDefinition,
    ResourceDefinition,
)
from bloomery.orchestration.template.dialect import Identity, Key, Section, Template
from bloomery.orchestration.template.environment import Environment
from bloomery.orchestration.template.functions import base
from bloomery.orchestration.template.functions.base import ABSENT, Function
from bloomery.orchestration.template.parser import Parser
from bloomery.orchestration.template.redaction import Redaction
from bloomery.orchestration.template.view import Facade, ResourceView

NOTHING_HIDDEN: Final = Redaction()
CONDITION_ERROR: Final = "Condition validation error"

T = TypeVar("T")


class Parsed(NamedTuple):
    enabled: dict[str, ResourceDefinition]
    disabled: frozenset[str]


class Definition:
    """One template for one stack.  ``given``: parameters of the request, before those of files."""

    def __init__(
        self,
        template: Template,
        environment: Environment,
        *,
        name: str = "",
        id: str | None = None,  # noqa: A002  the stack's, as pseudo parameters tell it
        arn: str | None = None,
        project_id: str = "",
        given: Mapping[str, Any] | None = None,
        facade: Facade | None = None,
        lenient: bool = False,
        constraint_context: ConstraintContext = CONSTRAINT_CONTEXT,
        above: Redaction = NOTHING_HIDDEN,
        deadline: Deadline | None = None,
    ) -> None:
        """``lenient``: values of parameters may be missing, as ``POST validate`` wants it.

        ``above``: what is hidden in the stack above, whose values may come down; ``deadline``: how
        long it has for everything.
        """
        self.template = template
        self.environment = environment
        self.identity = Identity(name=name, id=id, arn=arn, project_id=project_id)
        self.given = {**environment.parameters, **(given or {})}
        self.facade = facade
        self.lenient = lenient
        self.constraint_context = constraint_context
        self.above = above
        self.deadline = deadline or Deadline(template.limits)
        self._fault: errors.Misplaced | None = None  # the innermost of conditions in conditions
        self._decided: dict[str, bool] = {}
        self._deciding: list[str] = []
        self._required: dict[str, Sequence[str]] = {}

    @property
    def limits(self) -> Limits:
        return self.template.limits

    def view(self, resources: Mapping[str, ResourceView]) -> View:
        """What functions see of the stack whose resources are ``resources``."""
        return View(self, resources)

    def relaxed(self) -> Definition:
        """The same, whose parameters may miss values."""
        made = self.identity
        return Definition(
            self.template,
            self.environment,
            name=made.name,
            id=made.id,
            arn=made.arn,
            project_id=made.project_id,
            given=self.given,
            facade=self.facade,
            lenient=True,
            constraint_context=self.constraint_context,
            above=self.above,
            deadline=self.deadline,
        )

    # ------------------------------------------------------------------------------ what is hidden

    @functools.cached_property
    def redaction(self) -> Redaction:
        """Masks in messages the values of hidden parameters, here and in the stacks above."""
        try:
            return self.above | Redaction(self.parameters.secrets())
        except errors.Failure:  # parameters that cannot be read
            return self.above

    @contextlib.contextmanager
    def redacted(self) -> Iterator[None]:
        """Let what is raised inside tell no value of a hidden parameter."""
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
        """Raises InvalidSchemaError for a declaration, UnknownUserParameter for a given one."""
        section = self.template.section(Section.PARAMETERS)
        try:
            declared = parameters.schemas(section, self._declared)
        except errors.Misplaced as exc:
            raise exc.under(self.template.word(Section.PARAMETERS)) from exc
        return parameters.Parameters(
            declared,
            self.given,
            self.environment.parameter_defaults,
            self.template.pseudo_parameters(self.identity),
            lenient=self.lenient,
            context=self.constraint_context,
            tick=self.deadline.tick,
        )

    def _declared(self, name: str, body: Any) -> parameter_schemas.Schema:
        self.deadline.tick()
        return self.template.parameter_schema(name, body)

    def check_groups(self) -> None:
        """Refuse parameter groups of the wrong shape, and names in them that are none."""
        try:
            parameters.check_groups(
                self.template.section(Section.PARAMETER_GROUPS), self.parameters.schemas
            )
        except errors.Misplaced as exc:
            word = self.template.word(Section.PARAMETER_GROUPS)
            raise exc.under(word, error="Parameter Groups error") from exc

    # --------------------------------------------------------------------------------- conditions

    @functools.cached_property
    def _plain_view(self) -> View:
        return _Unbuilt(self, {})

    @functools.cached_property
    def _parser(self) -> Parser:
        offered = self.template.features.offered
        return Parser(
            functions=offered.functions, conditions=offered.conditions, view=self._plain_view
        )

    @functools.cached_property
    def _condition_parser(self) -> Parser:
        conditions = self.template.features.offered.conditions
        return Parser(functions=conditions, conditions=conditions, view=self._plain_view)

    def condition(self, name: Any) -> bool:
        """The value of a named condition, decided once.  StackValidationFailed if it has none."""
        if isinstance(name, str) and name in self._decided:
            return self._decided[name]
        section = self.template.section(Section.CONDITIONS)
        if not isinstance(name, str) or name not in section:
            near = errors.nearest(name, section)
            raise sections.fault(f'Invalid condition "{name}".{near}')
        if not self._deciding:
            self._fault = None
        try:
            self._decided[name] = self._decide(name, section[name])
        except errors.Misplaced as exc:
            if self._fault is None:
                self._fault = exc.under(self.template.word(Section.CONDITIONS), name)
            raise self._fault from exc
        return self._decided[name]

    def _decide(self, name: str, body: Any) -> bool:
        self._refuse_circle(name)
        self._deciding.append(name)
        try:
            return self._defined(name, body)
        except RecursionError:
            raise sections.fault("stands too deep in others", error=CONDITION_ERROR) from None
        finally:
            self._deciding.pop()

    def _refuse_circle(self, name: str) -> None:
        if name in self._deciding:
            circle = " -> ".join([*self._deciding[self._deciding.index(name) :], name])
            reason = f'Circular definition for condition "{name}": {circle}'
            raise sections.fault(reason, error=CONDITION_ERROR)
        if len(self._deciding) >= self.limits.condition_depth:
            most = self.limits.condition_depth
            reason = f"more than {most} conditions ask one for the other (condition_depth)"
            raise sections.fault(reason, error=CONDITION_ERROR)

    def _defined(self, name: str, body: Any) -> bool:
        """Decide a named condition: a boolean or a call, never a bare name."""
        if isinstance(body, bool):
            return body
        tree = self._condition_parser.parse(body)
        value = base.resolve(tree, self._plain_view) if isinstance(tree, Function) else None
        if isinstance(value, bool):
            return value
        way_out = (
            f"write {{not: ...}} or {{and: [...]}} around the name {body!r}"
            if isinstance(body, str)
            else "write true, false or a condition function such as equals"
        )
        raise sections.fault(
            f'The definition of condition "{name}" is invalid: {way_out}', error=CONDITION_ERROR
        )

    def holds(self, condition: Any) -> bool:
        """Decide what stands under the key ``condition`` of a resource or an output."""
        if isinstance(condition, bool):
            return condition
        tree = self._condition_parser.parse(condition)
        value = base.resolve(tree, self._plain_view) if isinstance(tree, Function) else tree
        return value if isinstance(value, bool) else self.condition(value)

    def check_conditions(self) -> None:
        """Refuse wrong ones, those that nothing asks for too.

        Where parameters may miss values, only what is asked for can be decided.
        """
        word = self.template.features.sections.get(Section.CONDITIONS, "")
        for name, body in self.template.section(Section.CONDITIONS).items():
            if self.lenient:
                _under(word, functools.partial(_under, name, self._condition_parser.parse), body)
            else:
                self.condition(name)

    # ---------------------------------------------------------------------------------- resources

    @property
    def resources(self) -> Mapping[str, ResourceDefinition]:
        """The resources whose condition holds."""
        return self._parsed.enabled

    @property
    def disabled(self) -> frozenset[str]:
        return self._parsed.disabled

    @functools.cached_property
    def _parsed(self) -> Parsed:
        section = self.template.section(Section.RESOURCES)
        bodies, reader = sections.Bodies(self.template), _Reader(self)
        for name, body in section.items():
            bodies.check(name, body)
        enabled: dict[str, ResourceDefinition] = {}
        disabled = set()
        for name, body in section.items():
            try:
                found, holds = reader.read(name, body)
            except errors.Misplaced as exc:
                raise exc.under(self.template.word(Section.RESOURCES), name) from exc
            if holds:
                enabled[name] = found
            else:
                disabled.add(name)
        return Parsed(enabled, frozenset(disabled))

    def required(self, name: str) -> Sequence[str]:
        """Tell who must come before a resource; a ``depends_on`` of a disabled one is no matter.

        Raises InvalidTemplateReference.
        """
        if name not in self._required:
            found = self._parsed.enabled[name]
            if found.external_id is not None:
                self._required[name] = ()
            else:
                self._required[name] = (*self._explicit(found), *self._implied(found))
        return self._required[name]

    def _explicit(self, found: ResourceDefinition) -> Iterator[str]:
        enabled, disabled = self._parsed
        for other in found.depends_on:
            if other in enabled:
                yield other
            elif other not in disabled:
                key = self.template.features.resource_keys[Key.DEPENDS_ON]
                word = self.template.word(Section.RESOURCES)
                raise self.wrong_reference(other).under(word, found.name, key)

    def _implied(self, found: ResourceDefinition) -> Iterator[str]:
        enabled = self._parsed.enabled
        for reference in found.references(self._plain_view):
            if reference.resource not in enabled:
                raise self._misplaced_reference(found, reference.resource)
            yield reference.resource

    def wrong_reference(self, name: Any) -> errors.InvalidTemplateReference:
        """The fault of who asks for a resource that is not there."""
        said = f'The specified reference "{name}" is incorrect'
        if isinstance(name, str) and name in self._parsed.disabled:
            why = f"the condition of {name} is false; ask for it in the same condition, with if"
        else:
            why = f"no resource has this name.{errors.nearest(name, self.resources)}"
        return errors.InvalidTemplateReference(reason=f"{said}: {why}")

    def _misplaced_reference(
        self, found: ResourceDefinition, target: str
    ) -> errors.InvalidTemplateReference:
        keys = self.template.features.resource_keys
        exc = self.wrong_reference(target)
        for key, tree in ((Key.PROPERTIES, found.properties), (Key.METADATA, found.metadata)):
            place = _place(tree, target, self._plain_view)
            if place is not None:
                return exc.under(
                    self.template.word(Section.RESOURCES), found.name, keys[key], *place
                )
        return exc.under(self.template.word(Section.RESOURCES), found.name)

    # ------------------------------------------------------------------------------------ outputs

    @functools.cached_property
    def outputs(self) -> Mapping[str, OutputDefinition]:
        """Every output; one that is not enabled is never looked at."""
        section = self.template.section(Section.OUTPUTS)
        for name, body in section.items():
            sections.check_output(self.template, name, body)
        word = self.template.word(Section.OUTPUTS)
        found = {}
        for name, body in section.items():
            try:
                found[name] = self._output(name, body)
            except errors.Misplaced as exc:
                raise exc.under(word, name) from exc
        return found

    def _output(self, name: str, body: Mapping[str, Any]) -> OutputDefinition:
        keys = self.template.features.output_keys
        description = body.get(keys[Key.DESCRIPTION])
        said = NO_DESCRIPTION if description is None else str(description)
        condition = body.get(keys[Key.CONDITION]) if Key.CONDITION in keys else None
        if condition is not None and not _under(keys[Key.CONDITION], self.holds, condition):
            return OutputDefinition(name=name, description=said, enabled=False)
        value = _under(keys[Key.VALUE], self._parser.parse, body[keys[Key.VALUE]])
        return OutputDefinition(
            name=name, value=None if value is ABSENT else value, description=said
        )


class _Reader:
    """Reads the bodies of resources; what is the same for all of them is looked up once."""

    __slots__ = ("_definition", "_parse", "_policies", "_view", "_words")

    def __init__(self, definition: Definition) -> None:
        features = definition.template.features
        self._definition = definition
        self._parse = definition._parser.parse  # noqa: SLF001
        self._view = definition._plain_view  # noqa: SLF001
        self._policies = features.deletion_policies
        nowhere = "\0"  # no document has it: a key that the version does not know is never read
        self._words = {key: features.resource_keys.get(key, nowhere) for key in Key}

    def read(self, name: str, body: Mapping[str, Any]) -> tuple[ResourceDefinition, bool]:
        """Return the definition, and whether its condition holds."""
        words, get = self._words, body.get
        depends_on = get(words[Key.DEPENDS_ON], ())
        external_id = self._tree(words[Key.EXTERNAL_ID], body, None)
        policy = DeletionPolicy.DELETE
        if words[Key.DELETION_POLICY] in body:
            policy = _under(words[Key.DELETION_POLICY], self._policy, body)
        found = ResourceDefinition(
            name=name,
            type=body[words[Key.TYPE]],
            properties=self._tree(words[Key.PROPERTIES], body, {}),
            metadata=self._tree(words[Key.METADATA], body, {}),
            depends_on=(depends_on,) if isinstance(depends_on, str) else tuple(depends_on),
            update_policy=self._tree(words[Key.UPDATE_POLICY], body, {}),
            deletion_policy=policy if external_id is None else DeletionPolicy.RETAIN,
            external_id=external_id,
            description=get(words[Key.DESCRIPTION], ""),
        )
        if external_id is not None and found.depends_on:
            raise errors.InvalidExternalResourceDependency(
                resource_type=found.type, external_id=external_id
            )
        condition = get(words[Key.CONDITION])
        if condition is None:
            return found, True
        return found, _under(words[Key.CONDITION], self._definition.holds, condition)

    def _tree(self, word: str, body: Mapping[str, Any], default: Any) -> Any:
        if word not in body:
            return default
        found = _under(word, self._parse, body[word])
        return default if found is ABSENT else found

    def _policy(self, body: Mapping[str, Any]) -> DeletionPolicy:
        said = base.resolve(self._parse(body[self._words[Key.DELETION_POLICY]]), self._view)
        found = self._policies.get(said) if isinstance(said, str) else None
        if found is None:
            known = ", ".join(self._policies)
            near = errors.nearest(said, self._policies)
            raise sections.fault(f'Invalid deletion policy "{said}": it is one of {known}.{near}')
        return found


def _under(word: str, function: Callable[[Any], T], value: Any) -> T:
    """Call ``function``; its fault is seen from outside of ``word``."""
    try:
        return function(value)
    except errors.Misplaced as exc:
        raise exc.under(word) from exc


def _place(tree: Any, target: str, view: View) -> tuple[str | int, ...] | None:
    """Where in ``tree`` the resource ``target`` is asked for; None if it is not."""
    if isinstance(tree, Function):
        below = _place(tree.args, target, view)
        if below is not None:
            return (tree.name, *below)
        asked = {reference.resource for reference in tree.references(view)}
        return (tree.name,) if target in asked else None
    items: Any = tree.items() if isinstance(tree, dict) else ()
    for key, value in enumerate(tree) if isinstance(tree, list) else items:
        below = _place(value, target, view)
        if below is not None:
            return (key, *below)
    return None


class View:
    """A ``StackView`` (view.py): the definition, and resources that somebody plugs in."""

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
        found = files.get(key) if isinstance(key, str) else None
        if found is None:
            near = errors.nearest(key, files)
            raise sections.fault(f'No content found in the "files" section for {key!r}.{near}')
        return found

    def resource(self, name: str) -> ResourceView:
        found = self._resources.get(name) if isinstance(name, str) else None
        if found is None:
            raise self._definition.wrong_reference(name)
        return found

    def condition(self, name: str) -> bool:
        return self._definition.condition(name)

    def mapping(self, name: str) -> Mapping[str, Any]:
        mappings = self._definition.template.section(Section.MAPPINGS)
        found = mappings.get(name) if isinstance(name, str) else None
        if not isinstance(found, dict):
            raise sections.fault(f"No mapping is called {name!r}.{errors.nearest(name, mappings)}")
        return found


class _Unbuilt(View):
    """What is seen while the template is still being read: no resource can be asked."""

    __slots__ = ()

    def resource(self, name: str) -> ResourceView:
        raise sections.fault(f"resource {name} cannot be asked here: only parameters are known")
