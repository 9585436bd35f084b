"""Who asks, and for which project.

Where callers have no projects (``noauth``, ``http_basic``) the one in the path is theirs.  One
address needs no login: that of a signal, with the token that its resource has handed out.
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

ADMIN: Final = "context_is_admin"  # whoever may use every project
USER: Final = "admin"  # who asks where nobody must say who he is, as Heat has it
_SIGNAL: Final = re.compile(r"stacks/[^/]+/[^/]+/resources/[^/]+/signal/?")


class Callers:
    def __init__(self, logins: auth.Auth, policies: Policies) -> None:
        self._logins = logins
        self._policies = policies

    def identify(self, request: Request, environ: dict[str, Any], project: str | None) -> Request:
        """Return the request with who asks, and for which project.

        ``project``: the one in the path.  Raises OtherProject, and what ``auth.Auth`` does.
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
    """Return the token of a request to the address of a signal; None: it needs a login.

    ``path``: below the project.  The token is judged by the engine, which has its twin.
    """
    if environ["REQUEST_METHOD"] != "POST" or _SIGNAL.fullmatch(path) is None:
        return None
    query = middleware.read_query(environ.get("QUERY_STRING", ""))
    for token in (environ.get("HTTP_X_AUTH_TOKEN"), query.get(signals.TOKEN)):
        if isinstance(token, str) and token.startswith(signals.PREFIX):
            return token
    return None
