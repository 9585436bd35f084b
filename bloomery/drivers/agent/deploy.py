"""The deploy interfaces of an agent in a ramdisk: ``direct`` and ``custom-agent``.

The boot interface boots the agent, whose heartbeats advance the flow (``commands``).  At the end
the agent shuts the machine down, which then boots its disk.  Steps and priorities are Ironic's, so
that other steps fit between them.
"""

from __future__ import annotations

import functools
import logging
from typing import Any, Final

from bloomery import errors, parsing
from bloomery.conductor.states import Power as PowerState
from bloomery.conf import Conf
from bloomery.drivers import autodetect, base, secure_boot, steps, substeps
from bloomery.drivers.agent import (
    agent_steps,
    attestation,
    client,
    commands,
    erasure,
    image,
    local_images,
    logs,
    oci,
    raid,
    ramdisk,
)
from bloomery.drivers.agent_boot import sources
from bloomery.drivers.agent_boot.cache import BeingFetched
from bloomery.drivers.agent_boot.publication import Publication
from bloomery.model.node import Node
from bloomery.model.step import Step
from bloomery.outcome import DONE, Again, Done, Outcome

LOG = logging.getLogger(__name__)

_LOOKS: Final = "agent_power_looks"  # in driver_internal_info: how often the machine was still on
_PARTITIONS: Final = "agent_partitions"  # in driver_internal_info: _UUIDS of a partition image
_UUIDS: Final = {  # parameters of the boot loader, and their names in the agent's answer
    "root_uuid": "root uuid",
    "efi_system_part_uuid": "efi system partition uuid",
    "prep_boot_part_uuid": "PReP Boot partition uuid",
}
_FETCH_PAUSE_S: Final = 5.0
_BY_BMC: Final = "deploy_forces_oob_reboot"  # in driver_info


