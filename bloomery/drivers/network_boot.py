"""Boot interfaces by which machines boot agents from the network.

The firmware gets iPXE (``ipxe``, ``http-ipxe``) or GRUB (``pxe``, ``http``) by TFTP, or by HTTP.
An entry script leads each machine to a script under its MAC address.  A machine without a script
runs the fallback script for iPXE, if there is one, else boots its disk.
"""

from __future__ import annotations

import contextlib
import shutil
import urllib.parse
from collections.abc import Mapping
from typing import BinaryIO, ClassVar, Final

from bloomery import boot_files, errors
from bloomery.conf import Conf
from bloomery.drivers import base, boot_rules, secure_boot, substeps
from bloomery.drivers.agent_boot import cache, measurements, parameters, scripts, sources
from bloomery.drivers.agent_boot.cache import BeingFetched, FileCache
from bloomery.drivers.agent_boot.http_client import HttpClient
from bloomery.drivers.agent_boot.publication import Publication
from bloomery.model import capabilities
from bloomery.outcome import Again, Outcome

_PAUSE_S: Final = 2.0
_PIECE: Final = 1 << 20


class NetworkBoot(base.Boot):
    """Boots ``loader``; the firmware gets it by TFTP, or from a URL that DHCP tells."""

    device: ClassVar[str] = "pxe"
    loader: ClassVar[scripts.Loader]

    def __init__(self, conf: Conf) -> None:
        """Raises CannotStart for unusable options."""
        super().__init__(conf)
        self._files = FileCache(cache.ramdisks(conf), HttpClient(conf.default))
        self._publication = Publication(conf)

    def get_properties(self) -> dict[str, str]:
        return {
            **sources.RAMDISK_PROPERTIES, **parameters.PROPERTIES, **boot_rules.PROPERTIES,
        }  # fmt: skip

    def validate(self, task: base.DriverTask) -> None:
        """Raise unless the machine can find its script."""
        if not _macs(task):
            raise errors.MissingParameterValue(
                reason=f"node {errors.name_of(task.node)} has no port with pxe_enabled: create "
                "one with the MAC address of the port that it boots from",
            )
        if self.loader.only_uefi or self.device == boot_rules.BY_URL:
            boot_rules.check_uefi(self, task)
        boot_rules.check_architecture(task)
        boot_rules.is_persistent(task, persistent=False)
        self._publication.base_url()

    def check_machine(self, task: base.DriverTask) -> None:
        """Raise InvalidParameterValue for a machine whose BMC offers no boot from URLs."""
        if self.device != boot_rules.BY_URL:
            return
        devices = task.driver.management.get_supported_boot_devices(task)
        if self.device not in devices:
            raise errors.InvalidParameterValue(
                reason=f"node {errors.name_of(task.node)} cannot boot from {self.device}: its BMC "
                f"offers {', '.join(devices)}; boot interfaces ipxe and pxe boot from pxe",
            )

    def validate_ramdisk(self, task: base.DriverTask) -> None:
        """Raise unless kernel and ramdisk are named and the command line is valid."""
        self._validate_agent(task, sources.purpose_of(task))

    def validate_rescue(self, task: base.DriverTask) -> None:
        self._validate_agent(task, sources.RESCUE)

    def _validate_agent(self, task: base.DriverTask, purpose: str) -> None:
        self.validate(task)
        sources.of(task, self.conf.conductor, None, purpose)
        self._command_line(task, {})

    def list_ineffective(self, task: base.DriverTask) -> list[str]:
        return parameters.list_ineffective(task)

    def prepare_ramdisk(self, task: base.DriverTask, params: Mapping[str, str]) -> Outcome:
        """Publish kernel, ramdisk and script, and boot from the network once."""
        self.validate_ramdisk(task)
        return substeps.run_in_order(
            task,
            "network_boot",
            lambda: self.check_machine(task),
            lambda: self._publish(task, params),
            lambda: _sync_mode(task),
            lambda: secure_boot.undo(task),
            lambda: _choose(task, self.device, persistent=False),
        )

    def clean_up_ramdisk(self, task: base.DriverTask) -> None:
        self._publication.remove(task)

    def prepare_instance(self, task: base.DriverTask) -> Outcome:
        """Boot the disk persistently."""
        return substeps.run_in_order(
            task,
            "network_boot",
            lambda: self._publication.remove(task),
            lambda: secure_boot.prepare(task),
            lambda: _choose(task, "disk", persistent=True),
        )

    def clean_up_instance(self, task: base.DriverTask) -> Outcome | None:
        self._publication.remove(task)
        return secure_boot.undo(task)

    def _publish(self, task: base.DriverTask, params: Mapping[str, str]) -> Again | None:
        """Replace the node's boot files.  Raises StepFailure."""
        from bloomery.drivers.agent_boot import machine_code  # late: no start boots a machine

        self._publication.remove(task)
        own = {parameters.AGENT_TOKEN: task.make_agent_token()}
        line = self._command_line(task, {**params, **own})
        named = sources.of(task, self.conf.conductor, None, sources.purpose_of(task))
        with contextlib.ExitStack() as opened:
            try:
                files = [opened.enter_context(self._files.open(url))
                         for url in (named.kernel, named.ramdisk)]  # fmt: skip
            except BeingFetched:
                return Again(after_s=_PAUSE_S, reason="the agent's ramdisk is being fetched")
            machine_code.check(task, named, files[0])
            kernel = self._publish_copy(task, boot_files.KERNEL, files[0])
            ramdisk = self._publish_copy(task, boot_files.RAMDISK, files[1])
        loader, limit_s = self.loader, self.conf.pxe.ipxe_timeout
        script = loader.agent_script(kernel, ramdisk, line, limit_s)
        url = self._publication.publish(task, loader.kind, lambda out: out.write(script.encode()))
        links = [loader.link(mac) for mac in _macs(task)]
        self._write_entry(self._publication.base_url())
        self._publication.lead(links, url)
        if self.is_measured:
            entry = loader.entry_script(self._publication.base_url(), None)
            texts = {"the machine's script": script, f"the entry script {loader.entry}": entry}
            measurements.note(task, urllib.parse.urlsplit(kernel).path, line, texts)
        return None

    def _write_entry(self, base_url: str) -> None:
        """Write the entry script.  Raises StepFailure."""
        text = self.loader.entry_script(base_url, self.conf.pxe.ipxe_fallback_script)
        self._publication.write_entry(self.loader.entry, text)

    def _publish_copy(self, task: base.DriverTask, kind: str, file: BinaryIO) -> str:
        return self._publication.publish(
            task, kind, lambda out: shutil.copyfileobj(file, out, _PIECE)
        )

    def _command_line(self, task: base.DriverTask, params: Mapping[str, str]) -> str:
        loader = self.loader
        line = parameters.command_line(
            task, self.conf.pxe.kernel_append_params, {**params, **loader.params(task)}, loader.most
        )
        loader.check(line)
        return line


