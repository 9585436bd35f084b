"""The RAID interface ``agent``: the node's agent builds RAID, such as software RAID by Linux.

Source of the rules: Ironic's RAID interface ``agent``, and ironic-python-agent.
"""

from __future__ import annotations

from typing import Any, Final

from bloomery import clock, errors
from bloomery.drivers import base
from bloomery.drivers.agent import agent_steps
from bloomery.model.step import Step
from bloomery.outcome import Outcome

_CREATES: Final = "create_configuration"
_DELETES: Final = "delete_configuration"
_SOFTWARE: Final = "software"  # the controller of a logical disk that Linux makes


class AgentRaid(base.Raid):
    asks_agents = True

    def validate(self, task: base.DriverTask) -> None:
        """Raise unless the deploy interface of the node boots agents."""
        if not task.driver.deploy.asks_agents:
            raise errors.InvalidParameterValue(
                reason=f"raid interface {self.name} of node {errors.name_of(task.node)} needs an "
                f"agent, which deploy interface {task.driver.deploy.name} does not boot: use "
                "direct",
            )

    def run_step(self, task: base.DriverTask, step: Step) -> Outcome:
        """Run a step of the agent; ``raid_config`` becomes what the agent has built."""
        phase = agent_steps.phase_of(task)
        if phase is None:
            return super().run_step(task, step)  # which names the step
        if step.step == _CREATES and not task.node.target_raid_config:
            raise errors.MissingParameterValue(
                reason=f"node {errors.name_of(task.node)} has no target_raid_config: PUT "
                "states/raid sets it",
            )
        return agent_steps.run(
            task, self.conf, step, phase,
            store=lambda answer: _store(task, {} if step.step == _DELETES else answer),
        )  # fmt: skip


def is_on_software_raid(task: base.DriverTask) -> bool:
    """Return whether the agent has built the node's RAID by Linux."""
    built = (task.node.raid_config or {}).get("logical_disks", ())
    return any(disk.get("controller") == _SOFTWARE for disk in built)


def _store(task: base.DriverTask, built: Any) -> None:
    """Set ``raid_config``, and the properties that follow from the root volume.

    Raises StepFailure for an answer that is no configuration.
    """
    node = task.node
    if not built:
        node.raid_config = {}
        return
    facts: dict[str, Any] = {}
    try:
        roots = [disk for disk in built["logical_disks"] if disk.get("is_root_volume")]
        for root in roots[:1]:
            if root["size_gb"] != "MAX":
                facts["local_gb"] = int(root["size_gb"])
            if hint := root.get("root_device_hint"):
                facts["root_device"] = hint
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise errors.StepFailure(
            reason=f"the agent's answer is no RAID configuration: {exc!r}"
        ) from exc
    node.raid_config = built | {"last_updated": clock.now().isoformat()}
    node.properties = node.properties | facts
