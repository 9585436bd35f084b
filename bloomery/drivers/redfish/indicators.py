"""Indicator lights by Redfish: of the system, its chassis and its drives.

A resource has ``IndicatorLED`` (Lit, Off, Blinking); newer ones have ``LocationIndicatorActive``
(true, false).  Source: DMTF DSP0268; the former is deprecated since 2020.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from bloomery import errors
from bloomery.drivers import base
from bloomery.drivers.redfish import reading

COMPONENTS: Final = ("system", "chassis", "disk")
_LED: Final = "IndicatorLED"
_LOCATION: Final = "LocationIndicatorActive"
_VALUES: Final = {"blinking": "Blinking", "off": "Off", "on": "Lit"}
_STATES: Final = {value: state for state, value in _VALUES.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Light:
    """One light: ``name`` within its component, and its sushy resource."""

    component: str
    name: str
    resource: Any

    @property
    def blinks(self) -> bool:
        return self.resource.json.get(_LED) is not None

    def facts(self) -> base.Indicator:
        states = list(_VALUES) if self.blinks else ["off", "on"]
        return {"readonly": False, "states": states}

    def read(self) -> str:
        document = self.resource.json
        if self.blinks:
            return _STATES.get(document[_LED], "unknown")
        return "on" if document[_LOCATION] else "off"

    def switch(self, state: str) -> None:
        """Set the state.  Raises InvalidParameterValue for a state that the light does not have."""
        allowed = self.facts()["states"]
        if state not in allowed:
            raise errors.InvalidParameterValue(
                reason=f"Invalid state {state[:40]} of {self.name}@{self.component}: "
                f"it takes {', '.join(allowed)}",
            )
        value: Any = _VALUES[state] if self.blinks else state == "on"
        document = {_LED if self.blinks else _LOCATION: value}
        resource = self.resource
        resource._conn.patch(resource.path, data=document, etag=resource._get_etag())  # noqa: SLF001
        resource.invalidate()


def of(system: Any, component: str | None = None) -> Iterator[Light]:
    """Yield the lights of a machine.  Raises InvalidParameterValue for an unknown component."""
    if component not in (None, *COMPONENTS):
        raise errors.InvalidParameterValue(
            reason=f"Invalid component {component[:40]}: redfish has {', '.join(COMPONENTS)}",
        )

    def resources() -> Iterator[tuple[str, str, Any]]:
        if component in (None, "system"):
            yield "system", str(system.uuid or system.identity), system
        for chassis in reading.chassis(system) if component in (None, "chassis") else ():
            yield "chassis", str(chassis.uuid or chassis.identity), chassis
        if component not in (None, "disk"):
            return
        for storage in reading.optional(lambda: list(reading.each(system.storage))) or ():
            for drive in reading.drives([storage]):
                yield "disk", f"{storage.identity}:{drive.identity}", drive

    for kind, name, resource in resources():
        if _LED in resource.json or isinstance(resource.json.get(_LOCATION), bool):
            yield Light(component=kind, name=name, resource=resource)


def find(system: Any, component: str, name: str) -> Light:
    """Return one light.  Raises MissingParameterValue for one that the machine lacks."""
    names = []
    for light in of(system, component):
        if light.name == name:
            return light
        names.append(light.name)
    raise errors.MissingParameterValue(
        reason=f"Unknown indicator {name[:80]} of {component}: "
        f"the machine has {', '.join(names) or 'none'}",
    )
