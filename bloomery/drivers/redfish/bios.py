"""BIOS settings as the BMC tells them, with what its registry says of each."""

from __future__ import annotations

import itertools
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from bloomery.drivers import base
from bloomery.drivers.redfish import reading
from bloomery.drivers.redfish.hardware import RedfishInterface
from bloomery.outcome import Done

Json: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[str | None, ...]  # of a registry: the machines that it is for, its name

_FACTS: Final = {  # our name: the registry's
    "attribute_type": "Type",
    "lower_bound": "LowerBound",
    "upper_bound": "UpperBound",
    "min_length": "MinLength",
    "max_length": "MaxLength",
    "read_only": "ReadOnly",
    "reset_required": "ResetRequired",
    "unique": "IsSystemUniqueProperty",
}


class RedfishBios(RedfishInterface, base.Bios):
    def cache_bios_settings(self, task: base.DriverTask) -> Done | None:
        return _told(self.access.read(task, lambda system: settings(system, self.access.documents)))

    def cache_bios_values(self, task: base.DriverTask) -> Done | None:
        """Leave out the registry, unless another machine of the model has read it."""
        known = self.access.documents.find
        return _told(self.access.read(task, lambda system: _settings(system, known)))


def _told(rows: list[Json] | None) -> Done | None:
    return None if rows is None else Done(result={"bios_settings": rows})


def settings(system: Any, documents: reading.Documents) -> list[Json] | None:
    """Return the settings by name; None where the system has no BIOS resource.

    What the registry says of them is left out where there is none, or it cannot be read.  It is
    read once for all machines of a model with the same BIOS.
    """

    def registry(key: Key) -> Json:
        return documents.get(key, lambda: _registry(system, key[-1]))

    return _settings(system, registry)


def _settings(system: Any, registry_of: Callable[[Key], Json | None]) -> list[Json] | None:
    bios = reading.follow(system, system.json, "Bios")
    if not bios:
        return None
    machine = (system.manufacturer, system.json.get("Model"), system.bios_version)
    registry = registry_of((*machine, bios.get("AttributeRegistry"))) or {}
    return [
        {"name": name, "value": _text(value)} | registry.get(name, {})
        for name, value in sorted((bios.get("Attributes") or {}).items())
    ]


def _text(value: Any) -> str | None:
    return value if value is None else str(value)


def _registry(system: Any, name: str | None) -> dict[str, Json]:
    """Return what the attribute registry says, by attribute; {} where there is none.

    It is read by hand: sushy would load every registry that it was shipped with.  Most BMCs file
    it under its name; dozens of files are read one after another only where it is not there.
    """
    files = (system.root.json.get("Registries") or {}).get("@odata.id")
    if not name or not files:
        return {}
    named = f"{files.rstrip('/')}/{urllib.parse.quote(name)}"
    for path in itertools.chain([named], _files(system, named)):
        file = reading.optional(reading.fetch, system, path) or {}
        if name in (file.get("Registry"), file.get("Id")):
            return reading.optional(_entries, system, file) or {}
    return {}


def _files(system: Any, but: str) -> Iterator[str]:
    """The paths of all registry files except ``but``."""
    for file in reading.follow(system, system.root.json, "Registries").get("Members") or ():
        if file["@odata.id"].rstrip("/") != but:
            yield file["@odata.id"]


def _entries(system: Any, file: Json) -> dict[str, Json]:
    places = [place for place in file.get("Location", ()) if place.get("Uri")]
    english = [p for p in places if str(p.get("Language", "en")).startswith("en")]
    if not (places := english or places):
        return {}
    registry = reading.fetch(system, places[0]["Uri"])
    attributes = registry.get("RegistryEntries", {}).get("Attributes", ())
    named = (entry for entry in attributes if entry and entry.get("AttributeName"))
    return {entry["AttributeName"]: _facts(entry) for entry in named}


def _facts(entry: Json) -> Json:
    facts: Json = {name: entry.get(key) for name, key in _FACTS.items()}
    allowed = [value.get("ValueName") for value in entry.get("Value") or ()]
    return facts | {"allowable_values": allowed or None}
