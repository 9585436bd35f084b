"""Steps that an agent offers: the list, and running one.

The interfaces ``deploy`` and ``raid`` have such steps.

A flow is planned before its agent boots.  The plan uses the steps that the node's agent offered
last (``agent_cached_clean_steps`` and others in driver_internal_info), at first those of
ironic-python-agent without extra hardware managers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import orjson

from bloomery import errors, secrets
from bloomery.clock import now
from bloomery.conductor.states import State
from bloomery.conf import Conf
from bloomery.drivers import substeps
from bloomery.drivers.agent import client, commands, ramdisk
from bloomery.drivers.base import DriverTask
from bloomery.model.node import Node
from bloomery.model.step import Step
from bloomery.outcome import Done, Outcome

Json = dict[str, Any]

_VERSION: Final = "hardware_manager_version"  # in driver_internal_info and in the agent's answer
_REREAD: Final = "agent_steps_reread"  # in driver_internal_info: the list was read again
_MOST_BYTES: Final = 256 << 10  # of the cached steps, which are part of the node's row
_NETWORKS: Final = {  # by phase
    "clean": "cleaning", "deploy": "provisioning", "service": "servicing",
}  # fmt: skip
_KINDS: Final = ("deploy", "raid")  # steps of other interfaces are not supported
_PHASES: Final[dict[str, str]] = {
    State.CLEANING: "clean", State.DEPLOYING: "deploy", State.SERVICING: "service",
}  # fmt: skip
_BURN_IN: Final = ("burnin_cpu", "burnin_disk", "burnin_gpu", "burnin_memory", "burnin_network")
_FILES: Final = {
    "files": {"description": "files, each with path, content in base64, partition, mode, dirmode"},
    "verify_ca": {"description": "whether, or with which CA, HTTPS is verified"},
}
_NVRAM: Final = {"match_patterns": {"description": "which boot entries are removed, as patterns"}}


_RAID: Final = {
    "raid_config": {"description": "the RAID configuration to apply", "required": True},
    "delete_existing": {"description": "whether the existing configuration is deleted first"},
}


def _step(
    name: str, priority: int = 0, argsinfo: Json | None = None, interface: str = "deploy"
) -> Json:
    return {"step": name, "interface": interface, "priority": priority, "abortable": True} | (
        {"argsinfo": argsinfo} if argsinfo else {}
    )


_CREATE: Final = _step("create_configuration", interface="raid")
_DELETE: Final = _step("delete_configuration", interface="raid")
_APPLY: Final = _step("apply_configuration", argsinfo=_RAID, interface="raid") | {
    "abortable": False
}


# The steps of ironic-python-agent 13 with its generic hardware manager.
_GENERIC: Final[dict[str, list[Json]]] = {
    "clean": [
        _step("erase_devices", 10),
        _step("erase_devices_metadata", 99),
        _step("erase_devices_express"),
        _step("erase_pstore"),
        _step("clean_uefi_nvram", argsinfo=_NVRAM),
        *map(_step, _BURN_IN),
        _DELETE,
        _CREATE,
    ],
    "deploy": [
        _step("erase_devices_metadata"),
        _step("clean_uefi_nvram", argsinfo=_NVRAM),
        _step("inject_files", argsinfo=_FILES),
        _APPLY,
    ],
    "service": [
        *map(_step, _BURN_IN),
        _step("inject_files", argsinfo=_FILES),
        _DELETE,
        _APPLY,
        _CREATE,
    ],
}


# -------------------------------------------------------------------------------- which ones


def list_steps(node: Node, phase: str, conf: Conf) -> list[Step]:
    """Return the steps of the node's agent in ``phase``, with the operator's priorities."""
    own = {
        "erase_devices": conf.deploy.erase_devices_priority,
        "erase_devices_metadata": conf.deploy.erase_devices_metadata_priority,
    }
    steps = []
    for entry in _entries(node, phase):
        is_ours = phase == "clean" and entry["interface"] == "deploy"
        priority = own.get(entry["step"]) if is_ours else None
        step = Step(
            interface=entry["interface"],
            step=entry["step"],
            priority=int(entry.get("priority") or 0) if priority is None else priority,
            abortable=bool(entry.get("abortable")),
            requires_ramdisk=bool(entry.get("requires_ramdisk", True)),
            argsinfo=entry.get("argsinfo"),
            resumable=True,  # the agent's commands are listed before one is sent again
        )
        steps.append(step)
    return steps


def are_cached(node: Node, phase: str) -> bool:
    return _key(phase) in node.driver_internal_info


def _entries(node: Node, phase: str) -> list[Json]:
    cache: Json | None = node.driver_internal_info.get(_key(phase))
    if cache is None:
        return _GENERIC.get(phase, [])
    return [entry for kind in _KINDS for entry in cache.get(kind, ())]


def _key(phase: str) -> str:
    return f"agent_cached_{phase}_steps"


def refresh(task: DriverTask, conf: Conf, phase: str) -> None:
    """Ask the agent for its steps and cache them.  Raises as ``commands.call``."""
    params = {"node": _node(task.node, conf), "ports": _ports(task)}
    name = f"{phase}.get_{phase}_steps"
    answer = commands.call(client.of(task, conf), name, params)
    try:
        entries = {
            (entry["interface"], entry["step"]): entry for entry in _valid(answer[f"{phase}_steps"])
        }
        version = dict(answer[_VERSION])
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise errors.StepFailure(
            reason=f"the agent's answer to {name} is no list of steps: {exc!r}"
        ) from exc
    by_kind = {
        kind: [entry for (its_kind, _), entry in entries.items() if its_kind == kind]
        for kind in _KINDS
    }
    offer = {_key(phase): by_kind, _VERSION: version}
    if (size := len(orjson.dumps(offer))) > _MOST_BYTES:
        raise errors.StepFailure(
            reason=f"the agent's answer to {name} has {size >> 10} KiB, and {_MOST_BYTES >> 10} "
            "can be remembered",
        )
    task.node.driver_internal_info |= offer | {f"{_key(phase)}_refreshed": now().isoformat()}


def _valid(by_manager: Mapping[str, list[Json]]) -> Iterator[Json]:
    for entries in by_manager.values():
        for entry in entries:
            args = (entry.get("argsinfo") or {}).values()
            if not isinstance(entry["step"], str) or not all(isinstance(arg, dict) for arg in args):
                raise TypeError(entry["step"])
            int(entry.get("priority") or 0)
            if entry["interface"] in _KINDS:
                yield entry


# ---------------------------------------------------------------------------------- to run one


def phase_of(task: DriverTask) -> str | None:
    """Return the phase of the node's flow, or None for flows without an agent."""
    return _PHASES.get(str(task.node.provision_state))


