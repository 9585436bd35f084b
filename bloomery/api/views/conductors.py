"""Views of conductors and drivers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from bloomery import errors
from bloomery.api import versions
from bloomery.api.declare import Call
from bloomery.api.views import pagination, projection
from bloomery.model import conductor as model
from bloomery.model import node
from bloomery.model.conductor import Conductor
from bloomery.model.request import Page
from bloomery.rpc.ring import DriverFacts

Json = dict[str, Any]

DEFAULT: Final = ("hostname", "conductor_group", "alive")
DETAIL: Final = tuple(model.FIELDS)
LINKS: Final = ("links",)
TYPE_SINCE: Final = 30  # of drivers
NODE_FIELDS_SINCE: Final = 31  # one version after drivers
PROPERTIES_LINK_SINCE: Final = 14
FIELDS_SINCE: Final = 77
TYPES: Final = ("classic", "dynamic")


def listed_fields(query: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the fields of a list of conductors."""
    fields = query.get("fields")
    projection.refuse_both(fields, detail=query.get("detail"))
    if query.get("detail"):
        return DETAIL
    if fields is None:
        return DEFAULT
    projection.check_fields(fields, model.FIELDS, 1, also=LINKS)
    return tuple(fields)


def list_document(
    call: Call,
    query: Mapping[str, Any],
    page: Page,
    conductors: Sequence[Conductor],
    fields: tuple[str, ...],
) -> Json:
    """Return the document of a page of conductors."""
    answer: Json = {"conductors": [document(call, each, fields) for each in conductors]}
    if page.is_full(conductors):
        answer["next"] = pagination.next_url(
            call,
            "conductors",
            page,
            conductors[-1].hostname,
            detail=query.get("detail"),
            fields=None if query.get("detail") else fields,
        )
    return answer


def document(call: Call, conductor: Conductor, fields: Iterable[str]) -> Json:
    document = {name: getattr(conductor, name) for name in fields if name != "links"}
    return document | {"links": projection.links(call.url, f"conductors/{conductor.hostname}")}


# -------------------------------------------------------------------------------------- drivers


def check_driver_type(call: Call, kind: str | None, *, detail: bool | None) -> None:
    """Refuse unknown types; every driver is dynamic, but clients may filter for classic ones."""
    if kind is not None or detail is not None:
        versions.require(call.version, TYPE_SINCE, "type and detail of drivers")
    if kind is not None and kind not in TYPES:
        raise errors.Invalid(reason=f'Invalid driver type "{kind}": allowed are {TYPES}')


def check_driver_fields(call: Call, fields: Iterable[str] | None) -> None:
    if fields is None:
        return
    versions.require(call.version, FIELDS_SINCE, "fields of drivers")
    projection.check_fields(fields, {}, call.version, also=driver_fields(call.version))


def driver_fields(version: int) -> list[str]:
    """Return the names that clients of a version may ask for, sorted."""
    interfaces = {name for kind in _kinds(version) for name in _interface_fields(kind)}
    return sorted({"name", "hosts", "type", "properties", "links"} | interfaces)


def _kinds(version: int) -> list[str]:
    """Return the interface kinds of the version.

    Most kinds came with the driver type, some with a field of nodes.
    """
    since = {kind: node.FIELDS[f"{kind}_interface"].since for kind in node.INTERFACES}
    return [kind for kind in since if since[kind] <= max(NODE_FIELDS_SINCE, version)]


def _interface_fields(kind: str) -> tuple[str, str]:
    return f"default_{kind}_interface", f"enabled_{kind}_interfaces"


def driver(
    call: Call,
    facts: DriverFacts,
    fields: Iterable[str] | None,
    *,
    detail: bool | None = None,
) -> Json:
    """Return the document of one driver; ``detail`` None: all fields of the version."""
    document: Json = {"name": facts.name, "hosts": list(facts.hosts)}
    if call.version >= PROPERTIES_LINK_SINCE:
        document["properties"] = projection.links(call.url, f"drivers/{facts.name}/properties")
    if call.version >= TYPE_SINCE:
        document["type"] = "dynamic"
    if detail is None:
        detail = call.version >= TYPE_SINCE
    if detail or fields is not None:
        for kind in _kinds(call.version):
            default, enabled = _interface_fields(kind)
            document[default] = facts.defaults.get(kind)
            document[enabled] = list(facts.enabled.get(kind, ()))
    if fields is not None:
        document = {name: value for name, value in document.items() if name in set(fields)}
    return document | {"links": projection.links(call.url, f"drivers/{facts.name}")}
