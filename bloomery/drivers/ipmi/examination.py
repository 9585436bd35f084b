"""The check of an IPMI BMC: a few commands that read, each one feature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.drivers.bmc.state import Check, Report
from bloomery.drivers.ipmi import bmc_log, management, tool
from bloomery.drivers.ipmi.bmc import IpmiBmc

_STATUS: Final = "Chassis Power is "


def examine(bmc: IpmiBmc, driver_info: Mapping[str, Any]) -> dict[str, Any]:
    """Return the report of the BMC; its error where the first command has no answer."""
    own = {key: value for key, value in driver_info.items() if key.startswith("ipmi_")}
    report = Report(protocol="ipmi", address=bmc.info.key, driver_info=own)
    try:
        output = bmc.ask("mc", "info")
    except (errors.BmcUnreachable, errors.BmcRefused) as exc:
        report.error = str(exc.facts["reason"])
        return report.document(bmc.state)
    controller = tool.fields(output)
    fru = tool.fields(_answer(bmc, "fru", "print", "0")[0])
    report.identity = {
        "model": fru.get("Product Name") or controller.get("Product Name"),
        "serial": fru.get("Product Serial"),
        "bmc_firmware": controller.get("Firmware Revision"),
        "version": controller.get("IPMI Version"),
        "manufacturer": management.parse_vendor(output),
    }
    power, no_power = _answer(bmc, "power", "status")
    state = power.strip().removeprefix(_STATUS)
    boot, no_boot = _answer(bmc, *management.GET_BOOT_DEVICE)
    device, mode = management.parse_boot_device(boot), management.parse_boot_mode(boot)
    has_device = device["persistent"] is not None
    mode_text = f"{mode}, asked for with the device" if mode else "none"  # they are set together
    sensors, no_sensors = _answer(bmc, "sdr", "info")
    records = tool.fields(sensors).get("Record Count", "0")
    console, no_console = _answer(bmc, "sol", "info")
    has_console = tool.fields(console).get("Enabled") == "true"
    console_text = "serial over LAN" if has_console else "serial over LAN is off"
    report.checks = [
        Check(name=name, works=works, detail=refusal or detail, allowed=_ALLOWED.get(name, ()))
        for name, works, detail, refusal in (
            ("power", state in ("on", "off"), state, no_power),
            ("boot device", has_device, device["boot_device"] or "none", no_boot),
            ("boot mode", has_device, mode_text, no_boot),
            ("sensors", records not in ("", "0"), f"{records} records", no_sensors),
            ("serial console", has_console, console_text, no_console),
        )
    ]
    sessions = tool.fields(_answer(bmc, "session", "info", "active")[0]).get("active sessions", "")
    report.sessions_in_use = int(sessions) if sessions.isdecimal() else None
    report.read_clock(bmc_log.parse_time(_answer(bmc, *bmc_log.GET_TIME)[0]))
    if (suite := bmc.accepted_suite) is not None and "ipmi_cipher_suite" not in report.driver_info:
        report.driver_info = {**report.driver_info, "ipmi_cipher_suite": suite}
    return report.document(bmc.state)


def _answer(bmc: IpmiBmc, *arguments: str) -> tuple[str, str]:
    """Return the output of a command, or the reason of its failure; it is sent once."""
    try:
        return bmc.tell(*arguments), ""
    except (errors.BmcUnreachable, errors.BmcRefused) as no:
        return "", str(no.facts["reason"])


_ALLOWED: Final = {
    "power": ("on", "off", "reset", "soft", "diag"),
    "boot device": management.BOOT_DEVICES,
    "boot mode": management.BOOT_MODES,
}
