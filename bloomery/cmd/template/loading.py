"""From a template file, environments and -P options to a stack; texts are kept for messages."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bloomery import errors
from bloomery.cmd.template.files import Basket
from bloomery.orchestration.limits import LIMITS
from bloomery.orchestration.stack import Stack
from bloomery.orchestration.template import environment, merging, versions
from bloomery.orchestration.template.definition import Definition

OF_ENVIRONMENTS: Final = (
    errors.ConflictingMergeStrategyForParam,
    errors.InvalidBreakPointHook,
    errors.InvalidMergeStrategyForParam,
    errors.InvalidRestrictedAction,
)
UNFIT_IN_NAME: Final = re.compile(r"[^A-Za-z0-9_.-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What a command was told of one stack."""

    file: str
    environments: Sequence[str] = ()
    parameters: Mapping[str, str] = dataclasses.field(default_factory=dict)
    name: str = ""

    @property
    def stack_name(self) -> str:
        """The name that was given, or one made from the file's."""
        if self.name:
            return self.name
        stem = UNFIT_IN_NAME.sub("-", Path(self.file).stem).strip("-")
        return stem if stem[:1].isalpha() else f"stack-{stem}".rstrip("-")


@dataclass(slots=True, kw_only=True)
class Loaded:
    """A stack that may be built.  ``texts``: what was read, by file, for who locates a fault."""

    source: Source
    basket: Basket

    @property
    def texts(self) -> Mapping[str, str]:
        return self.basket.texts

    def stack(self) -> Stack:
        """Build the stack.  Raises the first fault of template or environment."""
        document = self.basket.template(self.source.file)
        surroundings = self._environment(document)
        files = self.basket.files
        template = versions.template_class(document)(document, files, limits=self.basket.limits)
        definition = Definition(
            template,
            environment.Environment.of(surroundings, limits=self.basket.limits),
            name=self.source.stack_name,
            given=self.source.parameters,
        )
        return Stack(definition)

    def file_at_fault(self, fault: errors.Failure) -> str:
        """The file whose text a fault is about."""
        if isinstance(fault, OF_ENVIRONMENTS):
            return ", ".join(self.source.environments)
        if isinstance(fault, errors.Misplaced) and fault.path[:1] == (environment.REGISTRY,):
            return ", ".join(self.source.environments)
        unread = isinstance(fault, errors.TemplateUnreadable) and self.basket.reading
        return self.basket.reading if unread else self.source.file

    def _environment(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Merge the environment files in their order."""
        texts = {
            name: json.dumps(self.basket.environment(name)) for name in self.source.environments
        }
        kinds = merging.kinds_of(document, self.basket.files, self.basket.limits)
        return merging.merged(self.source.environments, texts, kinds, self.basket.limits)


def load(source: Source) -> Loaded:
    return Loaded(source=source, basket=Basket(LIMITS))


def parameters(pairs: Sequence[str]) -> dict[str, str]:
    """Return the values of ``-P KEY=VALUE`` options; the last one of a key counts."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise errors.Invalid(reason=f"cannot use -P {pair!r}: write -P NAME=VALUE")
        found[key] = value
    return found