def run(
    task: DriverTask,
    conf: Conf,
    step: Step,
    phase: str,
    store: Callable[[Any], None] = lambda _result: None,
) -> Outcome:
    """Run one of the agent's steps, and boot the agent again where the step asks for it.

    ``store`` gets the step's result.  Raises StepNotFound for a step that the node's agent does not
    offer, else as ``commands.run``.
    """
    offered = {
        f"{entry['interface']}.{entry['step']}": entry for entry in _entries(task.node, phase)
    }
    if step.name not in offered:
        raise errors.StepNotFound(
            verb=phase, node=errors.name_of(task.node), steps=step.name,
            offered=", ".join(sorted(offered)) or "none",
        )  # fmt: skip
    parts = [lambda: _execute(task, conf, step, phase, store)]
    if offered[step.name].get("reboot_requested"):
        parts.append(lambda: start_agent(task, conf, phase))
    outcome = substeps.run_in_order(task, "agent_step", *parts)
    if isinstance(outcome, Done):
        commands.forget(task)
    return outcome


def start_agent(task: DriverTask, conf: Conf, phase: str, *, boots: bool = True) -> Outcome:
    """Boot the agent, unless ``boots`` says that it runs already, and cache its steps."""
    params = ramdisk.kernel_parameters(conf)
    return substeps.run_in_order(
        task,
        "agent_start",
        lambda: ramdisk.boot(task, params, _NETWORKS[phase]) if boots else None,
        lambda: commands.with_retries(task, conf, lambda: refresh(task, conf, phase)),
    )


def _execute(
    task: DriverTask, conf: Conf, step: Step, phase: str, store: Callable[[Any], None]
) -> Outcome:
    command = f"{phase}.execute_{phase}_step"

    def params() -> Json:
        return {
            "step": step.shown() | {"args": dict(step.args)},
            "node": _node(task.node, conf),
            "ports": _ports(task),
            f"{phase}_version": task.node.driver_internal_info.get(_VERSION),
        }

    def run_command() -> Outcome:
        return commands.run(
            task, conf, command, params, f"the agent runs {step.step}",
            store=lambda result: store(result.get(f"{phase}_result")),
        )  # fmt: skip

    info = task.node.driver_internal_info
    try:
        outcome = run_command()
    except commands.VersionMismatch as exc:  # the agent's ramdisk has changed
        if info.get(_REREAD):
            raise errors.StepFailure(
                reason=f"the agent refuses {step.step}: its hardware managers change all the time"
            ) from exc
        outcome = commands.with_retries(task, conf, lambda: refresh(task, conf, phase))
        if isinstance(outcome, Done):
            info[_REREAD] = True
            outcome = run_command()
    if isinstance(outcome, Done):
        info.pop(_REREAD, None)
    return outcome


def _node(node: Node, conf: Conf) -> Json:
    """Return the node as agents may see it: without secrets, with the options of disk erasure."""
    fields = ("uuid", "name", "driver", "resource_class", "extra", "properties", "raid_config",
              "target_raid_config", "provision_state")  # fmt: skip
    deploy = conf.deploy
    erasure = {
        "agent_erase_devices_iterations": deploy.shred_random_overwrite_iterations,
        "agent_erase_devices_zeroize": deploy.shred_final_overwrite_with_zeros,
        "agent_continue_if_secure_erase_failed": deploy.continue_if_disk_secure_erase_fails,
        "agent_enable_ata_secure_erase": deploy.enable_ata_secure_erase,
        "agent_enable_nvme_secure_erase": deploy.enable_nvme_secure_erase,
        "agent_erase_skip_read_only": deploy.erase_skip_read_only,
        "disk_erasure_concurrency": deploy.disk_erasure_concurrency,
    }
    return {name: getattr(node, name) for name in fields} | {
        "instance_info": secrets.mask(node.instance_info, instance_info=True),
        "driver_info": secrets.mask(node.driver_info),
        "driver_internal_info": secrets.mask(node.driver_internal_info) | erasure,
    }


def _ports(task: DriverTask) -> list[Json]:
    return [
        {"uuid": port.uuid, "address": port.address, "pxe_enabled": port.pxe_enabled,
         "extra": port.extra}
        for port in task.ports
    ]  # fmt: skip
