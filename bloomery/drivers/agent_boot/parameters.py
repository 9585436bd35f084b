"""The command line of an agent's kernel, and its quoting for GRUB.

Source: Documentation/admin-guide/kernel-parameters of Linux: double quotes around spaces, 2048
characters on x86.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from bloomery import errors
from bloomery.drivers.base import DriverTask

KEY: Final = "kernel_append_params"
EXTERNAL_URL: Final = "external_http_url"
PROPERTIES: Final = {
    KEY: "Parameters for the agent's kernel, in place of kernel_append_params in [redfish] for "
    "virtual media and in [pxe] for network boots, which %default% stands for. Optional.",
}
AGENT_TOKEN: Final = "ipa-agent-token"  # noqa: S105  a parameter, as ironic-python-agent reads it
MOST: Final = 2047  # characters, also of ISOLINUX
_TOKEN: Final = re.compile(r'(?:[^\s"]|"[^"]*")+')
_UNFIT: Final = re.compile(r"[^ -~]|['\\]")


def command_line(
    task: DriverTask, default: str, params: Mapping[str, str], most: int = MOST
) -> str:
    """Return the operator's parameters followed by ``params``.

    Raises InvalidParameterValue for characters that boot loaders would change.
    """
    infos = (task.opened(task.node.instance_info), task.driver_info)
    own = next(filter(None, (info.get(KEY) for info in infos)), default)
    if not isinstance(own, str):
        raise _unfit("must be a string")
    line = " ".join((*own.replace("%default%", default).split(),
                     *(f"{name}={value}" for name, value in params.items())))  # fmt: skip
    if _UNFIT.search(line) or line.count('"') % 2:
        raise _unfit("takes printable ASCII without ' and \\, and double quotes in pairs")
    if len(line) > most:
        raise _unfit(f"is too long: a kernel takes {most} characters, and this is {len(line)}")
    return line


def quoted_for_grub(line: str) -> str:
    """Return the command line with each word quoted for GRUB's shell."""
    return " ".join(f"'{word}'" for word in grub_words(line))


def grub_words(line: str) -> list[str]:
    """Return the words of a command line without the double quotes around their spaces."""
    return [text.replace('"', "") for text in _TOKEN.findall(line)]


def boot_interface(task: DriverTask) -> dict[str, str]:
    """Return BOOTIF with the MAC address of the only PXE port, or {} where there are several."""
    addresses = [port.address for port in task.ports if port.pxe_enabled]
    if len(addresses) != 1:
        return {}
    return {"BOOTIF": "01-" + addresses[0].replace(":", "-")}


def list_ineffective(task: DriverTask) -> list[str]:
    """Return the settings that only boot CDs take which are built here."""
    names = ["network_data"] if task.node.network_data else []
    return names + ([f"driver_info/{EXTERNAL_URL}"] if task.driver_info.get(EXTERNAL_URL) else [])


def list_sources(task: DriverTask) -> list[str]:
    """Return the fields of the node that name kernel parameters."""
    infos = {"instance_info": task.node.instance_info, "driver_info": task.driver_info}
    return [f"{field}/{KEY}" for field, info in infos.items() if info.get(KEY)]


def _unfit(why: str) -> errors.InvalidParameterValue:
    return errors.InvalidParameterValue(reason=f"{KEY} {why}")
