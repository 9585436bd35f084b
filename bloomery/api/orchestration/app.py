"""The WSGI application of the orchestration API.

    app = make_app(services, operations)        # any WSGI server takes it

In this order: request id, other origins, health, versions, login, project, body, endpoint.
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
from bloomery.api.orchestration import answers, callers, faults, routes, versions
from bloomery.api.orchestration.call import StackCall
from bloomery.http_server import bodies, login
from bloomery.http_server.wsgi import Wsgi
from bloomery.model.request import IN_LOG, Parked, Parking, Request, begin
from bloomery.operations.context import Context, Services
from bloomery.orchestration.limits import LIMITS
from bloomery.orchestration.operations import StackOperations

REALM: Final = "Orchestration API"
HEALTH: Final = "/healthcheck"
OPAQUE: Final = "application/octet-stream"
READS: Final = ("GET", "HEAD")
NUL: Final = "\0"  # no database accepts it in a text
NUL_ESCAPE: Final = "%00"
EXT: Final = re.compile(r"/ext/v1/.")
VERSION: Final = "v1"
ARN: Final = "arn:"
_SLASH: Final = re.compile("%2f", re.IGNORECASE)
CLIENT_HEADERS: Final = (  # the headers that Heat allows in CORS
    "X-Auth-Token", "X-Identity-Status", "X-Roles", "X-Service-Catalog", "X-User-Id",
    "X-Tenant-Id", "X-OpenStack-Request-ID",
)  # fmt: skip
MAX_DEPTH: Final = LIMITS.document_depth + 10  # a template in an object, and its wrapper


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
        self._callers = callers.Callers(logins, services.policies)
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
        url = middleware.base_url(self._public_endpoint(environ), environ)
        try:
            return self._answer(parking, environ, url)
        except versions.OtherVersion:
            return versions.document(url)
        except statuses.HTTPNotFound:
            return faults.no_path(environ["PATH_INFO"].encode("latin-1").decode())
        except statuses.HTTPMethodNotAllowed as exc:
            return _refused(environ["REQUEST_METHOD"], exc.headers["Allow"].replace(" ", ""))
        except auth.Unauthorized:
            return faults.unauthorized(REALM)
        except auth.Refused as exc:
            return exc.response
        except auth.IdentityUnavailable:
            again = [("Retry-After", auth.RETRY_S)]
            return faults.refusal(503, auth.UNAVAILABLE, again)
        except auth.Malformed:
            return faults.refusal(400, "The header Authorization cannot be decoded")
        except auth.Busy:
            again = [("Retry-After", "1")]
            return faults.refusal(503, "Too many logins are being checked; retry", again)
        except UnicodeDecodeError:
            return faults.refusal(400, "The path or the query is not UTF-8")
        except (login.Deferred, bodies.Awaited, Parked):
            raise
        except Exception as exc:  # noqa: BLE001  a bug of ours is answered and logged
            return faults.answer(exc, environ.get("HTTP_USER_AGENT", ""))

    def _public_endpoint(self, environ: dict[str, Any]) -> str | None:
        """Return the configured address, of the API that this one is mounted in where it is."""
        conf, mount = self._services.conf, environ.get(middleware.MOUNT)
        if mount is None:
            return conf.orchestration.public_endpoint
        return conf.api.public_endpoint and conf.api.public_endpoint.rstrip("/") + mount

    def _answer(self, parking: Parking, environ: dict[str, Any], url: str) -> webob.Response:
        refusal = self._browsers.refusal(environ.get("HTTP_HOST"), environ.get("HTTP_ORIGIN"))
        if refusal is not None:
            return faults.refusal(*refusal)
        path = environ.get("PATH_INFO", "").encode("latin-1").decode()  # WSGI's spelling of UTF-8
        if path == HEALTH:
            return answers.text(200, "OK")
        if NUL in path or NUL_ESCAPE in environ.get("QUERY_STRING", ""):
            raise faults.BadRequest(reason="a path and a query must not hold the character NUL")
        project, segments = _place(path, environ.get("HTTP_ACCEPT", ""))
        request, token = self._identified(parking.request, environ, project, segments)
        IN_LOG.set(request)
        endpoint, idents = self._find(environ["REQUEST_METHOD"], segments)
        if request.is_restricted and not (endpoint.only_reads or endpoint.method in READS):
            raise errors.TokenRestricted
        query = environ.get("QUERY_STRING", "")
        call = StackCall(
            context=Context(services=self._services, request=request),
            request=request,
            operations=self._operations,
            method=endpoint.method,
            url=url,
            project=project or request.project or "",
            query=middleware.read_query(query),
            query_string=query,
            body=self._body(environ),
            content_type=_content_type(environ),
            token=token,
        )
        if self._auditor is not None and not endpoint.only_reads:
            self._auditor.ask(parking, request, environ, call.body)
        # as in Heat, unknown arguments are ignored
        sent = {name: value for name, value in call.query.items() if name in endpoint.query}
        values = arguments.read(endpoint.query, sent, call.version) if sent else {}
        return _shaped(endpoint, endpoint.function(call, *idents, **values))

    def _find(self, method: str, segments: Sequence[str]) -> tuple[Endpoint, list[str]]:
        """Return the endpoint of a path, and its idents but the project.

        A path may be that of several endpoints: ``stacks/web/template`` is the template of a stack,
        or the stack ``web`` with an odd id.  The first with the method answers.
        """
        places = [] if "" in segments else self._table.find(segments)
        for place, idents in places:
            endpoint = place.endpoints.get(method)
            if endpoint is not None:
                # the one escape that the server keeps: a slash inside a segment
                whole = [_SLASH.sub("/", ident) for ident in idents]
                return endpoint, whole[segments[0] == VERSION :]
        if not places:
            raise statuses.HTTPNotFound
        raise routing.refused(*(place for place, _ in places))

    def _identified(
        self,
        request: Request,
        environ: dict[str, Any],
        project: str | None,
        segments: Sequence[str],
    ) -> tuple[Request, str | None]:
        """Return the request with its caller, or with the token of a signal."""
        token = callers.signal_token(environ, "/".join(segments[2:]))
        if token is None:
            return self._callers.identify(request, environ, project), None
        return dataclasses.replace(request, project=project), token

    def _body(self, environ: dict[str, Any]) -> bytes:
        most = self._services.conf.orchestration.max_json_body_size
        try:
            return bodies.read(environ, most, MAX_DEPTH)
        except bodies.TooLarge:
            raise faults.too_large(most) from None
        except parsing.TooMuch:
            raise faults.BadRequest(
                reason=f"the JSON body nests too deep: {MAX_DEPTH} levels are allowed"
            ) from None


def _place(path: str, accept: str) -> tuple[str | None, list[str]]:
    """Return the project of a path, and its segments; an ARN is one segment."""
    if EXT.match(path):
        return None, path.strip("/").split("/")
    project, *rest = versions.cut(path, accept).strip("/").split("/")
    if len(rest) > 1 and rest[0] == "stacks" and rest[1].lower().startswith(ARN):
        rest[1:] = ["/".join(rest[1:])]
    return project, [VERSION, project, *rest]


def _content_type(environ: dict[str, Any]) -> str:
    """Return the body's media type; its absence is refused, since any page can send such a body."""
    unnamed = OPAQUE if "HTTP_ORIGIN" in environ else ""
    return environ.get("CONTENT_TYPE", "").split(";")[0].strip().lower() or unnamed


def _shaped(endpoint: Endpoint, result: Any) -> webob.Response:
    reply = result if isinstance(result, Reply) else Reply(document=result)
    headers = [] if reply.location is None else [("Location", reply.location)]
    status = endpoint.status
    if reply.document is not None or status == 200:
        return answers.document(reply.document, status, headers)
    if status == 204:
        return answers.empty(status, headers)
    return answers.phrase(status, headers=headers)


def _refused(method: str, allowed: str) -> webob.Response:
    """Answer a method that the path does not have; OPTIONS asks which it has."""
    headers = [("Allow", allowed)]
    if method == "OPTIONS":
        return answers.empty(204, headers)
    message = f"The method {method} is not allowed here. Allowed: {allowed}"
    return faults.refusal(405, message, headers)
