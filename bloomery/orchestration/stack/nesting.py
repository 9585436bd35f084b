"""Nested stacks: their templates, their depth, and the number of their resources.

A stack and its nested stacks share one ``Tree``.  A template of ``files`` is parsed once, however
many resources use it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bloomery import errors
from bloomery.orchestration.limits import Limits
from bloomery.orchestration.resources import base, nested
from bloomery.orchestration.template import parse, versions
from bloomery.orchestration.template.dialect import Template


@dataclass(slots=True)
class Tree:
    """The templates and the counts that the stacks of one tree share.

    ``unread``: the reason why a template is missing from ``files``, by its key.
    """

    limits: Limits
    files: Mapping[str, str]
    unread: Mapping[str, str] = field(default_factory=dict)
    resources: int = 0  # counted so far
    external_ids: dict[str, str] = field(default_factory=dict)  # checked so far: id -> resource
    timeout_mins: int = 0  # the longest default_timeout_mins of their kinds
    _templates: dict[str, Template] = field(default_factory=dict)
    _kinds: dict[tuple[Any, ...], type[nested.NestedStack]] = field(default_factory=dict)

    def forget(self) -> None:
        """Forget what validation has counted."""
        self.resources = 0
        self.external_ids.clear()

    def count(self, more: int) -> None:
        """Add resources.  Raises RequestLimitExceeded beyond the limit; -1 is none."""
        self.resources += more
        if 0 <= self.limits.resources < self.resources:
            what = f"a stack of {self.resources} resources or more"
            raise self.limits.exceeded("resources", "resources", what)

    def deepen(self, depth: int, sources: Sequence[str] = ()) -> int:
        """Return the depth of a child.  Raises RequestLimitExceeded.

        ``sources``: the templates of its parents and its own, outermost first.
        """
        if depth >= self.limits.nested_depth:
            what = f"stacks {depth + 1} deep inside each other"
            *parents, last = sources or [""]
            if last in parents:
                shortest = parents[-1 - parents[::-1].index(last) :]
                what += f", for {last} contains itself ({' -> '.join([*shortest, last])})"
            raise self.limits.exceeded("nested_depth", "levels", what)
        return depth + 1

    def kind(
        self,
        source: str,
        facade: tuple[str, type[base.Resource]] | None,
        defaults: Mapping[str, Any],
    ) -> type[nested.NestedStack]:
        """Return the kind of the template under the key ``source`` of the files."""
        key = (source, facade, frozenset((name, each is None) for name, each in defaults.items()))
        if key not in self._kinds:
            self._kinds[key] = nested.kind_of(
                self.template(source), source, facade=facade, defaults=defaults
            )
        return self._kinds[key]

    def template(self, source: str) -> Template:
        """Return the template under a key of the files.

        Raises StackValidationFailed for a missing or unreadable one, and InvalidTemplateVersion.
        """
        if source not in self._templates:
            self._templates[source] = self.template_of(self._read(source))
        return self._templates[source]

    def _read(self, source: str) -> dict[str, Any]:
        text = self.files.get(source)
        if text is None:
            near = errors.nearest(source, self.files)
            why = self.unread.get(source, f"no such file came with the template.{near}")
            raise errors.StackValidationFailed(
                reason=f'Could not fetch remote template "{source}": {why}'
            )
        name = f"template {source}"
        try:
            document = parse.document(text, self.limits, name)
        except errors.TemplateUnreadable as exc:
            reason = str(exc)
            if reason.startswith(name):
                reason = f"it{reason.removeprefix(name)}"
            raise errors.StackValidationFailed(reason=f"Error parsing {name}: {reason}") from exc
        if not versions.has_version(document):
            raise errors.StackValidationFailed(
                reason=f"Template format version not found in {source}: {versions.ADVICE}"
            )
        return document

    def template_of(self, document: Mapping[str, Any]) -> Template:
        """Return the template of a document that is part of this tree."""
        return versions.template_class(document)(document, self.files, limits=self.limits)
