"""Logins of pages: /ext/v1/session."""

from __future__ import annotations

from typing import Any, Final

from webob import exc as statuses

from bloomery import errors
from bloomery.api import auth
from bloomery.api.declare import Call, Schema, endpoint
from bloomery.api.routing import Rest

_TEXT: Final = {"type": "string", "minLength": 1, "maxLength": 255}
LOGIN: Final = Schema(
    thing="login",
    source={
        "type": "object",
        "properties": {
            **dict.fromkeys(("user", "domain", "project", "project_domain"), _TEXT),
            "password": {"type": "string", "maxLength": 4096},
            "system": {"type": "boolean"},
        },
        "required": ["user", "password"],
        "additionalProperties": False,
    },
    secret=frozenset({"password"}),
)


class Session(Rest):
    """A token for a password, for pages that reach no identity service; nothing is stored."""

    @endpoint(rule="public")
    def get(self, call: Call) -> dict[str, Any]:
        """How callers log in: ``noauth``, ``http_basic`` or ``keystone``."""
        return {"auth_strategy": call.context.services.conf.default.auth_strategy}

    @endpoint(rule="public", status=201, body=LOGIN)
    def post(self, call: Call, *, body: dict[str, Any]) -> dict[str, Any]:
        """Ask the identity service for a token: of the project, or with ``system`` of the system.

        Domains are names, and default to Default.
        """
        if not isinstance(call.logins, auth.Issuer):
            strategy = call.context.services.conf.default.auth_strategy
            raise errors.Invalid(
                reason=f"cannot issue a token: [DEFAULT]auth_strategy is {strategy}, which has none"
            )
        try:
            return call.logins.issue_token(**body)
        except auth.Unauthorized:
            raise statuses.HTTPUnauthorized(
                "the identity service takes no such user, password and project"
            ) from None
        except auth.Busy:
            raise statuses.HTTPServiceUnavailable(
                "too many logins are being checked; retry in a second"
            ) from None
        except auth.IdentityUnavailable:
            raise statuses.HTTPServiceUnavailable(
                "the identity service does not answer as it should; retry later"
            ) from None
