"""Authentication of callers: noauth, HTTP basic with an htpasswd file, or Keystone tokens."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, runtime_checkable

import webob

from bloomery import htpasswd, parsing
from bloomery.model.request import Request

CHALLENGE: Final = ("WWW-Authenticate", 'Basic realm="Baremetal API"')
# Routes without authentication, as in Ironic: documents, and the calls of agents.
DOCUMENTS: Final = re.compile(r"/|/v1/?|/ext/v1/?|/ext/v1/openapi\.json|/ext/v1/states")
AGENT_CALLS: Final = re.compile(
    r"/v1/(lookup|heartbeat/[a-z0-9-]+|continue_inspection)(\.json|\.xml)?/?"
)
SESSION: Final = re.compile("/ext/v1/session")
PUBLIC: Final = re.compile("|".join(each.pattern for each in (DOCUMENTS, AGENT_CALLS, SESSION)))


_LOGIN: Final = "bloomery.login."
_LOGIN_HEADERS: Final = {
    "Authorization": "HTTP_AUTHORIZATION", "X-Auth-Token": "HTTP_X_AUTH_TOKEN",
}  # fmt: skip

Unauthorized = htpasswd.Unauthorized
Malformed = htpasswd.Malformed
Busy = htpasswd.Busy


class Refused(Exception):
    """A missing or invalid token; ``response`` is keystonemiddleware's answer."""

    def __init__(self, response: webob.Response) -> None:
        super().__init__()
        self.response = response


class IdentityUnavailable(Exception):
    """The identity service cannot validate a token now."""


UNAVAILABLE: Final = (
    "cannot check the token: the identity service does not answer as it should; retry later, and "
    "see the log of this service if it lasts"
)
RETRY_S: Final = "5"


def take_login_of_protocol(environ: dict[str, Any], protocols: Sequence[str]) -> None:
    """Take the login of a web socket from its protocols, unless a header has it.

    A page cannot set headers of a web socket, so that it offers a protocol: ``bloomery.login.``,
    and in base64url a JSON object of the headers, Authorization or X-Auth-Token.
    """
    texts = [each[len(_LOGIN) :] for each in protocols if each.startswith(_LOGIN)]
    if not texts or any(name in environ for name in _LOGIN_HEADERS.values()):
        return
    try:
        data = base64.urlsafe_b64decode(texts[0] + "=" * (-len(texts[0]) % 4))
        headers = parsing.load_json(data)
    except ValueError:
        raise Malformed from None
    for header, name in _LOGIN_HEADERS.items():
        if isinstance(headers, dict) and isinstance(headers.get(header), str):
            environ[name] = headers[header]


class Auth(Protocol):
    def identify(self, request: Request, environ: Mapping[str, Any]) -> Request:
        """Return the request with its caller.

        Raises Unauthorized, Malformed, Refused, Busy, IdentityUnavailable, Deferred.

        User, project, roles and scope come from here only; headers that claim them are ignored.
        """


@runtime_checkable
class Issuer(Protocol):
    def issue_token(self, *, user: str, password: str, **scope: Any) -> dict[str, Any]:
        """Return a token and when it expires.

        ``scope``: domain, project, project_domain, system.  Raises Unauthorized, Busy,
        IdentityUnavailable.
        """


class NoAuth:
    """No authentication: every caller is an operator; the server listens on loopback."""

    def identify(self, request: Request, environ: Mapping[str, Any]) -> Request:
        return request
