"""The contract for drivers of switches: the settings of ports and LAGs, as values.

    shown = driver.read(switch, wanted, timeout_s=30)
    if contract.differences(wanted, shown):
        driver.order(switch, wanted, timeout_s=30)

A LAG is a link aggregation group; its members are the ports that name it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from bloomery import errors

LEAST_VLAN: Final = 1
MOST_VLAN: Final = 4094
MODES: Final = ("access", "trunk", "hybrid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """What a port carries.

    ``mode``: access, trunk, or None: what its LAG carries.  ``vlans``: all of a trunk, with the
    native one; a hybrid port is a trunk.  ``mtu``: None leaves it as it is.
    """

    mode: str | None = None
    native_vlan: int | None = None
    vlans: frozenset[int] = frozenset()
    mtu: int | None = None
    lag: str | None = None

    def __str__(self) -> str:
        text = f"LAG {self.lag}" if self.lag else "no VLAN"
        if self.mode == "trunk":
            native = f", native {self.native_vlan}" if self.native_vlan else ""
            text = f"trunk of VLAN {ranges(self.vlans) or 'none'}{native}"
        elif self.native_vlan is not None:
            text = f"VLAN {self.native_vlan}"
        return text + (f", MTU {self.mtu}" if self.mtu else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """What a LAG carries.  ``aggregation``: lacp, static, or None: as it is, lacp if it is new."""

    carries: Port
    aggregation: str | None = None

    def __str__(self) -> str:
        return f"{self.carries}{f', {self.aggregation}' if self.aggregation else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Ports and LAGs of one switch by name.  None: there is no such LAG."""

    ports: Mapping[str, Port] = field(default_factory=dict)
    lags: Mapping[str, Lag | None] = field(default_factory=dict)

    @property
    def vlans(self) -> frozenset[int]:
        """Every VLAN that is carried."""
        carried = [*self.ports.values(), *(lag.carries for lag in self.lags.values() if lag)]
        native = {port.native_vlan for port in carried if port.native_vlan is not None}
        return frozenset(native).union(*(port.vlans for port in carried))


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """One switch of the file of switches.  ``allowed_vlans``: None: all."""

    name: str
    address: str
    driver_type: str = "generic-switch"
    device_type: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    enable_secret: str = field(default="", repr=False)
    key_file: str = ""
    known_hosts_file: str = ""
    port: int | None = None
    mac_address: str = ""
    persist: bool = False
    manage_vlans: bool = True
    verify_ca: str = "True"
    allowed_vlans: frozenset[int] | None = None

    def facts(self, **more: Any) -> dict[str, Any]:
        """Return the facts of an error that names this switch."""
        return {"switch": self.name, "address": self.address} | more


class SwitchDriver(Protocol):
    """How switches of one kind are asked.  Both calls are idempotent and block up to the limit.

    Both raise SwitchUnreachable (a retry may help) and SwitchRefused (it will not).
    """

    def check(self, switch: Switch) -> None:
        """Raise InvalidParameterValue for settings that this driver cannot use."""

    def read(self, switch: Switch, wanted: Layout, *, timeout_s: float) -> Layout:
        """Return what the switch shows of the ports and LAGs that ``wanted`` names."""

    def order(self, switch: Switch, wanted: Layout, *, timeout_s: float) -> None:
        """Set the ports and LAGs; a LAG of None is removed, and a port without one leaves its own.

        The answer proves nothing: ``read`` shows what was done.
        """


def differences(wanted: Layout, shown: Layout) -> list[str]:
    """Return a phrase for each port and LAG that is not as wanted."""
    phrases = []
    for name, port in wanted.ports.items():
        there = _of_interest(port, shown.ports[name])
        if there != port:
            phrases.append(f"port {name} shows {there}, and not {port}")
    for name, lag in wanted.lags.items():
        group = shown.lags[name]
        if lag is None or group is None:
            if lag is not group:
                phrases.append(f"LAG {name} is {'missing' if lag else 'still there'}")
            continue
        carries = _of_interest(lag.carries, group.carries)
        kind = group.aggregation if lag.aggregation else None
        if (shown_lag := Lag(carries=carries, aggregation=kind)) != lag:
            phrases.append(f"LAG {name} shows {shown_lag}, and not {lag}")
    return phrases


def differs(wanted: Port, shown: Port) -> bool:
    """Return whether a port shows other than wanted."""
    return _of_interest(wanted, shown) != wanted


def _of_interest(wanted: Port, shown: Port) -> Port:
    """Return what the port shows, without what the order leaves open."""
    mtu = None if wanted.mtu is None else shown.mtu
    if wanted.mode is None:
        return Port(lag=shown.lag, mtu=mtu)
    if shown.mode != "trunk":
        return dataclasses.replace(shown, mtu=mtu, vlans=frozenset())
    if wanted.native_vlan is None or shown.native_vlan is None:  # the switch's default is untagged
        return dataclasses.replace(shown, mtu=mtu, native_vlan=None)
    return dataclasses.replace(shown, mtu=mtu, vlans=shown.vlans | {shown.native_vlan})


# --------------------------------------------------------------------------------------- VLANs


def parse_vlans(text: str, what: str) -> frozenset[int]:
    """Return the VLANs of a list such as 100,102-104; ``[]`` and an empty text have none.

    Raises InvalidParameterValue, which names ``what``.
    """
    vlans: set[int] = set()
    for part in text.strip().removeprefix("[").removesuffix("]").split(","):
        first, _, last = part.strip().partition("-")
        if not part.strip():
            continue
        try:
            both = int(first), int(last or first)
        except ValueError:
            both = 0, 0
        if not LEAST_VLAN <= both[0] <= both[1] <= MOST_VLAN:
            raise errors.InvalidParameterValue(
                reason=f"{what} has {part.strip()!r}: write VLANs from {LEAST_VLAN} to "
                f"{MOST_VLAN} such as 100,102-104",
            )
        vlans.update(range(both[0], both[1] + 1))
    return frozenset(vlans)


def ranges(vlans: Iterable[int]) -> str:
    """Return VLANs as switches list them: 100,102-104."""
    spans: list[list[int]] = []
    for vlan in sorted(vlans):
        if spans and spans[-1][1] == vlan - 1:
            spans[-1][1] = vlan
        else:
            spans.append([vlan, vlan])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)
