"""A simulated switch: ports and LAGs in the models of OpenConfig, by RESTCONF.

    tor = SimulatedSwitch("tor-1", ports=48)
    with Rack(built=[tor]) as rack:
        rack.address_of(tor)  # for the file of switches

What was ordered (``config``) is applied after ``apply_s``, and then shown as ``state``.  The fault
``stuck`` accepts an order and applies nothing; the others are those of BMCs.
"""

from __future__ import annotations

import time
import urllib.parse
import zlib
from collections import deque
from typing import Any, Final

from bloomery.lab.bmc import Rules, SimulatedBmc
from bloomery.lab.refusal import Refusal
from bloomery.lab.routing import NO_CONTENT, Ask, Reply

Json = dict[str, Any]

ROOT: Final = "/restconf/data"
_ETHERNET: Final = "openconfig-if-ethernet:ethernet"
_AGGREGATE: Final = "openconfig-if-aggregate:aggregate-id"
_AGGREGATION: Final = "openconfig-if-aggregate:aggregation"
_SWITCHED: Final = "openconfig-vlan:switched-vlan"
_INTERFACES: Final = "/openconfig-interfaces:interfaces"
_CARRY: Final = (f"{_ETHERNET}/{_SWITCHED}", f"{_AGGREGATION}/{_SWITCHED}")
_VLANS: Final = "/openconfig-network-instance:network-instances/network-instance=default/vlans"
_KEPT: Final = 200  # events
_LEAST_MTU, _MOST_MTU = 68, 9216


