"""What a node wants of its switches, by role of the network.

A network is written as in Ironic: ``trunk/native_vlan=100/allowed_vlans=200,300-310``.  A port has
its own one in ``extra.switchport``, a port group in ``extra.lag``.  These are the networks of the
role ``tenant``, and of each role that neither the node's driver_info nor the options name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.conf import Conf
from bloomery.drivers.base import DriverTask
from bloomery.drivers.switches.contract import (
    LEAST_VLAN,
    MODES,
    MOST_VLAN,
    Lag,
    Layout,
    Port,
    Switch,
    parse_vlans,
)
from bloomery.drivers.switches.inventory import Inventory
from bloomery.model import port as port_model
from bloomery.model.portgroup import Portgroup

Json = Mapping[str, Any]

ROLES: Final = ("cleaning", "provisioning", "inspection", "rescuing", "servicing", "idle")
TENANT: Final = "tenant"
_FORM: Final = "MODE/native_vlan=N[/allowed_vlans=N,N-N], where MODE is access, trunk or hybrid"
_KEYS: Final = {
    "switchport": {"mode", "native_vlan", "allowed_vlans", "lag_name", "mtu"},
    "lag": {"mode", "native_vlan", "allowed_vlans", "aggregation_mode", "mtu"},
}
_MOST_VLANS: Final = 100
_MOST_MTU: Final = 9216
_LEAST_MTU: Final = 68  # of IPv4
_MOST_NAME: Final = 255


def parse(text: str, what: str) -> Port:
    """Return the network of an option or of driver_info.  Raises InvalidParameterValue."""
    mode, *parts = text.split("/")
    values: dict[str, Any] = dict(part.partition("=")[::2] for part in parts)
    native, keys = values.get("native_vlan", ""), {"native_vlan", "allowed_vlans"}
    if values.keys() - keys or not native.isdigit():
        raise _unfit(what, f"{text!r} is not of the form {_FORM}")
    values["native_vlan"] = int(native)
    if "allowed_vlans" in values:
        values["allowed_vlans"] = sorted(parse_vlans(values["allowed_vlans"], what))
    return _network({"mode": mode} | values, what, most_vlans=MOST_VLAN)


def switchport(port: port_model.Port) -> Port | None:
    """Return the network of a port's extra, or None.  Raises InvalidParameterValue."""
    values, what = port.extra.get("switchport"), f"extra.switchport of port {port.uuid}"
    if not values:
        return None
    _check_keys(values, "switchport", what)
    if "native_vlan" not in values:
        raise _unfit(what, "native_vlan is missing")
    lag = values.get("lag_name")
    if lag is not None and not (isinstance(lag, str) and 0 < len(lag) <= _MOST_NAME):
        raise _unfit(what, f"lag_name must be a text of up to {_MOST_NAME} characters")
    network = _network(values, what, lag=lag)
    if port.pxe_enabled and network.mode != "access":
        raise _unfit(what, "a port with pxe_enabled needs mode access, as firmware boots untagged")
    return network


def lag_of(group: Portgroup) -> Lag | None:
    """Return the LAG of a port group's extra, or None.  Raises InvalidParameterValue."""
    values, what = group.extra.get("lag"), f"extra.lag of port group {group.uuid}"
    if not values:
        return None
    _check_keys(values, "lag", what)
    aggregation = values.get("aggregation_mode")
    if aggregation not in ("lacp", "static"):
        raise _unfit(what, "aggregation_mode must be lacp or static")
    if not group.name:
        raise _unfit(what, "the port group needs a name, which the LAG gets on the switch")
    return Lag(carries=_network(values, what), aggregation=aggregation)


def _check_keys(values: Any, kind: str, what: str) -> None:
    if not isinstance(values, Mapping):
        raise _unfit(what, "it must be an object")
    if unknown := sorted(values.keys() - _KEYS[kind]):
        raise _unfit(what, f"unknown keys {', '.join(unknown)}; known are "
                     f"{', '.join(sorted(_KEYS[kind]))}")  # fmt: skip


