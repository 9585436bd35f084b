"""The parameters of a stack: values checked, converted, and shown.

    values = Parameters(schemas, {"size": "5"}, defaults={}, pseudo={"OS::stack_name": "web"})
    values.check()
    values.value("size")  # 5
    values.texts()  # {"size": "5", "OS::stack_name": "web", ...}

A value comes from the parameters of the stack, else from ``parameter_defaults`` of its environment,
else from the declaration.  Null counts as absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from bloomery import errors
from bloomery.orchestration.properties.custom import CONSTRAINT_CONTEXT, ConstraintContext
from bloomery.orchestration.properties.scalars import quoted
from bloomery.orchestration.template import parameter_schemas
from bloomery.orchestration.template.parameter_schemas import Schema

Schemas: TypeAlias = Mapping[str, Schema]


def schemas(section: Any, read: Callable[[str, Any], Schema]) -> dict[str, Schema]:
    """Read a section of declarations, each with ``read``; paths begin below the section."""
    if section is None:
        return {}
    if not isinstance(section, Mapping):
        raise errors.StackValidationFailed(reason="write a map of parameters, each with its type")
    declared = {}
    for name, body in section.items():
        try:
            declared[name] = read(name, body)
        except errors.InvalidSchemaError as exc:
            raise exc.under(str(name)) from exc
    return declared


class Parameters:
    """The values of one stack.  They are immutable; a new pseudo value needs a new object."""

    __slots__ = (
        "_context",
        "_defaults",
        "_pseudo",
        "_tick",
        "_user_values",
        "_values",
        "lenient",
        "schemas",
    )

    def __init__(
        self,
        schemas: Schemas,
        user_values: Mapping[str, Any] | None = None,
        defaults: Mapping[str, Any] | None = None,
        pseudo: Mapping[str, Any] | None = None,
        *,
        lenient: bool = False,
        context: ConstraintContext = CONSTRAINT_CONTEXT,
        tick: Callable[[], None] = lambda: None,
    ) -> None:
        """``lenient``: a missing or invalid value is null, as in ``POST validate``.

        ``tick`` is called before each value is converted, and raises after the deadline.
        """
        self.schemas = schemas
        self.lenient = lenient
        self._user_values = user_values or {}
        self._defaults = defaults or {}
        self._pseudo = pseudo or {}
        self._context = context
        self._tick = tick
        self._values: dict[str, Any] = dict(self._pseudo)

    def value(self, name: str) -> Any:
        """Return the converted value.

        Raises StackValidationFailed for a name that is not declared and for an invalid value,
        UserParameterMissing for a missing one.
        """
        try:
            return self._values[name]
        except KeyError:
            declared = self.schemas.get(name)
        except TypeError:  # a name that has no hash
            name, declared = quoted(name), None
        if declared is None:
            advice = errors.nearest(name, [*self.schemas, *self._pseudo])
            raise errors.StackValidationFailed(
                reason=f"The Parameter ({name}) was not provided. None is declared so.{advice}"
            )
        self._tick()
        raw = self.raw(name)
        if raw is None and not self.lenient:
            raise errors.UserParameterMissing(key=name)
        read = declared.lenient if self.lenient else declared.value
        value = self._values[name] = None if raw is None else read(raw, self._context)
        return value

    def raw(self, name: str) -> Any:
        """Return the value before conversion, or None."""
        for source in (self._user_values, self._defaults):
            if (value := source.get(name)) is not None:
                return value
        return self.schemas[name].default

    def missing(self) -> list[str]:
        """Return the parameters that must be given, and are not."""
        return [name for name in self.schemas if self.raw(name) is None]

    def __contains__(self, name: object) -> bool:
        return name in self.schemas or name in self._pseudo

    def __iter__(self) -> Iterator[str]:
        """Yield the names of all parameters, pseudo parameters first."""
        yield from self._pseudo
        yield from self.schemas

    def check(self) -> None:
        """Refuse undeclared, missing or invalid parameters; if lenient, only undeclared ones."""
        for name in self._user_values:
            if name not in self.schemas:
                advice = errors.nearest(name, self.schemas)
                raise errors.UnknownUserParameter(key=name, advice=advice)
        if not self.lenient:
            for name in self.schemas:
                self.value(name)

    def texts(self) -> dict[str, str]:
        """Return every value as text, as ``parameters`` of a stack has them; hidden ones masked."""
        texts = {name: str(value) for name, value in self._pseudo.items()}
        for name, declared in self.schemas.items():
            texts[name] = declared.text(self.value(name))
        return texts

    def secrets(self) -> Iterator[Any]:
        """Yield the values of hidden parameters, as they were written and as templates see them."""
        for name, declared in self.schemas.items():
            if declared.hidden and (raw := self.raw(name)) is not None:
                yield raw
                yield declared.lenient(raw, self._context)

    def validated(self) -> dict[str, dict[str, Any]]:
        """Return ``Parameters`` of the answer to ``POST validate``."""
        return {
            name: parameter_schemas.document(declared, self._user_values.get(name))
            for name, declared in self.schemas.items()
        }

    def check_immutable(self, before: Parameters) -> None:
        """Refuse an update that changes a parameter of both templates, immutable in the new one."""
        if changed := self.changed_immutables(before):
            raise errors.ImmutableParameterModified(keys=", ".join(changed))

    def changed_immutables(self, before: Parameters) -> list[str]:
        return [
            name
            for name, declared in self.schemas.items()
            if declared.immutable
            and name in before.schemas
            and self.value(name) != before.value(name)
        ]


# ---------------------------------------------------------------------------------- groups


def check_groups(section: Any, declared: Iterable[str]) -> list[Any]:
    """Return ``parameter_groups`` as they were written; each parameter may be in one of them.

    Paths begin below the section.
    """
    if not section:
        return []
    if not isinstance(section, list):
        raise errors.StackValidationFailed(reason="parameter_groups must be a list of maps")
    names, grouped = frozenset(declared), set[str]()
    for group_index, group in enumerate(section):
        members = group.get("parameters") if isinstance(group, Mapping) else None
        if not isinstance(members, list):
            raise errors.StackValidationFailed(
                reason="a group needs parameters: a list of names", path=(group_index,)
            )
        for index, member in enumerate(members):
            reason = ""
            if not isinstance(member, str) or member not in names:
                text = quoted(member)
                reason = f"no parameter is called {text}.{errors.nearest(member, names)}"
            elif member in grouped:
                reason = f"parameter {member!r} is in a group already, and one is the most"
            if reason:
                raise errors.StackValidationFailed(
                    reason=reason, path=(group_index, "parameters", index)
                )
            grouped.add(member)
    return section
