"""Commands to an agent over the turns of a step, of which any may be taken anew after a crash.

    commands.run(task, agent, "standby.prepare_image", params, "the agent writes the image")

What an agent was told is looked up at the agent before it is told again: the node remembers the
last command of before (``after``), then ours (``id``), and that it is ``done`` until the step is.
While a command runs the step waits for the agent's call, which comes at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from bloomery import errors
from bloomery.conf import Conf
from bloomery.drivers.agent import client
from bloomery.drivers.agent.client import AgentClient, Command
from bloomery.drivers.base import DriverTask
from bloomery.outcome import DONE, Outcome, WaitForCall

Json = dict[str, Any]

MEMORY: Final = "agent_command"  # in driver_internal_info: {"name", "after", "id", "done"}
_TRIES: Final = "agent_tries"  # there, too: how often the agent did not answer
_LOOK_S: Final = 3.0  # that a look may take while an agent's call is answered


class VersionMismatch(Exception):
    """The agent has other hardware managers than the step was planned for."""


def run(
    task: DriverTask, conf: Conf, name: str, params: Callable[[], Json], reason: str
) -> Outcome:
    """Have the agent carry out an asynchronous command; wait for its calls until it has.

    ``params`` are made only to be sent; ``reason`` says what is waited for.
    Raises StepFailure with the agent's words, AgentUnreachable after
    [agent]max_command_attempts of its calls, AgentRefused, VersionMismatch.
    """

    def work() -> Outcome | None:
        memory = _recall(task, name)
        if memory.get("done"):
            return None
        command = _begun(task, client.of(task, conf), name, params)
        if command.status == client.RUNNING:
            return WaitForCall(reason=reason, then="same")
        forget(task)
        _check(name, command)
        task.node.driver_internal_info[MEMORY] = {"name": name, "done": True}
        return None

    return with_retries(task, conf, work)


def forget(task: DriverTask) -> None:
    """Forget the command of a step that has ended."""
    task.node.driver_internal_info.pop(MEMORY, None)


def _recall(task: DriverTask, name: str) -> Json:
    """Return what the node remembers of a command; nothing of another one."""
    memory: Json = task.node.driver_internal_info.get(MEMORY) or {}
    return memory if memory.get("name") == name else {}


def call(agent: AgentClient, name: str, params: Json) -> Json:
    """Have the agent carry out a synchronous command; return its result.  Raises as ``run``."""
    command = agent.send(name, params)
    _check(name, command)
    return command.result


def with_retries(task: DriverTask, conf: Conf, work: Callable[[], Outcome | None]) -> Outcome:
    """Ask the agent; while it is busy, or does not answer, wait for its next call and ask anew.

    An agent that calls and cannot be reached is asked [agent]max_command_attempts times.
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
    """Tell, as the agent calls, whether the step that waits has something to do.

    So it is unless the agent says that the command of the step still runs.
    """
    memory = task.node.driver_internal_info.get(MEMORY)
    if not memory or "id" not in memory:
        return True
    try:
        listed = client.of(task, conf, _LOOK_S).commands()
    except errors.Failure:
        return True  # the step asks anew, and has the time to
    return not any(c.id == memory["id"] and c.status == client.RUNNING for c in listed)


def _begun(task: DriverTask, agent: AgentClient, name: str, params: Callable[[], Json]) -> Command:
    """Return the command of this step as it stands; send it if the agent does not know it yet."""
    info, listed = task.node.driver_internal_info, agent.commands()
    memory = _recall(task, name)
    if not memory:
        memory = info[MEMORY] = {"name": name, "after": listed[-1].id if listed else None}
        task.save()
    command = _find(memory, listed)
    if command is None:
        command = agent.send(name, params())
    info[MEMORY] = memory | {"id": command.id}
    return command


def _find(memory: Json, listed: Sequence[Command]) -> Command | None:
    """Return our command among those of the agent; None: it was never told.

    Raises StepFailure for one that it has forgotten.
    """
    if "id" in memory:
        ours = next((command for command in listed if command.id == memory["id"]), None)
        if ours is None:
            raise errors.StepFailure(
                reason=f"the agent knows nothing of {memory['name']}, which it had begun: it was "
                "started anew",
            )
        return ours
    ids = [command.id for command in listed]
    after = ids.index(memory["after"]) + 1 if memory["after"] in ids else 0
    short = memory["name"].rpartition(".")[2]
    return next((command for command in listed[after:] if command.name == short), None)


def _check(name: str, command: Command) -> None:
    """Raise unless the command has succeeded."""
    if command.status == client.SUCCEEDED:
        return
    if command.status.endswith("VERSION_MISMATCH"):
        raise VersionMismatch
    raise errors.StepFailure(reason=f"the agent failed {name}: {command.error or command.status}")
