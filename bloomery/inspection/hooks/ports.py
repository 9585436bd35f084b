"""Hooks for network interfaces and their ports."""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from bloomery import errors
from bloomery.inspection import reading
from bloomery.inspection.base import Changes, Hook, Inspection
from bloomery.model.rules import agents, idents

Json = dict[str, Any]
VALIDATE: Final = "validate-interfaces"
_NAME_SIZES: Final = range(1, reading.MOST_TEXT + 1)


class RamdiskError(Hook):
    """Fails the inspection of a node whose agent reports an error."""

    def preprocess(self, inspection: Inspection) -> None:
        error = inspection.plugin_data.get("error")
        if error:
            reason = f"the agent reports: {agents.bounded(str(error))}"
            raise errors.HardwareInspectionFailure(reason=reason)


class ValidateInterfaces(Hook):
    """Validates the interfaces.

    plugin_data gets ``all_interfaces`` and ``valid_interfaces``, interfaces by name with
    ``pxe_enabled``, and ``macs``, the addresses of the valid ones.
    """

    def preprocess(self, inspection: Inspection) -> Changes:
        booted = boot_address(inspection.inventory)
        interfaces = {
            str(nic["name"]): nic | {"mac_address": mac, "pxe_enabled": mac == booted}
            for nic in reading.objects(inspection.inventory, "interfaces")
            if (mac := _address(nic)) is not None and len(str(nic.get("name") or "")) in _NAME_SIZES
        }
        if not interfaces:
            raise errors.HardwareInspectionFailure(
                reason="the inventory has no network interface with a name and a MAC address",
            )
        choice = inspection.conf.add_ports
        valid = {
            name: nic
            for name, nic in interfaces.items()
            if idents.folded_mac(nic["mac_address"])
            and not _is_loopback(name, nic)
            and _is_chosen(nic, choice, booted)
        }
        if not valid:
            raise errors.HardwareInspectionFailure(
                reason=f"no interface of {', '.join(sorted(interfaces))} is one that "
                f"[inspector]add_ports = {choice} takes",
            )
        return Changes(
            plugin_data={
                "all_interfaces": interfaces,
                "valid_interfaces": valid,
                "macs": list(dict.fromkeys(nic["mac_address"] for nic in valid.values())),
            },
        )


def boot_address(inventory: Json) -> str | None:
    """Return the MAC address that the machine booted from, or None.

    PXE writes it as 01-52-54-00-12-34-56, with the hardware type first.
    """
    interface = reading.text(reading.part(inventory, "boot"), "pxe_interface")
    if interface is None:
        return None
    return idents.folded_mac(interface) or idents.folded_mac(interface[3:])


def _address(nic: Json) -> str | None:
    """Return the MAC address; 00:00:00:00:00:00, which agents send of lo, is no port's."""
    address = reading.text(nic, "mac_address")
    is_mac = address is not None and idents.is_mac(address)
    return idents.folded_mac(address) or (str(address).lower() if is_mac else None)


def ips_of(nic: Json) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """Return the valid IP addresses of an interface, without zone and prefix."""
    ips = []
    for name in ("ipv4_address", "ipv6_address"):
        address = reading.text(nic, name)
        if address is not None:
            with contextlib.suppress(ValueError):
                ips.append(ipaddress.ip_address(address.partition("%")[0].partition("/")[0]))
    return ips


def _is_loopback(name: str, nic: Json) -> bool:
    return name == "lo" or any(ip.is_loopback for ip in ips_of(nic)[:1])


def _is_chosen(nic: Json, choice: str, booted: str | None) -> bool:
    if choice == "active":
        return bool(ips_of(nic))
    return choice != "pxe" or booted is None or bool(nic["pxe_enabled"])


class Ports(Hook):
    """Creates ports for valid interfaces, and updates existing ones as the options say."""

    requires: ClassVar[tuple[str, ...]] = (VALIDATE,)

    def process(self, inspection: Inspection) -> Changes:
        conf, data = inspection.conf, inspection.plugin_data
        has_boot_nic = boot_address(inspection.inventory) is not None
        added = data["valid_interfaces"] if conf.add_ports != "disabled" else {}
        return Changes(
            new_ports={nic["mac_address"]: _port(nic, has_boot_nic) for nic in added.values()},
            ports=_pxe_flags(inspection) if has_boot_nic and conf.update_pxe_enabled else {},
            removed_ports=_superfluous(inspection),
        )


def _port(nic: Json, has_boot_nic: bool) -> Json:
    """Return the fields of a new port; without a known boot interface, every port may boot."""
    client = reading.text(nic, "client_id")
    return {
        "pxe_enabled": bool(nic["pxe_enabled"]) if has_boot_nic else True,
        "extra": {"client-id": client} if client else {},
    }


def _pxe_flags(inspection: Inspection) -> Mapping[str, Json]:
    booted = boot_address(inspection.inventory)
    return {port.address: {"pxe_enabled": port.address == booted} for port in inspection.ports}


def _superfluous(inspection: Inspection) -> frozenset[str]:
    keep, data = inspection.conf.keep_ports, inspection.plugin_data
    if keep == "all":
        return frozenset()
    present = {nic["mac_address"] for nic in data["all_interfaces"].values()}
    kept = present if keep == "present" else set(data["macs"])
    return frozenset(port.address for port in inspection.ports if port.address not in kept)