def _network(
    values: Json, what: str, lag: str | None = None, most_vlans: int = _MOST_VLANS
) -> Port:
    """Return the network of checked keys; a hybrid port is a trunk with a native VLAN."""
    mode, native, mtu = values.get("mode"), values.get("native_vlan"), values.get("mtu")
    allowed = values.get("allowed_vlans")
    if mode not in MODES:
        raise _unfit(what, f"mode must be {', '.join(MODES[:-1])} or {MODES[-1]}")
    if (mode == "access") == (allowed is not None) or allowed == []:
        raise _unfit(what, "mode trunk and hybrid need allowed_vlans, and access takes none")
    if mode == "access" and native is None:
        raise _unfit(what, "native_vlan is missing")
    listed = [] if allowed is None else allowed
    if not isinstance(listed, list) or len(listed) > most_vlans:
        raise _unfit(what, f"allowed_vlans must be a list of up to {most_vlans} VLANs")
    for vlan in [*listed, *([] if native is None else [native])]:
        if type(vlan) is not int or not LEAST_VLAN <= vlan <= MOST_VLAN:
            raise _unfit(what, f"{vlan!r} is no VLAN from {LEAST_VLAN} to {MOST_VLAN}")
    if mtu is not None and (type(mtu) is not int or not _LEAST_MTU <= mtu <= _MOST_MTU):
        raise _unfit(what, f"mtu must be a number from {_LEAST_MTU} to {_MOST_MTU}")
    if mode == "access":
        return Port(mode="access", native_vlan=native, mtu=mtu, lag=lag)
    vlans = frozenset(listed) | ({native} if native is not None else frozenset())
    return Port(mode="trunk", native_vlan=native, vlans=vlans, mtu=mtu, lag=lag)


def _unfit(what: str, reason: str) -> errors.InvalidParameterValue:
    return errors.InvalidParameterValue(reason=f"cannot use {what}: {reason}")


# ------------------------------------------------------------------------------ of a whole node


def network_of(task: DriverTask, role: str, conf: Conf) -> Port | None:
    """Return the network that the node or the options name for a role, or None."""
    if role == TENANT:
        return None
    option = f"{role}_network"
    text, what = task.driver_info.get(option), f"driver_info/{option}"
    if not text:
        text, what = getattr(conf.ironic_networking, option), f"[ironic_networking]{option}"
    return parse(str(text), what) if text else None


def wired(task: DriverTask, inventory: Inventory) -> list[tuple[port_model.Port, Switch, str]]:
    """Return the ports that are at a known switch, with it and the port's name there.

    Raises InvalidParameterValue for a port that has a network at an unknown switch.
    """
    found = []
    for port in task.ports:
        link = port.local_link_connection
        if link.get("network_type") == "unmanaged" or not link.get("port_id"):
            continue
        switch = inventory.find(link)
        if switch is not None:
            found.append((port, switch, str(link["port_id"])))
        elif port.extra.get("switchport"):
            known = ", ".join(each.name for each in inventory.switches()) or "none"
            names = [link[key] for key in ("switch_info", "hostname", "switch_id") if link.get(key)]
            raise _unfit(
                f"port {port.uuid}",
                f"no switch of the file is {' or '.join(names)}: correct local_link_connection, or "
                f"the file; known are {known}",
            )
    return found


def of(task: DriverTask, role: str, inventory: Inventory, conf: Conf) -> dict[Switch, Layout]:
    """Return what the node wants of each switch for a role.

    The network of a role is set on each port, outside of LAGs, because firmware boots from single
    ports.  A port without any network is left alone.  Raises InvalidParameterValue.
    """
    network = network_of(task, role, conf)
    groups = {group.uuid: group for group in task.portgroups}
    layouts: dict[Switch, tuple[dict[str, Port], dict[str, Lag | None]]] = {}
    for port, switch, name in wired(task, inventory):
        group = groups.get(port.portgroup_uuid or "")
        lag = lag_of(group) if group is not None else None
        own = switchport(port)
        if role == "idle" and network is None:
            continue
        ports, lags = layouts.setdefault(switch, ({}, {}))
        if network is not None:
            ports[name] = network
            if group is not None and lag is not None:
                lags[str(group.name)] = None
        elif group is not None and lag is not None:
            ports[name] = Port(lag=group.name)
            lags[str(group.name)] = lag
        elif own is not None and own.lag is not None:
            ports[name] = Port(lag=own.lag, mtu=own.mtu)
            carries = Port(mode=own.mode, native_vlan=own.native_vlan, vlans=own.vlans)
            lags[own.lag] = Lag(carries=carries)
        elif own is not None:
            ports[name] = own
    wanted = {
        switch: Layout(ports=ports, lags=lags) for switch, (ports, lags) in layouts.items() if ports
    }
    for switch, layout in wanted.items():
        _refuse_vlans(switch, layout, conf)
    return wanted


def _refuse_vlans(switch: Switch, layout: Layout, conf: Conf) -> None:
    """Raise InvalidParameterValue for a VLAN that the operator does not allow on the switch."""
    allowed, what = switch.allowed_vlans, f"allowed_vlans of switch {switch.name}"
    if allowed is None and conf.ironic_networking.allowed_vlans is not None:
        what = "[ironic_networking]allowed_vlans"
        allowed = parse_vlans(conf.ironic_networking.allowed_vlans, what)
    if allowed is not None and (others := sorted(layout.vlans - allowed)):
        raise _unfit(f"VLAN {', '.join(map(str, others))}", f"{what} does not have it")
