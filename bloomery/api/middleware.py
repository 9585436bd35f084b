"""The middleware before routing.

In this order: the orchestration API's mount, OPTIONS, request id, other origins, health, metrics,
files of agents, pages, empty segments, login, version, body.
The middleware reads the query and the body itself, within limits; declarations parse the arguments.
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import parse_qsl

from bloomery import errors, parsing
from bloomery.api import (
    auditing,
    auth,
    auth_strategy,
    boot_files,
    browsers,
    layers,
    replies,
    scrape,
    versions,
)
from bloomery.api.declare import EVENT_STREAM, KEY, Call
from bloomery.http_server import bodies, web_socket
from bloomery.http_server.readiness import Readiness
from bloomery.http_server.streams import HAND_OVER
from bloomery.http_server.wsgi import REQUEST_ID_HEADERS, Wsgi
from bloomery.metrics import METRICS
from bloomery.model.request import IN_LOG, Parking, Request, begin
from bloomery.operations import agent_callers, policy, status
from bloomery.operations.context import Context, Services

SUFFIX: Final = ".json"
SUFFIX_UNTIL: Final = 91
EXT: Final = "/ext/"
UI: Final = "/ui"
MOUNT: Final = "bloomery.mount"  # in the environment: the path of an API below this one
_MOUNT: Final = re.compile(r"/ext/v1/orchestration(?=/|\Z)")
PAGES: Final = "bloomery-pages"  # the header X-Requested-With of our pages
MAX_WAIT_S: Final = 60.0
_EMPTY_SEGMENT: Final = re.compile(r"//+[^/]")  # a proxy's rule for /v1 does not match //v1
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_WAIT: Final = re.compile(r"\bwait=(\d{1,6})\b")
_PROVISION: Final = re.compile(r"/states/provision/?\Z")
_USUAL_PORTS: Final = {"http": ":80", "https": ":443"}
_LATER: Final = {  # what to say, and when to retry
    auth.IdentityUnavailable: (auth.UNAVAILABLE, auth.RETRY_S),
    auth.Busy: ("Too many logins are being checked", "1"),
}
_INSPECTION: Final = re.compile(r"/(continue_inspection(\.json)?|past)/?\Z")


class Middleware:
    """The outermost WSGI application."""

    def __init__(
        self,
        inner: Wsgi,
        services: Services,
        metrics: Wsgi | None = None,
        logins: auth.Auth | None = None,
        pages: Wsgi | None = None,
        stacks: Wsgi | None = None,
    ) -> None:
        """``logins`` authenticates callers; None: as [DEFAULT]auth_strategy configures.

        ``stacks``: the orchestration API, which is mounted below this one.

        Raises CannotStart for options that cannot be used.
        """
        agent_callers.networks_of_agents(services.conf.api)
        agent_callers.parsed(scrape.NETWORKS, services.conf.metrics.node_networks)
        self._inner = inner
        self._services = services
        self._auth = logins or auth_strategy.logins(services.conf)
        self._auditor = auditing.begun(services.conf)
        self._readiness = Readiness(status.readiness_checks(services))
        self._health_checks = layers.healthcheck(services.conf)
        self._metrics = metrics
        self._boot_files = boot_files.make(services.conf)
        self._pages, self._stacks = pages, stacks
        self._browsers = browsers.Guard(services.conf)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        mount = None if _EMPTY_SEGMENT.search(path) else _MOUNT.match(path)
        if mount is not None and self._stacks is not None:
            environ |= {
                "SCRIPT_NAME": environ["SCRIPT_NAME"] + mount[0],
                "PATH_INFO": environ["PATH_INFO"][mount.end() :],
                MOUNT: mount[0],
            }
            return self._stacks(environ, start_response)
        if environ["REQUEST_METHOD"] == "OPTIONS":
            return replies.empty(200)(environ, start_response)
        parking = begin(environ)
        request = parking.request
        IN_LOG.set(request)
        start = counted(start_response, environ["REQUEST_METHOD"], parking.began)
        start = with_ids(start, request, environ)
        if self._auditor is not None:
            start = self._auditor.answering(start, parking, environ)
        return self._answer(parking, environ)(environ, start)

    def _answer(self, parking: Parking, environ: dict[str, Any]) -> Wsgi:
        """Return the answer: from an application, or a refusal."""
        conf, path = self._services.conf.api, environ.get("PATH_INFO", "")
        try:
            return self._find(path, parking, environ)
        except auth.Unauthorized:
            document = {"error_message": "Authorization required"}
            return replies.document(document, 401, [auth.CHALLENGE])
        except auth.Refused as exc:
            return exc.response
        except (auth.IdentityUnavailable, auth.Busy) as exc:
            text, after_s = _LATER[type(exc)]
            return replies.second_form(503, text, [("Retry-After", after_s)])
        except auth.Malformed:
            return replies.second_form(400, "Could not decode the Authorization header")
        except versions.Unacceptable as exc:
            # in the first form under /, as in Ironic
            form = replies.first_form if path in ("", "/") else replies.second_form
            return form(406, str(exc), versions.RANGE if exc.shows_range else ())
        except bodies.TooLarge:
            return replies.bare(
                413,
                f"Request body too large: {conf.max_json_body_size} KiB are allowed, "
                f"{conf.max_json_body_size_provision} KiB for states/provision, "
                f"{conf.max_json_body_size_inspection} KiB for continue_inspection and past",
            )
        except web_socket.BadHandshake as exc:
            return replies.second_form(400, f"cannot open a web socket: {exc}")
        except parsing.TooMuch:
            most = conf.max_json_body_depth
            return replies.bare(400, f"JSON body nests too deep: {most} levels are allowed")
        except UnicodeDecodeError:
            return replies.second_form(400, "The path or the query is not UTF-8")
        except errors.AuditUnwritable as exc:
            return replies.second_form(exc.status, str(exc))

    def _find(self, path: str, parking: Parking, environ: dict[str, Any]) -> Wsgi:
        """Return what answers: a refusal, an application without a login, or one with a login."""
        refusal = self._browsers.refusal(
            environ.get("HTTP_HOST"), environ.get("HTTP_ORIGIN"), web_socket.is_asked_for(environ)
        )
        if refusal is not None:
            return replies.second_form(*refusal)
        if self._boot_files is not None and path.startswith(boot_files.PREFIXES):
            return self._boot_files
        if self._pages is not None:
            is_read = environ["REQUEST_METHOD"] in ("GET", "HEAD")
            # at / a browser wants the pages, and a client does not
            is_browser = is_read and "text/html" in environ.get("HTTP_ACCEPT", "")
            if (path in ("", "/") and is_browser) or path == UI or path.startswith(f"{UI}/"):
                return self._pages
        if path in self._health_checks:
            return self._health_checks[path]
        if path == "/healthz":
            return replies.document({"alive": True})
        if path == "/readyz":
            return replies.ready(self._readiness.missing())
        if _EMPTY_SEGMENT.search(path):
            return replies.second_form(404, "The path has an empty segment (//)")
        if self._metrics is not None and path == scrape.METRICS:
            environ[scrape.SEES_NODES] = self._sees_nodes(parking.request, environ)
            return self._metrics
        call = environ[KEY] = self._parse(parking.request, environ)
        if self._auditor is not None:
            self._auditor.ask(parking, call.context.request, environ, call.body)
        return self._inner

    def _sees_nodes(self, request: Request, environ: dict[str, Any]) -> bool:
        """May the caller of /metrics see series of single nodes, as in a list of them?"""
        if scrape.is_near(self._services.conf, environ):
            return True
        is_open = self._services.conf.default.auth_strategy == "noauth"
        if not (is_open or "HTTP_AUTHORIZATION" in environ or "HTTP_X_AUTH_TOKEN" in environ):
            return False
        caller = Context(services=self._services, request=self._auth.identify(request, environ))
        return policy.may(caller, "baremetal:node:list_all")

    def _parse(self, request: Request, environ: dict[str, Any]) -> Call:
        """Return the call of a request: its caller, version, query and body.

        Cuts ``.json`` from the path where clients older than SUFFIX_UNTIL put it.
        """
        path = environ.get("PATH_INFO", "")
        decoded = path.encode("latin-1").decode()  # WSGI's spelling of UTF-8
        upgrade = web_socket.asked_for(environ)
        if upgrade is not None:
            auth.take_login_of_protocol(environ, upgrade.protocols)
        is_public = auth.PUBLIC.fullmatch(path) is not None
        if not is_public:
            request = self._auth.identify(request, environ)
            IN_LOG.set(request)
        version = versions.negotiate(environ)
        wait = _WAIT.search(environ.get("HTTP_PREFER", ""))
        if wait is not None:
            request = dataclasses.replace(request, wait_s=min(float(wait[1]), MAX_WAIT_S))
        query = read_query(environ.get("QUERY_STRING", ""))
        conf, body = self._services.conf.api, b""
        if not auth.DOCUMENTS.fullmatch(path):
            limit = conf.max_json_body_size
            if _PROVISION.search(path):
                limit = conf.max_json_body_size_provision
            elif _INSPECTION.search(path):
                limit = conf.max_json_body_size_inspection
            body = bodies.read(environ, limit * bodies.KIB, conf.max_json_body_depth)
        bare = decoded.rstrip("/")
        has_suffix = version.explicit and version.minor < SUFFIX_UNTIL and bare.endswith(SUFFIX)
        has_suffix &= not bare.startswith(EXT)  # microversions do not apply there
        return Call(
            context=Context(services=self._services, request=request),
            method=environ["REQUEST_METHOD"],
            url=base_url(conf.public_endpoint, environ),
            path=bare.removesuffix(SUFFIX) if has_suffix else decoded,
            version=version.minor,
            query=query,
            body=body,
            content_type=environ.get("CONTENT_TYPE", "").split(";")[0].strip().lower(),
            caller=environ.get("REMOTE_ADDR", ""),
            is_forwarded=any(name in environ for name in layers.OF_PROXIES),
            suffix=SUFFIX if has_suffix else "",
            wants_stream=path.startswith(EXT) and EVENT_STREAM in environ.get("HTTP_ACCEPT", ""),
            last_event_id=environ.get("HTTP_LAST_EVENT_ID"),
            hand_over=environ.get(HAND_OVER),
            upgrade=upgrade,
            logins=self._auth,
        )


def with_ids(start_response: Any, request: Request, environ: dict[str, Any]) -> Any:
    """Add the request's id to the answer; leave out what makes a browser ask for a password."""
    ids = [(name, request.request_id) for name in REQUEST_ID_HEADERS]
    is_page = (
        environ.get("HTTP_X_REQUESTED_WITH") == PAGES
        or environ.get("HTTP_SEC_FETCH_MODE", "navigate") != "navigate"
    )

    def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        if is_page:
            headers = [each for each in headers if each[0] != auth.CHALLENGE[0]]
        return start_response(status, [*headers, *ids], exc_info)

    return start


