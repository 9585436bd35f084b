"""The WSGI application of the orchestration API.

    app = make_app(services, operations)        # any WSGI server takes it

In this order: request id, other origins, health, version, login, project, body, endpoint.

There is one version.  openstacksdk asks ``/v1`` for the list of versions first, without a login,
where it has no identity service; Heat has it at ``/`` only.

Without Keystone (``noauth``, ``http_basic``) the caller has the project of the path.  The URL of a
signal, and the metadata of a DeployedServer, need no login: they carry the token that their
resource has issued.  Agents log in for such a token (agent_logins.py).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

import webob
from webob import exc as statuses

from bloomery import errors, parsing
from bloomery.api import (
    arguments,
    auditing,
    auth,
    auth_strategy,
    browsers,
    layers,
    middleware,
    routing,
)
from bloomery.api.declare import Endpoint, Reply
from bloomery.api.orchestration import agent_logins, replies, routes
from bloomery.api.orchestration.call import StackCall
from bloomery.http_server import bodies, login
from bloomery.http_server.wsgi import Wsgi
from bloomery.model.request import IN_LOG, Parked, Parking, Request, begin
from bloomery.operations.context import Context, Services
from bloomery.orchestration.limits import LIMITS
from bloomery.orchestration.operations import StackOperations
from bloomery.orchestration.resources import signals

REALM: Final = "Orchestration API"
HEALTH: Final = "/healthcheck"
OPAQUE: Final = "application/octet-stream"
READS: Final = ("GET", "HEAD")
NUL: Final = "\0"  # no database accepts it in a text
NUL_ESCAPE: Final = "%00"
EXT: Final = re.compile(r"/ext/v1/.")
VERSION: Final = "v1"
ADMIN: Final = "context_is_admin"  # the rule that allows every project
USER: Final = "admin"  # the user name under noauth, as in Heat
_VERSION: Final = re.compile(r"v(\d+)(?:\.(\d+))?", re.ASCII)
_MEDIA_TYPE: Final = re.compile(r"application/vnd\.openstack\.orchestration-(v[\d.]+)")
_OURS: Final = (1, 0)
AGENTS: Final = signals.AGENTS.split("/")
_BY_TOKEN: Final = {  # the requests that a token of a resource may stand for a login in, by method
    "POST": re.compile(r"stacks/[^/]+/[^/]+/resources/[^/]+/signal/?"),
    "GET": re.compile(r"stacks/[^/]+/[^/]+/resources/[^/]+/metadata/?"),
}
ARN: Final = "arn:"
_SLASH: Final = re.compile("%2f", re.IGNORECASE)
CLIENT_HEADERS: Final = (  # the headers that Heat allows in CORS
    "X-Auth-Token", "X-Identity-Status", "X-Roles", "X-Service-Catalog", "X-User-Id",
    "X-Tenant-Id", "X-OpenStack-Request-ID",
)  # fmt: skip
MAX_DEPTH: Final = LIMITS.document_depth + 10  # a template in an object, and its wrapper


class OtherVersion(Exception):
    """The request names no version or another one; the answer lists the versions."""


def make_app(
    services: Services, operations: StackOperations, logins: auth.Auth | None = None
) -> Wsgi:
    """Return the WSGI application.

    ``logins`` authenticates callers; None: as [DEFAULT]auth_strategy configures.
    """
    logins = logins or auth_strategy.logins(services.conf)
    application = Application(services, operations, logins)
    return layers.around(application, services.conf, CLIENT_HEADERS)


class Application:
    def __init__(self, services: Services, operations: StackOperations, logins: auth.Auth) -> None:
        self._services = services
        self._operations = operations
        self._browsers = browsers.Guard(services.conf)
        self._logins = logins
        self._auditor = auditing.make(services.conf)
        self._table = routing.Table(routes.ENDPOINTS)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        parking = begin(environ)
        request = parking.request
        IN_LOG.set(request)
        counted = middleware.counted(start_response, environ["REQUEST_METHOD"], parking.began)
        start = middleware.with_ids(counted, request, environ)
        if self._auditor is not None:
            start = self._auditor.answering(start, parking, environ)
        return self._response(parking, environ)(environ, start)

    def _response(self, parking: Parking, environ: dict[str, Any]) -> webob.Response:
        """Return the answer, also for errors."""
        conf, mount = self._services.conf, environ.get(middleware.MOUNT)
        above = conf.api.public_endpoint  # of the API that this one is mounted in
        below = above and above.rstrip("/") + (mount or "")
        url = middleware.base_url(
            conf.orchestration.public_endpoint if mount is None else below, environ
        )
        try:
            return self._answer(parking, environ, url)
        except OtherVersion:
            links = [{"rel": "self", "href": f"{url}/v1/"}]
            version = {"id": "v1.0", "status": "CURRENT", "links": links}
            return replies.document({"versions": [version]}, 300)  # as in Heat
        except statuses.HTTPNotFound:
            path = environ["PATH_INFO"].encode("latin-1").decode()
            return replies.phrase(404, f"Nothing is called {path} here.")  # Heat's second format
        except statuses.HTTPMethodNotAllowed as exc:
            method, allowed = environ["REQUEST_METHOD"], exc.headers["Allow"].replace(" ", "")
            if method == "OPTIONS":
                return replies.empty(204, [("Allow", allowed)])
            message = f"The method {method} is not allowed here. Allowed: {allowed}"
            return replies.refusal(405, message, [("Allow", allowed)])
        except auth.Unauthorized:
            return replies.unauthorized(REALM)
        except auth.Refused as exc:
            return exc.response
        except auth.IdentityUnavailable:
            again = [("Retry-After", auth.RETRY_S)]
            return replies.refusal(503, auth.UNAVAILABLE, again)
        except auth.Malformed:
            return replies.refusal(400, "The header Authorization cannot be decoded")
        except auth.Busy:
            again = [("Retry-After", "1")]
            return replies.refusal(503, "Too many logins are being checked; retry", again)
        except UnicodeDecodeError:
            return replies.refusal(400, "The path or the query is not UTF-8")
        except (login.Deferred, bodies.Awaited, Parked):
            raise
        except Exception as exc:  # noqa: BLE001  a bug of ours is answered and logged
            return replies.failure(exc, environ.get("HTTP_USER_AGENT", ""))

    def _answer(self, parking: Parking, environ: dict[str, Any], url: str) -> webob.Response:
        refusal = self._browsers.refusal(environ.get("HTTP_HOST"), environ.get("HTTP_ORIGIN"))
        if refusal is not None:
            return replies.refusal(*refusal)
        path = environ.get("PATH_INFO", "").encode("latin-1").decode()  # WSGI's spelling of UTF-8
        if path == HEALTH:
            return replies.text(200, "OK")
        if NUL in path or NUL_ESCAPE in environ.get("QUERY_STRING", ""):
            raise replies.BadRequest(reason="a path and a query must not hold the character NUL")
        project: str | None = None
        segments = path.strip("/").split("/")
        if not EXT.match(path):
            path = _cut_version(path, environ.get("HTTP_ACCEPT", ""))
            project, *rest = path.strip("/").split("/")
            if len(rest) > 1 and rest[0] == "stacks" and rest[1].lower().startswith(ARN):
                rest[1:] = ["/".join(rest[1:])]
            segments = [VERSION, project, *rest]
        if segments[2:4] == AGENTS:
            return agent_logins.answer(
                self._operations, dataclasses.replace(parking.request, project=project),
                environ["REQUEST_METHOD"], segments[4:], self._read_body(environ), url,
            )  # fmt: skip
        token = _signal_token(environ, "/".join(segments[2:]))
        if token is None:
            request = self._identify(parking.request, environ, project)
        else:
            request = dataclasses.replace(parking.request, project=project)
        IN_LOG.set(request)
        endpoint, idents = self._find(environ["REQUEST_METHOD"], segments)
        if request.is_restricted and not (endpoint.only_reads or endpoint.method in READS):
            raise errors.TokenRestricted
        query = environ.get("QUERY_STRING", "")
        # the absence of a media type is refused to pages, since any page can send such a body
        unnamed = OPAQUE if "HTTP_ORIGIN" in environ else ""
        call = StackCall(
            context=Context(services=self._services, request=request),
            request=request,
            operations=self._operations,
            method=endpoint.method,
            url=url,
            project=project or request.project or "",
            query=middleware.read_query(query),
            query_string=query,
            body=self._read_body(environ),
            content_type=environ.get("CONTENT_TYPE", "").split(";")[0].strip().lower() or unnamed,
            token=token,
        )
        if self._auditor is not None and not endpoint.only_reads:
            self._auditor.ask(parking, request, environ, call.body)
        # as in Heat, unknown arguments are ignored
        known = {name: value for name, value in call.query.items() if name in endpoint.query}
        values = arguments.read(endpoint.query, known, call.version) if known else {}
        result = endpoint.function(call, *idents, **values)
        reply = result if isinstance(result, Reply) else Reply(document=result)
        headers = [] if reply.location is None else [("Location", reply.location)]
        if reply.document is not None or endpoint.status == 200:
            return replies.document(reply.document, endpoint.status, headers)
        if endpoint.status == 204:
            return replies.empty(204, headers)
        return replies.phrase(endpoint.status, headers=headers)

    def _read_body(self, environ: dict[str, Any]) -> bytes:
        most = self._services.conf.orchestration.max_json_body_size
        try:
            return bodies.read(environ, most, MAX_DEPTH)
        except bodies.TooLarge:
            raise errors.RequestLimitExceeded(
                what="a larger body", limit=most, unit="bytes",
                option="[orchestration]max_json_body_size",
            ) from None  # fmt: skip
        except parsing.TooMuch:
            raise replies.BadRequest(
                reason=f"the JSON body nests too deep: {MAX_DEPTH} levels are allowed"
            ) from None

    def _identify(self, request: Request, environ: dict[str, Any], project: str | None) -> Request:
        """Return the request with its caller, and the project of the path.

        Raises OtherProject, and the errors of ``auth.Auth``.
        """
        request = self._logins.identify(request, environ)
        policies = self._services.policies
        if not policies.enforced:
            user = request.user or environ.get("HTTP_X_AUTH_USER") or USER
            return dataclasses.replace(request, user=user, project=project)
        if project is None or request.project == project:
            return request
        if policies.allow(request, ADMIN, {}):
            return dataclasses.replace(request, project=project)
        raise replies.OtherProject(project=project)

    def _find(self, method: str, segments: Sequence[str]) -> tuple[Endpoint, list[str]]:
        """Return the endpoint of a path, and its idents but the project.

        A path may be that of several endpoints: ``stacks/web/template`` is the template of a stack,
        or the stack ``web`` with an odd id.  The first with the method answers.
        """
        places = [] if "" in segments else self._table.find(segments)
        for place, idents in places:
            endpoint = place.endpoints.get("GET" if method == "HEAD" else method)
            if endpoint is not None and (method != "HEAD" or endpoint.has_head):
                # the one escape that the server keeps: a slash inside a segment
                whole = [_SLASH.sub("/", ident) for ident in idents]
                return endpoint, whole[segments[0] == VERSION :]
        if not places:
            raise statuses.HTTPNotFound
        raise routing.refused(*(place for place, _ in places))


def _cut_version(path: str, accept: str) -> str:
    """Return the path below the version; the header Accept may name the version instead.

    Raises OtherVersion, and HTTPNotFound where neither names a version.
    """
    first, _, rest = path.strip("/").partition("/")
    if first == "versions" and not rest:
        raise OtherVersion
    in_path, media_type = _VERSION.fullmatch(first), _MEDIA_TYPE.search(accept)
    version = in_path or (_VERSION.fullmatch(media_type[1]) if media_type is not None else None)
    if version is not None:
        if (int(version[1][:9]), int((version[2] or "0")[:9])) != _OURS:
            raise OtherVersion
        if in_path is not None and not rest.strip("/"):
            raise OtherVersion
        return path if in_path is None else rest
    if not first:
        raise OtherVersion
    raise statuses.HTTPNotFound


def _signal_token(environ: dict[str, Any], path: str) -> str | None:
    """Return the token of a URL that a resource has issued, or None where a login is needed.

    ``path``: below the project.  The operation compares the token with the stored one.
    """
    method = environ["REQUEST_METHOD"]
    by_token = _BY_TOKEN.get("GET" if method == "HEAD" else method)
    if by_token is None or by_token.fullmatch(path) is None:
        return None
    query = middleware.read_query(environ.get("QUERY_STRING", ""))
    for token in (environ.get("HTTP_X_AUTH_TOKEN"), query.get(signals.TOKEN)):
        if isinstance(token, str) and token.startswith(signals.PREFIX):
            return token
    return None
