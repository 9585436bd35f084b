"""JSON patches: patchable attributes by version, and the form of each operation.

The conductor applies the patch to the row under the lock; these checks need no row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from bloomery import errors
from bloomery.model.rules import attributes

Json = dict[str, Any]
Patch = list[Json]

PATH: Final = re.compile(r"(/([\w-]|~[01])+)+")  # ~1 is a slash in a key, ~0 a tilde
MOST_OPERATIONS: Final = 1000  # they are applied inside a transaction that blocks other writers
_MOST_SHOWN: Final = 255  # characters of a path in an error


def root_of(operation: Json) -> str:
    """Return the first segment of an operation's path: the attribute."""
    return str(operation["path"]).split("/")[1]


def roots(patch: Patch) -> set[str]:
    return {root_of(operation) for operation in patch}


def is_whole(operation: Json) -> bool:
    """Does the operation change a whole attribute?"""
    return str(operation["path"]).count("/") == 1


def check_form(patch: Patch) -> None:
    """Refuse invalid patches: too many operations, malformed paths, a missing value."""
    if len(patch) > MOST_OPERATIONS:
        raise errors.Invalid(
            reason=f"Schema error for patch: it has {len(patch)} operations and may have at most "
            f"{MOST_OPERATIONS} operations: send several patches, or replace objects as a whole",
        )
    for operation in patch:
        if PATH.fullmatch(operation["path"]) is None:
            raise errors.Invalid(
                reason=f"Schema error for patch: path {operation['path'][:_MOST_SHOWN]!r} must be "
                "/name or /name/key, of letters, digits, _, -, ~1 for / and ~0 for ~",
            )
        if operation["op"] != "remove" and "value" not in operation:
            raise errors.Invalid(
                reason=f"Schema error for patch: {operation['op']} of "
                f"{operation['path'][:_MOST_SHOWN]} "
                "needs a value",
            )


def check_roots(patch: Patch, allowed: Iterable[str]) -> None:
    """Refuse attributes that may not be patched."""
    may = set(allowed)
    for operation in patch:
        if root_of(operation) not in may:
            raise errors.Invalid(
                reason=f"Cannot patch {operation['path'][:_MOST_SHOWN]}. "
                f"Only the following can be updated: {', '.join(sorted(may))}",
            )


def refuse_sealed(patch: Patch) -> None:
    for operation in patch:
        attributes.refuse_sealed(operation.get("value"), operation["path"][:_MOST_SHOWN])


def last_values(patch: Patch) -> Json:
    """Return the final value of each attribute that is set as a whole; None if removed."""
    return {
        root_of(operation): operation.get("value") if operation["op"] != "remove" else None
        for operation in patch
        if is_whole(operation)
    }
