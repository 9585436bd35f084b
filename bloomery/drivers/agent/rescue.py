"""The rescue interface ``agent``: the machine boots an agent, and its user logs in there."""

from __future__ import annotations

import random
import string
from typing import Final

from bloomery import errors
from bloomery.drivers import base, substeps
from bloomery.drivers.agent import client, commands, ramdisk
from bloomery.outcome import Outcome

_SENT: Final = "agent_rescue_told"  # in driver_internal_info: the password may have been sent
_PASSWORD: Final = "rescue_password"  # noqa: S105  in instance_info, sealed; also the agent's parameter
_PREFIXES: Final = {"sha256": "$5$", "sha512": "$6$"}  # of crypt(5)
_SALT: Final = 16, string.ascii_letters + string.digits


class AgentRescue(base.Rescue):
    def validate(self, task: base.DriverTask) -> None:
        """Raise unless an agent can boot."""
        task.driver.boot.validate_rescue(task)

    def rescue(self, task: base.DriverTask) -> Outcome:
        """Boot an agent, and have it set the password of its user ``rescue``."""
        params = ramdisk.kernel_parameters(self.conf)
        was_sent = _SENT in task.node.driver_internal_info  # before a crash
        return substeps.run_in_order(
            task,
            "agent_rescue",
            lambda: None if was_sent else ramdisk.boot(task, params, "rescuing"),
            lambda: commands.with_retries(task, self.conf, lambda: self._set_password(task)),
        )

    def unrescue(self, task: base.DriverTask) -> Outcome:
        return ramdisk.boot_instance(task, "agent_unrescue")

    def clean_up(self, task: base.DriverTask) -> Outcome | None:
        """Switch off and remove the agent."""
        return ramdisk.take_away(task)

    def _set_password(self, task: base.DriverTask) -> None:
        """Send the hash of the password.

        The agent ends once it has the password, so it answers no second call, as after a crash.
        """
        from oslo_utils import secretutils  # late: few machines are rescued

        memory, agent = task.node.driver_internal_info, client.of(task, self.conf)
        if not (_SENT in memory and _has_ended(agent)):
            memory[_SENT] = True
            task.save()
            length, letters = _SALT
            salt = "".join(random.SystemRandom().choices(letters, k=length))
            prefix = _PREFIXES[self.conf.conductor.rescue_password_hash_algorithm]
            password = task.opened(task.node.instance_info[_PASSWORD])
            hashed = str(secretutils.crypt_password(password, prefix + salt))
            params = {_PASSWORD: hashed, "hashed": True}
            try:
                commands.call(agent, "rescue.finalize_rescue", params)
            except errors.AgentUnreachable:
                if not _has_ended(agent):
                    raise
        memory.pop(_SENT, None)
        if task.driver.power.only_restarts:
            task.forget_agent()  # it restarts nothing any more
        node = task.node
        node.instance_info = {k: v for k, v in node.instance_info.items() if k != _PASSWORD}


def _has_ended(agent: client.AgentClient) -> bool:
    """Return whether the agent's machine refuses connections: the agent has ended."""
    try:
        agent.commands()
    except errors.AgentUnreachable as silent:
        return isinstance(silent.__cause__, ConnectionRefusedError)
    return False
