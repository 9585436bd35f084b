"""Functions that read the stack: parameters, resources, files, the parent's resource."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

from bloomery import errors
from bloomery.orchestration.template import view as views
from bloomery.orchestration.template.functions import base, shapes
from bloomery.orchestration.template.functions.base import Call
from bloomery.orchestration.template.view import StackView

_MISSING: Final = object()


def select(value: Any, path: Sequence[Any]) -> Any:
    """Return the value at ``path`` in an attribute; null if it leads nowhere.

    A number is an index into a list or a text, a negative one counts from the end; text is the key
    of a map and nothing else.
    """
    for step in path:
        value = _stepped(value, step)
        if value is _MISSING:
            return None
    return value


def select_loosely(value: Any, path: Sequence[Any]) -> Any:
    """Return the value at ``path`` in a parameter; "" if it leads nowhere.

    As ``select``, but numeric text is an index, too: Heat's templates rely on the difference.
    """
    for step in path:
        number = isinstance(step, str) and not isinstance(value, dict)
        try:
            value = _stepped(value, int(step) if number else step)
        except ValueError:
            return ""
        if value is _MISSING:
            return ""
    return value


def _stepped(value: Any, step: Any) -> Any:
    if not isinstance(value, dict | list | str):
        return _MISSING
    try:
        return value.get(step, _MISSING) if isinstance(value, dict) else value[step]
    except (IndexError, TypeError):  # out of range; no index at all
        return _MISSING


def _check_known(call: Call, names: Any, view: StackView) -> None:
    """Refuse names that come from a resource, because the order of resources follows from names."""
    for reference in base.references(names, view):
        raise call.fault(f"{call.name} cannot take a name from resource {reference.resource!r}")


class GetParam(Call):
    __slots__ = ()
    summary = "The value of a parameter, or what a path into it leads to."

    def result(self, args: Any, view: StackView) -> Any:
        if not args and not isinstance(args, bool | int | float):
            raise self.fault(f"{self.name} needs the name of a parameter")
        if not isinstance(args, str | list):
            raise self.fault(
                f"{self.name} takes a name, or a list of a name and a path into the value, "
                f"not {shapes.described(args)}"
            )
        name, *path = [args] if isinstance(args, str) else args
        if not isinstance(name, str):
            raise self.fault(
                f"the name of a parameter in {self.name} is text, not {shapes.described(name)}"
            )
        return select_loosely(view.parameter(name), path)


class GetResource(Call):
    __slots__ = ()
    summary = "What others know a resource by: its physical id."

    def result(self, args: Any, view: StackView) -> Any:
        return view.resource(self._named(args)).reference_id()

    def validate(self, view: StackView) -> None:
        super().validate(view)
        _check_known(self, self.args, view)

    def references(self, view: StackView) -> Iterator[base.Reference]:
        _check_known(self, self.args, view)
        yield base.Reference(self._named(self.values(view)), None)

    def _named(self, args: Any) -> str:
        if not isinstance(args, str):
            raise errors.InvalidTemplateReference(
                reason=f"{self.name} takes the name of a resource, not {shapes.described(args)}"
            )
        return args


class _Attribute(Call):
    """``[resource, attribute, path...]``; the elements may be calls, the list may not."""

    __slots__ = ()
    form: ClassVar[str] = "a list: the name of a resource, the name of an attribute and a path"
    forms: ClassVar[tuple[type[list[Any] | str], ...]] = (list,)
    lengths: ClassVar[range] = range(2, sys.maxsize)
    passes_path: ClassVar[bool] = True  # to the resource, which may apply it itself

    def check(self) -> None:
        if not isinstance(self.args, self.forms) or len(self.args) not in self.lengths:
            raise self.fault(f"{self.name} takes {self.form}")

    def result(self, args: Any, view: StackView) -> Any:
        resource, attribute, path = self._parts(args)
        seen = view.resource(resource)
        if not seen.ready:
            return None
        if not attribute:
            return dict(seen.attributes())
        if not seen.has_attribute(attribute):
            raise self._unknown(resource, attribute)
        value = seen.attribute(attribute, path if self.passes_path else ())
        if not isinstance(value, views.Walked):
            return select(value, path)
        return value.value if self.passes_path else select(value.value, path)

    def validate(self, view: StackView) -> None:
        super().validate(view)
        resource, attribute = self._names(view)
        try:
            seen = view.resource(resource)
        except errors.InvalidTemplateReference as exc:
            raise self.fault(exc.facts["reason"]) from exc
        if attribute and not seen.has_attribute(attribute):
            raise self._unknown(resource, attribute)

    def references(self, view: StackView) -> Iterator[base.Reference]:
        yield from base.references(self.args, view)
        yield base.Reference(*self._names(view))

    def _names(self, view: StackView) -> tuple[str, str]:
        """Return resource and attribute; the path may refer to a resource and is not resolved."""
        names = self.args[:2] if isinstance(self.args, list) else self.args
        _check_known(self, names, view)
        resource, attribute, _ = self._parts(base.resolve(names, view))
        return resource, attribute

    def _parts(self, args: Any) -> tuple[str, str, list[Any]]:
        """Return resource, attribute ("" for all) and path."""
        resource, *rest = [args] if isinstance(args, str) else args or [None]
        attribute, *path = rest or [""]
        if not isinstance(resource, str):
            raise errors.InvalidTemplateReference(
                reason=f"{self.name} takes the name of a resource first, "
                f"not {shapes.described(resource)}"
            )
        if not isinstance(attribute, str) or (rest and not attribute):
            raise self.fault(
                f"{self.name} takes the name of an attribute after that of the resource, "
                f"not {shapes.described(attribute)}"
            )
        return resource, attribute, path

    def _unknown(self, resource: str, attribute: str) -> errors.StackValidationFailed:
        return self.fault(
            f"The Referenced Attribute ({resource} {attribute}) is incorrect: "
            f"resource {resource!r} has no attribute {attribute!r}"
        )


class GetAttrSelect(_Attribute):
    """2013-05-23: the resource returns the whole value, and the path is applied here."""

    __slots__ = ()
    summary = "An attribute of a resource, or what a path into its value leads to."
    passes_path = False


class GetAttrPath(_Attribute):
    """From 2014-10-16: the resource gets the path and may apply it itself."""

    __slots__ = ()
    summary = "An attribute of a resource, or what a path into its value leads to."


class GetAttr(_Attribute):
    """From 2015-10-15: without the name of an attribute, a map of them all."""

    __slots__ = ()
    summary = "An attribute of a resource, a part of its value, or a map of all its attributes."
    form = (
        "a list: the name of a resource, then the name of an attribute and a path, or nothing more "
        "for a map of all attributes"
    )
    forms = (list, str)
    lengths = range(1, sys.maxsize)


class GetFile(Call):
    __slots__ = ()
    summary = "The text of a file that came with the template."

    def result(self, args: Any, view: StackView) -> Any:
        if not isinstance(args, str):
            raise self.fault(f"{self.name} takes the name of a file, not {shapes.described(args)}")
        return view.file(args)


class ResourceFacade(base.Function):
    """Reads the parent's resource; without a parent it raises StackValidationFailed."""

    __slots__ = ()
    summary = "Metadata or a policy of the resource that this nested template stands for."
    METADATA: ClassVar[str] = "metadata"
    DELETION_POLICY: ClassVar[str] = "deletion_policy"
    UPDATE_POLICY: ClassVar[str] = "update_policy"

    def check(self) -> None:
        sections = (self.METADATA, self.DELETION_POLICY, self.UPDATE_POLICY)
        if not isinstance(self.args, str) or self.args not in sections:
            raise self.fault(
                f"{self.name} takes one of {', '.join(sections)}."
                f"{errors.nearest(self.args, sections)}"
            )

    def resolve(self, view: StackView) -> Any:
        if view.facade is None:
            raise self.fault(f"{self.name} has a value in a nested template only")
        if self.args == self.METADATA:
            return view.facade.metadata()
        if self.args == self.DELETION_POLICY:
            return view.facade.deletion_policy()
        return view.facade.update_policy()
