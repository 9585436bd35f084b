"""``/``, ``/v1`` and the mount points of all controllers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from webob import exc as statuses

from bloomery import errors
from bloomery.api import versions
from bloomery.api.controllers import ext
from bloomery.api.controllers.v1 import (
    allocations,
    chassis,
    conductors,
    deploy_templates,
    events,
    inspection_rules,
    nodes,
    portgroups,
    ports,
    ramdisk,
    runbooks,
    shards,
    volume,
)
from bloomery.api.declare import Call, endpoint
from bloomery.api.routing import Rest
from bloomery.api.views import projection

ID: Final = "v1"
DOCUMENTATION: Final = "https://docs.openstack.org/api-ref/baremetal/"
ANYBODY: Final = "public"

COLLECTIONS: Final[Mapping[str, Rest]] = {
    "allocations": allocations.ALLOCATIONS,
    "chassis": chassis.CHASSIS,
    "nodes": nodes.Nodes(),
    "portgroups": portgroups.PORTGROUPS,
    "ports": ports.PORTS,
    "volume": volume.VOLUME,
    "shards": shards.SHARDS,
    "drivers": conductors.Drivers(),
    "deploy_templates": deploy_templates.DEPLOY_TEMPLATES,
    "runbooks": runbooks.RUNBOOKS,
    "conductors": conductors.Conductors(),
    "inspection_rules": inspection_rules.INSPECTION_RULES,
    "lookup": ramdisk.Lookup(),
    "heartbeat": ramdisk.Heartbeats(),
    "continue_inspection": ramdisk.ContinueInspection(),
    "events": events.Events(),
}


def version_document(call: Call) -> dict[str, Any]:
    return {
        "id": ID,
        "links": [{"href": call.at(""), "rel": "self"}],
        "status": "CURRENT",
        "min_version": f"1.{versions.MIN}",
        "version": f"1.{versions.MAX}",
    }


class V1(Rest):
    """The version document; it lists the collections of the client's version."""

    children: ClassVar[Mapping[str, Rest]] = COLLECTIONS

    @endpoint(rule=ANYBODY)
    def get(self, call: Call) -> dict[str, Any]:
        about = {"href": DOCUMENTATION, "rel": "describedby", "type": "text/html"}
        document: dict[str, Any] = {
            "id": ID,
            "links": [{"href": call.at(""), "rel": "self"}, about],
            "media_types": {
                "base": "application/json",
                "type": "application/vnd.openstack.ironic.v1+json",
            },
            "version": version_document(call),
        }
        names = (
            name for name, controller in COLLECTIONS.items() if controller.since <= call.version
        )
        return document | {name: projection.links(call.url, f"{name}/") for name in names}

    def walk_on(self, call: Call, segments: list[str]) -> Any:
        if segments:
            raise statuses.HTTPNotFound
        return self.other if call.method not in ("GET", "HEAD") else self.get

    @endpoint(rule=ANYBODY, status=405)
    def other(self, call: Call) -> None:
        """Refuse every method but GET, from the handler as Ironic does."""
        raise errors.MethodNotAllowed(allowed="GET, HEAD")


class Root(Rest):
    """Answer any method with the root document; paths without /v1 are routed as if they had it.

    The extensions are mounted beside /v1.
    """

    v1: ClassVar[V1] = V1()
    # Root is defined below
    children: ClassVar[Mapping[str, Rest]] = {ID: v1, "ext": ext.make(lambda: Root())}  # noqa: PLW0108

    @endpoint(rule=ANYBODY)
    def get(self, call: Call) -> dict[str, Any]:
        document = version_document(call)
        return {
            "name": "OpenStack Ironic API",
            "description": "Bloomery: bare metal behind the API of OpenStack Ironic.",
            "default_version": document,
            "versions": [document],
        }

    def walk_on(self, call: Call, segments: list[str]) -> Any:
        return self.v1.walk(call, segments) if segments else self.get
