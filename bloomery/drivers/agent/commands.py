"""Commands to an agent over the attempts of a step; any attempt may be repeated after a crash.

    commands.run(task, agent, "standby.prepare_image", params, "the agent writes the image")

Before a command is sent, the agent's list shows whether it was sent already.  The node stores the
command before ours (``after``), then ours (``id``), and ``done`` until the step ends.  While a
command runs, the step waits for the agent's heartbeat at its end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from bloomery import errors
from bloomery.conf import Conf
from bloomery.drivers.agent import client
from bloomery.drivers.agent.client import AgentClient, Command
from bloomery.drivers.base import DriverTask
from bloomery.outcome import DONE, Outcome, WaitForCall

Json = dict[str, Any]

MEMORY: Final = "agent_command"  # in driver_internal_info: {"name", "after", "id", "done"}
_TRIES: Final = "agent_tries"  # in driver_internal_info: how often the agent did not answer
_LOOK_S: Final = 3.0  # time limit of a request to the agent during its heartbeat


class VersionMismatch(Exception):
    """The agent's hardware managers differ from those of the cached steps."""


def run(
    task: DriverTask,
    conf: Conf,
    name: str,
    params: Callable[[], Json],
    reason: str,
    store: Callable[[Json], None] = lambda _result: None,
) -> Outcome:
    """Run an asynchronous command; wait for heartbeats until it has ended.

    ``params`` is called only to send the command; ``reason`` describes the wait.  ``store`` sets
    fields of the task's node from the command's result.  Raises StepFailure with the agent's
    message, AgentUnreachable after [agent]max_command_attempts heartbeats, AgentRefused,
    VersionMismatch.
    """

    def work() -> Outcome | None:
        memory = _recall(task, name)
        if memory.get("done"):
            return None
        command = _find_or_send(task, client.of(task, conf), name, params)
        if command.status == client.RUNNING:
            return WaitForCall(reason=reason, then="same")
        forget(task)
        _check(name, command)
        store(command.result)
        task.node.driver_internal_info[MEMORY] = {"name": name, "done": True}
        return None

    return with_retries(task, conf, work)


def forget(task: DriverTask) -> None:
    task.node.driver_internal_info.pop(MEMORY, None)


def _recall(task: DriverTask, name: str) -> Json:
    memory: Json = task.node.driver_internal_info.get(MEMORY) or {}
    return memory if memory.get("name") == name else {}


def call(agent: AgentClient, name: str, params: Json) -> Json:
    """Run a synchronous command; return its result.  Raises as ``run``."""
    command = agent.send(name, params)
    _check(name, command)
    return command.result


def with_retries(task: DriverTask, conf: Conf, work: Callable[[], Outcome | None]) -> Outcome:
    """Run ``work``; while the agent is busy or silent, wait for its next heartbeat and retry.

    An agent that sends heartbeats and does not answer is asked [agent]max_command_attempts times.
    """
    memory, most = task.node.driver_internal_info, conf.agent.max_command_attempts
    try:
        outcome = work() or DONE
    except errors.AgentBusy as busy:
        return WaitForCall(reason=str(busy), then="same")
    except errors.AgentUnreachable as silent:
        tries = memory.pop(_TRIES, 0) + 1
        if tries >= most:
            raise
        memory[_TRIES] = tries
        again = f"{silent}; it is asked again when it calls (try {tries} of {most})"
        return WaitForCall(reason=again, then="same")
    memory.pop(_TRIES, None)
    return outcome


def may_go_on(task: DriverTask, conf: Conf) -> bool:
    """Return whether a heartbeat resumes the waiting step: not while its command still runs."""
    memory = task.node.driver_internal_info.get(MEMORY)
    if not memory or "id" not in memory:
        return True
    try:
        listed = client.of(task, conf, _LOOK_S).commands()
    except errors.Failure:
        return True  # the step asks again, with more time
    return not any(c.id == memory["id"] and c.status == client.RUNNING for c in listed)


def _find_or_send(
    task: DriverTask, agent: AgentClient, name: str, params: Callable[[], Json]
) -> Command:
    """Return the step's command from the agent's list, or send it where it was never sent.

    Raises StepFailure for a command that the agent has forgotten.
    """
    info, listed = task.node.driver_internal_info, agent.commands()
    memory = _recall(task, name)
    if not memory:
        memory = info[MEMORY] = {"name": name, "after": listed[-1].id if listed else None}
        task.save()
    if "id" in memory:
        command = next((command for command in listed if command.id == memory["id"]), None)
        if command is None:
            raise errors.StepFailure(
                reason=f"the agent has restarted: it does not know {name}, which it had started",
            )
    else:
        ids = [command.id for command in listed]
        after = ids.index(memory["after"]) + 1 if memory["after"] in ids else 0
        short = name.rpartition(".")[2]
        later = (command for command in listed[after:] if command.name == short)
        command = next(later, None) or agent.send(name, params())
    info[MEMORY] = memory | {"id": command.id}
    return command


def _check(name: str, command: Command) -> None:
    """Raise unless the command has succeeded."""
    if command.status == client.SUCCEEDED:
        return
    if command.status.endswith("VERSION_MISMATCH"):
        raise VersionMismatch
    raise errors.StepFailure(reason=f"the agent failed {name}: {command.error or command.status}")
