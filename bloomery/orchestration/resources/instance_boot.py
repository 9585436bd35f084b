"""Power and first boot (OS::Ironic::FirstBoot) of an Instance."""

from __future__ import annotations

from typing import Final

from bloomery import errors
from bloomery.conductor.states import Power
from bloomery.orchestration.resources import first_boot, stepwise
from bloomery.orchestration.resources.states import Action
from bloomery.orchestration.resources.stepwise import OnNode

BOOTS: Final = "boots"  # the number of deployments and rebuilds
BOOTING: Final = frozenset({Action.CREATE, Action.UPDATE})
POWER: Final = {"on": Power.ON, "off": Power.OFF}


def handle_of_boot(instance: OnNode) -> first_boot.FirstBoot | None:
    """Return the FirstBoot to wait for, or None.  Raises EntityNotFound if it is missing."""
    named, siblings = instance.properties["first_boot"], instance.context.siblings
    if not named or instance.properties["wait_for"] in ("active", "none"):
        return None
    handle = siblings and siblings.find(named)
    if not isinstance(handle, first_boot.FirstBoot):
        raise errors.EntityNotFound(entity="FirstBoot of this stack", name=named)
    return handle


def arm(instance: OnNode) -> None:
    """Let the handle accept only signals of the system that is deployed next."""
    if handle := handle_of_boot(instance):
        boots = instance.record.data[BOOTS] = instance.record.data.get(BOOTS, 0) + 1
        whole_drive = bool(instance.properties["configdrive"])
        handle.arm(f"{instance.record.uuid}/{boots}", new_token=not whole_drive)


def come_up(instance: OnNode) -> stepwise.Following:
    handle = handle_of_boot(instance)
    if handle is None:
        return None
    try:
        if handle.has_come_up():
            return None
    except ValueError as exc:
        raise stepwise.MachineFailed(str(exc)) from exc
    chosen = (instance.properties["timeouts"] or {}).get("first_boot")
    timeout_s = float(chosen or handle.properties["timeout"])
    return instance.wait_for(handle.record.uuid, timeout_s, "for the system to come up")


def switch(instance: OnNode) -> str | None:
    """Order the target power state, unless the node has it."""
    node, target = instance.get_node(), instance.record.data["target"]
    if node["power_state"] != reached(target):
        instance.machines.set_power_state(node["uuid"], target)
    return "switched"


def switched(instance: OnNode) -> stepwise.Following:
    node, target = instance.get_node(), instance.record.data["target"]
    if node["power_state"] != reached(target):
        if node["target_power_state"] is None and node["last_error"]:
            raise stepwise.MachineFailed(str(node["last_error"]))
        return instance.wait_in("power", f"for {target}")
    return "come_up" if instance.record.action in BOOTING else None


def reached(target: str) -> str:
    return Power.OFF if target in (Power.OFF, Power.SOFT_OFF) else Power.ON
