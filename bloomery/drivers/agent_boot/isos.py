"""Boot CDs of agents: built for one boot of one node, published, and removed afterwards.

isos.validate(task, mode, purpose)   # raises unless one can be built
isos.build(task, mode, params)       # Again while another node fetches its files
isos.url(task)                       # the URL for the BMC; or None on another host
isos.remove(task)
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping
from typing import BinaryIO, Final

from bloomery import boot_files, errors
from bloomery.conf import Conf
from bloomery.drivers.agent_boot import cache, image, measurements, parameters, publication, sources
from bloomery.drivers.agent_boot.cache import BeingFetched, FileCache
from bloomery.drivers.agent_boot.http_client import HttpClient
from bloomery.drivers.base import DriverTask
from bloomery.model import architectures
from bloomery.outcome import Again

PROPERTIES: Final = {
    **sources.PROPERTIES, **parameters.PROPERTIES,
    parameters.EXTERNAL_URL: "URL of the boot CDs for this BMC, in place of "
    "[deploy]external_http_url. Optional.",
}  # fmt: skip
_PAUSE_S: Final = 2.0


class AgentIsos:
    def __init__(self, conf: Conf) -> None:
        """Raises CannotStart for unusable options."""
        self._conf = conf
        self._files = FileCache(cache.ramdisks(conf), HttpClient(conf.default))
        self._isolinux = image.find_isolinux(conf.default)
        self._publication = publication.Publication(conf)

    def validate(self, task: DriverTask, mode: str | None, purpose: str = sources.DEPLOY) -> None:
        """Raise MissingParameterValue or InvalidParameterValue unless a CD can be built.

        ``mode``: uefi, bios, or None where the machine's mode is unknown.
        """
        arch = architectures.of(task.node.properties)
        is_x86 = arch in (None, architectures.X86_64)  # ISOLINUX boots no other
        named = sources.of(task, self._conf.conductor, mode if is_x86 else "uefi", purpose)
        parameters.command_line(task, self._conf.redfish.kernel_append_params, {})
        if self._isolinux is None and (mode == "bios" or named.bootloader is None):
            raise errors.MissingParameterValue(
                reason="no boot loader for the agent's CD: install ISOLINUX, or name it as "
                "[DEFAULT]isolinux_bin, for BIOS mode; name a bootloader for UEFI mode",
            )
        self._publication.base_url(self._external_url(task))

    def build(self, task: DriverTask, mode: str | None, params: Mapping[str, str]) -> Again | None:
        """Build and publish the node's CD, with a config drive where the node has network_data.

        [deploy]external_callback_url is the base of the API URLs of ``params``.  Raises
        StepFailure.
        """
        from bloomery.drivers.agent_boot import machine_code  # late: no start boots a machine

        conf, node, own = self._conf, task.node, {parameters.AGENT_TOKEN: task.make_agent_token()}
        api, external = params.get("ipa-api-url"), conf.deploy.external_callback_url
        if api and external:
            for name, value in params.items():
                if value.startswith(api):
                    own[name] = external.rstrip("/") + value.removeprefix(api)
        line = parameters.command_line(
            task, conf.redfish.kernel_append_params,
            {**params, **parameters.boot_interface(task), **own},
        )  # fmt: skip
        drive = {"meta_data": {"uuid": node.uuid}, "network_data": node.network_data}
        files = {f"openstack/latest/{name}.json": json.dumps(doc) for name, doc in drive.items()}
        named = sources.of(task, conf.conductor, mode, sources.purpose_of(task))
        with contextlib.ExitStack() as opened:

            def open_file(url: str) -> BinaryIO:
                return opened.enter_context(self._files.open(url))

            try:
                kernel, ramdisk = open_file(named.kernel), open_file(named.ramdisk)
                bootloader = open_file(named.bootloader) if named.bootloader else None
            except BeingFetched:
                return Again(after_s=_PAUSE_S, reason="the agent's ramdisk is being fetched")
            arch = machine_code.check(task, named, kernel, bootloader)
            is_x86 = arch in (None, architectures.X86_64)
            if not is_x86 and bootloader is None:
                raise errors.StepFailure(
                    reason=f"no boot loader for the agent's CD: its kernel is for {arch}, which "
                    "ISOLINUX does not boot; name a bootloader",
                )
            contents = image.Contents(
                kernel=kernel, ramdisk=ramdisk, bootloader=bootloader,
                isolinux=self._isolinux if is_x86 else None,
                grub_config=conf.default.grub_config_path,
                command_line=line,
                files=files if node.network_data else {},
            )  # fmt: skip
            self._publication.publish(task, boot_files.ISO, lambda out: image.write(contents, out))
        scripts = {"the CD's grub.cfg": image.grub_config(line)}
        measurements.note(task, image.KERNEL, line, scripts)
        return None

    def _external_url(self, task: DriverTask) -> str | None:
        """Return the URL of boot CDs for BMCs, if it is set.  Raises InvalidParameterValue."""
        own = task.driver_info.get(parameters.EXTERNAL_URL)
        url = own or self._conf.deploy.external_http_url
        if url and not re.match(r"https?://.", str(url)):
            name = "driver_info/" if own else "[deploy]"
            raise errors.InvalidParameterValue(
                reason=f"{name}{parameters.EXTERNAL_URL} takes an http or https URL, not {url!r}",
            )
        return url or None

    def url(self, task: DriverTask) -> str | None:
        """Return the URL of the node's CD, or None where this host has none."""
        return self._publication.url(task, boot_files.ISO, self._external_url(task))

    def remove(self, task: DriverTask) -> None:
        """Remove the node's boot files, if any."""
        self._publication.remove(task)
