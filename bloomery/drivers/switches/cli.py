"""Switches with a command line, by SSH: the driver type ``generic-switch``.

netmiko holds the session.  It is an extra: ``pip install bloomery[switches]``.
"""

from __future__ import annotations

import importlib
import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bloomery import errors, secrets
from bloomery.drivers.switches.contract import Lag, Layout, Port, Switch, differs, ranges
from bloomery.drivers.switches.dialects import DIALECTS, Answers, Dialect, number_of

LOG = logging.getLogger(__name__)

_NGS: Final = "netmiko_"  # the prefix of networking-generic-switch
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9/:._-]{0,254}")
_NUMBERED: Final = "{number}"


class CliDriver:
    """One session for each call."""

    def check(self, switch: Switch) -> None:
        if _kind(switch) not in DIALECTS:
            raise errors.InvalidParameterValue(
                reason=f"device_type {switch.device_type or '(none)'} of switch {switch.name} is "
                f"not known: known are {', '.join(DIALECTS)}",
            )
        if switch.verify_ca != "True" or "://" in switch.address:
            raise errors.InvalidParameterValue(
                reason=f"switch {switch.name} is asked by SSH, which takes no verify_ca, and no "
                "URL as its address",
            )
        hosts = switch.known_hosts_file
        if hosts and not Path(hosts).is_file():
            raise errors.InvalidParameterValue(
                reason=f"known_hosts_file {hosts} of switch {switch.name} is not there: write it "
                "with ssh-keyscan, and compare the key with the switch's",
            )
        if not hosts:
            LOG.warning(
                "switch %s: its SSH host key is not checked: name a known_hosts_file", switch.name
            )
        try:
            importlib.import_module("netmiko")
        except ImportError:
            raise errors.InvalidParameterValue(
                reason=f"switch {switch.name} needs the package netmiko: install it with "
                "pip install bloomery[switches], or use driver_type openconfig",
            ) from None

    def read(self, switch: Switch, wanted: Layout, *, timeout_s: float) -> Layout:
        dialect = DIALECTS[_kind(switch)]
        _check_names(switch, dialect, wanted)
        with _session(switch, dialect, timeout_s) as session:
            return _read(session, switch, dialect, wanted, timeout_s)

    def order(self, switch: Switch, wanted: Layout, *, timeout_s: float) -> None:
        dialect = DIALECTS[_kind(switch)]
        _check_names(switch, dialect, wanted)
        with _session(switch, dialect, timeout_s) as session:
            shown = _read(session, switch, dialect, wanted, timeout_s)
            lines = commands(dialect, wanted, shown, manage_vlans=switch.manage_vlans)
            invalid = importlib.import_module("netmiko").ConfigInvalidException
            try:
                _send(session, switch, dialect, lines, timeout_s)
            except (errors.SwitchRefused, invalid):
                if dialect.undo:
                    _send(session, switch, dialect, dialect.undo, timeout_s)
                raise
            if dialect.commits:
                session.commit(read_timeout=timeout_s)
            if switch.persist and dialect.save:
                session.send_command(dialect.save, read_timeout=timeout_s)
            elif switch.persist and not dialect.commits:
                session.save_config()


def _kind(switch: Switch) -> str:
    return switch.device_type.removeprefix(_NGS)


def _check_names(switch: Switch, dialect: Dialect, wanted: Layout) -> None:
    """Refuse names that a command line would read as something else."""
    for name in (*wanted.ports, *wanted.lags):
        if not _NAME.fullmatch(name):
            reason = f"the name {name!r}: a name has letters, digits and /:._-"
            raise errors.SwitchRefused(**switch.facts(reason=reason))
    for name in wanted.lags:
        if _NUMBERED in dialect.lag and not number_of(name):
            reason = f"LAG {name}: its name must end in the number of a port-channel"
            raise errors.SwitchRefused(**switch.facts(reason=reason))


# ----------------------------------------------------------------------------------- what to send


def commands(
    dialect: Dialect, wanted: Layout, shown: Layout, *, manage_vlans: bool = True
) -> list[str]:
    """Return the commands that bring a switch from what it shows to what is wanted."""
    lines: list[str] = []

    def add(templates: Sequence[str], port: str = "", **facts: Any) -> None:
        lag = str(facts.get("lag") or "")
        values = {"port": port, "number": number_of(lag)} | facts
        lines.extend(template.format(**values) for template in templates)

    for vlan in sorted(wanted.vlans) if manage_vlans else ():
        add(dialect.vlan, vlan=vlan)
    moving = {n: port for n, port in wanted.ports.items() if differs(port, shown.ports[n])}
    for name, port in moving.items():
        if (old := shown.ports[name].lag) and old != port.lag:
            add(dialect.leave, name, old=old, lag=old)
    for name, lag in wanted.lags.items():
        former, place = shown.lags[name], dialect.lag.format(lag=name, number=number_of(name))
        if lag is None and former is not None:
            _carry(add, dialect, place, Port(), former.carries)
            add(dialect.remove, lag=name)
        elif lag is not None:
            kind = lag.aggregation or (former.aggregation if former else None) or "lacp"
            if former is None or former.aggregation != kind:
                add(dialect.create, lag=name, mode=dialect.modes[kind])
            _carry(add, dialect, place, lag.carries, former.carries if former else Port())
    for name, port in moving.items():
        there = shown.ports[name]
        if port.lag and port.lag != there.lag:
            group = wanted.lags.get(port.lag)
            mode = dialect.modes[(group and group.aggregation) or "lacp"]
            _carry(add, dialect, name, Port(), there)
            add(dialect.join, name, lag=port.lag, mode=mode)
        if port.mode is None and port.mtu not in (None, there.mtu):
            add(dialect.mtu, name, mtu=port.mtu)
        elif port.mode is not None:
            _carry(add, dialect, name, port, there)
    if lines:
        add(dialect.ends)
    return lines


