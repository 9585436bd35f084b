"""The WSGI application: Pecan with our table of endpoints, behind the middleware.

app = make_app(services)                # any WSGI server takes it
server.make(app, services.conf).start()
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import webob
from pecan import core, hooks
from webob import acceptparse
from webob import exc as statuses

from bloomery.api import auth, layers, replies, routes, routing, versions
from bloomery.api.declare import JSON_TYPE, KEY, Call
from bloomery.api.middleware import Middleware
from bloomery.http_server.wsgi import Wsgi
from bloomery.model.request import Parked
from bloomery.operations.context import Services

CLIENT_HEADERS: Final = ("X-Auth-Token", versions.NAME, *(name for name, _ in versions.RANGE))


class Application(core.PecanBase):
    """Pecan's application with the table of endpoints in place of its routing.

    Pecan would look for a controller, its content type and its arguments in each request, which
    took a third of the time of a GET; the table and the declarations have them.
    """

    def __init__(self, table: routing.Table, **options: Any) -> None:
        self._table = table
        super().__init__(None, **options)

    def find_controller(self, state: Any) -> tuple[Callable[[Call], webob.Response], Any, Any]:
        call: Call = state.request.environ[KEY]
        endpoint, call.idents = routing.find(self._table, call, call.path)
        if not (call.wants_stream or _takes_json(state.request.environ.get("HTTP_ACCEPT"))):
            raise statuses.HTTPNotAcceptable
        return endpoint.answer, (call,), {}

    def invoke_controller(self, controller: Any, args: Any, kwargs: Any, state: Any) -> None:
        state.response = controller(*args)

    def _handle_empty_response_body(self, state: Any) -> None:
        """Leave the response as it is: endpoints choose 204 themselves."""


@functools.lru_cache(maxsize=256)
def _takes_json(accept: str | None) -> bool:
    """Does the header Accept allow a JSON document?  A malformed header allows everything."""
    if not accept or accept.startswith(JSON_TYPE):
        return True
    return bool(acceptparse.create_accept_header(accept).acceptable_offers([JSON_TYPE]))


class Errors(hooks.PecanHook):
    """Turn every raised exception into a response."""

    def on_error(self, state: Any, exc: Exception) -> webob.Response:
        if isinstance(exc, Parked):
            raise exc
        if isinstance(exc, statuses.HTTPNotAcceptable):
            message = "Not Acceptable: this API speaks application/json only"
            return replies.document({"error_message": message}, 406)
        if isinstance(exc, statuses.HTTPException):
            allow = exc.headers.get("Allow")
            text = str(exc.detail or "")
            if not text and allow is not None:
                text = f"Allowed here: {allow or 'nothing'}"
            elif not text and exc.status_int == statuses.HTTPNotFound.code:
                text = "This API version knows nothing of that path"
            return replies.second_form(
                exc.status_int, text, [] if allow is None else [("Allow", allow)]
            )
        headers = versions.headers(state.request.environ[KEY].version)
        again = replies.retry_after(exc, state.request.user_agent or "")
        return replies.failure(exc, [*headers, *again])


def make_app(
    services: Services,
    metrics: Wsgi | None = None,
    logins: auth.Auth | None = None,
    pages: Wsgi | None = None,
    stacks: Wsgi | None = None,
) -> Wsgi:
    """Return the WSGI application; ``metrics`` answers /metrics, ``pages`` /ui/.

    ``logins`` authenticates callers; None: as [DEFAULT]auth_strategy configures.  ``stacks`` is the
    orchestration API, for clients that reach this port only.
    """
    application = Application(
        routing.Table(routes.ENDPOINTS),
        hooks=[Errors()],
        request_cls=webob.BaseRequest,
        response_cls=lambda: None,  # endpoints and hooks make the responses
    )
    middleware = Middleware(application, services, metrics, logins, pages, stacks)
    return layers.around(middleware, services.conf, CLIENT_HEADERS)
