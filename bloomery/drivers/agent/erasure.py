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

    Raises StepFailure where ``erase_devices`` left out a disk that nobody has excluded, and
    [deploy]allow_partial_erasure is off; else as ``agent_steps.run``.
    """
    memory: Json = task.node.driver_internal_info.pop(_MEMORY, {})
    memory.setdefault("began_at", clock.now().isoformat())

    def store(erased: Any) -> None:
        memory["erased"] = sorted(erased) if isinstance(erased, dict) else None

    def read_disks() -> None:
        memory["disks"] = _disks(task, conf)

    outcome = DONE if memory.get("has_run") else agent_steps.run(task, conf, step, phase, store)
    if isinstance(outcome, Done):
        memory["has_run"] = True
        outcome = commands.with_retries(task, conf, read_disks)
    if not isinstance(outcome, Done):
        task.node.driver_internal_info[_MEMORY] = memory
        return outcome
    proof = _proof(task, conf, step.step, memory)
    left = [disk["name"] for disk in proof["disks"] if not disk["is_erased"]]
    is_told = bool(proof["excluded"]) or conf.deploy.allow_partial_erasure
    if step.step == WHOLE and left and not is_told:
        raise errors.StepFailure(
            reason=f"the agent did not erase {', '.join(left)}: exclude such disks by "
            f"properties/{_SKIPS}, or set [deploy]allow_partial_erasure",
        )
    return Done(result={"erasure": proof})


def _disks(task: DriverTask, conf: Conf) -> list[Json]:
    inventory = commands.call(client.of(task, conf), "poll.get_hardware_info", {})
    try:
        disks = inventory.get("disks") or ()
        return [{name: disk.get(name) for name in _FACTS} for disk in disks]
    except (AttributeError, TypeError) as exc:
        raise errors.StepFailure(
            reason=f"the agent's inventory has no list of disks: {exc!r}"
        ) from exc


def _proof(task: DriverTask, conf: Conf, step: str, memory: Json) -> Json:
    """Return the proof.

    Steps that erase metadata name no disks: they erase all, or fail.  Where disks are excluded,
    such a step proves nothing of any disk.
    """
    erased, excluded = memory.get("erased"), task.node.properties.get(_SKIPS) or []
    if erased is None:
        erased = [] if excluded else [disk["name"] for disk in memory["disks"]]
    named = set(erased)
    unseen = [dict.fromkeys(_FACTS) | {"name": name} for name in sorted(named)]
    seen = {disk["name"] for disk in memory["disks"]}
    disks = [*memory["disks"], *(disk for disk in unseen if disk["name"] not in seen)]
    return {
        "step": step,
        "began_at": memory["began_at"],
        "ended_at": clock.now().isoformat(),
        "methods": _methods(conf, step),
        "excluded": excluded,
        "agent": task.node.driver_internal_info.get("agent_version"),
        "disks": [disk | {"is_erased": disk["name"] in named} for disk in disks],
    }


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
