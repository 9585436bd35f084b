"""The deploy interface ``ramdisk``: boot an ISO persistently and write no disk.

``instance_info/boot_iso`` names it; the boot interface makes the machine boot it.
"""

from __future__ import annotations

from typing import Any, Final

from bloomery import errors
from bloomery.conductor.states import Power as PowerState
from bloomery.drivers import base, secure_boot, steps, substeps
from bloomery.model.node import Node
from bloomery.model.rules import attributes
from bloomery.outcome import Outcome

_NEEDS: Final = "ramdisk_boot"
_SCHEMES: Final = ("http", "https", "file")


class RamdiskDeploy(base.Deploy):
    def validate(self, task: base.DriverTask) -> None:
        """Raise unless the node names an ISO and can boot one."""
        boot = task.driver.boot
        if _NEEDS not in boot.capabilities:
            raise errors.InvalidParameterValue(
                reason=f"deploy_interface ramdisk needs a boot interface that can {_NEEDS}; "
                f"{boot.name} cannot",
            )
        node = task.node
        url: Any = task.opened(node.instance_info.get("boot_iso"))
        if url is None and node.instance_info.get("image_source") is not None:
            raise errors.MissingParameterValue(
                reason="its deploy interface is ramdisk, which boots an ISO; an image needs "
                f"direct: baremetal node set {errors.name_of(node)} --deploy-interface direct",
            )
        if url is None:
            raise errors.MissingParameterValue(
                reason="instance_info/boot_iso is missing: the URL of the ISO to boot",
            )
        attributes.check_url("instance_info/boot_iso", url, _SCHEMES)
        secure_boot.check(task)
        boot.validate(task)

    def list_ineffective(self, task: base.DriverTask) -> list[str]:
        """Return the settings of proofs, which only agents give."""
        names = ("attestation_ek", "attestation_pcrs")
        return [f"driver_info/{name}" for name in names if task.driver_info.get(name)]

    def takes(self, node: Node) -> bool:
        return node.instance_info.get("boot_iso") is not None

    def remote_files(self, task: base.DriverTask) -> list[base.RemoteFile]:
        """Return the ISO; one of this host is checked by the boot interface."""
        url = str(task.opened(task.node.instance_info["boot_iso"]))
        return [base.RemoteFile(name="instance_info/boot_iso", url=url)]

    @steps.deploy_step(priority=100, resumable=True)
    def deploy(self, task: base.DriverTask) -> Outcome:
        """Check the machine, switch off, connect its ports, prepare the boot, switch on."""
        return substeps.run_in_order(
            task,
            "ramdisk_deploy",
            lambda: task.driver.boot.check_machine(task),
            lambda: task.driver.power.set_power_state(task, PowerState.OFF),
            lambda: task.driver.network.connect(task, "tenant"),
            lambda: task.driver.boot.prepare_instance(task),
            lambda: task.driver.power.set_power_state(task, PowerState.ON),
        )

    def tear_down(self, task: base.DriverTask) -> Outcome:
        """Switch off and remove the ISO."""
        return substeps.run_in_order(
            task,
            "ramdisk_tear_down",
            lambda: task.driver.power.set_power_state(task, PowerState.OFF),
            lambda: task.driver.network.connect(task, "idle"),
            lambda: task.driver.boot.clean_up_instance(task),
        )
