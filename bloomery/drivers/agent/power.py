"""The power interface ``agent``: the agent of a machine without a BMC restarts it.

An operator switches the machine on, and restarts it where no agent runs.  Needs fast track, as the
agent of the last flow serves the next one.  Source: Ironic's interface of that name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bloomery import clock, errors
from bloomery.conductor.states import Power as PowerState
from bloomery.conf import Conf
from bloomery.drivers import base
from bloomery.drivers.agent import client, ramdisk
from bloomery.model.rules import agents
from bloomery.outcome import DONE, Outcome

_SENT: Final = "agent_told_to_restart"  # in driver_internal_info
_STATES: Final = (PowerState.REBOOT, PowerState.SOFT_REBOOT)


class AgentPower(base.Power):
    only_restarts = True

    def validate(self, task: base.DriverTask) -> None:
        """Raise InvalidParameterValue unless fast track is on."""
        if not ramdisk.has_fast_track(task, self.conf):
            raise errors.InvalidParameterValue(
                reason="power interface agent needs fast track, so that an agent stays on the "
                "machine: set [deploy]fast_track, or driver_info/fast_track of the node",
            )

    def get_power_state(self, task: base.DriverTask) -> str | None:
        """Return ``power on`` while the agent sends heartbeats, else None."""
        return PowerState.ON if _has_live_agent(task, self.conf) else None

    def set_power_state(
        self, task: base.DriverTask, state: str, timeout_s: float | None = None
    ) -> Outcome:
        """Restart the machine.  Raises PowerStateFailure for states other than those offered."""
        if state not in _STATES:
            raise errors.PowerStateFailure(
                state=state,
                reason=f"power interface agent of node {errors.name_of(task.node)} restarts the "
                "machine alone: an operator switches it on or off",
            )
        return self.reboot(task, timeout_s)

    def reboot(self, task: base.DriverTask, timeout_s: float | None = None) -> Outcome:
        """Have the agent restart the machine, which ends the agent.

        An agent that got the command before a crash, and answers no more, has done it.  Raises
        PowerStateFailure without an agent, AgentUnreachable, AgentBusy, AgentRefused.
        """
        memory = task.node.driver_internal_info
        was_sent = memory.pop(_SENT, False)
        if not was_sent:
            if not _has_live_agent(task, self.conf):
                raise errors.PowerStateFailure(
                    state=PowerState.REBOOT,
                    reason=f"no agent runs on node {errors.name_of(task.node)}: restart the "
                    "machine by hand",
                )
            memory[_SENT] = True
            task.save()
            del memory[_SENT]
        try:
            client.of(task, self.conf, timeout_s).send("standby.run_image", {})
        except (errors.AgentUnreachable, errors.AgentRefused):
            if not was_sent:
                raise
        task.forget_agent()
        task.node.power_state = PowerState.ON
        return DONE

    def get_supported_power_states(self, task: base.DriverTask) -> Sequence[str]:
        return _STATES

    def supports_power_sync(self, task: base.DriverTask) -> bool:
        return False


def _has_live_agent(task: base.DriverTask, conf: Conf) -> bool:
    info, timeout_s = task.node.driver_internal_info, conf.deploy.fast_track_timeout
    return agents.has_live_agent(info, timeout_s, clock.now())
