"""The reset types that a BMC supports.

BMCs list them with the action or in ``@Redfish.ActionInfo``; without a list any type is sent.
Missing power states are stored in ``driver_internal_info``, so that later requests fail early.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bloomery import errors
from bloomery.conductor.states import Power as PowerState
from bloomery.drivers.redfish import reading

ACTION: Final = "#ComputerSystem.Reset"
MEMORY: Final = "redfish_power_states_missing"
_TYPES: Final[Mapping[str, str]] = {
    PowerState.ON: "On",
    PowerState.OFF: "ForceOff",
    PowerState.SOFT_OFF: "GracefulShutdown",
    PowerState.SOFT_REBOOT: "GracefulRestart",
}
_ELSE: Final = {"On": ("ForceOn",), "ForceRestart": ("PowerCycle",)}
_INSTEAD: Final = {
    "GracefulShutdown": "; ask for power off",
    "GracefulRestart": "; ask for a reboot",
    "ForceRestart": "; unset disable_power_off, so that the machine may be switched off and on",
}


def send(system: Any, reset_type: str, memory: dict[str, Any] | None = None) -> None:
    """Send a reset, or one of the same effect where the BMC lacks the type.

    Missing states are written to ``memory``.  Raises InvalidParameterValue for an unsupported
    reset.
    """
    allowed = allowed_types(system)
    if memory is not None:
        memory.pop(MEMORY, None)
        lacking = [str(state) for state, kind in _TYPES.items() if not _supported(kind, allowed)]
        if lacking:
            memory[MEMORY] = lacking
    supported = _supported(reset_type, allowed)
    if supported is None:
        raise errors.InvalidParameterValue(
            reason=f"the BMC offers no {reset_type}: its resets are {', '.join(allowed or ())}"
            f"{_INSTEAD.get(reset_type, '')}",
        )
    system._conn.post(_action(system)["target"], data={"ResetType": supported})  # noqa: SLF001


def _supported(reset_type: str, allowed: Sequence[str] | None) -> str | None:
    if allowed is None:
        return reset_type
    return next((t for t in (reset_type, *_ELSE.get(reset_type, ())) if t in allowed), None)


def _action(system: Any) -> dict[str, Any]:
    import sushy

    action: dict[str, Any] | None = (system.json.get("Actions") or {}).get(ACTION)
    if not action or not action.get("target"):
        raise sushy.exceptions.MissingActionError(action=ACTION, resource=system.path)
    return action


def allowed_types(system: Any) -> list[str] | None:
    """Return the BMC's reset types, or None where it does not list them."""
    action = _action(system)
    types: list[str] = action.get("ResetType@Redfish.AllowableValues") or []
    if not types and action.get("@Redfish.ActionInfo"):
        info = reading.optional(reading.fetch, system, action["@Redfish.ActionInfo"]) or {}
        named = [p for p in info.get("Parameters") or () if p.get("Name") == "ResetType"]
        types = [each for p in named for each in p.get("AllowableValues") or ()]
    return types or None
