"""Boot CDs of agents: built for one boot of one node, published, and removed after it.

    isos.validate(task, mode)            # could there be one?
    isos.build(task, mode, params)       # Again while its files are fetched for another node
    isos.url(task)                       # where the BMC fetches it; None: there is none here
    isos.remove(task)

What remembers them is the folder alone: another host that goes on with a flow builds its own.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Final

from bloomery import boot_isos, errors
from bloomery.conf import Conf, rpc
from bloomery.drivers.base import DriverTask
from bloomery.drivers.boot_iso import image, parameters, sources
from bloomery.drivers.boot_iso.cache import BeingFetched, RamdiskFiles
from bloomery.outcome import Again

PROPERTIES: Final = {**sources.PROPERTIES, **parameters.PROPERTIES}
_PAUSE_S: Final = 2.0
_MODE: Final = 0o644  # a web server may run as another user


class AgentIsos:
    def __init__(self, conf: Conf) -> None:
        """Raises CannotStart for options that cannot be used."""
        self._conf = conf
        self._files = RamdiskFiles(conf)
        self._isolinux = image.find_isolinux(conf.default)
        self._folder = boot_isos.folder_in(conf.deploy.http_root)

    def validate(self, task: DriverTask, mode: str | None) -> None:
        """Raise MissingParameterValue or InvalidParameterValue unless one could be built.

        ``mode``: uefi, bios, or None where the machine's is not known.
        """
        named = sources.of(task, self._conf.conductor, mode)
        parameters.command_line(task, self._conf.redfish.kernel_append_params, {})
        if self._isolinux is None and (mode == "bios" or named.bootloader is None):
            raise errors.MissingParameterValue(
                reason="no boot loader for the agent's CD: install ISOLINUX, or name it as "
                "[DEFAULT]isolinux_bin, for BIOS mode; name a bootloader for UEFI mode",
            )
        self._base_url()

    def build(self, task: DriverTask, mode: str | None, params: Mapping[str, str]) -> Again | None:
        """Build and publish the node's CD.  Raises StepFailure."""
        line = parameters.command_line(
            task, self._conf.redfish.kernel_append_params,
            {**params, **parameters.boot_interface(task), "boot_method": "vmedia"},
        )  # fmt: skip
        named = sources.of(task, self._conf.conductor, mode)
        with contextlib.ExitStack() as opened:
            try:
                contents = self._contents(named, line, opened)
            except BeingFetched:
                return Again(after_s=_PAUSE_S, reason="the agent's ramdisk is being fetched")
            self._publish(task, contents)
        return None

    def _contents(
        self, named: sources.Sources, line: str, opened: contextlib.ExitStack
    ) -> image.Contents:
        """Return what is to be on a CD, its files open."""

        def open_file(url: str) -> BinaryIO:
            return opened.enter_context(self._files.open(url))

        return image.Contents(
            kernel=open_file(named.kernel),
            ramdisk=open_file(named.ramdisk),
            bootloader=open_file(named.bootloader) if named.bootloader else None,
            isolinux=self._isolinux,
            grub_config=self._conf.default.grub_config_path,
            command_line=line,
        )

    def _publish(self, task: DriverTask, contents: image.Contents) -> None:
        if self._folder is None:
            raise errors.Unavailable(reason="[deploy]http_root names no folder")
        path = self._folder / boot_isos.new_name(task.node.uuid)
        part = path.with_name(path.name + boot_isos.PART)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as out:
                os.fchmod(out.fileno(), _MODE)
                image.write(contents, out)
            part.replace(path)
        except OSError as exc:
            self.remove(task)
            raise errors.StepFailure(
                reason=f"cannot build the agent's boot CD in {path.parent}: {exc.strerror}",
            ) from exc

    def url(self, task: DriverTask) -> str | None:
        """Return the address of the node's CD; None: this host has none."""
        for path in self._paths(task):
            if path.suffix != boot_isos.PART:
                return f"{self._base_url()}/{boot_isos.FOLDER}/{path.name}"
        return None

    def remove(self, task: DriverTask) -> None:
        """Remove what there is of the node; fine where there is nothing."""
        for path in self._paths(task):
            path.unlink(missing_ok=True)

    def _paths(self, task: DriverTask) -> list[Path]:
        paths = boot_isos.list_paths(self._folder) if self._folder else []
        return [path for path in paths if boot_isos.owner(path) == task.node.uuid]

    def _base_url(self) -> str:
        """Return the URL of what is in the folder's parent.

        The API hands it out where it shares a process, and thus a folder, with the conductor.
        """
        url = self._conf.deploy.http_url
        if url is None and self._conf.default.rpc_transport == rpc.NONE:
            url = self._conf.api.public_root
        if not url:
            raise errors.MissingParameterValue(
                reason="BMCs have no address for boot CDs: set [api]public_endpoint where API "
                "and conductor are one process, else [deploy]http_url to that of a web server "
                "that hands out [deploy]http_root",
            )
        return url.rstrip("/")
