"""The functions of CloudFormation, as far as Heat's dialect of it has them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.template import parse
from bloomery.orchestration.template.functions import (
    base,
    conditions,
    references,
    replacing,
    shapes,
    text,
)
from bloomery.orchestration.template.functions.base import Call
from bloomery.orchestration.template.view import StackView

_MEMBER: Final = re.compile(r"\.member\.(\d{1,18})\.(.*)", re.DOTALL)


class Ref(references.GetResource):
    __slots__ = ()
    summary = "The value of a parameter, or what others know a resource by."

    def check(self) -> None:
        if not isinstance(self.args, str):
            raise self.fault(f"{self.name} takes a name, not {shapes.described(self.args)}")

    def result(self, args: Any, view: StackView) -> Any:
        return view.parameter(args) if view.has_parameter(args) else super().result(args, view)

    def references(self, view: StackView) -> Iterator[base.Reference]:
        if not view.has_parameter(self.args):
            yield from super().references(view)


class RefParameter(Ref):
    """``Ref`` in conditions, which may refer to parameters only."""

    __slots__ = ()
    summary = "The value of a parameter."

    def result(self, args: Any, view: StackView) -> Any:
        if not view.has_parameter(args):
            raise errors.InvalidTemplateReference(
                reason=f"no parameter is called {args!r}, and a condition cannot ask for a resource"
            )
        return view.parameter(args)


class GetAtt(references.GetAttrSelect):
    __slots__ = ()
    summary = "An attribute of a resource."
    form = "a list: the name of a resource and the name of an attribute"
    lengths = range(2, 3)


class Join(text.ListJoinOne):
    __slots__ = ()


class Split(Call):
    __slots__ = ()
    summary = "The list of the parts of a text between delimiters."

    def check(self) -> None:
        if not isinstance(self.args, list) or len(self.args) != 2:
            raise self.fault(f"{self.name} takes a list: a delimiter and a text")

    def result(self, args: Any, view: StackView) -> Any:
        delimiter, whole = args
        if not isinstance(delimiter, str) or not delimiter:
            raise self.fault(
                f"the delimiter of {self.name} is text, not {shapes.described(delimiter)}"
            )
        if not isinstance(whole, str):
            raise self.fault(f"{self.name} splits text, not {shapes.described(whole)}")
        shapes.bound_nodes(whole.count(delimiter) + 1, view.limits)
        return whole.split(delimiter)


class Select(Call):
    """``[index, list]`` or ``[key, map]``; either collection may be given as JSON text."""

    __slots__ = ()
    summary = "One element of a list by its index, or of a map by its key."

    def check(self) -> None:
        if not isinstance(self.args, list) or len(self.args) != 2:
            raise self.fault(f"{self.name} takes a list: an index or key, and a list or map")

    def result(self, args: Any, view: StackView) -> Any:
        index, collection = args
        if isinstance(collection, str):
            try:
                document = {"": json.loads(collection)}
                collection = parse.check(document, view.limits, f"the text in {self.name}")[""]
            except (ValueError, RecursionError) as exc:
                raise self.fault(
                    f"{self.name} reads text as JSON, and {shapes.described(collection)} is none"
                ) from exc
        if collection is None:
            return ""
        if isinstance(collection, dict):
            if not isinstance(index, str):
                raise self.fault(
                    f"{self.name} selects from a map by text, not by {shapes.described(index)}"
                )
            return collection.get(index, "")
        if not isinstance(collection, list):
            raise self.fault(
                f"{self.name} selects from a list or map, not from {shapes.described(collection)}"
            )
        try:
            return collection[int(index)]
        except IndexError:
            return ""
        except (TypeError, ValueError, OverflowError):
            raise self.fault(
                f"{self.name} selects from a list by a whole number, not by "
                f"{shapes.described(index)}"
            ) from None


class Replace(replacing.StrReplaceScalars):
    """``[params, template]``."""

    __slots__ = ()

    def check(self) -> None:
        if not isinstance(self.args, list) or len(self.args) != 2:
            raise self.fault(f"{self.name} takes a list: a map of placeholders and a text")
        if not isinstance(self.args[0], dict | base.Function):
            raise self._no_map(self.args[0])

    def result(self, args: Any, view: StackView) -> Any:
        params, template = args
        return self._replaced(template, params, view.limits)


class Base64(Call):
    """Marks text that a client must encode; the text is not changed."""

    __slots__ = ()
    summary = "The text itself; who uses it encodes it."

    def result(self, args: Any, view: StackView) -> Any:
        if not isinstance(args, str):
            raise self.fault(f"{self.name} takes text, not {shapes.described(args)}")
        return args


class MemberListToMap(Call):
    """``[key name, value name, [".member.0.<key name>=k", ".member.0.<value name>=v"]]``."""

    __slots__ = ()
    summary = "A map of a list of members as query strings write it."

    def check(self) -> None:
        if not isinstance(self.args, list) or len(self.args) != 3:
            raise self.fault(f"{self.name} takes a list: key name, value name, list of members")
        for name in self.args[:2]:
            if not isinstance(name, str):
                raise self.fault(f"the names in {self.name} are text, not {shapes.described(name)}")

    def result(self, args: Any, view: StackView) -> Any:
        key_name, value_name, members = args
        if not isinstance(members, list):
            raise self.fault(
                f"{self.name} takes a list of members, not {shapes.described(members)}"
            )
        parts: dict[int, dict[str, str]] = {}
        for member in members:
            if not isinstance(member, str) or "=" not in member:
                raise self.fault(
                    f"a member in {self.name} is a text .member.0.Name=value, "
                    f"not {shapes.described(member)}"
                )
            name, _, value = member.partition("=")
            if numbered := _MEMBER.fullmatch(name):
                parts.setdefault(int(numbered[1]), {})[numbered[2]] = value
        whole = [item for _, item in sorted(parts.items()) if {key_name, value_name} <= item.keys()]
        return {item[key_name]: item[value_name] for item in whole}


class FindInMap(Call):
    __slots__ = ()
    summary = "A value of the section Mappings, by the name of a map and two keys."

    def check(self) -> None:
        if not isinstance(self.args, list) or len(self.args) != 3:
            raise self.fault(f"{self.name} takes a list: the name of a map, and two keys")

    def result(self, args: Any, view: StackView) -> Any:
        name, *keys = args
        if not isinstance(name, str):
            raise self.fault(f"{self.name} takes the name of a map, not {shapes.described(name)}")
        node: Any = view.mapping(name)
        for key in keys:
            if not isinstance(key, str | int) or not isinstance(node, dict) or key not in node:
                raise self.fault(
                    f"{self.name} finds no key {shapes.described(key)} in map {name!r}"
                )
            node = node[key]
        return node


class GetAZs(Call):
    __slots__ = ()
    summary = "The availability zones of the compute service."

    def result(self, args: Any, view: StackView) -> Any:
        raise self.fault(f"{self.name} asks the compute service for its zones, and there is none")


class ResourceFacade(references.ResourceFacade):
    __slots__ = ()
    METADATA = "Metadata"
    DELETION_POLICY = "DeletionPolicy"
    UPDATE_POLICY = "UpdatePolicy"


class If(conditions.If):
    pass


class Not(conditions.Not):
    """``[condition]``."""

    __slots__ = ()

    def check(self) -> None:
        if not isinstance(self.args, list) or len(self.args) != 1 or self.args[0] in (None, ""):
            raise self.fault(f"{self.name} takes a list of one condition")

    def result(self, args: Any, view: StackView) -> Any:
        return super().result(args[0], view)
