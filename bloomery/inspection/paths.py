"""Paths in plain data: "extra.rack" or "/extra/rack"."""

from __future__ import annotations

from typing import Any, Final

from bloomery import errors, secrets

Json = dict[str, Any]
_MOST_LEVELS: Final = 24


def parse(path: str) -> list[str]:
    """Return the names of a path, separated by slashes if it has one, else by dots.

    Raises Invalid.
    """
    names = path.strip("/").split("/") if "/" in path else path.split(".")
    if not all(names) or len(names) > _MOST_LEVELS:
        raise errors.Invalid(
            reason=f"path {path[:255]!r} takes 1 to {_MOST_LEVELS} names, parted by dots or slashes"
        )
    if secrets.SEALED in names:
        raise errors.Invalid(reason=f"path {path[:255]!r} leads into a secret")
    return names


def get(holder: Any, names: list[str]) -> Any:
    """Return the value at a path, or None.  Raises Invalid inside a secret."""
    for name in names:
        holder = _open(holder, name)
        if isinstance(holder, dict):
            holder = holder.get(name)
        else:
            place = _place(holder, name)
            holder = None if place is None else holder[place]
    return holder


def put(holder: Any, names: list[str], value: Any) -> None:
    """Set the value at a path, creating objects on the way.  Raises Invalid where impossible."""
    for at, name in enumerate(names):
        holder, last = _open(holder, name), at + 1 == len(names)
        if isinstance(holder, dict):
            if last:
                holder[name] = value
            elif holder.get(name) is None:
                holder[name] = {}
            holder = holder[name]
            continue
        place = _place(holder, name)
        if place is None:
            raise errors.Invalid(reason=f"there is no object or list to set {name[:255]!r} in")
        if last:
            holder[place] = value
        holder = holder[place]


def extend(holder: Any, names: list[str], value: Any, *, unique: bool = False) -> None:
    """Append to the list at a path, created if missing; ``unique``: unless it is in there."""
    listed = get(holder, names)
    if listed is None:
        put(holder, names, [value])
    elif not isinstance(listed, list):
        raise errors.Invalid(
            reason=f"{'.'.join(names)[:255]} is no list, but {type(listed).__name__}",
        )
    elif not (unique and value in listed):
        listed.append(value)


def remove(holder: Any, names: list[str]) -> None:
    """Remove the value at a path, if any."""
    holder = get(holder, names[:-1])
    if isinstance(holder, dict):
        _open(holder, names[-1])
        holder.pop(names[-1], None)
    elif (place := _place(holder, names[-1])) is not None:
        del holder[place]


def _open(holder: Any, name: str) -> Any:
    """Return the container.  Raises Invalid for a sealed value."""
    if isinstance(holder, dict) and secrets.SEALED in holder:
        raise errors.Invalid(reason=f"{name[:255]!r} stands inside a secret: set it as a whole")
    return holder


def _place(holder: Any, name: str) -> int | None:
    if isinstance(holder, list) and name.isascii() and name.isdecimal():
        place = int(name[:9])
        return place if place < len(holder) else None
    return None
