"""The reasons of the states and events of stacks and resources, in Heat's words."""

from __future__ import annotations

from typing import Final

from bloomery.orchestration.resources.states import Action

STACK_TYPE: Final = "OS::Heat::Stack"
CHANGED: Final = "state changed"
TIMED_OUT: Final = "Timed out"
CANCELLED_BY_USER: Final = "user triggered cancel"


def started(action: Action) -> str:
    return f"Stack {action} started"


def completed(action: Action) -> str:
    return f"Stack {action} completed successfully"


def failed(action: Action, fault: object) -> str:
    return f"Resource {action} failed: {fault}"


def cancelled(action: Action) -> str:
    return f"Stack {action} cancelled"


def aborted(action: Action, why: str) -> str:
    return f"{action} aborted ({why})"


def replacement(name: str) -> str:
    return f"The Resource {name} requires replacement."


def paused(action: Action, hook: str) -> str:
    return f"{action} paused until Hook {hook} is cleared"


def cleared(hook: str) -> str:
    return f"Hook {hook} is cleared"


def not_supported(action: Action, type_name: str) -> str:
    return f"{action} not supported for {type_name}"


def not_fully_supported(reason: str, action: Action) -> str:
    return f"{reason}. '{action}' not fully supported (see resources)"


def signalled(text: str) -> str:
    return f"Signal: {text}"
