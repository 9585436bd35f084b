"""Authentication and projects of the orchestration API.

Without Keystone (``noauth``, ``http_basic``) the caller has the project of the path.  The URL of a
signal needs no login: it carries the token that its resource has issued.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Final

from bloomery.api import auth, middleware
from bloomery.api.orchestration import faults
from bloomery.model.request import Request
from bloomery.operations.policy_engine import Policies
from bloomery.orchestration.resources import signals

ADMIN: Final = "context_is_admin"  # the rule that allows every project
USER: Final = "admin"  # the user name under noauth, as in Heat
_SIGNAL: Final = re.compile(r"stacks/[^/]+/[^/]+/resources/[^/]+/signal/?")


class Callers:
    def __init__(self, logins: auth.Auth, policies: Policies) -> None:
        self._logins = logins
        self._policies = policies

    def identify(self, request: Request, environ: dict[str, Any], project: str | None) -> Request:
        """Return the request with its caller and project.

        ``project``: from the path.  Raises OtherProject, and the errors of ``auth.Auth``.
        """
        request = self._logins.identify(request, environ)
        if not self._policies.enforced:
            user = request.user or environ.get("HTTP_X_AUTH_USER") or USER
            return dataclasses.replace(request, user=user, project=project)
        if project is None or request.project == project:
            return request
        if self._policies.allow(request, ADMIN, {}):
            return dataclasses.replace(request, project=project)
        raise faults.OtherProject(project=project)


def signal_token(environ: dict[str, Any], path: str) -> str | None:
    """Return the token of a signal's URL; None: the request needs a login.

    ``path``: below the project.  The engine compares the token with its stored one.
    """
    if environ["REQUEST_METHOD"] != "POST" or _SIGNAL.fullmatch(path) is None:
        return None
    query = middleware.read_query(environ.get("QUERY_STRING", ""))
    for token in (environ.get("HTTP_X_AUTH_TOKEN"), query.get(signals.TOKEN)):
        if isinstance(token, str) and token.startswith(signals.PREFIX):
            return token
    return None
