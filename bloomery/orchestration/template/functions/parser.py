"""Turn a part of a document into a tree: every map that is a call becomes a Function.

A map is a call when it has exactly one key and the key is a function of the template's version.
Anything else is data, function names that the version does not have yet included.  A function that
the version has dropped is refused.  Arguments are parsed first; a *macro* (``if``) gets its
arguments unparsed, so that the branch not taken is never parsed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from bloomery import errors
from bloomery.orchestration.template.functions.base import ABSENT, Function
from bloomery.orchestration.template.view import StackView


class Macro:
    """A function that is expanded while parsing; its result takes the place of the call."""

    summary: ClassVar[str] = ""  # one line for ``template_versions/{version}/functions``

    @classmethod
    def expand(cls, name: str, args: Any, parser: Parser) -> Any:
        """Return the tree that takes the place of the call; ABSENT drops the place."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Removed:
    """A function that the version has dropped: using it is an error."""

    summary: str = ""
    reason: str = "not supported in this version of HOT"


Callable: TypeAlias = type[Function] | type[Macro] | Removed


@dataclass(frozen=True, slots=True, kw_only=True)
class Parser:
    """``functions``: those of the version; ``view``: for macros alone."""

    functions: Mapping[str, Callable]
    conditions: Mapping[str, Callable]  # those allowed in conditions
    view: StackView

    def parse(self, snippet: Any) -> Any:
        """Return the tree of ``snippet``; ABSENT where a macro dropped all of it."""
        if isinstance(snippet, list):
            items = [self._at(index, value) for index, value in enumerate(snippet)]
            return [item for item in items if item is not ABSENT]
        if not isinstance(snippet, dict):
            return snippet
        if len(snippet) == 1:
            ((name, args),) = snippet.items()
            function = self.functions.get(name)
            if isinstance(function, Removed):
                raise errors.StackValidationFailed(
                    reason=f"The function {name} is {function.reason}.", path=(name,)
                )
            if function is not None:
                try:
                    if issubclass(function, Macro):
                        return function.expand(name, args, self)
                    return function(name, self.parse(args))
                except errors.Misplaced as exc:
                    raise exc.under(name) from exc
        tree = {key: self._at(key, value) for key, value in snippet.items()}
        return {key: value for key, value in tree.items() if value is not ABSENT}

    def _at(self, key: str | int, value: Any) -> Any:
        if not isinstance(value, dict | list):
            return value
        try:
            return self.parse(value)
        except errors.Misplaced as exc:
            raise exc.under(key) from exc