def _carry(add: Any, dialect: Dialect, place: str, port: Port, shown: Port) -> None:
    """Add the commands for what a port or LAG carries; a Port() has no VLAN of its own."""
    if port.mtu not in (None, shown.mtu):
        add(dialect.mtu, place, mtu=port.mtu)
    tagged, former = port.vlans - {port.native_vlan}, shown.vlans - {shown.native_vlan}
    gone = former - tagged
    keeps_native = dialect.adds_native and shown.native_vlan == port.native_vlan
    if dialect.adds_native and not keeps_native and shown.native_vlan is not None:
        gone |= {shown.native_vlan}
    for vlan in sorted(gone):
        add(dialect.untag, place, vlan=vlan)
    if port.mode == "trunk":
        vlans = ranges(port.vlans)
        add(dialect.trunk, place, vlans=vlans, vlan_words=vlans.replace(",", " "))
    if port.native_vlan is not None and not keeps_native:
        native = dialect.access if port.mode == "access" else dialect.native
        add(native, place, native=port.native_vlan)
    for vlan in sorted(tagged - former):
        add(dialect.tag, place, vlan=vlan)


# ---------------------------------------------------------------------------------------- sessions


@contextmanager
def _session(switch: Switch, dialect: Dialect, timeout_s: float) -> Iterator[Any]:
    """Log in, and map what netmiko raises; its messages may repeat what was sent."""
    netmiko = importlib.import_module("netmiko")
    login = {"use_keys": True, "key_file": switch.key_file} if switch.key_file else {}
    session = None
    try:
        session = netmiko.ConnectHandler(
            device_type=dialect.device, host=switch.address, port=switch.port or 22,
            username=switch.username, password=switch.password, secret=switch.enable_secret,
            ssh_strict=bool(switch.known_hosts_file), alt_host_keys=bool(switch.known_hosts_file),
            alt_key_file=switch.known_hosts_file,
            conn_timeout=timeout_s, auth_timeout=timeout_s, banner_timeout=timeout_s, **login,
        )  # fmt: skip
        if switch.enable_secret:
            session.enable()
        yield session
    except netmiko.NetmikoAuthenticationException as exc:
        reason = "the login; correct username, password or key_file in the file of switches"
        raise errors.SwitchRefused(**switch.facts(reason=reason)) from exc
    except netmiko.ConfigInvalidException as exc:
        raise errors.SwitchRefused(**switch.facts(reason=_words(switch, exc))) from exc
    except (
        netmiko.NetmikoTimeoutException, netmiko.NetmikoBaseException, OSError, EOFError,
        ValueError,
    ) as exc:  # fmt: skip
        reason = f"{type(exc).__name__}: {_words(switch, exc)}"
        raise errors.SwitchUnreachable(**switch.facts(reason=reason)) from exc
    finally:
        if session is not None:
            session.disconnect()


def _words(switch: Switch, message: object) -> str:
    """Return a message on one line, without the login, which a session may repeat."""
    text = " ".join(str(message).split())
    for secret in (switch.password, switch.enable_secret):
        text = text.replace(secret, "******") if secret else text
    return errors.shortened(str(secrets.mask(text)))


def _send(
    session: Any, switch: Switch, dialect: Dialect, lines: Sequence[str], timeout_s: float
) -> None:
    """Send commands; raise SwitchRefused at the first answer that is a refusal."""
    if dialect.configures:
        if lines:
            session.send_config_set(
                list(lines), error_pattern=dialect.refused, read_timeout=timeout_s
            )
        return
    for line in lines:
        answer = str(session.send_command(line, read_timeout=timeout_s))
        if re.search(dialect.refused, answer, re.MULTILINE):
            reason = f"{line}: {_words(switch, answer)}"
            raise errors.SwitchRefused(**switch.facts(reason=reason))


def _read(
    session: Any, switch: Switch, dialect: Dialect, wanted: Layout, timeout_s: float
) -> Layout:
    """Ask for each port and LAG once; a command without a port is asked once in all."""
    asked: dict[str, str] = {}

    def answers(place: str) -> Answers:
        lines = [template.format(port=place) for template in dialect.show]
        for line in lines:
            if line not in asked:
                asked[line] = str(session.send_command(line, read_timeout=timeout_s))
        return tuple(asked[line] for line in lines)

    is_numbered = _NUMBERED in dialect.lag
    names = {number_of(name) if is_numbered else name: name for name in wanted.lags}
    ports: dict[str, Port] = {}
    of_ports: list[str] = []
    for name in wanted.ports:
        of_port = answers(name)
        port = dialect.read(of_port, name)
        if port is None:
            raise errors.SwitchRefused(**switch.facts(reason=f"port {name}: it has none"))
        ports[name] = replace(port, lag=names.get(port.lag or "", port.lag))
        of_ports += of_port
    lags: dict[str, Lag | None] = {}
    for name in wanted.lags:
        of_lag = answers(dialect.lag.format(lag=name, number=number_of(name)))
        carries = dialect.read(of_lag, name)
        kind = dialect.aggregation((*of_lag, *of_ports), name)
        lags[name] = None if carries is None else Lag(
            carries=replace(carries, lag=None), aggregation=kind
        )  # fmt: skip
    return Layout(ports=ports, lags=lags)
