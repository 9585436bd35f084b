"""What kinds that can be signalled have in common: an address, and a token that opens it alone.

Whoever posts to the address tells the resource something (``handle_signal``): that a machine has
booted, that a group shall grow.  The token stands for a user of its own, as Heat makes one in a
domain for such users: it opens this one address and nothing else.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from typing import Any, Final

from bloomery import errors
from bloomery.orchestration.resources import base

TOKEN: Final = "token"  # noqa: S105  the key of one
PREFIX: Final = "signal-"  # tells such a token from those of an identity service
TRANSPORT: Final = "signal_transport"
SERVICES: Final = {
    "TEMP_URL_SIGNAL": "an object store",
    "ZAQAR_SIGNAL": "a message queue",
}
DIGITS: Final = "0123456789abcdef"


def check_transport(
    transport: str | None, otherwise: str, missing: Mapping[str, str] = SERVICES
) -> None:
    if transport is not None and transport in missing:
        raise errors.StackValidationFailed(
            reason=f"cannot be signalled by {transport}: {missing[transport]} is not there; "
            f"use {otherwise}",
            path=[TRANSPORT],
        )


def is_token(value: object) -> bool:
    return isinstance(value, str) and value.startswith(PREFIX)


class Signalled(base.Resource):
    """A kind that is signalled under an address of its own."""

    def draw_token(self) -> None:
        random = self.context.random
        digits = "".join(DIGITS[int(random() * len(DIGITS))] for _ in range(40))
        self.record.redacted.add(TOKEN)
        self.record.data[TOKEN] = PREFIX + digits

    def token(self) -> str | None:
        return self.record.data.get(TOKEN)

    def signal_url(self) -> str:
        where = self.context
        parts = (where.project_id, "stacks", where.stack_name, where.stack_id, "resources")
        names = filter(None, (*parts, self.record.name))
        path = "/".join(urllib.parse.quote(name, safe="") for name in names)
        return f"{where.endpoint}/{path}/signal"

    def signed_url(self) -> str | None:
        """The address with the token, for whoever can post but not set headers."""
        token = self.token()
        return None if token is None else f"{self.signal_url()}?{TOKEN}={token}"

    def handle_adopt(self, data: Mapping[str, Any]) -> Any:
        super().handle_adopt(data)
        self.draw_token()
