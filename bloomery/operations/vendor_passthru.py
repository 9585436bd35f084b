"""Methods of vendor interfaces, of nodes and of drivers."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bloomery.model.request import VendorCall
from bloomery.model.rules import attributes
from bloomery.operations import lookup, policy
from bloomery.operations.context import Context

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a method: JSON, or bytes where ``attach``; None where ``is_async``."""

    value: Any
    is_async: bool
    attach: bool


def list_node_methods(ctx: Context, ident: str) -> Json:
    """Return {method: facts}."""
    node = policy.get_node(ctx, ident, "baremetal:node:vendor_passthru")
    return lookup.conductor_of(ctx, node).get_node_vendor_passthru_methods(ctx.request, node.uuid)


def call_node(ctx: Context, ident: str, call: VendorCall) -> Result:
    node = policy.get_node(ctx, ident, "baremetal:node:vendor_passthru")
    attributes.refuse_sealed_in(call.info)
    conductor = lookup.conductor_of(ctx, node)
    return _result(
        conductor.vendor_passthru(ctx.request, node.uuid, call.method, call.http_method, call.info)
    )


def list_driver_methods(ctx: Context, name: str) -> Json:
    """Return {method: facts}.  Raises DriverNotFound."""
    policy.authorize(ctx, "baremetal:driver:vendor_passthru")
    conductor = ctx.services.rpc.conductor_for_driver(name)
    return conductor.get_driver_vendor_passthru_methods(ctx.request, name)


def call_driver(ctx: Context, name: str, call: VendorCall) -> Result:
    policy.authorize(ctx, "baremetal:driver:vendor_passthru")
    conductor = ctx.services.rpc.conductor_for_driver(name)
    attributes.refuse_sealed_in(call.info)
    return _result(
        conductor.driver_vendor_passthru(
            ctx.request, name, call.method, call.http_method, call.info
        )
    )


def _result(answer: Mapping[str, Any]) -> Result:
    value = answer["return"]
    if answer["attach"] and value is not None:
        value = base64.b64decode(value)
    return Result(value=value, is_async=answer["async"], attach=answer["attach"])
