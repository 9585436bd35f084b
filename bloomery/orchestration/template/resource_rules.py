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
KEYS: Final[Mapping[str, tuple[tuple[str, ...], type[errors.Invalid]]]] = {
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
        return {
            key: target
            for key, target in self._bodies.get(name, {}).items()
            if key not in KEYS and key != BASE_URL and (target is None or isinstance(target, str))
        }

    def actions(self, name: str, key: str) -> frozenset[str]:
        """Return the values under ``key``, one of KEYS, in all bodies that match a name."""
        return frozenset(each for body in self._matching(name) for each in _listed(body.get(key)))

    def child_rules(self, name: str) -> dict[str, Any]:
        """Return this section for the child stack of ``name``; its exact name has priority."""
        whole: dict[str, Any] = {}
        for body in reversed([*self._matching(name)]):
            inner = {key: value for key, value in body.items() if isinstance(value, dict)}
            whole = _overlaid(whole, {key: inner[key] for key in inner if key not in KEYS})
        return whole

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
                if len(key) > self._limits.pattern_chars:
                    raise self._limits.exceeded("pattern_chars", "characters", "a pattern of names")
                if key in KEYS and path:
                    _check_actions((*path, key), value)
                elif isinstance(value, dict):
                    waiting.append(((*path, key), value))
                elif key == BASE_URL or value is None:
                    continue
                elif not path or not isinstance(value, str) or not value:
                    reason = "write a map with hooks, restricted_actions, types or resources"
                    raise _fault(reason, (*path, key))


def _check_actions(path: Path, value: Any) -> None:
    allowed, fault = KEYS[path[-1]]
    actions = [] if value is None else value if isinstance(value, list) else [value]
    for action in actions:
        if not isinstance(action, str) or action not in allowed:
            place = errors.spelled(("resource_registry", "resources", *path))
            raise fault(
                reason=f'{place}: "{str(action)[:40]}" is not known: write one or a list of '
                f"{', '.join(allowed)}.{errors.nearest(action, allowed)}"
            )


def _fault(reason: str, path: Path) -> errors.StackValidationFailed:
    return errors.StackValidationFailed(reason=reason, path=path)


def _listed(actions: Any) -> Iterable[str]:
    return actions if isinstance(actions, list) else [actions] if actions else []


def _overlaid(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Join two sections for one nested stack: maps by key, actions as a union, else ``over``."""
    whole = dict(under)
    for key, value in over.items():
        old = whole.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            value = _overlaid(old, value)  # noqa: PLW2901
        elif key in KEYS:
            value = [*dict.fromkeys([*_listed(old), *_listed(value)])]  # noqa: PLW2901
        whole[key] = value
    return whole
