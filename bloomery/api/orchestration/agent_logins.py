"""Logins of agents on servers: the part of the Identity API that heat-agents and heatclient need.

Heat creates a user in Keystone for each server and each deployment with HEAT_SIGNAL.  Here the user
is a resource, its password is the token of its addresses, and the token that a login answers with
is that password: it opens the signal of that resource, or the metadata of that server, only.

    GET  .../v1/PROJECT/agents/v3               the version
    POST .../v1/PROJECT/agents/v3/auth/tokens   a login by the ID of a user and a password
"""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any, Final

import webob
from webob import exc as statuses

from bloomery import errors
from bloomery.api import auth
from bloomery.api.orchestration import replies
from bloomery.http_server import bodies
from bloomery.model.request import Request
from bloomery.orchestration.operations import StackOperations
from bloomery.orchestration.resources import signals

VALID_FOR: Final = dt.timedelta(hours=1)
METHOD: Final = "password"


def answer(
    operations: StackOperations, request: Request, method: str, rest: list[str], body: bytes,
    url: str,
) -> webob.Response:  # fmt: skip
    """Answer a request below ``agents/v3``; ``rest``: the segments there; ``url``: of this API.

    Raises Unauthorized, HTTPNotFound.
    """
    base = f"{url}/v1/{request.project}"
    if method in ("GET", "HEAD") and not rest:
        links = [{"rel": "self", "href": f"{base}/{signals.AGENTS}/"}]
        version = {"id": "v3.0", "status": "stable", "links": links, "media-types": []}
        return replies.document({"version": version})
    if rest != ["auth", "tokens"]:
        raise statuses.HTTPNotFound
    if method != "POST":
        return replies.refusal(405, "Log in with POST", [("Allow", "POST")])
    try:
        user = bodies.parse(body)["auth"]["identity"][METHOD]["user"]
        ident, password = user["id"], user[METHOD]
        operations.log_agent_in(request, str(ident), str(password))
    except (errors.Invalid, KeyError, TypeError):
        return replies.refusal(400, "Log in with the ID of a user and a password")
    except errors.NotFound:
        raise auth.Unauthorized from None
    now, domain = dt.datetime.now(dt.UTC), {"id": "default", "name": "Default"}
    endpoint = {
        "id": "public", "interface": "public", "region": None, "region_id": None, "url": base,
    }  # fmt: skip
    service = {"type": "orchestration", "id": "heat", "name": "heat", "endpoints": [endpoint]}
    token: dict[str, Any] = {
        "methods": [METHOD], "user": {"id": ident, "name": ident, "domain": domain},
        "project": {"id": request.project, "name": request.project, "domain": domain},
        "roles": [], "catalog": [service], "audit_ids": [uuid.uuid4().hex],
        "issued_at": _time(now), "expires_at": _time(now + VALID_FOR),
    }  # fmt: skip
    return replies.document({"token": token}, 201, [("X-Subject-Token", str(password))])


def _time(at: dt.datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
