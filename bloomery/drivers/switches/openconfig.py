"""Switches with the models of OpenConfig, by RESTCONF.

Source: RFC 8040; openconfig-interfaces, -if-ethernet, -if-aggregate, -vlan, -network-instance.
What is read is ``state``, which the switch has applied, and not ``config``.
"""

from __future__ import annotations

import dataclasses
import json
import time
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import urllib3

from bloomery import errors, parsing, secrets
from bloomery.drivers.switches.contract import Lag, Layout, Port, Switch

Json = dict[str, Any]

_ROOT: Final = "/restconf/data"
_INTERFACES: Final = "openconfig-interfaces:interfaces"
_ETHERNET: Final = "openconfig-if-ethernet:ethernet"
_AGGREGATE: Final = "openconfig-if-aggregate:aggregate-id"
_AGGREGATION: Final = "openconfig-if-aggregate:aggregation"
_SWITCHED: Final = "openconfig-vlan:switched-vlan"
_VLANS: Final = "/openconfig-network-instance:network-instances/network-instance=default/vlans"
_YANG: Final = "application/yang-data+json"
_LATER: Final = (409, 429, 500, 502, 503, 504)  # 409: another client holds the configuration
_MOST_BYTES: Final = 1 << 20  # of an answer


class OpenConfigDriver:
    """The driver type ``openconfig``."""

    def check(self, switch: Switch) -> None:
        """Refuse what RESTCONF has no means for."""
        unusable = [
            name for name in ("device_type", "enable_secret", "key_file", "persist")
            if getattr(switch, name)
        ]  # fmt: skip
        if unusable:
            raise errors.InvalidParameterValue(
                reason=f"switch {switch.name} has {', '.join(unusable)}, which driver_type "
                "openconfig cannot use: remove it",
            )
        try:
            parsing.boolean(switch.verify_ca, strict=True)
        except ValueError:
            if not Path(switch.verify_ca).exists():
                raise errors.InvalidParameterValue(
                    reason=f"verify_ca {switch.verify_ca} of switch {switch.name} is not there: "
                    "write the file of a CA, true or false",
                ) from None

    def read(self, switch: Switch, wanted: Layout, *, timeout_s: float) -> Layout:
        client = _Client(switch, timeout_s)
        ports = {}
        for name in wanted.ports:
            document = client.interface(name)
            if document is None:
                raise errors.SwitchRefused(**switch.facts(reason=f"port {name}: it has none"))
            ports[name] = _port(document)
        lags: dict[str, Lag | None] = {}
        for name in wanted.lags:
            document = client.interface(name)
            if document is None:
                lags[name] = None
                continue
            group = _member(document, _AGGREGATION)
            kind = _member(group, "state", "config").get("lag-type")
            carries = dataclasses.replace(_carried(_member(group, _SWITCHED)), mtu=_mtu(document))
            lags[name] = Lag(carries=carries, aggregation=str(kind or "").lower())
        return Layout(ports=ports, lags=lags)

    def order(self, switch: Switch, wanted: Layout, *, timeout_s: float) -> None:
        client = _Client(switch, timeout_s)
        if switch.manage_vlans and wanted.vlans:
            vlans = [{"vlan-id": v, "config": {"vlan-id": v}} for v in sorted(wanted.vlans)]
            client.ask("PATCH", _VLANS, {"openconfig-network-instance:vlans": {"vlan": vlans}})
        for name, lag in wanted.lags.items():
            if lag is None:
                continue
            kind = lag.aggregation or ("lacp" if client.interface(name) is None else None)
            config: Json = {"name": name, "type": "iana-if-type:ieee8023adLag"}
            if lag.carries.mtu is not None:
                config["mtu"] = lag.carries.mtu
            group = {"config": {"lag-type": kind.upper()}} if kind else {}
            document = {"name": name, "config": config, _AGGREGATION: group}
            client.ask("PATCH", f"/{_INTERFACES}", {_INTERFACES: {"interface": [document]}})
            client.ask("PUT", f"{_path(name)}/{_AGGREGATION}/{_SWITCHED}", _switched(lag.carries))
        for name, port in wanted.ports.items():
            if port.mtu is not None:
                mtu = {"openconfig-interfaces:config": {"name": name, "mtu": port.mtu}}
                client.ask("PATCH", f"{_path(name)}/config", mtu)
            ethernet = f"{_path(name)}/{_ETHERNET}"
            if port.lag is None:
                client.ask("DELETE", f"{ethernet}/config/{_AGGREGATE}", may_be_missing=True)
            else:
                member = {"openconfig-if-ethernet:config": {_AGGREGATE: port.lag}}
                client.ask("PATCH", f"{ethernet}/config", member)
            if port.mode is not None:
                client.ask("PUT", f"{ethernet}/{_SWITCHED}", _switched(port))
        for name, lag in wanted.lags.items():
            if lag is None:
                client.ask("DELETE", _path(name), may_be_missing=True)


