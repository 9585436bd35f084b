"""Functions over lists and maps.

Elements of lists compare as in ``equals``: 1, 1.0 and true are one value, "1" is another.  Maps and
lists compare by a hashable copy, so that long lists cost their length and not its square.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.template.functions import shapes
from bloomery.orchestration.template.functions.base import Call
from bloomery.orchestration.template.view import StackView

_CONTROLS: Final = ("keys", "values")  # of map_replace


def identity(value: Any) -> Hashable:
    """Return a hashable value, equal for equal values."""
    if isinstance(value, list):
        return ("list", *map(identity, value))
    if isinstance(value, dict):
        return ("map", frozenset((key, identity(item)) for key, item in value.items()))
    return value  # type: ignore[no-any-return]


class ListConcat(Call):
    __slots__ = ()
    summary = "The elements of several lists in one."

    def result(self, args: Any, view: StackView) -> Any:
        if not isinstance(args, list):
            raise self.fault(f"{self.name} takes a list of lists, not {shapes.described(args)}")
        lists = [self._items(item) for item in args]
        return [item for each in lists for item in each]

    def _items(self, value: Any) -> list[Any]:
        if not isinstance(value, list | None):
            raise self.fault(f"{self.name} joins lists, not {shapes.described(value)}")
        return value or []


class ListConcatUnique(ListConcat):
    __slots__ = ()
    summary = "The elements of several lists in one, each value once, where it came first."

    def result(self, args: Any, view: StackView) -> Any:
        first: dict[Hashable, Any] = {}
        for item in super().result(args, view):
            first.setdefault(identity(item), item)
        return list(first.values())


class Filter(Call):
    __slots__ = ()
    summary = "A list without the elements that equal one of some values."

    def check(self) -> None:
        if not isinstance(self.args, list) or len(self.args) != 2:
            raise self.fault(f"{self.name} takes a list: the values to leave out, and a list")

    def result(self, args: Any, view: StackView) -> Any:
        values, items = args
        if not isinstance(values, list | None):
            raise self.fault(
                f"{self.name} leaves out a list of values, not {shapes.described(values)}"
            )
        if not isinstance(items, list | None):
            raise self.fault(f"{self.name} works on a list, not on {shapes.described(items)}")
        if items is None or not values:
            return items
        unwanted = set(map(identity, values))
        return [item for item in items if identity(item) not in unwanted]


class Contains(Call):
    __slots__ = ()
    summary = "Whether a list holds a value, or a text another text."

    def check(self) -> None:
        if not isinstance(self.args, list) or len(self.args) != 2:
            raise self.fault(f"{self.name} takes a list: a value, and a list or text to look in")

    def result(self, args: Any, view: StackView) -> Any:
        value, sequence = args
        if not isinstance(sequence, list | str):
            raise self.fault(
                f"{self.name} looks in a list or text, not in {shapes.described(sequence)}"
            )
        if isinstance(sequence, str) and not isinstance(value, str):
            raise self.fault(f"{self.name} finds text in text, not {shapes.described(value)}")
        return value in sequence


class MapMerge(Call):
    __slots__ = ()
    summary = "One map of several; of a key that comes more than once, the last value."

    def result(self, args: Any, view: StackView) -> Any:
        if not isinstance(args, list):
            raise self.fault(f"{self.name} takes a list of maps, not {shapes.described(args)}")
        merged: dict[Any, Any] = {}
        for item in args:
            if not isinstance(item, dict | None):
                raise self.fault(f"{self.name} merges maps, not {shapes.described(item)}")
            merged.update(item or {})
        return merged


class MapReplace(Call):
    __slots__ = ()
    summary = "A map with some of its keys renamed and some of its values replaced."

    def result(self, args: Any, view: StackView) -> Any:
        if not isinstance(args, list) or len(args) != 2:
            raise self.fault(f"{self.name} takes a list: a map, and a map of keys and values")
        source, controls = self._map(args[0]), self._map(args[1])
        if odd := [key for key in controls if key not in _CONTROLS]:
            raise self.fault(
                f"{self.name} is told keys and values to replace, not {shapes.described(odd[0])}."
                f"{errors.nearest(odd[0], _CONTROLS)}"
            )
        keys, values = (self._map(controls.get(control)) for control in _CONTROLS)
        merged: dict[Any, Any] = {}
        for key, value in source.items():
            name = self._renamed(key, source, keys)
            if name in merged:
                raise self.fault(f"{self.name} would give two keys the name {name!r}")
            merged[name] = values.get(value, value) if isinstance(value, Hashable) else value
        return merged

    def _map(self, value: Any) -> dict[Any, Any]:
        if not isinstance(value, dict | None):
            raise self.fault(f"{self.name} works on maps, not {shapes.described(value)}")
        return value or {}

    def _renamed(self, key: Any, source: dict[Any, Any], keys: dict[Any, Any]) -> Any:
        name = keys.get(key)
        if name is None:
            return key
        if not isinstance(name, Hashable):
            raise self.fault(
                f"{self.name} cannot call a key {shapes.described(name)}; name it by text"
            )
        if name in source and name != key:
            raise self.fault(f"{self.name} cannot rename {key!r} to {name!r}: the map has that key")
        return name
