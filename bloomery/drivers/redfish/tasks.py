"""Tasks of a BMC: long operations and their results.

Source: DMTF DSP2046, Task; DSP0266, asynchronous operations.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from bloomery import errors, fetching, parsing, secrets
from bloomery.drivers.redfish import reading

COMPLETED: Final = "Completed"
NOT_BEGUN: Final = ("New", "Pending", "Starting", "Suspended")
_FAILED: Final = ("Exception", "Killed", "Cancelled", "Interrupted")
AT_WORK: Final = ("Running", "Stopping", "Cancelling", "Service")
_MOST_CHARS: Final = 300


def monitor(answer: Any) -> str | None:
    """Return the path of the task that an answer names, or None where there is no task."""
    where = answer.headers.get("Location") if answer.status_code in (202, 204) else None
    if answer.status_code == 202 and not where:
        try:
            document = answer.json() if answer.content else None
        except ValueError:
            document = None
        where = document.get("@odata.id") if isinstance(document, dict) else None
    return fetching.path_of(str(where)) if where else None


def accepted(system: Any) -> list[str]:
    """Return the paths of the tasks that the BMC has named in this call to it."""
    answers = system.root._conn._session.accepted  # noqa: SLF001  our ``Wire``
    return [path for path in map(monitor, answers) if path]


def state(system: Any, path: str, what: str, hidden: tuple[str, ...] = ()) -> str:
    """Return the state of a task: ``COMPLETED`` also where the BMC has forgotten it.

    Raises StepFailure for a failed task with the BMC's reasons, without ``hidden``.
    """
    import sushy

    try:
        answer = system.root._conn.get(path)  # noqa: SLF001  sushy's monitors repeat and wait
    except sushy.exceptions.HTTPError as no:
        if no.status_code not in reading.ABSENT:
            raise
        return COMPLETED  # BMCs forget tasks that have ended
    task = answer.json() if answer.content else {}
    state = str(task.get("TaskState") or (COMPLETED if answer.status_code != 202 else "Running"))
    if state in _FAILED or task.get("TaskStatus") == "Critical":
        messages = [each.get("Message") for each in task.get("Messages") or () if each]
        reasons = "; ".join(str(each) for each in messages if each) or state
        reasons = secrets.hide(reasons, hidden)
        raise errors.StepFailure(reason=f"the BMC could not {what}: {reasons[:_MOST_CHARS]}")
    return state


def are_at_work(system: Any, paths: Iterable[str], what: str, hidden: Sequence[str] = ()) -> bool:
    """Return whether a task still works; one that cannot be read does not.

    Raises StepFailure for a failed task.
    """
    states = [reading.optional(state, system, path, what, tuple(hidden)) for path in paths]
    return any(state in AT_WORK for state in states)


def listed(system: Any) -> list[str]:
    """Return the paths of all tasks of the BMC, or [] where it does not list them."""
    root = system.root.json
    service = reading.follow(system, root, "Tasks") or reading.follow(system, root, "TaskService")
    members = reading.follow(system, service, "Tasks").get("Members") or ()
    return [member["@odata.id"] for member in members]


def find_own(system: Any, before: Collection[str], target: str) -> tuple[str | None, list[str]]:
    """Return the task of a POST to ``target`` for this machine, and the tasks that may be it.

    ``before``: older tasks.  The Payload shows what a task was ordered for, but a BMC may omit it.
    Such a task is ours if the machine is the BMC's only one; otherwise it may be, while it runs.
    """
    unsure: dict[str, Any] = {}
    for path in listed(system):
        document = None if path in before else reading.optional(reading.fetch, system, path)
        is_own = _is_own(document, target, system.path) if document else False
        if is_own:
            return path, []
        if is_own is None and document:
            unsure[path] = document.get("TaskState")
    if unsure and not has_neighbours(system):
        return next(iter(unsure)), []
    return None, [path for path, state in unsure.items() if state in AT_WORK]


def has_neighbours(system: Any) -> bool:
    """Return whether the BMC has several machines."""
    return len(system.root.get_system_collection().members_identities) > 1


def _is_own(task: Mapping[str, Any], target: str, machine: str) -> bool | None:
    """Return whether a POST to ``target`` for ``machine`` started a task, or None where unknown."""
    payload = task.get("Payload")
    uri = payload.get("TargetUri") if isinstance(payload, dict) else None
    if not isinstance(uri, str):
        return None
    if fetching.path_of(uri) != target:
        return False
    try:
        body = parsing.load_json(payload.get("JsonBody") or "null")  # type: ignore[union-attr]
    except (TypeError, ValueError):
        return None
    targets = body.get("Targets") if isinstance(body, dict) else None
    return machine in targets if isinstance(targets, list) else None
