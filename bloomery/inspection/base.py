"""The interface of inspection hooks, and reads of the unvalidated data that they get.

A plug-in provides a class without arguments in the entry-point group ``bloomery.inspection.hooks``:

    class Racks(base.Hook):
        requires = ("validate-interfaces",)

        def process(self, inspection: Inspection) -> Changes | None:
            return Changes(extra={"rack": inspection.inventory["system_vendor"]["serial_number"]})
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from bloomery.conf.inspection import Inspector
from bloomery.model.node import Node
from bloomery.model.port import Port

Json = dict[str, Any]
MOST_TEXT: Final = 1024  # characters: above every name, serial number and address


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """The node, its ports and the data; a hook must not change them.

    ``inventory`` has ironic-python-agent's form, but values below its keys are not validated.  The
    node's secrets are sealed.  ``previous``: the inventory of the inspection before, for hooks with
    ``reads_previous``, or None.
    """

    node: Node
    ports: Sequence[Port]
    inventory: Json
    plugin_data: Json
    previous: Json | None
    conf: Inspector


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changes of a hook; other values stay.

    ``properties``, ``extra`` and ``plugin_data`` are merged by key.  None removes a key of
    ``plugin_data`` and ``capabilities``, which are part of properties.  ``new_ports``: fields of
    ports by address; existing addresses are skipped.  ``ports``: fields to set, by the port's
    address.  ``removed_ports``: addresses.
    """

    properties: Mapping[str, Any] = field(default_factory=dict)
    capabilities: Mapping[str, str | None] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    plugin_data: Mapping[str, Any] = field(default_factory=dict)
    new_ports: Mapping[str, Json] = field(default_factory=dict)
    ports: Mapping[str, Json] = field(default_factory=dict)
    removed_ports: Collection[str] = ()


class Hook:
    """One step of processing; both methods are pure.

    ``requires``: hooks that must come before it in the configured list.
    ``reads_previous``: whether it reads ``Inspection.previous``.
    """

    requires: ClassVar[tuple[str, ...]] = ()
    reads_previous: ClassVar[bool] = False

    def preprocess(self, inspection: Inspection) -> Changes | None:
        """Check and prepare the data, before the first ``process`` of any hook.

        Raises HardwareInspectionFailure.
        """
        return None

    def process(self, inspection: Inspection) -> Changes | None:
        """Return the changes of the node.  Raises HardwareInspectionFailure."""
        return None


# ------------------------------------------------------------------ data of an agent or a BMC


def part(data: Any, *path: str) -> Json:
    """Return the object below ``path``, or {}."""
    for name in path:
        data = data.get(name) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def objects(data: Any, name: str) -> list[Json]:
    """Return the objects of the list ``name``; other elements are skipped."""
    listed = data.get(name) if isinstance(data, dict) else None
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []


def text(data: Json, name: str) -> str | None:
    """Return a non-empty text, or None; a text beyond MOST_TEXT is none."""
    value = data.get(name)
    return value if isinstance(value, str) and 0 < len(value) <= MOST_TEXT else None


def number(data: Json, name: str) -> int | None:
    """Return a whole number, also from text, or None."""
    value = data.get(name)
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 19:
        return int(value)
    return value if isinstance(value, int) else None
