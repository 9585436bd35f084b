"""Several environment files as one environment.

    document = merged(["base.yaml", "site.yaml"], files, kinds_of(template, files))

A later file wins, key by key, over an earlier one.  For values of parameters a file may say
otherwise in ``parameter_merge_strategies``: *merge* joins texts and lists, adds numbers and updates
maps; *deep_merge* also merges the maps inside.  The first file with a value for a parameter sets
its strategy.  A later file that names another strategy for this parameter is refused; a ``default``
in it has no effect.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.limits import LIMITS, Limits
from bloomery.orchestration.template import environment, files, parse
from bloomery.orchestration.template.parameter_types import CFN_NAMES, ParameterType, convert

OVERWRITE: Final = "overwrite"
MERGE: Final = "merge"
DEEP_MERGE: Final = "deep_merge"
STRATEGIES: Final = (OVERWRITE, MERGE, DEEP_MERGE)
DEFAULT: Final = "default"
VALUES: Final = (environment.PARAMETERS, environment.DEFAULTS)

TYPES: Final[Mapping[str, ParameterType]] = {
    **{kind.value: kind for kind in ParameterType},
    **{name: kind for kind, name in CFN_NAMES.items()},
}


class _Unmergeable(Exception):
    """Two values that their type cannot join."""


def merged(
    names: Sequence[str],
    texts: Mapping[str, str],
    kinds: Mapping[str, ParameterType],
    limits: Limits = LIMITS,
) -> dict[str, Any]:
    """Return one document with every section, from the files called ``names`` in that order.

    ``kinds``: of every parameter that any template of the tree declares.  Raises
    StackValidationFailed for a file that is missing, TemplateUnreadable,
    ConflictingMergeStrategyForParam, InvalidMergeStrategyForParam, RequestLimitExceeded.
    """
    if len(names) > limits.environment_files:
        raise limits.exceeded("environment_files", "files", "environment_files")
    merge, source, size = _Merge(kinds, limits), files.Files(texts), 0
    for name in names:
        text = source.text(name)
        size += len(text)
        if size > limits.environment_bytes:
            raise limits.exceeded("environment_bytes", "bytes", "the environment files")
        label = f"environment file {name[:100]}"
        try:
            document = parse.document(text, limits, f"the {label}", may_be_empty=True)
            environment.checked(document)
        except errors.Misplaced as exc:
            raise exc.under(error=label) from exc
        merge.add(name, document)
    return merge.sections


def over(stored: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``document`` laid over ``stored``, key by key, as PATCH does to an environment."""
    merge = _Merge({}, LIMITS)
    for each in (stored, document):
        for name, section in environment.checked(dict(each)).items():
            merge.lay(name, section)
    return merge.sections


def kinds_of(
    document: Mapping[str, Any], texts: Mapping[str, str], limits: Limits = LIMITS
) -> dict[str, ParameterType]:
    """Return the kind of every parameter that the template or one of the files declares.

    The template's own declaration counts before that of a file.  Files that are no templates are
    skipped: if a stack uses one, reading it fails there.
    """
    bodies = [*files.declarations(texts, limits), *files.declared(document)]
    types = {name: str(body.get("type", body.get("Type"))) for name, body in bodies}
    return {name: TYPES[text] for name, text in types.items() if text in TYPES}


class _Merge:
    """The result of merging the files so far."""

    def __init__(self, kinds: Mapping[str, ParameterType], limits: Limits) -> None:
        self.sections: dict[str, Any] = {
            name: shape()
            for name, shape in environment.SECTIONS.items()
            if name != environment.STRATEGIES
        }
        self._kinds = kinds
        self._limits = limits
        self._settled: dict[str, str] = {}  # strategies by parameter

    def add(self, file: str, document: Mapping[str, Any]) -> None:
        strategies = document.get(environment.STRATEGIES, {})
        for section, content in document.items():
            if section not in VALUES:
                self.lay(section, content)
                continue
            older = self.sections[section]
            is_first = not older
            for name, value in content.items():
                if value is None:
                    continue
                if name in self._kinds:
                    strategy = self._strategy(file, name, strategies)
                    older[name] = self._joined(name, strategy, older.get(name), value)
                elif is_first:
                    older[name] = value

    def lay(self, section: str, content: Any) -> None:
        """Let ``content`` win key by key; null is ignored, and lists are joined."""
        if section == environment.STRATEGIES:
            return
        if isinstance(content, list):
            items = {json.dumps(one): one for one in [*self.sections[section], *content]}
            self.sections[section] = [*items.values()]  # each once
        else:
            values = {key: value for key, value in content.items() if value is not None}
            self.sections[section].update(values)

    def _strategy(self, file: str, name: str, strategies: Mapping[str, Any]) -> str:
        own, default = strategies.get(name), strategies.get(DEFAULT)
        settled = self._settled.get(name)
        if settled is None:
            settled = next((one for one in (own, default) if one in STRATEGIES), OVERWRITE)
            self._settled[name] = settled
        elif own in STRATEGIES and own != settled:
            raise errors.ConflictingMergeStrategyForParam(strategy=own, param=name, env_file=file)
        return settled

    def _joined(self, name: str, strategy: str, old: Any, new: Any) -> Any:
        if old is None or strategy == OVERWRITE:
            return new
        try:
            return self._of_kind(self._kinds[name], strategy, old, new)
        # OverflowError: integers beyond the range of floats
        except (_Unmergeable, errors.StackValidationFailed, OverflowError) as exc:
            raise errors.InvalidMergeStrategyForParam(strategy=strategy, param=name) from exc

    def _of_kind(self, kind: ParameterType, strategy: str, old: Any, new: Any) -> Any:
        """Return the two values of one kind joined.  Raises _Unmergeable."""
        if kind is ParameterType.BOOLEAN or isinstance(old, bool) or isinstance(new, bool):
            raise _Unmergeable
        pair = convert(kind, old, self._limits), convert(kind, new, self._limits)
        if kind is ParameterType.JSON:
            return _deep(*pair) if strategy == DEEP_MERGE else _shallow(*pair)
        whole = pair[0] + pair[1]
        if kind is ParameterType.LIST:
            return ",".join(whole) if isinstance(old, str) and isinstance(new, str) else whole
        if kind is ParameterType.NUMBER and not math.isfinite(whole):
            raise _Unmergeable
        if isinstance(old, dict | list) or isinstance(new, dict | list):
            raise _Unmergeable
        return whole


def _shallow(old: Any, new: Any) -> Any:
    """Update a map or extend a list; empty text is an empty document."""
    if not old or not new:
        return old or new
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **{key: value for key, value in new.items() if value is not None}}
    if isinstance(old, list) and isinstance(new, list):
        return [*old, *new]
    raise _Unmergeable


def _deep(old: Any, new: Any) -> Any:
    """Merge maps recursively, extend lists and texts; of other values the later one wins."""
    if old is None or new is None:
        return old if new is None else new
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **{key: _deep(old.get(key), value) for key, value in new.items()}}
    if isinstance(old, list) and isinstance(new, list):
        return [*old, *new]
    if isinstance(old, str) and isinstance(new, str):
        return old + new
    if isinstance(old, dict | list) or isinstance(new, dict | list):
        raise _Unmergeable
    return new
