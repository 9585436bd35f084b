"""JSON patch on a value: apply the operations, and check the result.

    prepared = patcher.prepare(patch, sealer, Limits.of(conf))     # before the transaction
    changed = patcher.apply(node, prepared)                        # inside, on the row just read

The work inside the transaction is linear in the patch and the value: the touched fields are copied
once and changed in place.  A path may end at a secret, never lead inside it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from typing import Any, Final

import jsonpatch
import jsonpointer
import orjson

from bloomery import errors, secrets
from bloomery.conf import Conf
from bloomery.db import rows
from bloomery.model.fields import patchable
from bloomery.model.rules import attributes
from bloomery.model.rules.attributes import Checker
from bloomery.secrets import Sealer

Json = dict[str, Any]

_MISFITS: Final = (
    jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError, KeyError,
    IndexError, ValueError,
)  # fmt: skip
_MISFIT: Final = {
    "add": "there is no object or list above that place, or it takes no such key or index",
    "replace": "there is nothing at that place; add it",
    "remove": "there is nothing at that place",
}
_MOST_SHOWN: Final = 255  # characters of a path in an error
_KIB: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The size and depth to which patches may let one object grow: those of a request body.

    ``depth`` counts from the object that holds the field.
    """

    depth: int
    size_kib: int

    @classmethod
    def of(cls, conf: Conf) -> Limits:
        return cls(depth=conf.api.max_json_body_depth, size_kib=conf.api.max_json_body_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One parsed operation with sealed secrets."""

    verb: str
    label: str
    segments: tuple[str, ...]
    patch: jsonpatch.JsonPatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A checked patch, which may be applied several times; ``roots``: the fields it touches."""

    operations: tuple[Operation, ...]
    roots: frozenset[str]
    limits: Limits
    sealer: Sealer


class Patcher:
    """Applies patches to the patchable fields of one noun."""

    def __init__(self, checker: Checker, noun: type) -> None:
        """``noun``: the dataclass whose defaults replace removed fields."""
        self._checker = checker
        self._patchable = tuple(sorted(patchable(checker.fields)))
        self._secret = frozenset(n for n in self._patchable if checker.fields[n].secret)
        self._defaults: Json = {}  # None of required fields
        for field in dataclasses.fields(noun):
            if field.default_factory is not MISSING:
                self._defaults[field.name] = field.default_factory()
            else:
                is_required = field.default is MISSING
                self._defaults[field.name] = None if is_required else field.default

    # ------------------------------------------------------------------ before the transaction

    def prepare(self, patch: Sequence[Json], sealer: Sealer, limits: Limits) -> Prepared:
        """Parse the operations and seal their secrets.

        Raises PatchError for a path into a secret, InvalidParameterValue for a value that looks
        sealed.
        """
        operations = []
        for op in patch:
            segments = tuple(map(jsonpointer.unescape, op["path"].lstrip("/").split("/")))
            label, sealed = f"{op['op']} {op['path'][:_MOST_SHOWN]}", op
            if "value" in op:
                attributes.refuse_sealed(op["value"], op["path"][:_MOST_SHOWN])
            if segments[0] in self._secret:
                _refuse_inside_secret(segments, label)
                if "value" in op and len(segments) == 1:
                    sealed = op | {"value": sealer.seal(op["value"])}
                elif "value" in op:
                    sealed = op | {"value": sealer.seal_under(segments[-1], op["value"])}
            parsed = jsonpatch.JsonPatch([sealed])
            operations.append(
                Operation(verb=op["op"], label=label, segments=segments, patch=parsed)
            )
        roots = frozenset(operation.segments[0] for operation in operations)
        return Prepared(operations=tuple(operations), roots=roots, limits=limits, sealer=sealer)

    # ------------------------------------------------------------------ inside the transaction

    def apply(self, value: Any, patch: Prepared) -> Json:
        """Return the changed fields with their new values; ``value`` stays as it is.

        Raises PatchError, InvalidParameterValue.
        """
        before = {name: getattr(value, name) for name in self._patchable}
        roots, changed = patch.roots & before.keys(), {}
        copies = {name: rows.load(rows.dump(before[name])) for name in roots}
        document: Json = before | copies
        for operation in patch.operations:
            _refuse_inside_sealed(document, operation)
            try:
                operation.patch.apply(document, in_place=True)
            except _MISFITS:
                # Without the cause, whose message contains values of the document.
                reason = _MISFIT[operation.verb]
                raise errors.PatchError(patch=operation.label, reason=reason) from None
        for name in roots:
            new = document.get(name)
            if isinstance(new, dict | list):
                _check_size(name, new, patch.limits)
            new = self._defaults.get(name) if new is None else self._checker.cleaned(name, new)
            if name in self._secret:
                new = patch.sealer.seal(new)
            if new != before[name]:
                changed[name] = new
        return changed


def _refuse_inside_secret(segments: Sequence[str], label: str) -> None:
    for place, name in enumerate(segments[1:-1], start=1):
        if secrets.is_secret_key(name):
            raise _inside_secret(segments[: place + 1], label)


def _inside_secret(segments: Sequence[str], label: str) -> errors.PatchError:
    name = "/".join(segments)[:_MOST_SHOWN]
    return errors.PatchError(patch=label, reason=f"/{name} is a secret: replace it as a whole")


def _refuse_inside_sealed(document: Any, operation: Operation) -> None:
    """Refuse a path into a sealed value, also under a key that is not a secret's."""
    for place, name in enumerate(operation.segments[:-1]):
        if isinstance(document, dict):
            document = document.get(name)
        elif isinstance(document, list) and name.isdecimal() and int(name) < len(document):
            document = document[int(name)]
        else:
            return
        if isinstance(document, dict) and secrets.SEALED in document:
            raise _inside_secret(operation.segments[: place + 1], operation.label)


def _check_size(name: str, value: Any, limits: Limits) -> None:
    """Refuse a value deeper or larger than a request body may be."""
    level = [value]  # without recursion, as a patch can nest deeply
    for _ in range(limits.depth - 1):
        level = [
            inner
            for container in level
            if isinstance(container, dict | list)
            for inner in (container.values() if isinstance(container, dict) else container)
        ]
        if not any(isinstance(inner, dict | list) for inner in level):
            break
    else:
        raise errors.PatchError(
            patch=f"/{name}",
            reason=f"{name} would nest deeper than {limits.depth} levels; option "
            "[api]max_json_body_depth",
        )
    if len(orjson.dumps(value)) > limits.size_kib * _KIB:
        raise errors.PatchError(
            patch=f"/{name}",
            reason=f"{name} would be larger than {limits.size_kib} KiB; option "
            "[api]max_json_body_size",
        )
