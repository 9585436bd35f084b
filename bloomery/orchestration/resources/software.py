"""The interface of resources to software configs and deployments.

A config is a text for a tool, with inputs and outputs.  A deployment assigns a config to a server
and has its result.  Both are maps as in the API.  Resources derive the IDs from their UUID, so that
each call is idempotent.  Each call returns at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from bloomery.orchestration.resources.states import Status

STDOUT: Final = "deploy_stdout"
STDERR: Final = "deploy_stderr"
STATUS_CODE: Final = "deploy_status_code"
OUTCOMES: Final = (STDOUT, STDERR, STATUS_CODE)  # outputs of each deployment
NOT_WAITED_FOR: Final = "Not waiting for outputs signal"


class SoftwareStore(Protocol):
    """The configs and deployments of one project."""

    def create_config(self, uuid: str, **values: Any) -> None:
        """Store name, group, config, options, inputs and outputs, unless the UUID exists."""

    def show_config(self, uuid: str) -> Mapping[str, Any] | None: ...

    def delete_config(self, uuid: str) -> None:
        """Delete a config; no error if it is gone.  Raises Conflict if it is in use."""

    def create_deployment(self, uuid: str, **values: Any) -> None:
        """Store a deployment: config_id, server_id, input_values, action, status, status_reason."""

    def show_deployment(self, uuid: str) -> Mapping[str, Any] | None: ...

    def update_deployment(self, uuid: str, **changes: Any) -> None: ...

    def delete_deployment(self, uuid: str) -> None:
        """Delete a deployment; no error if it is gone."""

    def signal_deployment(self, uuid: str, details: Mapping[str, Any]) -> str | None:
        """Apply a signal to a deployment (``outcome``); return text for the event, or None."""


def outcome(
    deployment: Mapping[str, Any], outputs: Iterable[Mapping[str, Any]], details: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the changes of a deployment by a signal; None if it is not IN_PROGRESS.

    ``outputs``: as declared in its config.  A status code other than 0 is a failure, and so is a
    value of an output with ``error_output``.
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