class IpxeBoot(NetworkBoot):
    capabilities = frozenset({"ipxe_boot", "pxe_boot"})
    loader = scripts.IPXE

    def __init__(self, conf: Conf) -> None:
        """Let machines that never booted an agent find the fallback script.

        Raises CannotStart.
        """
        super().__init__(conf)
        scripts.check_fallback(conf)
        if conf.pxe.ipxe_fallback_script or self._publication.has_entry(self.loader.entry):
            try:
                self._write_entry(base_url="")  # the script's own paths are relative
            except errors.StepFailure as exc:
                raise errors.CannotStart(reason=str(exc)) from exc


class HttpIpxeBoot(IpxeBoot):
    device = boot_rules.BY_URL


class PxeBoot(NetworkBoot):
    """Signed GRUB, for sites with secure boot."""

    capabilities = frozenset({"pxe_boot"})
    is_measured = True
    loader = scripts.GRUB


class HttpBoot(PxeBoot):
    device = boot_rules.BY_URL


def _macs(task: base.DriverTask) -> list[str]:
    return [port.address for port in task.ports if port.pxe_enabled]


def _sync_mode(task: base.DriverTask) -> Outcome | None:
    """Set the boot mode that the node asks for, where the management interface can."""
    mode = capabilities.boot_mode(task.node.instance_info, task.node.properties)
    management = task.driver.management
    try:
        can_set = mode in management.get_supported_boot_modes(task)
    except errors.UnsupportedDriverExtension:
        can_set = False
    return management.set_boot_mode(task, mode) if mode and can_set else None


def _choose(task: base.DriverTask, device: str, *, persistent: bool) -> None:
    """Set the boot device, where the management interface can."""
    management, persistent = task.driver.management, boot_rules.is_persistent(task, persistent)
    if device in management.get_supported_boot_devices(task):
        management.set_boot_device(task, device, persistent=persistent)
