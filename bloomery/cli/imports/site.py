"""Read the records of a running Ironic by its API, in the newest version it supports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from bloomery.cli.client import ApiError, Client

Json = dict[str, Any]

HIDDEN: Final = "******"  # what Ironic shows in place of a secret
AWAITING_TAKE_OVER: Final = (
    "imported, and not taken over yet"  # the maintenance reason begins with it
)

WAS_IN_MAINTENANCE: Final = "; in maintenance: "  # the reason goes on so, and then as before
LET_GO: Final = "taken over by another service"  # the maintenance reason in the old service
_OF_HISTORY: Final = (
    "uuid", "created_at", "severity", "event", "event_type", "conductor", "user", "project",
    "state", "target_provision_state", "duration_seconds",
)  # fmt: skip


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


_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {  # fields of a list's records, beside uuid
    "nodes": (
        "name", "driver", "driver_info", "instance_info", "provision_state", "reservation",
        "maintenance", "maintenance_reason",
    ),
    "allocations": ("name", "state"),
}  # fmt: skip
_MAPS: Final = ("driver_info", "instance_info", "properties", "extra")


class OldSite(Protocol):
    """The site that machines leave: its nodes, and its records by noun, each by UUID."""

    @property
    def nodes(self) -> Mapping[str, Json]: ...

    @property
    def records(self) -> Mapping[str, Mapping[str, Json]]: ...

    def let_go(self, uuid: str) -> Json:
        """Stop working on a node; return the node as it is from then on."""

    def release(self, uuid: str, reason: str) -> None:
        """Set the maintenance that the node had before it moved, as ``reason`` says.

        ``reason``: the node's maintenance reason in the service that does not work on it.
        """

    def past(self, uuid: str) -> Json:
        """Return the history of a node and the data of its inspection, as ``past`` takes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A service that runs; ``drivers`` by name."""

    client: Client
    nodes: Mapping[str, Json]
    records: Mapping[str, Mapping[str, Json]]
    drivers: Mapping[str, Json]

    def let_go(self, uuid: str) -> Json:
        path = f"/v1/nodes/{uuid}"
        self.client.put(f"{path}/maintenance", {"reason": LET_GO})
        node: Json = self.client.get(path)
        return node

    def release(self, uuid: str, reason: str) -> None:
        path = f"/v1/nodes/{uuid}/maintenance"
        _, was_in_maintenance, former_reason = reason.partition(WAS_IN_MAINTENANCE)
        if was_in_maintenance:
            self.client.put(path, {"reason": former_reason})
        else:
            self.client.delete(path)

    def protect(self, node: Json) -> None:
        """Protect a node here where ``node``, as the other service shows it, is protected."""
        if not node.get("protected"):
            return
        patch: list[Json] = [{"op": "add", "path": "/protected", "value": True}]
        if reason := node.get("protected_reason"):
            patch.append({"op": "add", "path": "/protected_reason", "value": reason})
        self.client.patch(f"/v1/nodes/{node['uuid']}", patch)

    def past(self, uuid: str) -> Json:
        path = f"/v1/nodes/{uuid}"
        history = [
            history_entry(entry) for entry in _list(self.client, f"{path}/history", "history")
        ]
        return {
            "history": history,
            "inspected": _find(self.client.get, f"{path}/inventory"),
        }


def history_entry(entry: Json) -> Json:
    """Return an entry of a node's history as ``past`` takes it."""
    fields: Json = {name: entry[name] for name in _OF_HISTORY if name in entry}
    return fields | {"severity": entry.get("severity") or "INFO", "event": entry.get("event") or ""}


def read(client: Client) -> Site:
    """Read a service.  Raises ApiError."""
    client = client.latest()
    return Site(
        client=client,
        nodes=_by_uuid(client, "/v1/nodes", "nodes"),
        records={name: _by_uuid(client, noun.path, noun.list_name) for name, noun in NOUNS.items()},
        drivers={
            str(driver.get("name")): driver
            for driver in client.pages("/v1/drivers?detail=True", "drivers")
        },
    )


def _by_uuid(client: Client, path: str, list_name: str) -> dict[str, Json]:
    """Return the records of a list.  Raises ApiError for one that lacks what ``plan`` reads."""
    records = _list(client, path, list_name)
    for record in records:
        absent = {"uuid", *_NEEDED.get(list_name, ())} - record.keys()
        odd = [name for name in _MAPS if not isinstance(record.get(name), dict | None)]
        if absent or odd or not isinstance(record["uuid"], str):
            fields = ", ".join(sorted({*absent, *odd} or {"uuid"}))
            raise client.unusable(path, f"one of its {list_name} has no {fields} to import")
    return {record["uuid"]: record for record in records}


def _list(client: Client, path: str, list_name: str) -> list[Json]:
    """Return all of a list, empty where an older Ironic does not know the noun."""
    query = "limit=1000" if list_name == "allocations" else "detail=True&limit=1000"
    return _find(lambda whole: list(client.pages(whole, list_name)), f"{path}?{query}") or []


def _find(get: Callable[[str], Any], path: str) -> Any:
    """Return what ``get`` returns, or None where the path is not there."""
    try:
        return get(path)
    except ApiError as exc:
        if exc.facts["answer"] == 404:
            return None
        raise
