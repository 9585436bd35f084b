"""/v1/nodes/<ident>/vendor_passthru and /v1/drivers/<name>/vendor_passthru.

The path or ``?method=`` names a method; any HTTP method calls it, and the body holds its arguments.
A synchronous method answers 200 with its result, as JSON or bytes; an asynchronous one 202.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import orjson

from bloomery.api import arguments
from bloomery.api.arguments import Arg
from bloomery.api.declare import Call, Reply, Schema, endpoint
from bloomery.api.routing import Rest
from bloomery.api.views import nodes as views
from bloomery.model.vendor_call import VendorCall
from bloomery.operations import vendor_passthru

METHOD: Final = {"method": Arg(arguments.text)}
INFO: Final = Schema(
    thing="vendor_passthru", source={"type": "object", "properties": {}, "required": []}
)
NODE_RULE: Final = "baremetal:node:vendor_passthru"
DRIVER_RULE: Final = "baremetal:driver:vendor_passthru"
_ASYNC: Final = 202


def _vendor_call(call: Call, method: str, body: dict[str, Any]) -> VendorCall:
    """Return the vendor call.  Raises MissingParameterValue before any lookup."""
    named = arguments.needed("method", method)
    return VendorCall(method=named, http_method=call.method, info=body)


def _reply(result: vendor_passthru.Result) -> Reply:
    if result.is_async:
        return Reply(status=_ASYNC)
    if result.attach:
        return Reply(raw=result.value or b"", content_type="application/octet-stream")
    return Reply(raw=orjson.dumps(result.value))


class NodeMethods(Rest):
    @endpoint(rule=NODE_RULE)
    def get(self, call: Call, node: str) -> dict[str, Any]:
        return vendor_passthru.list_node_methods(call.context, views.known_ident(call, node))


class DriverMethods(Rest):
    @endpoint(rule=DRIVER_RULE)
    def get(self, call: Call, driver: str) -> dict[str, Any]:
        return vendor_passthru.list_driver_methods(call.context, driver)


class NodePassthru(Rest):
    children: ClassVar[Mapping[str, Rest]] = {"methods": NodeMethods()}

    @endpoint(rule=NODE_RULE, query=METHOD, body=INFO, answers="any")
    def get(
        self,
        call: Call,
        node: str,
        driver_method: str = "",
        *,
        body: dict[str, Any],
        method: str = "",
    ) -> Reply:
        """Call a method of the node's vendor interface by the request's HTTP method."""
        vendor_call = _vendor_call(call, driver_method or method, body)
        ident = views.known_ident(call, node)
        return _reply(vendor_passthru.call_node(call.context, ident, vendor_call))

    post = put = patch = delete = get


class DriverPassthru(Rest):
    children: ClassVar[Mapping[str, Rest]] = {"methods": DriverMethods()}

    @endpoint(rule=DRIVER_RULE, query=METHOD, body=INFO, answers="any")
    def get(
        self,
        call: Call,
        driver: str,
        driver_method: str = "",
        *,
        body: dict[str, Any],
        method: str = "",
    ) -> Reply:
        """Call a method of the driver's vendor interface by the request's HTTP method."""
        vendor_call = _vendor_call(call, driver_method or method, body)
        return _reply(vendor_passthru.call_driver(call.context, driver, vendor_call))

    post = put = patch = delete = get
