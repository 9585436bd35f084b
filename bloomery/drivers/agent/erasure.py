"""Steps of an agent that erase disks, and the proof of what was erased.

The agent's answer to ``erase_devices`` names the disks that it has erased.  A disk that it cannot
erase fails the step.  The inventory of the same boot tells their serial numbers.  Source of the
answers: the generic hardware manager of ironic-python-agent.
"""

from __future__ import annotations

from typing import Any, Final

from bloomery import clock, errors
from bloomery.conf import Conf
from bloomery.drivers.agent import agent_steps, client, commands
from bloomery.drivers.base import DriverTask
from bloomery.model.step import Step
from bloomery.outcome import DONE, Done, Outcome

WHOLE: Final = "erase_devices"
STEPS: Final = (WHOLE, "erase_devices_express", "erase_devices_metadata")
_MEMORY: Final = "agent_erasure"  # in driver_internal_info while the step waits
_SKIPS: Final = "skip_block_devices"  # in properties: disks that the operator excludes
_FACTS: Final = ("name", "serial", "wwn", "vendor", "model", "size", "rotational")

Json = dict[str, Any]


def run(task: DriverTask, conf: Conf, step: Step, phase: str) -> Outcome:
    """Run a step of STEPS; the result has its proof as ``erasure``.

    Steps that erase metadata name no disks: they erase all, or fail.  Where disks are excluded,
    such a step proves nothing of any disk.

    Raises StepFailure where ``erase_devices`` left out a disk, none is excluded, and
    [deploy]allow_partial_erasure is off; else as ``agent_steps.run``.
    """
    node = task.node
    memory: Json = node.driver_internal_info.pop(_MEMORY, {})
    memory.setdefault("began_at", clock.now().isoformat())

    def store(erased: Any) -> None:
        memory["erased"] = sorted(erased) if isinstance(erased, dict) else None

    def read_disks() -> None:
        inventory = commands.call(client.of(task, conf), "poll.get_hardware_info", {})
        try:
            disks = inventory.get("disks") or ()
            memory["disks"] = [{name: disk.get(name) for name in _FACTS} for disk in disks]
        except (AttributeError, TypeError) as exc:
            raise errors.StepFailure(
                reason=f"the agent's inventory has no list of disks: {exc!r}"
            ) from exc

    outcome = DONE if memory.get("has_run") else agent_steps.run(task, conf, step, phase, store)
    if isinstance(outcome, Done):
        memory["has_run"] = True
        outcome = commands.with_retries(task, conf, read_disks)
    if not isinstance(outcome, Done):
        node.driver_internal_info[_MEMORY] = memory
        return outcome
    excluded = node.properties.get(_SKIPS) or []
    disks, erased = memory["disks"], memory.get("erased")
    if erased is None:
        erased = [] if excluded else [disk["name"] for disk in disks]
    unseen = sorted(set(erased) - {disk["name"] for disk in disks})
    disks = [*disks, *(dict.fromkeys(_FACTS) | {"name": name} for name in unseen)]
    remaining = [disk["name"] for disk in disks if disk["name"] not in erased]
    is_allowed = bool(excluded) or conf.deploy.allow_partial_erasure
    if step.step == WHOLE and remaining and not is_allowed:
        raise errors.StepFailure(
            reason=f"the agent did not erase {', '.join(remaining)}: exclude such disks by "
            f"properties/{_SKIPS}, or set [deploy]allow_partial_erasure",
        )
    proof = {
        "step": step.step,
        "began_at": memory["began_at"],
        "ended_at": clock.now().isoformat(),
        "methods": _methods(conf, step.step),
        "excluded": excluded,
        "agent": node.driver_internal_info.get("agent_version"),
        "disks": [disk | {"is_erased": disk["name"] in erased} for disk in disks],
    }
    return Done(result={"erasure": proof})


def _methods(conf: Conf, step: str) -> list[str]:
    """Return what the agent was allowed to do, in the order in which it tries."""
    deploy = conf.deploy
    if step != WHOLE:
        express = ["NVMe secure erase"] if step != STEPS[-1] else []
        return [*express, "metadata alone: partition tables and signatures"]
    secure = [
        name
        for name, is_enabled in (
            ("NVMe secure erase", deploy.enable_nvme_secure_erase),
            ("ATA secure erase", deploy.enable_ata_secure_erase),
        )
        if is_enabled
    ]
    passes = f"{deploy.shred_random_overwrite_iterations} random"
    zeros = ", then zeros" if deploy.shred_final_overwrite_with_zeros else ""
    skips = ["read-only disks are skipped"] if deploy.erase_skip_read_only else []
    return [*secure, f"overwrite: {passes}{zeros}", *skips]
