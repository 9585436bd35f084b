"""Switches with a command line: a table of commands for each kind, and readers of their answers.

Templates have {port}, a port or LAG; {lag} and {number}, a LAG and the number at its end; {old},
the LAG that a port leaves; {vlan}, {native}, {vlans} and {vlan_words}; {mtu}; and {mode}, the
dialect's word for lacp or static.

Source: the manuals of EOS, IOS, NX-OS, OS10, Junos (ELS), SONiC and NVUE; the readers take what is
configured and running.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bloomery import parsing
from bloomery.drivers.switches.contract import Port, parse_vlans

Answers = tuple[str, ...]  # of a dialect's ``show``, in its order


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The commands of one kind of switch.

    ``device``: netmiko's name.  ``vlan`` creates one.  ``access`` and ``trunk`` set all that a port
    carries; ``tag`` and ``untag`` add a VLAN to a port, and take one away, where a port has no list
    of its VLANs.  ``native`` follows a trunk with a native VLAN; ``adds_native``: the former one
    must be taken away first.  ``create`` makes a LAG and
    ``remove`` removes it; ``join`` and ``leave`` are of a member.  ``read`` gets the answers to
    ``show`` and the port, and returns None for a port that is not there.  ``aggregation`` reads
    lacp or static from the answers for a LAG and its members.  ``ends``: after all others;
    ``undo``: after a refusal.  ``configures``: in the configuration mode.
    """

    device: str
    show: tuple[str, ...]
    read: Callable[[Answers, str], Port | None]
    aggregation: Callable[[Answers, str], str]
    create: tuple[str, ...]
    remove: tuple[str, ...]
    join: tuple[str, ...]
    leave: tuple[str, ...]
    mtu: tuple[str, ...]
    access: tuple[str, ...] = ()
    trunk: tuple[str, ...] = ()
    native: tuple[str, ...] = ()
    vlan: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()
    untag: tuple[str, ...] = ()
    adds_native: bool = False
    modes: Mapping[str, str] = field(default_factory=lambda: {"lacp": "active", "static": "on"})
    lag: str = "{lag}"  # the LAG's name as a port
    ends: tuple[str, ...] = ()
    undo: tuple[str, ...] = ()
    commits: bool = False
    configures: bool = True
    save: str = ""  # the command that keeps the configuration; empty: netmiko's own
    refused: str = r"% ?(Invalid|Incomplete|Ambiguous|Error|Cannot)|^ERROR|%Error|Command rejected"


def number_of(lag: str) -> str:
    """Return the number at the end of a LAG's name, or ""."""
    match = re.search(r"[0-9]+$", lag)
    return match.group() if match else ""


# ------------------------------------------------------------- EOS, IOS, NX-OS, OS10: blocks


def _block(answers: Answers, _port: str) -> Port | None:
    """Read the block of an interface in a running configuration."""
    text = answers[0]
    if not re.search(r"^interface ", text, re.MULTILINE | re.IGNORECASE):
        return None

    def value(pattern: str) -> str | None:
        match = re.search(rf"^\s+{pattern}\s*$", text, re.MULTILINE)
        return match.group(1) if match else None

    mtu, group = value(r"mtu (\d+)"), value(r"channel-group (\d+).*")
    common: dict[str, Any] = {"mtu": int(mtu) if mtu else None, "lag": group}
    access = value(r"switchport access vlan (\d+)")
    if value(r"switchport mode (\S+)") != "trunk":
        return Port(mode="access", native_vlan=int(access or 1), **common)
    lists = re.findall(
        r"^\s+switchport trunk allowed vlan (?:add )?([\d,\- ]+?)\s*$", text, re.MULTILINE
    )
    native = value(r"switchport trunk native vlan (\d+)") or access or "1"  # OS10: access
    vlans = parse_vlans(",".join(lists), "its allowed VLANs")
    return Port(mode="trunk", native_vlan=int(native), vlans=vlans, **common)


def _block_mode(answers: Answers, lag: str) -> str:
    """Read how the members of a LAG joined."""
    joined = rf"channel-group {number_of(lag)} (?:force )?mode on"
    return "static" if re.search(joined, "\n".join(answers)) else "lacp"


def _blocks(device: str, **more: Any) -> Dialect:
    """Return a dialect of interface blocks; ``more`` are its differences."""
    common: dict[str, Any] = {
        "device": device,
        "show": ("show running-config interface {port}",),
        "read": _block,
        "aggregation": _block_mode,
        "vlan": ("vlan {vlan}", "exit"),
        "access": (
            "interface {port}", "switchport mode access", "switchport access vlan {native}", "exit",
        ),
        "trunk": (
            "interface {port}", "switchport mode trunk", "switchport trunk allowed vlan {vlans}",
            "exit",
        ),
        "native": ("interface {port}", "switchport trunk native vlan {native}", "exit"),
        "mtu": ("interface {port}", "mtu {mtu}", "exit"),
        "lag": "port-channel {number}",
        "create": ("interface port-channel {number}", "exit"),
        "remove": ("no interface port-channel {number}",),
        "join": ("interface {port}", "channel-group {number} mode {mode}", "exit"),
        "leave": ("interface {port}", "no channel-group", "exit"),
    }  # fmt: skip
    return Dialect(**common | more)