class RestconfError(Refusal):
    """An error answer in the form of RFC 8040."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, message)
        error = {"error-type": "application", "error-tag": "operation-failed",
                 "error-message": message}  # fmt: skip
        self.document = {"ietf-restconf:errors": {"error": [error]}}


class SimulatedSwitch(SimulatedBmc):
    """A switch with ports Ethernet1 and so on, each at first an access port of VLAN 1.

    ``orders``: changes so far.
    """

    def __init__(
        self, name: str, ports: int = 48, *, apply_s: float = 0.0, rules: Rules | None = None
    ) -> None:
        super().__init__((), rules or Rules(), seed=name)
        self.name, self.apply_s = name, apply_s
        self.history: deque[tuple[float, str]] = deque(maxlen=_KEPT)
        self.vlans, self.orders = {1}, 0
        self._config: dict[str, Json] = {
            f"Ethernet{number}": {"mtu": 1500, "carries": _access(1), "lag": None}
            for number in range(1, ports + 1)
        }
        self._state = {name: dict(port) for name, port in self._config.items()}
        self._pending: list[tuple[float, str, Json | None]] = []

    @property
    def mac(self) -> str:
        """The same for the same name."""
        number = zlib.crc32(self.name.encode())
        return ":".join(["52", "54", *(f"{number >> shift & 255:02x}" for shift in (24, 16, 8, 0))])

    def shown(self) -> Json:
        """Return the true state of all ports and LAGs."""
        with self.lock:
            self._apply()
            return {"name": self.name, "vlans": sorted(self.vlans), "interfaces": self._state}

    def carries(self, port: str) -> Json:
        """Return what a port carries, as the ``config`` of its switched-vlan; {} in a LAG."""
        shown = self.shown()["interfaces"][port]
        carried: Json = {} if shown["lag"] else shown["carries"]
        return carried

    def serve(self, ask: Ask) -> Reply:
        """Answer one request.  Raises Refusal: 404, 405, or the reason of a 400."""
        path = ask.path.rstrip("/")
        if not path.startswith(f"{ROOT}/"):
            raise RestconfError(404, f"there is no {path}")
        with self.lock:
            self._apply()
            try:
                return self._serve(path.removeprefix(ROOT).split("/"), ask)
            except (KeyError, TypeError, ValueError, AttributeError) as exc:
                raise RestconfError(400, f"the body lacks or has a wrong {exc}") from exc

    def _serve(self, parts: list[str], ask: Ask) -> Reply:
        path = "/".join(parts)
        if path == _VLANS and ask.method == "PATCH":
            listed = ask.body["openconfig-network-instance:vlans"]["vlan"]
            if not ask.stuck:
                self.vlans.update(int(each["vlan-id"]) for each in listed)
            return NO_CONTENT
        if f"/{parts[1]}" != _INTERFACES:
            raise RestconfError(404, f"there is no {path}")
        if len(parts) == 2 and ask.method == "PATCH":
            for document in ask.body["openconfig-interfaces:interfaces"]["interface"]:
                name = document["name"]
                fresh = {"mtu": 1500, "carries": _access(1), "lag": None}
                values: Json = dict(self._config.get(name) or fresh)
                if "mtu" in document["config"]:
                    values["mtu"] = self._mtu(document["config"]["mtu"])
                group = document.get(_AGGREGATION, {}).get("config", {})
                values["lag-type"] = group.get("lag-type", values.get("lag-type", "LACP"))
                self._order(name, values, ask)
            return NO_CONTENT
        name = urllib.parse.unquote("/".join(parts[2:3]).partition("=")[2])
        if ask.method == "GET":
            return Reply(200, {"openconfig-interfaces:interface": [self._document(name)]})
        if name not in self._config:
            raise RestconfError(404, f"there is no interface {name}")
        self._change(name, "/".join(parts[3:]), ask)
        return NO_CONTENT

    def _change(self, name: str, place: str, ask: Ask) -> None:
        values, body = dict(self._config[name]), ask.body
        match ask.method, place:
            case "DELETE", "" if "lag-type" in values:
                if members := [n for n, each in self._config.items() if each.get("lag") == name]:
                    raise RestconfError(400, f"{name} has members {', '.join(members)}")
                self._order(name, None, ask)
                return
            case "PATCH", "config":
                values["mtu"] = self._mtu(body["openconfig-interfaces:config"]["mtu"])
            case "PUT", place if place in _CARRY:
                carries = values["carries"] = body[_SWITCHED]["config"]
                untagged = carries.get("access-vlan"), carries.get("native-vlan")
                vlans = {*untagged, *carries.get("trunk-vlans", ())}
                if missing := sorted(vlans - self.vlans - {None}):
                    raise RestconfError(400, f"VLAN {missing[0]} does not exist")
            case "PATCH", place if place == f"{_ETHERNET}/config":
                values["lag"] = body["openconfig-if-ethernet:config"][_AGGREGATE]
                if "lag-type" not in self._config.get(values["lag"], {}):
                    raise RestconfError(400, f"there is no LAG {values['lag']}")
            case "DELETE", place if place == f"{_ETHERNET}/config/{_AGGREGATE}":
                if values["lag"] is None:
                    raise RestconfError(404, f"{name} is in no LAG")
                values["lag"] = None
            case _:
                raise RestconfError(405, f"{ask.method} is not supported at {place or name}")
        self._order(name, values, ask)

    def _order(self, name: str, values: Json | None, ask: Ask) -> None:
        """Take a change, to be applied after a while."""
        if ask.stuck:
            return
        self.orders += 1
        if values is None:
            self._config.pop(name)
        else:
            self._config[name] = values
        self._pending.append((time.monotonic() + self.apply_s, name, values))
        self._apply()

    def _apply(self) -> None:
        now, waiting = time.monotonic(), []
        for at, name, values in self._pending:
            if at > now:
                waiting.append((at, name, values))
            elif values is None:
                self._state.pop(name, None)
                self.history.append((time.time(), f"{name}: removed"))
            elif self._state.get(name) != values:
                self._state[name] = values
                self.history.append((time.time(), f"{name}: {_words(values)}"))
        self._pending = waiting

    def _mtu(self, value: Any) -> int:
        if not isinstance(value, int) or not _LEAST_MTU <= value <= _MOST_MTU:
            raise RestconfError(400, f"mtu {value!r} is out of range")
        return value

    def _document(self, name: str) -> Json:
        if name not in self._state:
            raise RestconfError(404, f"there is no interface {name}")
        shown, ordered = self._state[name], self._config.get(name, {})
        document: Json = {
            "name": name,
            "config": {"name": name, "mtu": ordered.get("mtu")},
            "state": {"name": name, "mtu": shown["mtu"], "oper-status": "UP"},
        }
        switched = {_SWITCHED: {"config": ordered.get("carries"), "state": shown["carries"]}}
        if "lag-type" in shown:
            kind = {"lag-type": shown["lag-type"]}
            return document | {_AGGREGATION: {"config": kind, "state": kind} | switched}
        member = {_AGGREGATE: shown["lag"]} if shown["lag"] else {}
        return document | {_ETHERNET: {"config": member, "state": member} | switched}


def _access(vlan: int) -> Json:
    return {"interface-mode": "ACCESS", "access-vlan": vlan}


def _words(values: Json) -> str:
    carries = values["carries"]
    if values["lag"]:
        text = f"in LAG {values['lag']}"
    elif carries["interface-mode"] == "ACCESS":
        text = f"VLAN {carries['access-vlan']}"
    else:
        native = carries.get("native-vlan")
        vlans = ", ".join(map(str, carries["trunk-vlans"]))
        text = f"trunk of VLAN {vlans}{f', native {native}' if native else ''}"
    return text if values["mtu"] == 1500 else f"{text}, MTU {values['mtu']}"
