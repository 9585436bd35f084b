"""Scripts of iPXE and GRUB: an entry script leads each machine to its own, which boots the agent.

Where the machine's script is missing or a command of it fails, iPXE runs the site's fallback
script, if there is one.  Else, and where that fails as well, the entry script boots the disk.
Source: ipxe.org/scripting; the manual of GRUB, Shell-like scripting; UEFI 2.10, 3.1.1 and 3.5.1.1:
the firmware tries the next boot entry only after an error, so the scripts for UEFI end with one.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from bloomery import boot_files, errors
from bloomery.conf import Conf
from bloomery.drivers.agent_boot import parameters
from bloomery.drivers.base import DriverTask

_CHAIN_MS: Final = 60_000
_RAMDISK: Final = "ramdisk"  # the ramdisk's name for kernels started by UEFI
_ODD: Final = re.compile(r"(?:^|\s)(?:&&|\|\||;|#)")

_URL: Final = re.compile(r"https?://[!-.0-~][!-~]*")
_FILE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_IPXE_PARAMS: Final = {"initrd": _RAMDISK, "BOOTIF": "01-${mac:hexhyp}"}  # the booting port


def _check_for_ipxe(command_line: str) -> None:
    """Raise InvalidParameterValue for words that iPXE would interpret."""
    if _ODD.search(command_line):
        raise errors.InvalidParameterValue(
            reason=f"{parameters.KEY} takes no words &&, || and ;, and none that begin with #: "
            "iPXE would act on them",
        )


def check_fallback(conf: Conf) -> None:
    """Raise CannotStart for a fallback script that iPXE cannot fetch."""
    script = conf.pxe.ipxe_fallback_script
    if not script or _URL.fullmatch(script):
        return
    reason = None
    if not _FILE.fullmatch(script) or script in boot_files.ENTRIES:
        reason = (
            "it takes an http or https URL without spaces, or the name of a file beside "
            f"{boot_files.IPXE_ENTRY}"
        )
    elif conf.deploy.http_url is None:
        reason = (
            "the API serves no files of the operator; write the script's URL, or set "
            f"[deploy]http_url to that of a web server that has {script} beside "
            f"{boot_files.IPXE_ENTRY}"
        )
    if reason:
        raise errors.CannotStart(reason=f"cannot use [pxe]ipxe_fallback_script: {reason}")


def _ipxe_entry(_base_url: str, fallback: str | None) -> str:
    chain = f"chain --timeout {_CHAIN_MS}"
    to_fallback = f"fallback\n:fallback\n{chain} {fallback} || goto " if fallback else ""
    return f"""#!ipxe
{chain} {boot_files.LINKS}/${{mac:hexhyp}} || goto {to_fallback}disk
:disk
iseq ${{platform}} efi && exit 1 ||
sanboot --no-describe --drive 0x80 || exit 1
"""


def _ipxe_agent(kernel: str, ramdisk: str, command_line: str, timeout_s: int) -> str:
    limit = f" --timeout {timeout_s * 1000}" if timeout_s else ""
    return (
        f"#!ipxe\nkernel{limit} {kernel} {command_line}\n"
        f"initrd{limit} --name {_RAMDISK} {ramdisk}\nboot\n"
    )


def _grub_entry(base_url: str, _fallback: str | None) -> str:
    """Return the entry script; GRUB's variable ``root`` names the server of all paths."""
    return f"""\
source {_path(base_url)}/{boot_files.LINKS}/$net_default_mac
for loader in /EFI/BOOT/BOOTX64.EFI /EFI/BOOT/BOOTAA64.EFI; do
  if search --no-floppy --file --set=root $loader; then
    if chainloader $loader; then
      boot
    fi
  fi
done
exit 1
"""


def _grub_agent(kernel: str, ramdisk: str, command_line: str, _timeout_s: int) -> str:
    return f"""\
if linux {_path(kernel)} {parameters.quoted_for_grub(command_line)}; then
  if initrd {_path(ramdisk)}; then
    boot
  fi
fi
"""


def _path(url: str) -> str:
    return urllib.parse.urlsplit(url).path


@dataclass(frozen=True, slots=True, kw_only=True)
class Loader:
    """A boot loader that machines get from the network, and its scripts.

    ``entry``: the name of the entry script, whose text ``entry_script`` returns for the URL of the
    folder and the fallback script.  ``link``: the name by which the entry script finds the script
    of a MAC address.
    ``agent_script``: of the URLs of kernel and ramdisk, the command line, and seconds per file, 0:
    no limit.  ``params``: what the loader adds to the command line, of at most ``most`` characters.
    """

    kind: str
    entry: str
    entry_script: Callable[[str, str | None], str]
    link: Callable[[str], str]
    agent_script: Callable[[str, str, str, int], str]
    params: Callable[[DriverTask], Mapping[str, str]]
    check: Callable[[str], None] = lambda _command_line: None
    most: int = parameters.MOST
    only_uefi: bool = False


IPXE: Final = Loader(
    kind=boot_files.IPXE, entry=boot_files.IPXE_ENTRY, entry_script=_ipxe_entry,
    link=boot_files.ipxe_link, agent_script=_ipxe_agent, params=lambda _task: _IPXE_PARAMS,
    check=_check_for_ipxe,
)  # fmt: skip
GRUB: Final = Loader(
    kind=boot_files.GRUB, entry=boot_files.GRUB_ENTRY, entry_script=_grub_entry,
    link=boot_files.grub_link, agent_script=_grub_agent, params=parameters.boot_interface,
    most=1800,  # GRUB adds BOOT_IMAGE with the path of the kernel
    only_uefi=True,
)  # fmt: skip
