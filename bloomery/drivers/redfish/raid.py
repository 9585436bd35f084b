"""RAID by Redfish: volumes are deleted and created one after another, over several attempts.

``driver_internal_info`` stores the remaining work, and a volume on the drives of an existing one is
not created again: so the steps may be repeated.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from bloomery import clock, errors
from bloomery.drivers import base, raid_config, steps
from bloomery.drivers.redfish import tasks, volumes
from bloomery.drivers.redfish.hardware import RedfishInterface, T
from bloomery.outcome import Again, Done, Outcome

Json = dict[str, Any]

_MEMORY: Final = "redfish_raid"
_LIMIT_S: Final = 24 * 3600.0  # for one step: large volumes take hours
_FLAGS: Final = {
    "create_root_volume": "create the volume with is_root_volume",
    "create_nonroot_volumes": "create the other volumes",
    "delete_existing": "delete the volumes that are there before",
}
_CREATE_ARGS: Final = {
    name: {"description": text, "required": False} for name, text in _FLAGS.items()
}
_APPLY_ARGS: Final = {
    "raid_config": {"description": "the volumes, as states/raid takes them", "required": True},
    **_CREATE_ARGS,
}


class RedfishRaid(RedfishInterface, base.Raid):
    def validate_raid_config(self, task: base.DriverTask, config: Mapping[str, Any]) -> None:
        raid_config.check(config)
        volumes.check(config)

    @steps.out_of_band_step(_CREATE_ARGS)
    def create_configuration(
        self,
        task: base.DriverTask,
        create_root_volume: bool = True,
        create_nonroot_volumes: bool = True,
        delete_existing: bool = False,
    ) -> Outcome:
        """Create the volumes of ``target_raid_config``."""
        target = raid_config.target_of(task.node)
        return self._make(task, target, create_root_volume, create_nonroot_volumes, delete_existing)

    @steps.out_of_band_step(_APPLY_ARGS)
    def apply_configuration(
        self,
        task: base.DriverTask,
        raid_config: Any,
        create_root_volume: bool = True,
        create_nonroot_volumes: bool = False,
        delete_existing: bool = False,
    ) -> Outcome:
        """Create the volumes of the argument."""
        self.validate_raid_config(task, raid_config)
        return self._make(
            task, raid_config, create_root_volume, create_nonroot_volumes, delete_existing
        )

    @steps.out_of_band_step()
    def delete_configuration(self, task: base.DriverTask) -> Outcome:
        """Delete all volumes."""
        return self._make(task, {}, root=False, others=False, delete_existing=True)

    def _make(
        self, task: base.DriverTask, config: Mapping[str, Any], root: bool, others: bool,
        delete_existing: bool,
    ) -> Outcome:  # fmt: skip
        """Run an attempt; an error drops the stored position."""
        disks = raid_config.select(config, root=root, others=others)
        try:
            return _Change(self, task, disks, delete_existing=delete_existing).run()
        except (errors.StepFailure, errors.Invalid, errors.BmcRefused):
            task.node.driver_internal_info.pop(_MEMORY, None)
            raise


class _Change:
    """A running step; ``driver_internal_info`` stores its position.

    ``delete``: paths of volumes.  ``create``: requests, None until planned.  ``monitors``:
    unfinished tasks of the BMC.  ``restart``: the changes apply at the next boot.
    """

    def __init__(
        self,
        interface: RedfishRaid,
        task: base.DriverTask,
        disks: list[Json],
        *,
        delete_existing: bool,
    ) -> None:
        self._interface, self._access = interface, interface.access
        self._task, self._disks = task, disks
        self._pause_s = float(interface.conf.redfish.raid_config_status_interval)
        request = json.dumps([disks, delete_existing], sort_keys=True)
        digest = hashlib.sha256(request.encode()).hexdigest()[:16]
        memory = task.node.driver_internal_info.get(_MEMORY)
        if memory is None or memory["asked"] != digest:
            until = clock.now() + timedelta(seconds=_LIMIT_S)
            memory = {
                "asked": digest, "delete": None if delete_existing else [], "create": None,
                "monitors": [], "restart": False, "until": until.isoformat(),
            }  # fmt: skip
            task.node.driver_internal_info[_MEMORY] = memory
        self._memory: Json = memory

    def run(self) -> Outcome:
        """Work until the BMC needs time.  Raises StepFailure, BmcRefused, BmcUnreachable."""
        memory = self._memory
        while True:
            work: Callable[[], Outcome | None]
            if memory["monitors"] and not memory["restart"]:
                work = self._poll
            elif memory["delete"] is None:
                work = self._plan_deletion
            elif memory["delete"]:
                work = self._delete
            elif memory["restart"] and not memory["create"]:
                work = self._restart
            elif memory["create"] is None:
                work = self._plan_creation
            elif memory["create"]:
                work = self._create
            else:
                break
            outcome = work()
            if outcome is not None and not isinstance(outcome, Done):
                return outcome
            self._task.save()
        config = self._access.read(self._task, volumes.raid_config)
        del self._task.node.driver_internal_info[_MEMORY]
        return Done(result={"node": {"raid_config": config}})

    def _plan_deletion(self) -> None:
        existing = self._access.read(self._task, volumes.existing)
        self._memory["delete"] = [volume.path for volume in existing]

    def _plan_creation(self) -> None:
        requests = self._access.read(self._task, lambda system: volumes.plan(system, self._disks))
        self._memory["create"] = requests

    def _delete(self) -> None:
        path = self._memory["delete"][0]
        self._note(*self._change(lambda system: volumes.delete(system, path)))
        del self._memory["delete"][0]

    def _create(self) -> None:
        request = self._memory["create"][0]
        self._note(*self._change(lambda system: volumes.create(system, request)))
        del self._memory["create"][0]

    def _change(self, work: Callable[[Any], T]) -> T:
        """Make a change; jobs of this step are never in the way of its next change."""
        is_first = not self._memory["monitors"] and not self._memory["restart"]
        work = self._interface.unblocked(work) if is_first else work
        return self._access.change(self._task, work, repeatable=True)

    def _note(self, when: str | None, monitor: str | None) -> None:
        if monitor is not None:
            self._memory["monitors"].append(monitor)
        if when == volumes.ON_RESET:
            self._memory["restart"] = True

    def _restart(self) -> Outcome | None:
        outcome = self._task.driver.power.reboot(self._task)
        if isinstance(outcome, Done):
            self._memory["restart"] = False
        return outcome

    def _poll(self) -> Outcome | None:
        """Poll the first unfinished task."""
        monitor = self._memory["monitors"][0]
        state = self._access.read(
            self._task, lambda system: tasks.state(system, monitor, "change the volumes")
        )
        if state == tasks.COMPLETED:
            del self._memory["monitors"][0]
            return None
        if clock.now() >= datetime.fromisoformat(self._memory["until"]):
            raise errors.StepFailure(
                reason=f"the BMC has not changed its volumes within {_LIMIT_S / 3600:g} h",
            )
        return Again(after_s=self._pause_s, reason="the BMC changes its volumes")