class _Client:
    """Requests to one switch, all within one limit."""

    def __init__(self, switch: Switch, timeout_s: float) -> None:
        self._switch, self._ends = switch, time.monotonic() + timeout_s
        self._timeout_s = timeout_s
        scheme, _, host = switch.address.rpartition("://")
        port = f":{switch.port}" if switch.port else ""
        self._base = f"{scheme or 'https'}://{host.rstrip('/')}{port}{_ROOT}"
        trust: Json = {}
        try:
            if not parsing.boolean(switch.verify_ca, strict=True):
                trust["cert_reqs"] = "CERT_NONE"
        except ValueError:
            trust["ca_certs"] = switch.verify_ca
        self._pool = urllib3.PoolManager(1, retries=False, **trust)
        login = urllib3.make_headers(basic_auth=f"{switch.username}:{switch.password}")
        self._headers = {"Accept": _YANG, "Content-Type": _YANG, **login}

    def interface(self, name: str) -> Json | None:
        document = self.ask("GET", _path(name), may_be_missing=True)
        if document is None:
            return None
        listed = document.get("openconfig-interfaces:interface")
        first = listed[0] if isinstance(listed, list) and listed else listed
        if not isinstance(first, dict):
            raise self._unreachable(f"its answer for {name} is no interface of OpenConfig")
        return first

    def ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *,
        may_be_missing: bool = False,
    ) -> Json | None:  # fmt: skip
        """Return the document of an answer, {} for an empty one, and None for a missing thing."""
        left_s = self._ends - time.monotonic()
        if left_s <= 0:
            raise self._unreachable(f"its answers did not end within {self._timeout_s:g} s")
        try:
            answer = self._pool.request(
                method, self._base + path, headers=self._headers, redirect=False,
                body=None if body is None else json.dumps(body).encode(),
                timeout=urllib3.Timeout(total=left_s), preload_content=False,
            )  # fmt: skip
            content = answer.read(_MOST_BYTES)
            answer.release_conn()
        except (urllib3.exceptions.HTTPError, OSError) as exc:
            why = getattr(exc, "reason", None) or exc
            raise self._unreachable(str(secrets.mask(f"{type(why).__name__}: {why}"))) from exc
        if answer.status == 404 and may_be_missing:
            return None
        try:
            document = parsing.load_json(content) if content.strip() else {}
        except ValueError:
            document = None
        if answer.status >= 300:
            what = f"{method} {path} with HTTP {answer.status}{_message(document)}"
            if answer.status in _LATER:
                raise self._unreachable(f"it answers {what}")
            advice = ""
            if answer.status in (401, 403):
                advice = "; correct username and password in the file of switches"
            raise errors.SwitchRefused(**self._switch.facts(reason=what + advice))
        if not isinstance(document, dict):
            raise self._unreachable(f"its answer to {method} {path} is no JSON object")
        return document

    def _unreachable(self, reason: str) -> errors.SwitchUnreachable:
        return errors.SwitchUnreachable(**self._switch.facts(reason=reason))


def _path(interface: str) -> str:
    return f"/{_INTERFACES}/interface={urllib.parse.quote(interface, safe='')}"


def _member(document: Mapping[str, Any], *names: str) -> Json:
    """Return the first of these members that is an object with members, by either name of YANG."""
    for name in names:
        for key in (name, name.partition(":")[2]):
            if isinstance(value := document.get(key), dict) and value:
                return value
    return {}


def _message(document: Any) -> str:
    """Return the words of an error (RFC 8040, 7.1)."""
    if isinstance(document, dict) and isinstance(
        listed := _member(document, "ietf-restconf:errors").get("error"), list
    ):
        words = [str(each.get("error-message", "")) for each in listed if isinstance(each, dict)]
        text = errors.shortened(str(secrets.mask("; ".join(filter(None, words)))))
        return f": {text}" if text else ""
    return ""


def _port(document: Json) -> Port:
    ethernet = _member(document, _ETHERNET)
    state = _member(ethernet, "state", "config")
    lag = state.get(_AGGREGATE) or state.get("aggregate-id")
    carried = _carried(_member(ethernet, _SWITCHED))
    return dataclasses.replace(carried, mtu=_mtu(document), lag=str(lag) if lag else None)


def _mtu(document: Json) -> int | None:
    mtu = _member(document, "state", "config").get("mtu")
    return mtu if isinstance(mtu, int) else None


def _carried(switched: Json) -> Port:
    """Return the VLANs of a ``switched-vlan``."""
    state = _member(switched, "state", "config")
    if str(state.get("interface-mode", "")).upper() != "TRUNK":
        vlan = state.get("access-vlan")
        return Port(mode="access", native_vlan=vlan if isinstance(vlan, int) else None)
    vlans: set[int] = set()
    for each in state.get("trunk-vlans") or ():
        first, _, last = str(each).replace("..", "-").partition("-")
        if first.isdigit() and (not last or last.isdigit()):
            vlans.update(range(int(first), int(last or first) + 1))
    native = state.get("native-vlan")
    return Port(
        mode="trunk", native_vlan=native if isinstance(native, int) else None,
        vlans=frozenset(vlans),
    )  # fmt: skip


def _switched(port: Port) -> Json:
    if port.mode == "access":
        config: Json = {"interface-mode": "ACCESS", "access-vlan": port.native_vlan}
    else:
        config = {"interface-mode": "TRUNK", "trunk-vlans": sorted(port.vlans)}
        if port.native_vlan is not None:
            config["native-vlan"] = port.native_vlan
    return {_SWITCHED: {"config": config}}
