"""The check of an IPMI BMC: a few commands that read, each one feature."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from bloomery import errors
from bloomery.drivers.bmc.state import Check, Report
from bloomery.drivers.ipmi import management, tool
from bloomery.drivers.ipmi.bmc import IpmiBmc

_STATUS: Final = "Chassis Power is "
_TIME: Final = "%m/%d/%y %H:%M:%S"


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
    power = _judge("power", _power, *_answer(bmc, "power", "status"))
    boot = _answer(bmc, *management.GET_BOOT_DEVICE)
    report.checks = [
        power,
        _judge("boot device", _boot_device, *boot),
        _judge("boot mode", _boot_mode, *boot),
        _judge("sensors", _sensors, *_answer(bmc, "sdr", "info")),
        _judge("serial console", _console, *_answer(bmc, "sol", "info")),
    ]
    sessions = tool.fields(_answer(bmc, "session", "info", "active")[0]).get("active sessions", "")
    report.sessions_in_use = int(sessions) if sessions.isdecimal() else None
    report.read_clock(_time(_answer(bmc, "-Z", "sel", "time", "get")[0]))
    if (suite := bmc.accepted_suite) is not None and "ipmi_cipher_suite" not in report.driver_info:
        report.driver_info = {**report.driver_info, "ipmi_cipher_suite": suite}
    return report.document(bmc.state)


def _answer(bmc: IpmiBmc, *arguments: str) -> tuple[str, str]:
    """Return the output of a command, or the reason of its failure; it is sent once."""
    try:
        return bmc.tell(*arguments), ""
    except (errors.BmcUnreachable, errors.BmcRefused) as no:
        return "", str(no.facts["reason"])


def _judge(name: str, read: Callable[[str], tuple[bool, str]], output: str, refusal: str) -> Check:
    works, detail = read(output)
    return Check(name=name, works=works, detail=refusal or detail, allowed=_ALLOWED.get(name, ()))


_ALLOWED: Final = {
    "power": ("on", "off", "reset", "soft", "diag"),
    "boot device": management.BOOT_DEVICES,
    "boot mode": management.BOOT_MODES,
}


def _power(output: str) -> tuple[bool, str]:
    state = output.strip().removeprefix(_STATUS)
    return state in ("on", "off"), state


def _boot_device(output: str) -> tuple[bool, str]:
    chosen = management.parse_boot_device(output)
    return chosen["persistent"] is not None, chosen["boot_device"] or "none"


def _boot_mode(output: str) -> tuple[bool, str]:
    """Boot modes are set with boot devices."""
    mode = management.parse_boot_mode(output)
    return _boot_device(output)[0], f"{mode}, asked for with the device" if mode else "none"


def _sensors(output: str) -> tuple[bool, str]:
    count = tool.fields(output).get("Record Count", "0")
    return count not in ("", "0"), f"{count} records"


def _console(output: str) -> tuple[bool, str]:
    enabled = tool.fields(output).get("Enabled")
    return enabled == "true", "serial over LAN" if enabled == "true" else "serial over LAN is off"


def _time(output: str) -> datetime | None:
    """Return the BMC's clock, or None before it is set."""
    try:
        return datetime.strptime(" ".join(output.split()[:2]), _TIME).replace(tzinfo=UTC)
    except ValueError:
        return None
