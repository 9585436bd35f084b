"""Fake BIOS, firmware, RAID and storage: the configuration exists only in rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bloomery.drivers import base, raid_config, steps
from bloomery.drivers.fake.behaviour import FakeInterface
from bloomery.outcome import DONE, Done, Outcome

Json = dict[str, Any]

_FLAGS: Final = {
    "create_root_volume": "create the volume that the system boots from; default: true",
    "create_nonroot_volumes": "create the other volumes; default: true",
}
_CREATE_ARGS: Final = {
    name: {"description": text, "required": False} for name, text in _FLAGS.items()
}
_APPLY_ARGS: Final = {
    "raid_config": {"description": "the volumes: as states/raid takes it", "required": True},
    **_CREATE_ARGS,
    "delete_existing": {
        "description": "delete the volumes that are there; default: true",
        "required": False,
    },
}
_FIRMWARE_ARGS: Final = {
    "settings": {
        "description": "list of {component, url}, in this order",
        "required": True,
        "items": {
            "component": {"description": "bios or bmc", "required": True},
            "url": {"description": "of the firmware file", "required": True},
        },
    },
}


class FakeBios(FakeInterface, base.Bios):
    """A BIOS with the settings that were applied last."""

    @steps.out_of_band_step(steps.BIOS_SETTINGS)
    def apply_configuration(self, task: base.DriverTask, settings: Any) -> Outcome:
        """Replace the node's settings by these."""
        entries = steps.checked_entries("settings", settings, ("name", "value"))
        applied = {entry["name"]: entry["value"] for entry in entries}
        stored = [
            {"name": name, "value": None if value is None else str(value)}
            for name, value in applied.items()
        ]
        return self.act(task, "apply_configuration") or Done(result={"bios_settings": stored})

    @steps.out_of_band_step()
    def factory_reset(self, task: base.DriverTask) -> Outcome:
        """Forget all settings."""
        return self.act(task, "factory_reset") or Done(result={"bios_settings": []})


class FakeFirmware(FakeInterface, base.Firmware):
    """Firmware that accepts every update and does not change."""

    @steps.keeps_disks
    @steps.out_of_band_step(_FIRMWARE_ARGS)
    def update(self, task: base.DriverTask, settings: Any) -> Outcome:
        steps.checked_entries("settings", settings, ("component", "url"))
        return self.act(task, "update") or DONE


class FakeRaid(FakeInterface, base.Raid):
    """A controller whose volumes are ``raid_config`` of the node."""

    @steps.out_of_band_step(_CREATE_ARGS)
    def create_configuration(
        self,
        task: base.DriverTask,
        create_root_volume: bool = True,
        create_nonroot_volumes: bool = True,
    ) -> Outcome:
        """Create the volumes of ``target_raid_config``."""
        target = raid_config.target_of(task.node)
        return self._create(
            task, "create_configuration", target, create_root_volume, create_nonroot_volumes
        )

    @steps.out_of_band_step(_APPLY_ARGS)
    def apply_configuration(
        self,
        task: base.DriverTask,
        raid_config: Any,
        create_root_volume: bool = True,
        create_nonroot_volumes: bool = True,
        delete_existing: bool = True,
    ) -> Outcome:
        """Create these volumes, in addition to the existing ones or in their place."""
        self.validate_raid_config(task, raid_config)
        kept = [] if delete_existing else task.node.raid_config.get("logical_disks") or ()
        return self._create(
            task, "apply_configuration", raid_config, create_root_volume, create_nonroot_volumes,
            kept,
        )  # fmt: skip

    @steps.out_of_band_step()
    def delete_configuration(self, task: base.DriverTask) -> Outcome:
        """Delete all volumes."""
        return self.act(task, "delete_configuration") or Done(result={"node": {"raid_config": {}}})

    def _create(
        self, task: base.DriverTask, method: str, config: Mapping[str, Any], root: bool,
        others: bool, kept: Sequence[Json] = (),
    ) -> Outcome:  # fmt: skip
        chosen = raid_config.select(config, root=root, others=others)
        volumes = [*kept, *(volume for volume in chosen if volume not in kept)]
        node = {"raid_config": {"logical_disks": volumes}}
        return self.act(task, method) or Done(result={"node": node})


class FakeStorage(FakeInterface, base.Storage):
    """Volumes that are always attached."""
