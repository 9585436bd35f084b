"""Hooks for network interfaces and their ports."""

from __future__ import annotations

import contextlib
import ipaddress
from typing import Any, ClassVar, Final

from bloomery import errors
from bloomery.inspection import base
from bloomery.inspection.base import Changes, Hook, Inspection
from bloomery.model.rules import agents, idents

Json = dict[str, Any]
VALIDATE: Final = "validate-interfaces"
_NAME_SIZES: Final = range(1, base.MOST_TEXT + 1)


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
        interfaces: dict[str, Json] = {}
        for nic in base.objects(inspection.inventory, "interfaces"):
            name, address = str(nic.get("name") or ""), base.text(nic, "mac_address")
            mac = idents.folded_mac(address)
            if mac is None and idents.is_mac(address):
                mac = str(address).lower()  # 00:00:00:00:00:00, which agents send of lo
            if mac is not None and len(name) in _NAME_SIZES:
                interfaces[name] = nic | {"mac_address": mac, "pxe_enabled": mac == booted}
        if not interfaces:
            raise errors.HardwareInspectionFailure(
                reason="the inventory has no network interface with a name and a MAC address",
            )
        choice, valid = inspection.conf.add_ports, dict[str, Json]()
        for name, nic in interfaces.items():
            ips = ips_of(nic)
            is_loopback = name == "lo" or any(ip.is_loopback for ip in ips[:1])
            is_chosen = bool(ips)
            if choice != "active":
                is_chosen = choice != "pxe" or booted is None or nic["pxe_enabled"]
            if idents.folded_mac(nic["mac_address"]) and not is_loopback and is_chosen:
                valid[name] = nic
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
    interface = base.text(base.part(inventory, "boot"), "pxe_interface")
    if interface is None:
        return None
    return idents.folded_mac(interface) or idents.folded_mac(interface[3:])


def ips_of(nic: Json) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """Return the valid IP addresses of an interface, without zone and prefix."""
    ips = []
    for name in ("ipv4_address", "ipv6_address"):
        address = base.text(nic, name)
        if address is not None:
            with contextlib.suppress(ValueError):
                ips.append(ipaddress.ip_address(address.partition("%")[0].partition("/")[0]))
    return ips


class Ports(Hook):
    """Creates ports for valid interfaces, and updates existing ones as the options say."""

    requires: ClassVar[tuple[str, ...]] = (VALIDATE,)

    def process(self, inspection: Inspection) -> Changes:
        conf, data = inspection.conf, inspection.plugin_data
        booted = boot_address(inspection.inventory)
        addresses = [port.address for port in inspection.ports]
        new_ports: dict[str, Json] = {}
        for nic in data["valid_interfaces"].values() if conf.add_ports != "disabled" else ():
            client = base.text(nic, "client_id")
            new_ports[nic["mac_address"]] = {
                # Without a known boot interface, every port may boot.
                "pxe_enabled": booted is None or bool(nic["pxe_enabled"]),
                "extra": {"client-id": client} if client else {},
            }
        flags: dict[str, Json] = {}
        if booted is not None and conf.update_pxe_enabled:
            flags = {address: {"pxe_enabled": address == booted} for address in addresses}
        kept = addresses
        if conf.keep_ports == "present":
            kept = [nic["mac_address"] for nic in data["all_interfaces"].values()]
        elif conf.keep_ports != "all":
            kept = data["macs"]
        removed = frozenset(addresses) - frozenset(kept)
        return Changes(new_ports=new_ports, ports=flags, removed_ports=removed)
