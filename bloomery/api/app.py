"""The WSGI application: Pecan for routing, behind the middleware that reads the request.

app = make_app(services)                # any WSGI server takes it
server.make(app, services.conf).start()
"""

from __future__ import annotations

import logging
from typing import Any, Final

import webob
from pecan import hooks
from webob import exc as statuses

from bloomery.api import auth, layers, replies, routes, routing, versions
from bloomery.api.declare import KEY
from bloomery.api.middleware import Middleware
from bloomery.api.routing import Application
from bloomery.http_server.wsgi import Wsgi
from bloomery.model.request import Parked
from bloomery.operations.context import Services

CLIENT_HEADERS: Final = ("X-Auth-Token", versions.NAME, *(name for name, _ in versions.RANGE))


class Errors(hooks.PecanHook):
    """Turn every raised exception into a response."""

    def on_error(self, state: Any, exc: Exception) -> webob.Response:
        if isinstance(exc, Parked):
            raise exc
        if isinstance(exc, statuses.HTTPNotAcceptable):
            return replies.page(406, "Not Acceptable: this API speaks application/json only")
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
    routing.memoise_argspecs()
    # a malformed Accept header is no error of the service
    logging.getLogger("pecan.core").setLevel(logging.CRITICAL)
    application = Application(
        routing.Table(routes.ENDPOINTS),
        hooks=[Errors()],
        force_canonical=False,
        guess_content_type_from_ext=False,
        default_renderer="json",
        # Pecan's own class guards attributes against paths that are not UTF-8
        request_cls=webob.Request,
    )
    middleware = Middleware(application, services, metrics, logins, pages, stacks)
    return layers.around(middleware, services.conf, CLIENT_HEADERS)
