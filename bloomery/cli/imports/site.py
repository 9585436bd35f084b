"""What a service has of each noun, read by its API in the newest version that it knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bloomery.cli.client import ApiError, Client

Json = dict[str, Any]

HIDDEN: Final = "******"  # what Ironic shows in place of a secret
HELD: Final = "imported, and not taken over yet"  # the maintenance reason begins with it

LET_GO: Final = "taken over by another service"  # the maintenance reason in the old service


@dataclass(frozen=True, slots=True, kw_only=True)
class Noun:
    """Records that POST makes with a UUID of the caller's.  ``fields``: those that POST takes."""

    path: str
    list_name: str
    fields: tuple[str, ...]


_OF_A_PORT: Final = ("uuid", "node_uuid", "address", "extra", "physical_network", "name")
NOUNS: Final[Mapping[str, Noun]] = {  # in the order in which they refer to each other
    "chassis": Noun(path="/v1/chassis", list_name="chassis", fields=(
        "uuid", "description", "extra")),
    "portgroup": Noun(path="/v1/portgroups", list_name="portgroups", fields=(
        *_OF_A_PORT, "mode", "properties", "standalone_ports_supported", "category")),
    "port": Noun(path="/v1/ports", list_name="ports", fields=(
        *_OF_A_PORT, "local_link_connection", "pxe_enabled", "portgroup_uuid", "is_smartnic",
        "description", "vendor", "category")),
    "volume connector": Noun(path="/v1/volume/connectors", list_name="connectors", fields=(
        "uuid", "node_uuid", "type", "connector_id", "extra")),
    "volume target": Noun(path="/v1/volume/targets", list_name="targets", fields=(
        "uuid", "node_uuid", "volume_type", "volume_id", "boot_index", "properties", "extra")),
    "deploy template": Noun(path="/v1/deploy_templates", list_name="deploy_templates", fields=(
        "uuid", "name", "steps", "extra")),
    "runbook": Noun(path="/v1/runbooks", list_name="runbooks", fields=(
        "uuid", "name", "steps", "disable_ramdisk", "public", "owner", "extra", "description")),
    "inspection rule": Noun(path="/v1/inspection_rules", list_name="inspection_rules", fields=(
        "uuid", "description", "phase", "priority", "sensitive", "scope", "conditions", "actions")),
    "allocation": Noun(path="/v1/allocations", list_name="allocations", fields=(
        "uuid", "name", "resource_class", "traits", "candidate_nodes", "owner", "extra")),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The nodes of a service and its records by noun, each by UUID; its drivers by name."""

    client: Client
    nodes: Mapping[str, Json]
    records: Mapping[str, Mapping[str, Json]]
    drivers: Mapping[str, Json]


def read(client: Client) -> Site:
    """Read a service.  Raises ApiError."""
    client = client.latest()
    return Site(
        client=client,
        nodes=_by_uuid(client, "/v1/nodes", "nodes"),
        records={name: _by_uuid(client, noun.path, noun.list_name) for name, noun in NOUNS.items()},
        drivers={
            driver["name"]: driver for driver in client.get("/v1/drivers?detail=True")["drivers"]
        },
    )


def _by_uuid(client: Client, path: str, list_name: str) -> dict[str, Json]:
    try:
        return {record["uuid"]: record for record in _pages(client, path, list_name)}
    except ApiError as exc:
        if exc.facts["answer"] == 404:  # an older Ironic does not know the noun
            return {}
        raise


def _pages(client: Client, path: str, list_name: str) -> Iterator[Json]:
    query = "limit=1000" if list_name == "allocations" else "detail=True&limit=1000"
    marker = ""
    while True:
        document = client.get(f"{path}?{query}{marker}")
        yield from document[list_name]
        if not document.get("next"):
            return
        marker = f"&marker={document[list_name][-1]['uuid']}"