class CustomAgentDeploy(base.Deploy):
    """An agent whose own steps, of priorities 61 to 99, install the machine."""

    asks_agents = True

    def __init__(self, conf: Conf) -> None:
        super().__init__(conf)
        self._logs = logs.RamdiskLogs(conf)
        self.attestation = attestation.Attestation(conf)

    def get_properties(self) -> dict[str, str]:
        return {
            client.CERTIFICATE: "How an agent that shows no certificate is trusted: True, False, "
            "or a file of CAs. Optional.",
            _BY_BMC: "True: the BMC cuts power after the agent has synced the disks. Optional.",
            **attestation.PROPERTIES,
        }

    def validate(self, task: base.DriverTask) -> None:
        """Raise unless an agent can boot."""
        task.driver.boot.validate_ramdisk(task)
        secure_boot.check(task)
        self.attestation.check(task)

    def expects_steps(self, node: Node, phase: str) -> bool:
        return not agent_steps.are_cached(node, phase)

    def agent_steps(self, node: Node, phase: str) -> list[Step]:
        """Return the agent's own steps, and those of its attestation."""
        proofs = self.attestation.list_steps(node, phase)
        return proofs + agent_steps.list_steps(node, phase, self.conf)

    def run_step(self, task: base.DriverTask, step: Step) -> Outcome:
        """Run a step of this class, or one of the agent's."""
        phase, name = agent_steps.phase_of(task), step.step
        if phase is None or name in {own.step for own in self.steps(phase)}:
            outcome = super().run_step(task, step)
        elif name in attestation.STEPS:
            outcome = self.attestation.run(task, step)
        elif name in erasure.STEPS:
            outcome = erasure.run(task, self.conf, step, phase)
        else:
            outcome = agent_steps.run(task, self.conf, step, phase)
        if isinstance(outcome, Done):
            commands.forget(task)
        return outcome

    def on_heartbeat(self, task: base.DriverTask, heartbeat: base.Heartbeat) -> Outcome | None:
        """Resume the step, unless the agent still runs its command."""
        return DONE if commands.may_go_on(task, self.conf) else None

    # ------------------------------------------------------------------------------- deploying

    @steps.deploy_step(priority=100, resumable=True)
    def deploy(self, task: base.DriverTask) -> Outcome:
        """Boot the agent, unless fast track uses one that runs; cache its steps."""
        return self._start_agent(task, "deploy")

    @steps.deploy_step(priority=60, resumable=True)
    def prepare_instance_boot(self, task: base.DriverTask) -> Outcome:
        """Set the machine to boot the instance.

        The agent writes the firmware's boot entry, and the boot loader of a partition.

        Secure boot may restart the machine and end the agent, so ``boot_instance`` handles it.
        """
        parts: list[substeps.Substep] = []
        mode = image.boot_mode(task, self.conf)
        partitions = task.node.driver_internal_info.get(_PARTITIONS) or {}
        is_on_raid = raid.is_on_software_raid(task)
        if mode == "uefi" or partitions or is_on_raid:
            # On a whole disk the agent finds the EFI partition itself.
            params = {name: partitions.get(name) for name in _UUIDS} | {"target_boot_mode": mode}
            if is_on_raid and not partitions:  # in mode bios the agent needs it
                params["root_uuid"] = task.node.instance_info.get(image.ROOT_UUID)
            reason = "the agent writes the boot entry of the machine"
            parts.append(functools.partial(
                commands.run, task, self.conf, "image.install_bootloader", lambda: params, reason
            ))  # fmt: skip
        if not secure_boot.is_asked(task.node):
            parts.append(lambda: task.driver.boot.prepare_instance(task))
        return substeps.run_in_order(task, "agent_instance_boot", *parts)

    @steps.deploy_step(priority=40, resumable=True)
    def tear_down_agent(self, task: base.DriverTask) -> Outcome:
        """Let the agent shut the machine down, or lock itself where power off is forbidden.

        An agent that restarts the machine itself stays until ``boot_instance``.
        """
        if task.driver.power.only_restarts:
            self.collect_logs(task, "deploy", failed=False)
            return DONE
        if task.node.disable_power_off:
            parts: tuple[substeps.Substep, ...] = (lambda: self._send(task, "system.lockdown"),)
        elif parsing.boolean(task.driver_info.get(_BY_BMC)):
            parts = (
                lambda: self._send(task, "standby.sync"),
                lambda: task.driver.power.set_power_state(task, PowerState.OFF),
            )
        else:
            parts = (
                lambda: self._shut_down(task),
                lambda: self._until_off(task),
                lambda: task.driver.power.set_power_state(task, PowerState.OFF),
            )
        return substeps.run_in_order(
            task,
            "agent_tear_down",
            lambda: self.collect_logs(task, "deploy", failed=False),
            *parts,
            task.forget_agent,
        )

    @steps.deploy_step(priority=30, resumable=True)
    def switch_to_tenant_network(self, task: base.DriverTask) -> Outcome | None:
        """Connect the ports to the networks of their user."""
        return task.driver.network.connect(task, "tenant")

    @steps.deploy_step(priority=20, resumable=True)
    def boot_instance(self, task: base.DriverTask) -> Outcome | None:
        """Switch the machine on, into its instance."""
        if not secure_boot.is_asked(task.node):
            return ramdisk.switch_on(task)
        return substeps.run_in_order(
            task,
            "agent_secure_boot",
            lambda: task.driver.boot.prepare_instance(task),
            lambda: ramdisk.switch_on(task),
        )

    def clean_up(self, task: base.DriverTask) -> Outcome | None:
        """Switch off and remove the agent."""
        return ramdisk.take_away(task)

    def tear_down(self, task: base.DriverTask) -> Outcome:
        """Switch off; cleaning erases the disk."""
        return substeps.run_in_order(
            task,
            "agent_undeploy",
            lambda: ramdisk.switch_off(task),
            lambda: task.driver.network.connect(task, "idle"),
            lambda: task.driver.boot.clean_up_instance(task),
        )

    # -------------------------------------------------------------------- cleaning and servicing

    def prepare_cleaning(self, task: base.DriverTask) -> Outcome:
        """Boot the agent, unless fast track uses one that runs; cache its steps."""
        return self._start_agent(task, "clean")

    def tear_down_cleaning(self, task: base.DriverTask) -> Outcome | None:
        return ramdisk.take_away(task)

    def prepare_service(self, task: base.DriverTask) -> Outcome:
        """Boot the agent in place of the instance and cache its steps."""
        return agent_steps.start_agent(task, self.conf, "service")

    def tear_down_service(self, task: base.DriverTask) -> Outcome:
        """Remove the agent and boot the instance again."""
        return ramdisk.boot_instance(task, "agent_service_end")

    def collect_logs(self, task: base.DriverTask, flow: str, *, failed: bool) -> None:
        self._logs.collect(task, flow, failed=failed)

    # ------------------------------------------------------------------------------ their parts

    def _start_agent(self, task: base.DriverTask, phase: str) -> Outcome:
        """Use the agent that runs; boot one otherwise."""
        is_ready = not task.turn and ramdisk.has_ready_agent(task, self.conf)
        return agent_steps.start_agent(task, self.conf, phase, boots=not is_ready)

    def _send(self, task: base.DriverTask, name: str) -> Outcome:
        """Send a short command; a crash may repeat it."""

        def send() -> None:
            commands.call(client.of(task, self.conf), name, {})

        return commands.with_retries(task, self.conf, send)

    def _shut_down(self, task: base.DriverTask) -> None:
        """Ask the agent to shut down; a failure is logged, and power is cut later."""
        if task.driver.power.get_power_state(task) == PowerState.OFF:
            return
        try:
            client.of(task, self.conf).send("standby.power_off", {})
        except (errors.AgentUnreachable, errors.AgentBusy, errors.AgentRefused) as exc:
            LOG.warning("node %s: its agent cannot shut it down: %s", task.node.uuid, exc)

    def _until_off(self, task: base.DriverTask) -> Outcome | None:
        """Wait for the machine to switch off, up to the configured number of polls."""
        options, memory = self.conf.agent, task.node.driver_internal_info
        looks = memory.pop(_LOOKS, 0)
        if looks >= options.post_deploy_get_power_state_retries:
            LOG.warning("node %s: still on after the agent's shutdown", task.node.uuid)
            return None
        if task.driver.power.get_power_state(task) == PowerState.OFF:
            return None
        memory[_LOOKS] = looks + 1
        pause_s = options.post_deploy_get_power_state_retry_interval
        return Again(after_s=pause_s, reason="the machine shuts down")


