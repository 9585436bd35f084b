"""Find the controller's method of a path.

Pecan asks ``Application`` for the route; each controller names its children.  ``subresources`` lie
behind an ident (/nodes/<ident>/states), ``children`` directly below (/nodes/detail). Attribute
lookup is not used, so a path reaches declared controllers only.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

import pecan
import pecan.core
import pecan.decorators
import pecan.rest
import pecan.routing
import pecan.util
import webob
from pecan import rest
from webob import exc as statuses

from bloomery.api import versions
from bloomery.api.declare import KEY, Call, Endpoint, TooOld

METHODS: Final = ("DELETE", "GET", "PATCH", "POST", "PUT")


class Application(pecan.Pecan):
    """Pecan with the controllers' ``_route`` as the only way of routing."""

    def route(self, req: webob.Request, node: Rest, path: str) -> tuple[Any, list[str]]:
        return node._route(path.split("/"), req)  # noqa: SLF001  P  Pecan's name


class Rest(rest.RestController):
    """A controller: one path, or a collection and its items.

    Its methods are get (or get_all and get_one), post (and post_one, where the path has an ident),
    put, patch and delete.  ``unknown_before``: older clients get 404 for all methods. ``since``:
    the version whose document lists the collection.
    """

    since: int = versions.MIN
    unknown_before: ClassVar[int] = versions.MIN
    children: ClassVar[Mapping[str, Rest]] = {}
    subresources: ClassVar[Mapping[str, Rest]] = {}

    def check_ident(self, call: Call, ident: str) -> None:
        """Refuse, while routing, a malformed ident."""

    def walk_without_ident(self, call: Call, segments: list[str]) -> Any:
        """Route a path that names a subresource without an ident."""
        raise statuses.HTTPNotFound

    @pecan.expose()
    def _route(self, args: list[str], request: Any = None) -> tuple[Any, list[str]]:
        """Return the method, and no segments: the call holds the idents."""
        call: Call = request.environ[KEY]
        return self.walk(call, [each for each in args if each]), []

    def walk(self, call: Call, segments: list[str]) -> Any:
        """Follow ``segments`` down the controllers and return the method."""
        if segments and segments[0] in self.children:
            return self.children[segments[0]].walk(call, segments[1:])
        return self.walk_on(call, segments)

    def walk_on(self, call: Call, segments: list[str]) -> Any:
        """Follow a segment that is no child: an ident, and the subresources behind it."""
        if segments and segments[0] in self.subresources:
            return self.walk_without_ident(call, segments)
        return self.walk_behind_ident(call, segments)

    def walk_behind_ident(self, call: Call, segments: list[str]) -> Any:
        """Take the first segment as an ident, whatever it is, and follow the others down."""
        if segments:
            self.check_ident(call, segments[0])
        if len(segments) > 1 and segments[1] in self.subresources:
            call.idents.append(segments[0])
            return self.subresources[segments[1]].walk(call, segments[2:])
        call.idents.extend(segments)
        return self._method(call, bool(segments))

    def _method(self, call: Call, has_ident: bool) -> Any:
        if call.version < self.unknown_before:
            raise statuses.HTTPNotFound
        for name in _names(call.method, has_ident):
            method = getattr(self, name, None)
            if method is not None and hasattr(method, "endpoint"):
                _admit_version(method.endpoint, call, self)
                return method
        if call.version < _first_version(self):
            raise statuses.HTTPNotFound
        raise statuses.HTTPMethodNotAllowed(headers=[("Allow", ", ".join(allowed(self)))])


@functools.cache
def _first_version(controller: Rest) -> int:
    """Return the first version of any of a controller's methods."""
    endpoints = declared(controller).values()
    gated = all(endpoint.too_old is TooOld.NO_PAGE for endpoint in endpoints)
    return min((endpoint.since for endpoint in endpoints), default=0) if gated else 0


def _names(method: str, has_ident: bool) -> tuple[str, ...]:
    name = method.lower()
    if method == "GET":
        return ("get_one", name) if has_ident else ("get_all", name)
    if method not in METHODS:
        return ()
    return (f"{name}_one", name) if has_ident else (name,)


def _admit_version(endpoint: Endpoint, call: Call, controller: Rest) -> None:
    """Refuse an endpoint that is newer than the client's version, as an unknown path."""
    if call.version >= endpoint.since or call.version in endpoint.also_in:
        return
    if endpoint.too_old is TooOld.NO_PAGE:
        raise statuses.HTTPNotFound
    if endpoint.too_old is TooOld.NOT_ALLOWED:
        raise statuses.HTTPMethodNotAllowed(headers=[("Allow", ", ".join(allowed(controller)))])


def declared(controller: Rest) -> dict[str, Endpoint]:
    """Return the endpoints of one controller by method name, such as ``get_one``."""
    named = ((name, getattr(controller, name, None)) for name in _ALL_NAMES)
    return {
        name: method.endpoint
        for name, method in named
        if method is not None and hasattr(method, "endpoint")
    }


_ALL_NAMES: Final = ("get", "get_all", "get_one", "post", "post_one", "put", "patch", "delete")


def allowed(controller: Rest) -> list[str]:
    """Return the HTTP methods of a controller for the header Allow."""
    return sorted({name.split("_")[0].upper() for name in declared(controller)})


def endpoints(controller: Rest, path: str = "") -> Iterator[tuple[str, str, Endpoint]]:
    """Yield every endpoint below ``controller`` as (HTTP method, path, declaration)."""
    for name, endpoint in declared(controller).items():
        shown = path + "".join(f"/{{{ident}}}" for ident in _own_idents(endpoint, path))
        yield name.split("_")[0].upper(), shown or "/", endpoint
    for word, child in controller.children.items():
        yield from endpoints(child, f"{path}/{word}")
    for part, child in controller.subresources.items():
        yield from endpoints(child, f"{path}/{{{_ident_name(controller, path)}}}/{part}")


def _own_idents(endpoint: Endpoint, path: str) -> tuple[str, ...]:
    return endpoint.idents[path.count("{") :]


def _ident_name(controller: Rest, path: str) -> str:
    single = declared(controller).get("get_one")
    if single is not None:
        return single.idents[-1]
    return path.rsplit("/", 1)[-1].rstrip("s") or "ident"


def memoise_argspecs() -> None:
    """Cache the signatures that Pecan inspects on each request.

    The cache is worth 2.4 to 5.8 times the requests per second.  A test notices when Pecan stops
    calling this function.
    """
    if hasattr(pecan.util.getargspec, "cache_info"):
        return
    remembered = functools.lru_cache(maxsize=None)(pecan.util.getargspec)
    for module in (pecan.util, pecan.core, pecan.decorators, pecan.rest, pecan.routing):
        module.getargspec = remembered
