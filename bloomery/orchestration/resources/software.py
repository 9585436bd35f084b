"""Software configs and deployments as kinds see them: a seam, as ``children`` is one.

A config is a text for a tool with inputs and outputs; a deployment says that a server is to have
it, and how it went.  Both are maps as the API shows them.  Kinds choose the ids, from their own, so
that whatever is asked twice lands in the same place; each verb returns at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from bloomery.orchestration.resources.states import Status

STDOUT: Final = "deploy_stdout"
STDERR: Final = "deploy_stderr"
STATUS_CODE: Final = "deploy_status_code"
OUTCOMES: Final = (STDOUT, STDERR, STATUS_CODE)  # what each deployment tells, with its outputs
NOT_WAITED_FOR: Final = "Not waiting for outputs signal"


class SoftwareStore(Protocol):
    """The configs and deployments of one project."""

    def create_config(self, uuid: str, **values: Any) -> None:
        """Store a config: name, group, config, options, inputs, outputs; one there is kept."""

    def show_config(self, uuid: str) -> Mapping[str, Any] | None: ...

    def delete_config(self, uuid: str) -> None:
        """Remove a config; one that is gone is no error.  Raises Conflict for one in use."""

    def create_deployment(self, uuid: str, **values: Any) -> None:
        """Store a deployment: config_id, server_id, input_values, action, status, status_reason."""

    def show_deployment(self, uuid: str) -> Mapping[str, Any] | None: ...

    def update_deployment(self, uuid: str, **changes: Any) -> None: ...

    def delete_deployment(self, uuid: str) -> None:
        """Remove a deployment; one that is gone is no error."""

    def signal_deployment(self, uuid: str, details: Mapping[str, Any]) -> str | None:
        """Take what a server says of a deployment (``outcome``); return a text for the event."""


def outcome(
    deployment: Mapping[str, Any], outputs: Iterable[Mapping[str, Any]], details: Mapping[str, Any]
) -> dict[str, Any] | None:
    """What a signal changes of a deployment; None where nobody waits for it any more.

    ``outputs``: those that its config declares.  A status code other than 0 is a failure, and so is
    any value of an output that is declared to tell of errors.
    """
    if deployment.get("status") != Status.IN_PROGRESS:
        return None
    values = dict(deployment.get("output_values") or {})
    faults = []
    for output in outputs:
        name = output["name"]
        if name in details:
            values[name] = details[name]
            if output.get("error_output"):
                faults.append(f"{name} : {details[name]}")
    values |= {name: details.get(name) for name in OUTCOMES}
    code = details.get(STATUS_CODE)
    if code is not None and str(code) not in {"0", ""}:
        faults.append(f"{STATUS_CODE} : Deployment exited with non-zero status code: {code}")
    return {
        "output_values": values,
        "status": (Status.FAILED if faults else Status.COMPLETE).value,
        "status_reason": ", ".join(faults) or "Outputs received",
    }


def outcome_text(changes: Mapping[str, Any]) -> str:
    if changes["status"] == Status.COMPLETE:
        return "deployment succeeded"
    code = changes["output_values"].get(STATUS_CODE)
    return f"deployment failed ({code})" if code else "deployment failed"
