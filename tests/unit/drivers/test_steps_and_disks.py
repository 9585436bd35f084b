"""The steps that write no disk, by what they do; each other step counts as one that may."""

from __future__ import annotations

from importlib.metadata import entry_points

from bloomery.drivers import steps
from bloomery.model.node import INTERFACES

KEEP_DISKS = {
    "firmware.rollback", "firmware.update", "management.clear_bmc_log",
    "management.clear_job_queue", "management.known_good_state", "management.reset_idrac",
    "management.set_bmc_clock", "management.set_bmc_password", "vendor.bmc_reset",
    "vendor.log_passthrough", "vendor.trigger_servicewait",
}  # fmt: skip
MAY_WRITE = {  # settings of a BIOS may erase disks, as raw bytes may
    "bios.apply_configuration", "bios.factory_reset", "raid.apply_configuration",
    "raid.create_configuration", "raid.delete_configuration", "vendor.send_raw",
}  # fmt: skip


def test_each_step_that_a_user_may_ask_for_says_whether_it_keeps_the_disks() -> None:
    steps_by_fact: dict[bool, set[str]] = {True: set(), False: set()}
    for kind in INTERFACES:
        for point in entry_points(group=f"bloomery.hardware.interfaces.{kind}"):
            for phase in ("clean", "service"):
                for step in steps.marked_in(point.load(), kind, phase):
                    steps_by_fact[step.keeps_disks].add(f"{kind}.{step.step}")
    assert steps_by_fact == {True: KEEP_DISKS, False: MAY_WRITE}
