"""BIOS settings with their registry's attributes, and changes of them.

A change is checked against the registry, if there is one, and written to the settings resource.  A
restart applies it, unless the BMC shows it at once.  A change to the current value does nothing.
Source: DMTF DSP2046, Bios and AttributeRegistry; DSP0266, settings resource.
"""

from __future__ import annotations

import itertools
import math
import re
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from bloomery import errors
from bloomery.drivers import base, steps
from bloomery.drivers.redfish import reading
from bloomery.drivers.redfish.bmc_write import BiosSetting
from bloomery.drivers.redfish.hardware import RedfishInterface
from bloomery.outcome import Done, Outcome

Json: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[str | None, ...]  # of a registry: maker, model, BIOS version, name

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


_VERSION: Final = re.compile(r"[._]v?[0-9]+([._][0-9]+)*$", re.IGNORECASE)
_SETTINGS: Final = "@Redfish.Settings"
_APPLY_TIME: Final = "@Redfish.SettingsApplyTime"
_BOOLEANS: Final = {"true": True, "false": False, "1": True, "0": False}
_LIKE: Final = {"Boolean": False, "Integer": 0, "String": "", "Enumeration": ""}
_MOST_CHARS: Final = 200
_POST: Final = (  # values of BootProgress during POST; None tells nothing
    "PrimaryProcessorInitializationStarted", "BusInitializationStarted",
    "MemoryInitializationStarted", "SecondaryProcessorInitializationStarted",
    "PCIResourceConfigStarted", "SystemHardwareInitializationComplete",
)  # fmt: skip


class RedfishBios(RedfishInterface, base.Bios):
    def cache_bios_settings(self, task: base.DriverTask) -> Done | None:
        return self._read(task, reads_registry=True)

    def cache_bios_values(self, task: base.DriverTask) -> Done | None:
        """Leave the registry out, unless it is cached for the model."""
        return self._read(task, reads_registry=False)

    def _read(self, task: base.DriverTask, *, reads_registry: bool) -> Done | None:
        """Read the settings with the attributes of their registry, where it is readable."""
        documents = self.access.documents

        def read(system: Any) -> list[Json] | None:
            bios = reading.follow(system, system.json, "Bios")
            if not bios:
                return None
            if reads_registry:
                registry = _registry(system, bios, documents)
            else:
                registry = documents.find(_key(system, bios)) or {}
            return [
                {"name": name, "value": None if value is None else str(value)}
                | registry.get(name, {})
                for name, value in sorted((bios.get("Attributes") or {}).items())
            ]

        rows = self.access.read(task, read)
        return None if rows is None else Done(result={"bios_settings": rows})

    @steps.out_of_band_step(steps.BIOS_SETTINGS)
    def apply_configuration(self, task: base.DriverTask, settings: Any) -> Outcome:
        """Apply these BIOS settings; restart the machine where needed."""
        entries = steps.checked_entries("settings", settings, ("name", "value"))
        values = {entry["name"]: entry["value"] for entry in entries}

        def is_needless(system: Any) -> bool:
            """Return whether the settings have these values now and at the next boot."""
            bios = _bios(system)
            if not _matches(bios, values):
                return False
            following = reading.follow(system, bios.get(_SETTINGS) or {}, "SettingsObject")
            names = [name for name in following.get("Attributes") or () if name in values]
            return _matches(following, {name: values[name] for name in names})

        outcome = BiosSetting(
            access=self.access,
            task=task,
            what=f"set the BIOS configuration of {', '.join(values)[:_MOST_CHARS]}",
            limit_s=self.conf.redfish.boot_mode_config_timeout,
            change=self.unblocked(lambda system: _change(system, self.access.documents, values)),
            is_so=lambda system: _matches(_bios(system), values),
            is_needless=is_needless,
        ).apply()
        return self._read_after(task, outcome)

    @steps.out_of_band_step()
    def factory_reset(self, task: base.DriverTask) -> Outcome:
        """Reset all settings to factory defaults; restart the machine."""

        def is_booted(system: Any) -> bool:
            return (system.json.get("BootProgress") or {}).get("LastState") not in _POST

        outcome = BiosSetting(
            access=self.access,
            task=task,
            what="restore the factory configuration of the BIOS",
            limit_s=self.conf.redfish.boot_mode_config_timeout,
            change=self.unblocked(_reset),
            is_so=is_booted,
            is_needless=lambda system: False,
        ).apply()
        return self._read_after(task, outcome)

    def _read_after(self, task: base.DriverTask, outcome: Outcome) -> Outcome:
        if not isinstance(outcome, Done):
            return outcome
        return self.cache_bios_settings(task) or outcome


def _key(system: Any, bios: Json) -> Key:
    machine = (system.manufacturer, system.json.get("Model"), system.bios_version)
    return (*machine, bios.get("AttributeRegistry"))


def _registry(system: Any, bios: Json, documents: reading.Documents) -> Json:
    """Return the registry's attributes, which machines of one model and BIOS version share."""
    key = _key(system, bios)
    return documents.get(key, lambda: find_registry(system, key[-1]))