# ------------------------------------------------------------------------------------- Junos


def _junos(answers: Answers, port: str) -> Port | None:
    """Read the ``set`` lines of an interface."""
    lines = [line.split() for line in answers[0].splitlines() if line.startswith("set interfaces")]
    words = [" ".join(line[3:]) for line in lines if line[2:3] == [port]]
    if not words:
        return None

    def values(pattern: str) -> list[str]:
        return [m.group(1) for word in words if (m := re.fullmatch(pattern, word))]

    lag = values(r"(?:ether-options|gigether-options) 802\.3ad (\S+)")
    mtu, native = values(r"mtu (\d+)"), values(r"native-vlan-id (\d+)")
    members = values(r"unit 0 family ethernet-switching vlan members (?:vlan-?)?(\d+(?:-\d+)?)")
    vlans = parse_vlans(",".join(members), "its VLANs")
    common: dict[str, Any] = {
        "mtu": int(mtu[0]) if mtu else None, "lag": lag[0] if lag else None,
    }  # fmt: skip
    if values(r"unit 0 family ethernet-switching interface-mode (\S+)") != ["trunk"]:
        return Port(mode="access", native_vlan=min(vlans, default=None), **common)
    return Port(mode="trunk", native_vlan=int(native[0]) if native else None, vlans=vlans, **common)


def _junos_mode(answers: Answers, _lag: str) -> str:
    return "lacp" if "aggregated-ether-options lacp" in answers[0] else "static"


_SWITCHING: Final = "interfaces {port} unit 0 family ethernet-switching"
_JUNOS: Final = Dialect(
    device="juniper_junos",
    show=("show configuration interfaces {port} | display set | display inheritance",),
    read=_junos,
    aggregation=_junos_mode,
    vlan=("set vlans vlan{vlan} vlan-id {vlan}",),
    access=(
        f"delete {_SWITCHING}", "delete interfaces {port} native-vlan-id",
        f"set {_SWITCHING} interface-mode access", f"set {_SWITCHING} vlan members {{native}}",
    ),
    trunk=(
        f"delete {_SWITCHING}", "delete interfaces {port} native-vlan-id",
        f"set {_SWITCHING} interface-mode trunk",
        f"set {_SWITCHING} vlan members [ {{vlan_words}} ]",
    ),
    native=("set interfaces {port} native-vlan-id {native}",),
    mtu=("set interfaces {port} mtu {mtu}",),
    create=("set interfaces {lag} aggregated-ether-options {mode}",),
    remove=("delete interfaces {lag}",),
    join=(
        "delete interfaces {port} unit 0", "delete interfaces {port} native-vlan-id",
        "set interfaces {port} ether-options 802.3ad {lag}",
    ),
    leave=("delete interfaces {port} ether-options 802.3ad",),
    modes={"lacp": "lacp active", "static": "minimum-links 1"},
    commits=True,
    undo=("rollback 0",),
    refused=r"^error:|syntax error|unknown command|missing argument",
)  # fmt: skip


# ------------------------------------------------------------------------------------- SONiC


def _tables(answers: Answers) -> list[dict[str, Any]]:
    """Return JSON objects; an empty answer has no rows.  Raises ValueError."""
    documents = [parsing.load_json(text) if text.strip() else {} for text in answers]
    return [each if isinstance(each, dict) else {} for each in documents]


def _sonic(answers: Answers, port: str) -> Port | None:
    """Read CONFIG_DB: ports and PortChannels, the members of VLANs and of PortChannels."""
    ports, lags, tagging, groups = _tables(answers)
    row = (ports | lags).get(port)
    if row is None:
        return None
    members = {
        int(key.partition("|")[0].removeprefix("Vlan")): values.get("tagging_mode")
        for key, values in tagging.items()
        if key.partition("|")[2] == port
    }
    lag = next((key.partition("|")[0] for key in groups if key.partition("|")[2] == port), None)
    native = next((vlan for vlan, mode in members.items() if mode == "untagged"), None)
    tagged = frozenset(vlan for vlan, mode in members.items() if mode == "tagged")
    mtu = int(row["mtu"]) if str(row.get("mtu", "")).isdigit() else None
    if not tagged:
        return Port(mode="access", native_vlan=native, mtu=mtu, lag=lag)
    return Port(mode="trunk", native_vlan=native, vlans=tagged, mtu=mtu, lag=lag)