class AgentDeploy(CustomAgentDeploy):
    """The interface ``direct``: the agent writes an image to the disk, or to a partition."""

    def __init__(self, conf: Conf) -> None:
        super().__init__(conf)
        self._publication = Publication(conf)
        self._images = local_images.LocalImages(conf, self._publication)

    def get_properties(self) -> dict[str, str]:
        return image.PROPERTIES | super().get_properties()

    def takes(self, node: Node) -> bool:
        is_container = autodetect.recall(node) == oci.CONTAINER
        return node.instance_info.get("image_source") is not None and not is_container

    def validate(self, task: base.DriverTask) -> None:
        """Raise unless an agent can boot and can write the image of instance_info."""
        super().validate(task)  # first: cleaning needs only the agent
        image.check(task, self.conf)
        source = str(task.opened(task.node.instance_info["image_source"]))
        if sources.local_path(source) is not None or self._fetches(task):
            self._publication.base_url()

    def remote_files(self, task: base.DriverTask) -> list[base.RemoteFile]:
        """Return the image, and its file of checksums."""
        return self._images.remote_files(task)

    @steps.deploy_step(priority=80, resumable=True)
    def write_image(self, task: base.DriverTask) -> Outcome:
        """Have the agent write the image and the config drive."""
        parts: list[substeps.Substep] = [
            lambda: self.attestation.ensure(task), lambda: self._write(task),
        ]  # fmt: skip
        if image.is_partition(task.node.instance_info):
            note = functools.partial(self._note_partitions, task)
            parts.append(lambda: commands.with_retries(task, self.conf, note))
        return substeps.run_in_order(task, "agent_write", *parts)

    def _write(self, task: base.DriverTask) -> Outcome:
        def params() -> dict[str, Any]:
            publish = self._images.publish if self._fetches(task) else self._images.publish_local
            # The boot interface removes the published image with its files.
            return image.parameters(task, self.conf, publish(task))

        try:
            reason = "the agent writes the image"
            return commands.run(task, self.conf, "standby.prepare_image", params, reason)
        except BeingFetched:
            return Again(after_s=_FETCH_PAUSE_S, reason="the image is being fetched")

    def _fetches(self, task: base.DriverTask) -> bool:
        return image.download_source(task, self.conf) == image.LOCAL

    def _note_partitions(self, task: base.DriverTask) -> None:
        """Ask the agent for the UUIDs of its partitions, which the boot loader needs."""
        answer = commands.call(client.of(task, self.conf), "standby.get_partition_uuids", {})
        uuids = {ours: answer.get(theirs) for ours, theirs in _UUIDS.items()}
        if not isinstance(uuids["root_uuid"], str):
            raise errors.StepFailure(
                reason="the agent does not name the root partition that it has made",
            )
        task.node.driver_internal_info[_PARTITIONS] = uuids