def counted(start_response: Any, method: str, began: float) -> Any:
    """Count the answer and its duration once its status is known."""
    method = method if method in _METHODS else "other"  # a bound on the label's values

    def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        METRICS.send_counter(f"api_requests:{method}:{status[:3]}", 1)
        METRICS.send_timer(f"api_request:{method}", (time.perf_counter() - began) * 1000)
        return start_response(status, headers, exc_info)

    return start


def base_url(public_endpoint: str | None, environ: dict[str, Any]) -> str:
    """Return the URL of an API: the configured one, else the one of the request."""
    if public_endpoint:
        return public_endpoint.rstrip("/")
    scheme = environ["wsgi.url_scheme"]
    host = environ.get("HTTP_HOST") or f"{environ['SERVER_NAME']}:{environ['SERVER_PORT']}"
    return f"{scheme}://{host.removesuffix(_USUAL_PORTS[scheme])}{environ['SCRIPT_NAME']}"


def read_query(text: str) -> dict[str, Any]:
    """Return the arguments; a repeated one is a list.  Raises UnicodeDecodeError."""
    values: dict[str, Any] = {}
    if not text:
        return values
    for name, value in parse_qsl(text, keep_blank_values=True, errors="strict"):
        if name not in values:
            values[name] = value
        elif isinstance(values[name], list):
            values[name].append(value)
        else:
            values[name] = [values[name], value]
    return values
