"""The section ``resources`` of a registry: rules for resources by name.

    resources:
      "*_db": {hooks: pre-create, restricted_actions: [update, replace]}
      web: {"OS::Nova::Server": server.yaml}
      nested: {"*_db": {hooks: pre-update}}     # for resources inside of the nested stack

Hooks and restricted actions are given for shell patterns, and all matching patterns count.  Types
are mapped for exact names alone.  Sections for child stacks are checked here, at every depth, and
used when a child stack is created.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.limits import Limits

HOOKS: Final = (
    "pre-create", "pre-update", "pre-delete", "post-create", "post-update", "post-delete",
)  # fmt: skip
RESTRICTED: Final = ("update", "replace")
WORDS: Final[Mapping[str, tuple[tuple[str, ...], type[errors.Invalid]]]] = {
    "hooks": (HOOKS, errors.InvalidBreakPointHook),
    "restricted_actions": (RESTRICTED, errors.InvalidRestrictedAction),
}
BASE_URL: Final = "base_url"  # for the client only
SPECIAL: Final = frozenset("*?[")  # what makes a name a pattern

Path = tuple[str, ...]


class ResourceRules:
    def __init__(self, section: Any, limits: Limits) -> None:
        """``section``: a map, checked here; errors have a path below it."""
        self._limits = limits
        self._check(section)
        self._bodies: dict[str, dict[str, Any]] = {
            name: body for name, body in section.items() if isinstance(body, dict)
        }
        self._patterns = [name for name in self._bodies if not SPECIAL.isdisjoint(name)]
        if len(self._patterns) > limits.registry_patterns:
            raise limits.exceeded("registry_patterns", "patterns of names", "a resource_registry")

    def types(self, name: str) -> dict[str, str | None]:
        """Return the type mapping for the resource of exactly that name."""
        body = self._bodies.get(name, {})
        return {key: target for key, target in body.items() if _is_type(key, target)}

    def hooks(self, name: str) -> frozenset[str]:
        return self._words(name, "hooks")

    def restricted_actions(self, name: str) -> frozenset[str]:
        return self._words(name, "restricted_actions")

    def child_rules(self, name: str) -> dict[str, Any]:
        """Return this section for the child stack of ``name``; its exact name has priority."""
        whole: dict[str, Any] = {}
        for body in reversed([*self._matching(name)]):
            inner = {key: value for key, value in body.items() if isinstance(value, dict)}
            whole = _overlaid(whole, {key: inner[key] for key in inner if key not in WORDS})
        return whole

    def _words(self, name: str, key: str) -> frozenset[str]:
        return frozenset(word for body in self._matching(name) for word in _listed(body.get(key)))

    def _matching(self, name: str) -> Iterator[dict[str, Any]]:
        if (exact := self._bodies.get(name)) is not None:
            yield exact
        for pattern in self._patterns:
            if pattern != name and fnmatch.fnmatchcase(name, pattern):
                yield self._bodies[pattern]

    # --------------------------------------------------------------------------------- checks

    def _check(self, section: Any) -> None:
        """Check all depths without recursion: a document may be deeper than Python's stack."""
        waiting: list[tuple[Path, Any]] = [((), section)]
        while waiting:
            path, body = waiting.pop()
            if not isinstance(body, dict):
                raise _fault("write a map of names of resources", path)
            if len(path) > self._limits.document_depth:
                raise self._limits.exceeded("document_depth", "levels", "a resource_registry")
            for key, value in body.items():
                if not isinstance(key, str):
                    raise _fault(f"a key must be text, not {key!r}: quote it", path)
                self._check_line((*path, key), value, waiting)

    def _check_line(self, path: Path, value: Any, waiting: list[tuple[Path, Any]]) -> None:
        key = path[-1]
        if len(key) > self._limits.pattern_chars:
            raise self._limits.exceeded("pattern_chars", "characters", "a pattern of names")
        if key in WORDS and len(path) > 1:
            _check_words(path, value)
        elif isinstance(value, dict):
            waiting.append((path, value))
        elif key != BASE_URL and value is not None and (len(path) == 1 or not _is_text(value)):
            raise _fault("write a map with hooks, restricted_actions, types or resources", path)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_type(key: str, target: Any) -> bool:
    return key not in WORDS and key != BASE_URL and (target is None or isinstance(target, str))


def _check_words(path: Path, value: Any) -> None:
    allowed, fault = WORDS[path[-1]]
    words = [] if value is None else value if isinstance(value, list) else [value]
    for word in words:
        if not isinstance(word, str) or word not in allowed:
            where = errors.spelled(("resource_registry", "resources", *path))
            raise fault(
                reason=f"{where}: {_shown(word)} is not known: write one or a list of "
                f"{', '.join(allowed)}.{errors.nearest(word, allowed)}"
            )


def _shown(word: Any) -> str:
    return f'"{str(word)[:40]}"'


def _fault(reason: str, path: Path) -> errors.StackValidationFailed:
    return errors.StackValidationFailed(reason=reason, path=path)


def _listed(words: Any) -> Iterable[str]:
    return words if isinstance(words, list) else [words] if words else []


def _overlaid(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Join two sections for one nested stack: maps by key, words as a union, else ``over``."""
    whole = dict(under)
    for key, value in over.items():
        old = whole.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            value = _overlaid(old, value)  # noqa: PLW2901
        elif key in WORDS:
            value = [*dict.fromkeys([*_listed(old), *_listed(value)])]  # noqa: PLW2901
        whole[key] = value
    return whole
