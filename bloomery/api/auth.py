"""Authentication of callers: noauth, HTTP basic with an htpasswd file, or Keystone tokens."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Protocol

import webob

from bloomery import htpasswd
from bloomery.model.request import Request

CHALLENGE: Final = ("WWW-Authenticate", 'Basic realm="Baremetal API"')
# Routes without authentication, as in Ironic: documents, and the calls of agents.
DOCUMENTS: Final = re.compile(r"/|/v1/?|/ext/v1/?|/ext/v1/openapi\.json|/ext/v1/states")
AGENT_CALLS: Final = re.compile(
    r"/v1/(lookup|heartbeat/[a-z0-9-]+|continue_inspection)(\.json|\.xml)?/?"
)
PUBLIC: Final = re.compile(f"{DOCUMENTS.pattern}|{AGENT_CALLS.pattern}")


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


class Auth(Protocol):
    def identify(self, request: Request, environ: Mapping[str, Any]) -> Request:
        """Return the request with its caller.

        Raises Unauthorized, Malformed, Refused, Busy, IdentityUnavailable, Deferred.

        User, project, roles and scope come from here only; headers that claim them are ignored.
        """


class NoAuth:
    """No authentication: every caller is an operator; the server listens on loopback."""

    def identify(self, request: Request, environ: Mapping[str, Any]) -> Request:
        return request