def _sonic_mode(answers: Answers, lag: str) -> str:
    """Return lacp, unless the PortChannel was made static."""
    row = _tables(answers[:2])[1].get(lag) or {}
    return "static" if str(row.get("static")).lower() == "true" else "lacp"


_SONIC: Final = Dialect(
    device="linux",
    show=tuple(
        f"sonic-cfggen -d --var-json {table}"
        for table in ("PORT", "PORTCHANNEL", "VLAN_MEMBER", "PORTCHANNEL_MEMBER")
    ),
    read=_sonic,
    aggregation=_sonic_mode,
    vlan=("sudo config vlan add {vlan} 2>/dev/null || true",),
    untag=("sudo config vlan member del {vlan} {port}",),
    access=("sudo config vlan member add -u {native} {port}",),
    native=("sudo config vlan member add -u {native} {port}",),
    adds_native=True,
    tag=("sudo config vlan member add {vlan} {port}",),
    mtu=("sudo config interface mtu {port} {mtu}",),
    create=("sudo config portchannel add {lag} --static={mode}",),
    remove=("sudo config portchannel del {lag}",),
    join=("sudo config portchannel member add {lag} {port}",),
    leave=("sudo config portchannel member del {old} {port}",),
    modes={"lacp": "false", "static": "true"},
    configures=False,
    save="sudo config save -y",
    refused=r"^Error|^Usage:|command not found",
)


# -------------------------------------------------------------------------------------- NVUE


def _nvue(answers: Answers, port: str) -> Port | None:
    """Read the applied revision: the port's domain of the bridge, its link, and all bonds."""
    bridge, link, bonds = _tables(answers)
    if not link and not bridge:
        return None
    lag = next(
        (
            name for name, values in bonds.items()
            if isinstance(values, dict) and port in ((values.get("bond") or {}).get("member") or {})
        ),
        None,
    )  # fmt: skip
    common: dict[str, Any] = {"mtu": link.get("mtu"), "lag": lag}
    if (access := bridge.get("access")) is not None or not bridge.get("vlan"):
        return Port(mode="access", native_vlan=None if access is None else int(access), **common)
    native = str(bridge.get("untagged"))
    vlans = parse_vlans(",".join(bridge["vlan"]), "its VLANs")
    untagged = int(native) if native.isdigit() else None  # or "none"
    return Port(mode="trunk", native_vlan=untagged, vlans=vlans, **common)


def _nvue_mode(answers: Answers, lag: str) -> str:
    bond = (_tables(answers[:3])[2].get(lag) or {}).get("bond") or {}
    return "lacp" if bond.get("mode", "lacp") == "lacp" else "static"


_DOMAIN: Final = "interface {port} bridge domain br_default"
_NVUE: Final = Dialect(
    device="linux",
    show=(
        f"nv show {_DOMAIN} --applied -o json", "nv show interface {port} link --applied -o json",
        "nv show interface --applied -o json",
    ),
    read=_nvue,
    aggregation=_nvue_mode,
    vlan=("nv set bridge domain br_default vlan {vlan}",),
    access=(f"nv unset {_DOMAIN}", f"nv set {_DOMAIN} access {{native}}"),
    trunk=(f"nv unset {_DOMAIN}", f"nv set {_DOMAIN} vlan {{vlans}}"),
    native=(f"nv set {_DOMAIN} untagged {{native}}",),
    mtu=("nv set interface {port} link mtu {mtu}",),
    create=("nv set interface {lag} bond mode {mode}",),
    remove=("nv unset interface {lag}",),
    join=(f"nv unset {_DOMAIN}", "nv set interface {lag} bond member {port}"),
    leave=("nv unset interface {old} bond member {port}",),
    modes={"lacp": "lacp", "static": "static"},
    ends=("nv config apply -y",),
    undo=("nv config detach",),
    configures=False,
    save="nv config save",
    refused=r"^Error|Invalid|Config invalid|not found",
)  # fmt: skip

DIALECTS: Final[Mapping[str, Dialect]] = {
    "arista_eos": _blocks("arista_eos"),
    "cisco_ios": _blocks("cisco_ios"),
    "cisco_nxos": _blocks(
        "cisco_nxos",
        join=("interface {port}", "channel-group {number} force mode {mode}", "exit"),
    ),
    "cumulus_nvue": _NVUE,
    "dell_os10": _blocks(
        "dell_os10",
        vlan=("interface vlan {vlan}", "exit"),
        trunk=("interface {port}", "switchport mode trunk", "exit"),
        native=("interface {port}", "switchport access vlan {native}", "exit"),
        tag=("interface {port}", "switchport trunk allowed vlan {vlan}", "exit"),
        untag=("interface {port}", "no switchport trunk allowed vlan {vlan}", "exit"),
    ),
    "juniper_junos": _JUNOS,
    "sonic": _SONIC,
}
