"""Load a stack from a template file, environments and -P options; keep the texts for messages."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bloomery import errors
from bloomery.cli.template import places
from bloomery.cli.template.files import FileBundle
from bloomery.orchestration.stack import Stack
from bloomery.orchestration.template import environment, merging, versions
from bloomery.orchestration.template.definition import Definition
from bloomery.orchestration.template.dialect import Identity

OF_ENVIRONMENTS: Final = (
    errors.ConflictingMergeStrategyForParam,
    errors.InvalidBreakPointHook,
    errors.InvalidMergeStrategyForParam,
    errors.InvalidRestrictedAction,
)
VALUES: Final = ("parameters", "parameter_defaults")  # sections of environments with values
UNFIT_IN_NAME: Final = re.compile(r"[^A-Za-z0-9_.-]+")
NAME_CHARS: Final = 255
NAME: Final = re.compile(rf"[A-Za-z][A-Za-z0-9_.-]{{0,{NAME_CHARS - 1}}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The arguments of a command about one stack."""

    file: str
    environments: Sequence[str] = ()
    parameters: Sequence[str] = ()  # KEY=VALUE
    name: str | None = None

    @property
    def parameter_values(self) -> dict[str, str]:
        """Return the values of parameters; the last one of a repeated key counts."""
        return parameters(self.parameters)

    @property
    def stack_name(self) -> str:
        """Return the name of the stack, or one made from the file's name."""
        if self.name is not None:
            return self.name
        stem = UNFIT_IN_NAME.sub("-", Path(self.file).stem).strip("-")
        return stem if stem[:1].isalpha() else f"stack-{stem}".rstrip("-")


@dataclass(slots=True, kw_only=True)
class StackLoader:
    """Load a stack.  ``texts``: the texts that were read, by file, to locate faults."""

    source: Source
    bundle: FileBundle = field(default_factory=FileBundle)
    built: Stack | None = None

    @property
    def texts(self) -> Mapping[str, str]:
        return self.bundle.texts

    def stack(self) -> Stack:
        """Build the stack.  Raises the first fault of options, template or environment."""
        name = checked_name(self.source.stack_name)
        document = self.bundle.template(self.source.file)
        files, names = self.bundle.files, self.source.environments
        texts = {each: json.dumps(self.bundle.environment(each)) for each in names}
        kinds = merging.kinds_of(document, files, self.bundle.limits)
        merged_environment = merging.merged(names, texts, kinds, self.bundle.limits)
        template = versions.template_class(document)(document, files, limits=self.bundle.limits)
        definition = Definition(
            template=template,
            environment=environment.Environment.of(merged_environment, limits=self.bundle.limits),
            identity=Identity(name=name),
            user_parameters=self.source.parameter_values,
        )
        self.built = Stack(definition)
        return self.built

    def missing(self) -> list[str]:
        """Return the missing required parameters of the last stack."""
        return [] if self.built is None else self.built.definition.parameters.missing()

    def file_at_fault(self, fault: errors.Failure) -> str:
        """Return the file of a fault: the last environment that has its key, or the template."""
        if isinstance(fault, errors.TemplateUnreadable):
            return self.bundle.reading or self.source.file
        name, path = places.parameter_at_fault(fault), places.path_of(fault)
        if name is not None and name not in self.source.parameter_values:
            files = (self._last_with((section, name)) for section in VALUES)
            return next(filter(None, files), self.source.file)
        if not (isinstance(fault, OF_ENVIRONMENTS) or path[:1] == [environment.REGISTRY]):
            return self.source.file
        environments = self.source.environments
        quoted = [each for each in environments if f"'{each}'" in str(fault)]
        if len(quoted) == 1:
            return quoted[0]
        return self._last_with(path) or ", ".join(environments) or self.source.file

    def _last_with(self, path: Sequence[str | int]) -> str | None:
        having = (
            each
            for each in reversed(self.source.environments)
            if path and places.holds(self.texts.get(each, ""), path)
        )
        return next(having, None)


def checked_name(name: str) -> str:
    """Return ``name`` if Heat accepts it as a stack's name."""
    if not NAME.fullmatch(name):
        raise errors.StackValidationFailed(
            reason=f"cannot call a stack {name!r}: begin with a letter of a to z, go on with "
            f"letters, digits, _, - and dots, {NAME_CHARS} characters at most"
        )
    return name


def parameters(pairs: Sequence[str]) -> dict[str, str]:
    """Return the values of ``-P KEY=VALUE`` options; the last one of a key counts."""
    values = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not (key and equals):
            raise errors.TemplateUnreadable(reason=f"cannot use -P {pair!r}: write -P KEY=VALUE")
        values[key] = value
    return values
