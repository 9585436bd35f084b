"""Drivers: the hardware types that some living conductor serves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from bloomery import errors
from bloomery.model import node as model
from bloomery.operations import documents, links, versions
from bloomery.operations.context import Context
from bloomery.rpc.ring import DriverFacts

Json = dict[str, Any]

TYPE_SINCE: Final = 30
NODE_FIELDS_SINCE: Final = 31  # when nodes got the fields that drivers had shown one version before
PROPERTIES_LINK_SINCE: Final = 14
FIELDS_SINCE: Final = 77
TYPES: Final = ("classic", "dynamic")


def show(
    ctx: Context,
    *,
    kind: str | None = None,
    detail: bool | None = None,
    fields: Iterable[str] | None = None,
) -> Json:
    """Return every driver; ``kind`` classic finds none, they all are dynamic."""
    if kind is not None or detail is not None:
        versions.require(ctx.version, TYPE_SINCE, "type and detail of drivers")
    if kind is not None and kind not in TYPES:
        raise errors.Invalid(reason=f'Invalid driver type "{kind}": allowed are {TYPES}')
    documents.refuse_both(fields, detail=detail)
    if fields is not None:
        _check_fields(ctx, fields)
    known = [] if kind == "classic" else ctx.services.rpc.ring.drivers()
    return {"drivers": [_document(ctx, one, fields, detail=bool(detail)) for one in known]}


def one(ctx: Context, name: str, fields: Iterable[str] | None = None) -> Json:
    """Return one driver in full.  Raises DriverNotFound."""
    if fields is not None:
        _check_fields(ctx, fields)
    facts = ctx.services.rpc.ring.driver(name)
    return _document(ctx, facts, fields, detail=ctx.version >= TYPE_SINCE)


def properties(ctx: Context, name: str) -> Json:
    """Return what the driver's interfaces read in driver_info, with a sentence on each."""
    return ctx.services.rpc.conductor_for_driver(name).get_driver_properties(ctx.request, name)


def _check_fields(ctx: Context, fields: Iterable[str]) -> None:
    versions.require(ctx.version, FIELDS_SINCE, "fields of drivers")
    allowed = {"name", "hosts", "type", "properties", "links"} | set(_interface_names(ctx))
    documents.check_fields(fields, {}, ctx.version, also=allowed)


def _interface_names(ctx: Context) -> list[str]:
    return [
        name
        for kind in _kinds(ctx)
        for name in (f"default_{kind}_interface", f"enabled_{kind}_interfaces")
    ]


def _kinds(ctx: Context) -> list[str]:
    """Return the kinds of interfaces that the version knows.

    Most came with the type, some with a node's field of theirs.
    """
    since = {kind: model.FIELDS[f"{kind}_interface"].since for kind in model.INTERFACES}
    return [kind for kind in since if since[kind] <= max(NODE_FIELDS_SINCE, ctx.version)]


def _document(
    ctx: Context,
    facts: DriverFacts,
    fields: Iterable[str] | None,
    *,
    detail: bool,
) -> Json:
    found: Json = {"name": facts.name, "hosts": list(facts.hosts)}
    if ctx.version >= PROPERTIES_LINK_SINCE:
        found["properties"] = links.of(ctx.url, f"drivers/{facts.name}/properties")
    if ctx.version >= TYPE_SINCE:
        found["type"] = "dynamic"
    if detail or fields is not None:
        for kind in _kinds(ctx):
            found[f"default_{kind}_interface"] = facts.defaults.get(kind)
            found[f"enabled_{kind}_interfaces"] = list(facts.enabled.get(kind, ()))
    if fields is not None:
        found = {name: value for name, value in found.items() if name in set(fields)}
    return found | {"links": links.of(ctx.url, f"drivers/{facts.name}")}
