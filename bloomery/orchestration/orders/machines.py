"""Machines for the resources of a stack: ``resources.machines`` by calls of ``operations``.

A call has the user and roles of the caller whose order on the tree was accepted last, and so no
more rights than that caller.  It does not wait for a locked node, because a turn of the engine
serves a whole tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from bloomery import errors, secrets
from bloomery.conductor.states import State
from bloomery.db import rows, stacks
from bloomery.model import node as node_model
from bloomery.model import nouns
from bloomery.model.noun import Noun
from bloomery.model.request import Page
from bloomery.model.stacks import Stack
from bloomery.operations import (
    allocations,
    firmware,
    management,
    node_facts,
    nodes,
    policy,
    provision,
    records,
    runbooks,
    timeline,
)
from bloomery.operations.context import Context, Services
from bloomery.orchestration.orders import budgets
from bloomery.orchestration.queries import access
from bloomery.orchestration.resources.machines import Busy, Json, Machines, Patch
from bloomery.outcome import FlowOutcome

_UNSEEN: Final = frozenset({"driver_internal_info", "clean_step", "deploy_step", "service_step"})
COLUMNS: Final = tuple(
    field.name for field in node_model.FIELDS.values()
    if (field.column or field.name == "traits") and field.name not in _UNSEEN
)  # fmt: skip
_FREE: Final = ("uuid", "name", "traits")
_PLACES: Final = (
    "uuid", "name", "conductor_group", "shard", "chassis_uuid", "provision_state", "instance_uuid",
    "maintenance",
)  # fmt: skip
_CAPACITY: Final = (
    "uuid", "name", "resource_class", "traits", "provision_state", "power_state", "instance_uuid",
    "maintenance", "retired",
)  # fmt: skip
_ADDRESS: Final = ("uuid", "node_uuid", "address")
_MOST: Final = 1000
_BUSY: Final = (
    errors.NodeLocked, errors.ParentNodeLocked, errors.ChildNodeLocked, errors.LockLost,
    errors.Unavailable,
)  # fmt: skip


def machines_of(services: Services) -> Callable[[Stack], Machines]:
    return lambda stack: ServiceMachines(services, stack)


class ServiceMachines:
    """The machines of one stack, as its last caller may see them."""

    def __init__(self, services: Services, stack: Stack) -> None:
        self._services, self._stack = services, stack

    def _context(self) -> Context:
        request = access.stored_caller(self._services, self._stack)
        return Context(services=self._services, request=request)

    # --------------------------------------------------------------------------------- nodes

    def get_node(self, ident: str) -> Json:
        context = self._context()
        with _raises_busy(None):
            row = nodes.get_row(context, ident, COLUMNS)
        return shown_node(context, row)

    def list_available(self, resource_class: str) -> list[Json]:
        filters = {
            "resource_class": resource_class, "provision_state": State.AVAILABLE,
            "associated": False, "maintenance": False, "retired": False,
        }  # fmt: skip
        nodes = self._list(_FREE, filters)
        return [each | {"traits": (each["traits"] or "").split(",")} for each in nodes]

    def list_nodes(self, filters: Json) -> list[Json]:
        nodes: list[Json] = []
        while not nodes or len(nodes) % _MOST == 0:
            page = self._list(_CAPACITY, filters, nodes[-1]["uuid"] if nodes else None)
            nodes += page
            if not page:
                break
        for node in nodes:
            node["traits"] = sorted(node["traits"].split(",")) if node["traits"] else []
            node["is_free"] = (
                node["provision_state"] == State.AVAILABLE
                and node["instance_uuid"] is None
                and node["power_state"] is not None
                and not (node["maintenance"] or node["retired"])
            )
        return nodes

    def list_class(self, resource_class: str) -> list[Json]:
        return self._list(_PLACES, {"resource_class": resource_class})

    def _list(
        self, columns: tuple[str, ...], filters: Json, marker: str | None = None
    ) -> list[Json]:
        place = Page(limit=_MOST, marker=marker)
        with _raises_busy(None):
            page, _ = nodes.list_rows(self._context(), columns, filters, place)
        return [dict(zip(columns, row, strict=True)) for row in page]

    def create_node(self, fields: Json) -> None:
        with _raises_busy(None):
            nodes.create(self._context(), fields)

    def update_node(self, uuid: str, patch: Patch) -> None:
        with _raises_busy(uuid):
            nodes.update(self._context(), uuid, _plain(patch))

    def delete_node(self, uuid: str) -> None:
        with _raises_busy(uuid):
            nodes.delete(self._context(), uuid)

    def set_traits(self, uuid: str, names: Sequence[str]) -> None:
        with _raises_busy(uuid):
            node_facts.replace_traits(self._context(), uuid, list(names))

    def set_maintenance(self, uuid: str, on: bool, reason: str | None = None) -> None:
        with _raises_busy(uuid):
            nodes.set_maintenance(self._context(), uuid, on, reason)

    def set_provision_state(
        self, uuid: str, verb: str, *, order_id: str | None = None, **arguments: Any
    ) -> None:
        body = {"target": verb} | {n: value for n, value in arguments.items() if value is not None}
        budgets.check(self._services, uuid, verb)
        context = self._context() if order_id is None else self._context_of(order_id)
        with _raises_busy(uuid):
            provision.set_provision_state(context, uuid, body)

    def find_flow(self, uuid: str, order_id: str) -> FlowOutcome | None:
        context = self._context_of(order_id)
        return timeline.find_flow(context, uuid, context.request.request_id)

    def has_aborted_cleaning(self, uuid: str) -> bool:
        context = self._context()
        flow = timeline.find_newest_flow(context, uuid, "clean")
        if flow is None or not flow.is_aborted:
            return False
        return str(flow.request_id).startswith(context.request.request_id)

    def _context_of(self, order_id: str) -> Context:
        context = self._context()
        request_id = f"{context.request.request_id}-{order_id}"
        return replace(context, request=replace(context.request, request_id=request_id))

    def set_power_state(self, uuid: str, target: str) -> None:
        with _raises_busy(uuid):
            management.set_power_state(self._context(), uuid, target)

    def set_boot(self, uuid: str, field: str, value: Any) -> None:
        ask = {"boot_mode": management.set_boot_mode, "secure_boot": management.set_secure_boot}
        with _raises_busy(uuid):
            ask[field](self._context(), uuid, value)

    def list_ports(self, uuid: str) -> tuple[list[Json], list[Json]]:
        return self._of_node(nouns.PORT, uuid), self._of_node(nouns.PORTGROUP, uuid)

    def list_addresses(self, uuids: Sequence[str]) -> dict[str, list[str]]:
        filters = {"node": uuids[0]} if len(uuids) == 1 else {}
        addresses: dict[str, list[str]] = {uuid: [] for uuid in uuids}
        marker: str | None = None
        while uuids:
            place = Page(limit=_MOST, marker=marker)
            with _raises_busy(None):
                page = records.list_rows(self._context(), nouns.PORT, _ADDRESS, filters, place)
            for marker, node, address in page:  # noqa: B007  the last one is the next marker
                if node in addresses and address:
                    addresses[node].append(address)
            if len(page) < _MOST:
                break
        return {uuid: sorted(each) for uuid, each in addresses.items()}

    def _of_node(self, noun: Noun, uuid: str) -> list[Json]:
        context = self._context()
        with _raises_busy(None):
            page = records.list_rows(context, noun, noun.columns, {"node": uuid}, Page())
        return [shown_record(context, noun, row) for row in page]

    def list_vifs(self, uuid: str) -> list[str]:
        with _raises_busy(uuid):
            return [str(vif["id"]) for vif in management.list_vifs(self._context(), uuid)]

    def attach_vif(self, uuid: str, vif: Json) -> None:
        with _raises_busy(uuid):
            management.attach_vif(self._context(), uuid, vif)

    def detach_vif(self, uuid: str, vif_id: str) -> None:
        with _raises_busy(uuid):
            management.detach_vif(self._context(), uuid, vif_id)

    def list_bios_settings(self, uuid: str) -> dict[str, str | None]:
        settings = node_facts.list_bios_settings(self._context(), uuid)
        return {str(each["name"]): each["value"] for each in settings}

    def list_firmware(self, uuid: str) -> list[Json]:
        return node_facts.list_firmware(self._context(), uuid)

    def list_firmware_updates(self, uuid: str) -> tuple[str | None, list[Json], bool]:
        digest, updates, is_listed = firmware.list_updates(self._context(), uuid)
        return digest, [each.document | {"setting": each.setting} for each in updates], is_listed

    def get_inventory(self, uuid: str) -> Json:
        return node_facts.get_inventory(self._context(), uuid)

    def find_console(self, uuid: str) -> str | None:
        with _raises_busy(uuid):
            console = management.get_console(self._context(), uuid)
        return (console["console_info"] or {}).get("url")

    def list_steps(self, uuid: str, phase: str) -> list[Json]:
        return timeline.list_steps(self._context(), uuid, phase)

    # ------------------------------------------------------------------------------- records

    def find(self, noun: str, ident: str) -> Json | None:
        declared, context = nouns.BY_NAME[noun], self._context()
        try:
            row = records.get(context, declared, ident, declared.columns)
        except errors.NotFound:
            return None
        return shown_record(context, declared, row)

    def create(self, noun: str, fields: Json) -> None:
        declared, context = nouns.BY_NAME[noun], self._context()
        with _raises_busy(None):
            if declared is nouns.ALLOCATION:
                allocations.create(context, fields)
            elif declared is nouns.RUNBOOK:
                records.create(context, declared, runbooks.with_owner(context, fields))
            else:
                records.create(context, declared, fields)

    def update(self, noun: str, uuid: str, patch: Patch) -> None:
        declared, context, plain = nouns.BY_NAME[noun], self._context(), _plain(patch)
        with _raises_busy(None):
            if declared is nouns.RUNBOOK:
                runbooks.authorize_change(context, uuid, plain)
            records.update(context, declared, uuid, plain)

    def delete(self, noun: str, uuid: str) -> None:
        declared, context = nouns.BY_NAME[noun], self._context()
        with _raises_busy(None):
            if declared is nouns.ALLOCATION:
                allocations.destroy(context, uuid)
            else:
                records.destroy(context, declared, uuid)

    def set_runbook_traits(self, uuid: str, names: Sequence[str]) -> None:
        with _raises_busy(uuid):
            runbooks.set_traits(self._context(), uuid, list(names))

    # -------------------------------------------------------------------------------- stacks

    def is_live_stack(self, stack_id: str) -> bool:
        with self._services.db.read() as conn:
            stack = stacks.find(conn, stack_id)
        return stack is not None and stack.deleted_at is None


@contextmanager
def _raises_busy(uuid: str | None) -> Iterator[None]:
    try:
        yield
    except _BUSY as exc:
        raise Busy(str(exc), uuid) from exc


def _plain(patch: Patch) -> list[Json]:
    return [dict(operation) for operation in patch]


def shown_node(context: Context, row: Any) -> Json:
    """Return a node, a row of ``COLUMNS``, as the caller may see it."""
    node = _node(row)
    hidden: tuple[str, ...] = ()
    if policy.guards_fields(context):
        hidden = policy.hidden_fields(context, row.owner, row.lessee)
    return {name: None if name in hidden else value for name, value in node.items()}


def shown_record(context: Context, noun: Noun, row: Any) -> Json:
    record = _record(noun, row)
    unseen = [n for n, rule in noun.read_rules.items() if not policy.may(context, rule)]
    return record | dict.fromkeys(unseen)


def _node(row: Any) -> Json:
    values: Json = {}
    for name, value in zip(COLUMNS, row, strict=True):
        if name == "traits":
            values[name] = sorted(value.split(",")) if value else []
        elif name in node_model.OBJECTS:
            decoded = rows.load(value)
            is_secret = name in node_model.SECRET_OBJECTS
            values[name] = _masked(name, decoded) if is_secret else decoded
        else:
            values[name] = _shown(value)
    return values


def _masked(name: str, value: Any) -> Any:
    return secrets.mask(value, instance_info=name == "instance_info")


def _record(noun: Noun, row: Any) -> Json:
    pairs = zip(noun.columns, row, strict=True)
    return {name: _decoded(noun, name, value) for name, value in pairs if name != "id"}


def _decoded(noun: Noun, name: str, value: Any) -> Any:
    if name not in noun.objects:
        return _shown(value)
    decoded = rows.load(value)
    return secrets.mask(decoded) if name in noun.secrets else decoded


def _shown(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
