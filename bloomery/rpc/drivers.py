"""Hardware types and interfaces of living conductors, by name."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Final

from bloomery.model.conductor import Conductor, EnabledInterface

_MOST_SHOWN: Final = 100  # characters of a name in an error


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverFacts:
    """A hardware type in the union of its conductors: interfaces by kind, defaults by kind."""

    name: str
    hosts: tuple[str, ...]
    enabled: dict[str, tuple[str, ...]]
    defaults: dict[str, str | None]


def of_conductors(
    living: Sequence[Conductor],
    served: Mapping[str, Sequence[EnabledInterface]],
) -> dict[str, DriverFacts]:
    """Return the hardware types of the ``living`` conductors; ``served`` is by host name."""
    names = sorted({driver for conductor in living for driver in conductor.drivers})
    facts = {}
    for name in names:
        hosts = tuple(conductor.hostname for conductor in living if name in conductor.drivers)
        interfaces = [i for host in hosts for i in served.get(host, ()) if i.hardware_type == name]
        enabled: dict[str, tuple[str, ...]] = {}
        defaults: dict[str, str | None] = {}
        for kind in sorted({interface.kind for interface in interfaces}):
            of_kind = [i for i in interfaces if i.kind == kind]
            enabled[kind] = tuple(sorted({i.name for i in of_kind}))
            defaults[kind] = next((i.name for i in of_kind if i.default), None)
        facts[name] = DriverFacts(name=name, hosts=hosts, enabled=enabled, defaults=defaults)
    return facts


@functools.cache
def installed_types() -> tuple[str, ...]:
    """Return the names of all installed hardware types, enabled or not."""
    return tuple(sorted(metadata.entry_points(group="bloomery.hardware.types").names))


def absence(driver: str, served: Collection[str]) -> str:
    """Explain why no conductor serves a driver: it is unknown, or not enabled."""
    installed, listed = installed_types(), ", ".join(served)
    if driver in installed:
        return (
            f"driver {driver!r} is installed, but no conductor has it enabled; name it in "
            "[DEFAULT]enabled_hardware_types and restart the conductor; drivers that are "
            f"served: {listed}"
        )
    others = [name for name in installed if name not in served]
    not_enabled = f"; installed, but not enabled: {', '.join(others)}" if others else ""
    return (
        f"driver {shortened(driver)!r} is unknown; drivers that are served: {listed}{not_enabled}"
    )


def shortened(name: str) -> str:
    """Shorten a client's name for an error."""
    return name if len(name) <= _MOST_SHOWN else f"{name[:_MOST_SHOWN]}..."
