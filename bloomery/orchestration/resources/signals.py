"""The base class of kinds that take signals: a signal address, and a token for it alone.

A POST to the address calls ``handle_signal``: a machine has booted, a group shall grow.  The token
replaces the user that Heat creates in its stack domain, and is valid for this address only.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.resources import base

TOKEN: Final = "token"  # noqa: S105  the key of one
PREFIX: Final = "signal-"  # tokens of an identity service do not begin so
TRANSPORT: Final = "signal_transport"
SERVICES: Final = {
    "TEMP_URL_SIGNAL": "an object store",
    "ZAQAR_SIGNAL": "a message queue",
}
AGENTS: Final = "agents/v3"  # where agents log in, below a project
DIGITS: Final = "0123456789abcdef"


def check_transport(transport: str | None, otherwise: str) -> None:
    if transport is not None and transport in SERVICES:
        raise errors.StackValidationFailed(
            reason=f"cannot be signalled by {transport}: {SERVICES[transport]} is not there; "
            f"use {otherwise}",
            path=[TRANSPORT],
        )


def is_token(value: object) -> bool:
    return isinstance(value, str) and value.startswith(PREFIX)


class Signalled(base.Resource):
    """A kind whose resources have a signal address each."""

    def draw_token(self) -> None:
        random = self.context.random
        digits = "".join(DIGITS[int(random() * len(DIGITS))] for _ in range(40))
        self.record.redacted.add(TOKEN)
        self.record.data[TOKEN] = PREFIX + digits

    def token(self) -> str | None:
        return self.record.data.get(TOKEN)

    def signal_url(self) -> str:
        context = self.context
        parts = (context.project_id, "stacks", context.stack_name, context.stack_id, "resources")
        names = filter(None, (*parts, self.record.name))
        path = "/".join(urllib.parse.quote(name, safe="") for name in names)
        return f"{context.endpoint}/{path}/signal"

    def login(self) -> dict[str, str | None]:
        """Return the login of an agent, for clients of Heat: its user is this resource."""
        context = self.context
        return {
            "auth_url": f"{self.signal_url().partition('/stacks/')[0]}/{AGENTS}",
            "user_id": f"{context.stack_id}/{self.record.name}",
            "password": self.token(),
            "project_id": context.project_id,
        }

    def signed_url(self) -> str | None:
        """Return the address with the token, for clients that cannot set headers, or None."""
        token = self.token()
        return None if token is None else f"{self.signal_url()}?{TOKEN}={token}"

    def handle_adopt(self, data: Mapping[str, Any]) -> Any:
        super().handle_adopt(data)
        self.draw_token()
