"""The commands ``attest.identify`` and ``attest.quote`` of the agent's API."""

from __future__ import annotations

from typing import Any

from ironic_python_agent import errors
from ironic_python_agent.extensions import base

from bloomery_attestation import tpm2


class AttestExtension(base.BaseAgentExtension):  # type: ignore[misc]
    """Each command runs in a thread of its own, and a heartbeat follows its end."""

    @base.async_command("identify")  # type: ignore[misc]
    def identify(self) -> dict[str, str]:
        """Return the public areas of both keys, and the certificate of the endorsement key."""
        try:
            return tpm2.Tpm().identify()
        except tpm2.TpmError as exc:
            raise errors.CommandExecutionError(str(exc)) from exc

    @base.async_command("quote")  # type: ignore[misc]
    def quote(
        self,
        credential: str | None = None,
        secret: str | None = None,
        pcrs: list[int] | None = None,
    ) -> dict[str, Any]:
        """Answer a challenge with a quote of these PCRs, their values and the event log."""
        if not credential or not secret or not pcrs:
            raise errors.InvalidCommandParamsError("quote takes credential, secret and pcrs")
        try:
            return tpm2.Tpm().quote(credential, secret, pcrs)
        except tpm2.TpmError as exc:
            raise errors.CommandExecutionError(str(exc)) from exc
