"""The file of switches, [ironic_networking]switch_config_file: a section for each switch.

    [switch:tor-1]
    driver_type = openconfig
    address = https://192.0.2.10
    username = admin
    password = secret
    mac_address = aa:bb:cc:dd:ee:01

The file is read again when it has changed.  A file that has become unusable is warned of, and the
switches of the last usable one stay.
"""

from __future__ import annotations

import configparser
import dataclasses
import logging
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bloomery import errors, parsing, plugins
from bloomery.conf import Conf
from bloomery.drivers.bmc.gateway import PerConf
from bloomery.drivers.switches.contract import Switch, SwitchDriver, parse_vlans

LOG = logging.getLogger(__name__)

FILE: Final = "[ironic_networking]switch_config_file"
_DRIVERS: Final = "bloomery.switch.drivers"
_PREFIX: Final = "switch:"
_KEYS: Final = {field.name for field in dataclasses.fields(Switch)} - {"name"}
_FLAGS: Final = ("persist", "manage_vlans")


class Inventory:
    """The switches of one configuration, and their drivers."""

    def __init__(self, conf: Conf) -> None:
        self.conf, self._mutex = conf, threading.Lock()
        options = conf.ironic_networking
        installed = plugins.loaders(_DRIVERS)
        if missing := [name for name in options.enabled_switch_drivers if name not in installed]:
            raise errors.CannotStart(
                reason="cannot use [ironic_networking]enabled_switch_drivers: "
                f"{', '.join(missing)} not installed, installed are {', '.join(sorted(installed))}"
            )
        self._drivers: dict[str, SwitchDriver] = {
            name: installed[name]()() for name in options.enabled_switch_drivers
        }
        self._switches: tuple[Switch, ...] = ()
        self._stamp: object = None

    def switches(self) -> tuple[Switch, ...]:
        """Return the switches of the file as it is now.

        Raises MissingParameterValue where no file is configured, and InvalidParameterValue for a
        first file that cannot be used.
        """
        name = self.conf.ironic_networking.switch_config_file
        if not name:
            raise errors.MissingParameterValue(
                reason=f"{FILE} names no file: write the switches into one, and name it there",
            )
        path = Path(name)
        with self._mutex:
            try:
                stat = path.stat()
                stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
                if stamp == self._stamp:
                    return self._switches
                former, self._stamp = self._stamp, stamp
                try:
                    self._switches = self._read(path)
                except errors.InvalidParameterValue:
                    self._stamp = former and stamp  # warned of once
                    raise
            except (OSError, errors.InvalidParameterValue) as exc:
                why = exc.strerror if isinstance(exc, OSError) else exc
                if self._stamp is None:
                    raise errors.InvalidParameterValue(
                        reason=f"cannot use {FILE} {name}: {why}"
                    ) from exc
                LOG.warning("%s %s is left as it was before: %s", FILE, name, why)
        return self._switches

    def driver(self, switch: Switch) -> SwitchDriver:
        return self._drivers[switch.driver_type]

    def find(self, link: Mapping[str, Any]) -> Switch | None:
        """Return the switch that a local_link_connection names: by MAC address, or by name."""
        ident, info = str(link.get("switch_id", "")).lower(), link.get("switch_info")
        names = {str(name) for name in (info, link.get("hostname")) if name}
        switches = self.switches()
        by_mac = (s for s in switches if s.mac_address and s.mac_address == ident)
        by_name = (s for s in switches if s.name in names or s.name.lower() == ident)
        return next(by_mac, None) or next(by_name, None)

    def _read(self, path: Path) -> tuple[Switch, ...]:
        parser = configparser.ConfigParser(interpolation=None, default_section="")
        try:
            parser.read_string(path.read_text(encoding="utf-8"))
        except (configparser.Error, UnicodeDecodeError) as exc:
            # the message of the parser repeats lines, which may have a password
            line = getattr(exc, "lineno", None)
            where = f"line {line} " if line else "it "
            raise errors.InvalidParameterValue(
                reason=f"{where}is not of the form [switch:NAME] with lines KEY = VALUE"
            ) from None
        switches = tuple(self._switch(name, parser[name]) for name in parser.sections())
        for field in ("name", "mac_address"):
            values = [value for each in switches if (value := getattr(each, field))]
            if twice := sorted({value for value in values if values.count(value) > 1}):
                raise errors.InvalidParameterValue(
                    reason=f"{field} {twice[0]} is that of two switches: remove one",
                )
        return switches

    def _switch(self, section: str, values: Mapping[str, str]) -> Switch:
        name = section.removeprefix(_PREFIX).strip()
        fields: dict[str, Any] = {key: value.strip() for key, value in values.items()}
        if unknown := sorted(fields.keys() - _KEYS):
            LOG.warning(
                "switch %s: its keys %s have no effect; known are %s",
                name, ", ".join(unknown), ", ".join(sorted(_KEYS)),
            )  # fmt: skip
        fields = {key: value for key, value in fields.items() if key in _KEYS}
        if not fields.get("address"):
            raise errors.InvalidParameterValue(reason=f"switch {name} has no address: write it")
        try:
            for key in fields.keys() & set(_FLAGS):
                fields[key] = parsing.boolean(fields[key], strict=True)
            if "port" in fields:
                fields["port"] = int(fields["port"])
        except ValueError:
            raise errors.InvalidParameterValue(
                reason=f"switch {name} has an unfit value: {', '.join(_FLAGS)} are true or false, "
                "and port is a number",
            ) from None
        if "allowed_vlans" in fields:
            what = f"allowed_vlans of switch {name}"
            fields["allowed_vlans"] = parse_vlans(fields["allowed_vlans"], what)
        fields["mac_address"] = fields.get("mac_address", "").lower()
        switch = Switch(name=name, **fields)
        if switch.driver_type not in self._drivers:
            raise errors.InvalidParameterValue(
                reason=f"driver_type {switch.driver_type} of switch {name} is not one of "
                f"[ironic_networking]enabled_switch_drivers ({', '.join(self._drivers)})",
            )
        self._drivers[switch.driver_type].check(switch)
        return switch


_INVENTORIES: Final = PerConf(Inventory)


def of(conf: Conf) -> Inventory:
    """Return the inventory that all users of ``conf`` share.  Raises CannotStart."""
    return _INVENTORIES.of(conf)
