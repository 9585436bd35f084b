"""Rules of a node's states: provision verbs, power, boot mode, secure boot.

``node`` is a ``Node``, or a row of the columns that a rule reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.conductor import states
from bloomery.conductor.states import Power, State
from bloomery.model.node import Node

BOOT_MODES: Final = ("bios", "uefi")
# events that fields of the node refuse, whoever asks
REFUSED_IN_MAINTENANCE: Final = frozenset(
    {"deploy", "rebuild", "clean", "service", "rescue", "unrescue"}
)
_NEEDS: Final = {"deploy": "deploy", "rebuild": "deploy", "inspect": "inspect", "rescue": "rescue",
                 "unrescue": "rescue"}  # the interface that does the work of an event  # fmt: skip
_PROTECTED_FROM: Final = {"rebuild": "rebuild", "delete": "undeploy"}


# --------------------------------------------------------------------------------- provision


def require_edge(node: Node, verb: str | None) -> None:
    """Raise InvalidStateRequested unless the node's state has an edge for the verb."""
    if verb not in states.VERBS or not states.allows(node.provision_state, states.VERBS[verb]):
        raise refused(node, verb)


def refused(node: Node, verb: str | None) -> errors.InvalidStateRequested:
    """Return the error, with the verbs that are possible now and those that lead to ``verb``."""
    state, name = node.provision_state, errors.name_of(node)
    verbs = states.verbs_from(state)
    first = states.verbs_before(state, verb) if verb in states.VERBS else []
    advice = " Wait until it has left that state."
    if verbs:
        advice = f" Possible now: {', '.join(verbs)}."
    if first:
        commands = ", ".join(f"baremetal node {each} {name}" for each in first)
        advice += f" To get there: {commands}."
    return errors.InvalidStateRequested(
        action=verb, node=name, state=state, advice=advice, first=first,
        possible=[each.name for each in states.VERB_LIST if state in each.sources],
    )  # fmt: skip


def refuse_in_maintenance(node: Node, verb: str) -> None:
    """Raise NodeInMaintenance with the event's name, as ``active`` is no verb."""
    if node.maintenance:
        raise errors.NodeInMaintenance(node=errors.name_of(node), action=states.VERBS[verb])


def refuse_flagged(node: Node, event: str, *, provides_in_maintenance: bool) -> None:
    """Raise if maintenance, protection or retirement of the node refuses a verb of this event.

    ``provides_in_maintenance``: [conductor]allow_provisioning_in_maintenance.  Raises
    NodeInMaintenance, NodeProtected, NodeIsRetired, and Conflict for an abort.
    """
    name = errors.name_of(node)
    refused = event in REFUSED_IN_MAINTENANCE
    if node.maintenance and (refused or (event == "provide" and not provides_in_maintenance)):
        raise errors.NodeInMaintenance(node=name, action=event)
    if node.maintenance and (node.provision_state, event) == (State.SERVICEFAIL, "abort"):
        raise errors.Conflict(
            reason=f"cannot abort the service of node {name} in maintenance: end that first with "
            f"baremetal node maintenance unset {name} (DELETE /v1/nodes/{name}/maintenance)",
        )
    if node.protected and event in _PROTECTED_FROM:
        raise errors.NodeProtected(node=name, action=_PROTECTED_FROM[event])
    if node.retired and event == "provide":
        raise errors.NodeIsRetired(node=name, action=event)


def refuse_without_interface(node: Node, event: str) -> None:
    """Raise UnsupportedDriverExtension if the node has no interface for a verb of this event."""
    kind = _NEEDS.get(event)
    if kind is not None and getattr(node, f"{kind}_interface") == f"no-{kind}":
        raise errors.UnsupportedDriverExtension(driver=node.driver, extension=kind)


def refuse_disallowed(steps: Iterable[Any], disallowed: Collection[str]) -> None:
    """Raise StepNotAllowed for a step that the operator has disallowed.

    ``disallowed``: names such as ``vendor.send_raw``.
    """
    for step in steps:
        if (
            isinstance(step, Mapping)
            and f"{step.get('interface')}.{step.get('step')}" in disallowed
        ):
            raise errors.StepNotAllowed(step=f"{step['interface']}.{step['step']}")


# ------------------------------------------------------------------------------------- power


def check_power_target(node: Node, target: Any) -> None:
    """Raise unless the node may get that power state now.

    Raises InvalidStateRequested, PowerStateFailure (spec: rules for PUT states/power).
    """
    if target not in states.POWER_TARGETS:
        raise errors.InvalidStateRequested(
            action=target,
            node=errors.name_of(node),
            state=node.power_state,
            advice=f" Possible: {', '.join(states.POWER_TARGETS)}.",
        )
    if node.provision_state in (State.CLEANING, State.CLEANWAIT):
        raise errors.InvalidStateRequested(
            action=target,
            node=errors.name_of(node),
            state=node.provision_state,
            advice=" Wait until cleaning has ended.",
        )
    refuse_power_off(node, target)


def refuse_power_off(node: Node, target: str) -> None:
    """Raise PowerStateFailure if disable_power_off forbids the target."""
    if node.disable_power_off and target in (Power.OFF, Power.SOFT_OFF):
        raise errors.PowerStateFailure(
            state=target,
            reason=f"disable_power_off is set on node {errors.name_of(node)}; rebooting is allowed",
        )


# --------------------------------------------------------------------- boot mode, secure boot


def check_boot_mode(node: Node, mode: Any) -> None:
    """Raise unless the node may get a boot mode; a driver may still refuse it."""
    if mode not in BOOT_MODES:
        raise errors.InvalidParameterValue(
            reason=f"Invalid boot mode {mode!r}: allowed are {', '.join(BOOT_MODES)}",
        )
    _require_stable(node, f"boot mode {mode}")


def check_secure_boot(node: Node, on: bool) -> None:
    _require_stable(node, f"secure boot {on}")


def _require_stable(node: Node, setting: str) -> None:
    if node.provision_state in states.UNSTABLE_STATES:
        raise errors.Conflict(
            reason=f"cannot change to {setting} on node {errors.name_of(node)} while it is in "
            f'state "{node.provision_state}": wait for a stable state',
        )
