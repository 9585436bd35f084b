"""Functions over maps."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.template.functions import shapes
from bloomery.orchestration.template.functions.base import Call
from bloomery.orchestration.template.view import StackView

_CONTROLS: Final = ("keys", "values")


class MapMerge(Call):
    __slots__ = ()
    says = "One map of several; of a key that comes more than once, the last value."

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
    says = "A map with some of its keys renamed and some of its values replaced."

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