def find_registry(system: Any, name: str | None, most: int | None = None) -> dict[str, Json]:
    """Return the registry's attributes by name, or {} where no registry can be read.

    Read without sushy, which would load all registries that it ships.  Most BMCs file the registry
    under its name, some one of another version; otherwise ``most`` files are searched one by one.
    """
    files = (system.root.json.get("Registries") or {}).get("@odata.id")
    if not name or not files:
        return {}
    named = f"{files.rstrip('/')}/{urllib.parse.quote(name)}"

    def paths() -> Iterator[str]:
        """Yield ``named``, the files of other versions, and the rest; listed if ``named`` fails."""
        yield named
        members = reading.follow(system, system.root.json, "Registries").get("Members") or ()
        others = [file["@odata.id"] for file in members if file["@odata.id"].rstrip("/") != named]
        yield from sorted(others, key=lambda path: _stem(path) != _stem(named))

    other_version: Json = {}
    for path in itertools.islice(paths(), most):
        if other_version and _stem(path) != _stem(name):
            break
        file = reading.optional(reading.fetch, system, path) or {}
        names = [each for each in (file.get("Registry"), file.get("Id")) if isinstance(each, str)]
        if name in names:
            return reading.optional(_entries, system, file) or {}
        if _stem(name) in map(_stem, names):
            other_version = other_version or file
    return reading.optional(_entries, system, other_version) or {}


def _stem(name: str) -> str:
    """Return the name of a registry, or of its path, without the version and in small letters."""
    return _VERSION.sub("", urllib.parse.unquote(name.rstrip("/").rpartition("/")[2])).lower()


def _entries(system: Any, file: Json) -> dict[str, Json]:
    places = [place for place in file.get("Location", ()) if place.get("Uri")]
    english = [p for p in places if str(p.get("Language", "en")).startswith("en")]
    if not (places := english or places):
        return {}
    registry = reading.fetch(system, places[0]["Uri"])
    attributes = registry.get("RegistryEntries", {}).get("Attributes", ())
    entries: dict[str, Json] = {}
    for entry in attributes:
        if entry and entry.get("AttributeName"):
            allowed = [value.get("ValueName") for value in entry.get("Value") or ()]
            facts: Json = {name: entry.get(key) for name, key in _FACTS.items()}
            entries[entry["AttributeName"]] = facts | {"allowable_values": allowed or None}
    return entries


# ------------------------------------------------------------------------------- changing them


def _bios(system: Any) -> Json:
    bios = reading.follow(system, system.json, "Bios")
    if not bios:
        raise errors.InvalidParameterValue(
            reason="its BMC shows no BIOS settings: they may need a licence or newer firmware",
        )
    return bios


def _matches(bios: Json, values: Mapping[str, Any]) -> bool:
    current = bios.get("Attributes") or {}
    return all(
        name in current and _converted(value, current[name]) == current[name]
        for name, value in values.items()
    )


def _converted(value: Any, like: Any) -> Any:
    """Return a user's value in the BIOS's type, if it can be converted."""
    if isinstance(like, bool):
        return _BOOLEANS.get(str(value).lower(), value)
    if isinstance(like, int) and not isinstance(value, bool):
        try:
            return int(value)
        except (TypeError, ValueError):
            return value
    return str(value) if isinstance(like, str) and isinstance(value, int | float) else value


def _change(system: Any, documents: reading.Documents, values: Mapping[str, Any]) -> None:
    """Write the settings to the settings resource.  Raises InvalidParameterValue."""
    bios = _bios(system)
    registry = _registry(system, bios, documents)
    current = bios.get("Attributes") or {}
    attributes = {
        name: _checked(name, value, current, registry.get(name)) for name, value in values.items()
    }
    payload: Json = {"Attributes": attributes}
    settings = bios.get(_SETTINGS) or {}
    if "OnReset" in (settings.get("SupportedApplyTimes") or ()):
        payload[_APPLY_TIME] = {"ApplyTime": "OnReset"}
    path = (settings.get("SettingsObject") or bios)["@odata.id"]
    connection = system.root._conn  # noqa: SLF001  sushy would read all registries before
    tag = connection.get(path).headers.get("ETag")
    connection.patch(path, data=payload, etag=tag)


def _checked(name: str, value: Any, current: Json, facts: Json | None) -> Any:
    """Return a value as the BIOS takes it.

    Raises InvalidParameterValue, which names the setting.
    """
    if name not in current and facts is None:
        raise _refused(name, "the BIOS has no such setting")
    facts = facts or {}
    kind = facts.get("attribute_type")
    like = current.get(name)
    value = _converted(value, _LIKE.get(kind or "") if like is None else like)
    allowed = facts.get("allowable_values")
    if facts.get("read_only"):
        raise _refused(name, "it is read only")
    if kind == "Password":
        raise _refused(name, "it is a password, which no BMC shows; set it at the machine")
    if kind == "Enumeration" and allowed and value not in allowed:
        raise _refused(name, f"it takes one of {', '.join(map(str, allowed))}")
    if kind == "Boolean" and not isinstance(value, bool):
        raise _refused(name, "it takes true or false")
    if kind == "Integer":
        _check_bounds(name, value, facts["lower_bound"], facts["upper_bound"], "a whole number")
    if kind == "String":
        length = len(value) if isinstance(value, str) else None
        _check_bounds(name, length, facts["min_length"], facts["max_length"], "a text of a length")
    return value


def _check_bounds(
    name: str, value: int | None, least: int | None, most: int | None, what: str
) -> None:
    low, high = -math.inf if least is None else least, math.inf if most is None else most
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return
    at_least = "" if least is None else f" of at least {least}"
    at_most = "" if most is None else f" of at most {most}"
    raise _refused(name, f"it takes {what}{' and'.join(filter(None, (at_least, at_most)))}")


def _refused(name: str, why: str) -> errors.Failure:
    return errors.InvalidParameterValue(reason=f"cannot set {name} of the BIOS: {why}")


def _reset(system: Any) -> None:
    actions = _bios(system).get("Actions") or {}
    target = (actions.get("#Bios.ResetBios") or {}).get("target")
    if not target:
        raise errors.InvalidParameterValue(
            reason="its BMC offers no reset of the BIOS to what it left the factory with",
        )
    system.root._conn.post(target, data={})  # noqa: SLF001  sushy would read all registries before
