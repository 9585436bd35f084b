"""Processing of an inventory from a BMC or an agent: hooks, rules, storage.

    outcome = inspection.process(task, inventory, plugin_data)

The transaction that ends the flow's step writes the node's fields, ports, traits and inventory.
Before that, only a node name that a rule sets is written, to reserve it.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.conductor import bmc_sharing, record_rules, writes
from bloomery.conductor.task_manager import TaskManager
from bloomery.conductor.writes import EncodedWrite
from bloomery.conf import Conf
from bloomery.db import hardware, nodes, records
from bloomery.db.tables import NODES, PORTS
from bloomery.inspection import calls, engine, hooks, rule_check
from bloomery.inspection import draft as drafts
from bloomery.inspection.draft import Draft
from bloomery.model.node import COLUMNS, LEFT_OUT_BY_INSPECTION, PATCHABLE, SECRET_OBJECTS, Node
from bloomery.model.nouns import PORT
from bloomery.model.port import Port
from bloomery.model.rules import nodes as rules
from bloomery.outcome import Done

Json = dict[str, Any]
LOG = logging.getLogger(__name__)

_MOST_LISTED: Final = 8
_LOCK: Final = frozenset(
    {"id", "uuid", "created_at", "updated_at", "reservation", "reserved_for", "reserved_at",
     "lock_generation"}
)  # fmt: skip
_FIELDS: Final = (*(name for name in COLUMNS if name not in _LOCK), "traits")


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectionResult:
    """The results of an inspection for tables other than the node's.

    ``traits``: the node's new traits; None keeps them.  ``data``: None where no inventory is kept.
    ``node``: whose results they are, and ``entry`` makes the history entry of what is left out.
    """

    new_ports: Sequence[Port]
    changed_ports: Mapping[str, Json]
    removed_ports: Sequence[str]
    traits: Sequence[str] | None
    data: Json | None
    node: Node
    entry: Callable[[str], EncodedWrite]


def process(
    task: TaskManager, inventory: Json, plugin_data: Json, fields: Mapping[str, Any] | None = None
) -> Done:
    """Run hooks and rules over an inventory; return the outcome of the step.

    ``plugin_data``: data sent beside the inventory.  ``fields``: node fields set by the driver.
    Call it in a worker under the node's exclusive lock; it asks no hardware.  Raises
    HardwareInspectionFailure with nothing changed.
    """
    runtime = task.runtime
    pipeline = hooks.pipeline(task.driver.inspect.hooks)
    with runtime.db.read() as conn:
        ports: list[Port] = records.list_where(conn, PORT, node_uuid=task.node.uuid)
        reads_previous = any(hook.reads_previous for _, hook in pipeline)
        previous = hardware.find_inventory(conn, task.node.uuid) if reads_previous else None
    draft = Draft.of(task.node, ports, inventory, plugin_data)
    draft.previous = previous["inventory"] if previous else None
    for name, value in (fields or {}).items():
        setattr(draft.node, name, value)
    hooks.run(pipeline, draft, runtime.conf.inspector)
    options = runtime.conf.inspection_rules
    built_in = rule_check.load_built_in(options.built_in_rules) if options.built_in_rules else ()
    with runtime.db.read() as conn:
        stored = record_rules.list_inspection_rules(conn, runtime.sealer)
    powers = engine.Powers(
        mask_secrets=options.mask_secrets, reveal=runtime.sealer.open,
        call=calls.Caller.of(options),
    )  # fmt: skip
    engine.run([*built_in, *stored], draft, powers)
    try:
        _settle(task, draft.node)
    except (errors.Invalid, errors.Conflict) as exc:
        raise errors.HardwareInspectionFailure(reason=str(exc)) from exc
    _reserve_names(task, draft)
    return Done(result=_result(task, ports, draft))


def _settle(task: TaskManager, node: Node) -> None:
    """Apply the consequences of fields that rules have set, and seal their secrets.

    Raises Invalid.
    """
    before, runtime = task.node, task.runtime
    changed = {n: getattr(node, n) for n in PATCHABLE if getattr(node, n) != getattr(before, n)}
    changed = rules.with_consequences(before, changed)
    for name in changed.keys() & SECRET_OBJECTS:
        changed[name] = runtime.sealer.seal(changed[name])
    for name, value in changed.items():
        setattr(node, name, value)
    if changed.keys() & (rules.INTERFACE_FIELDS | {"driver"}):
        try:
            runtime.registry.fill_and_check(node)
        except errors.Failure as exc:
            raise errors.Invalid(reason=str(exc)) from exc
    if "driver_info" in changed:
        hardware_type = runtime.registry.types.get(node.driver)
        if hardware_type is not None:
            hardware_type.check_driver_info(node.driver_info)


def _reserve_names(task: TaskManager, draft: Draft) -> None:
    """Refuse names that other nodes or ports have; write the node's new name at once."""
    names = [port.name for port in draft.all_ports if port.name is not None]
    with task.runtime.db.read() as conn:
        others: list[Port] = records.list_where(conn, PORT, name=names) if names else []
    ours = {port.uuid for port in draft.all_ports}
    for port in others:
        if port.uuid not in ours:
            raise errors.HardwareInspectionFailure(reason=f"a port named {port.name} exists")
    if len(set(names)) < len(names):
        raise errors.HardwareInspectionFailure(reason="two ports of the node would have one name")
    if draft.node.name != task.node.name:
        former, task.node.name = task.node.name, draft.node.name
        try:
            task.save()
        except errors.DuplicateName as exc:
            task.node.name = former
            raise errors.HardwareInspectionFailure(reason=str(exc)) from exc


def _result(task: TaskManager, ports: Sequence[Port], draft: Draft) -> Json:
    changed = {
        name: value
        for name in _FIELDS
        if (value := getattr(draft.node, name)) != getattr(task.node, name)
    }
    before = {port.uuid: port for port in ports}
    changes = {port.uuid: drafts.changed_fields(before[port.uuid], port) for port in draft.ports}
    data = {
        "inventory": draft.inventory,
        "plugin_data": {n: v for n, v in draft.plugin_data.items() if n != "logs"},
    }
    stored = InspectionResult(
        new_ports=draft.new_ports,
        changed_ports={uuid: fields for uuid, fields in changes.items() if fields},
        removed_ports=[port.uuid for port in draft.removed_ports],
        traits=changed.get("traits"),
        data=None if task.runtime.conf.inventory.data_backend == "none" else data,
        node=task.node,
        entry=partial(
            writes.history_entry, task.context, task.node, event_type="inspection", warns=True
        ),
    )
    with task.runtime.db.read() as conn:
        left_out = list(_conflicts(conn, task.node, draft.new_ports).values())
    for info in (task.node.driver_internal_info, changed.get("driver_internal_info", {})):
        info.pop(LEFT_OUT_BY_INSPECTION, None)
        info.update({LEFT_OUT_BY_INSPECTION: left_out} if left_out else {})
    return {"node": changed, "inspection": stored}


def store(conn: sa.Connection, node_uuid: str, stored: InspectionResult) -> None:
    """Store the result; ports and port names that another node has stay there.

    Log and history have what is left out.
    """
    for uuid in stored.removed_ports:
        records.delete(conn, PORT, uuid)
    names = [fields.get("name") for fields in stored.changed_ports.values()]
    names += [port.name for port in stored.new_ports]
    foreign = _taken(conn, PORTS.c.name, names, node_uuid)
    for uuid, fields in stored.changed_ports.items():
        is_foreign = fields.get("name") in foreign
        records.update(conn, PORT, uuid, {**fields, "name": None} if is_foreign else fields)
    addresses = _taken(conn, PORTS.c.address, [port.address for port in stored.new_ports])
    left_out = [*_conflicts(conn, stored.node, stored.new_ports).values()]
    left_out += [f"the name {name}, which a port of another node has" for name in sorted(foreign)]
    if left_out:
        rest = len(left_out) - _MOST_LISTED
        listed = [*left_out[:_MOST_LISTED], *([f"{rest} more"] if rest > 0 else [])]
        text = f"the inspection left out {', '.join(listed)}"
        LOG.warning("node %s: %s", node_uuid, text)
        stored.entry(text)(conn)
    for port in stored.new_ports:
        if port.address not in addresses:
            name = None if port.name in foreign else port.name
            records.insert(conn, PORT, dataclasses.replace(port, name=name))
    if stored.traits is not None:
        nodes.remove_traits(conn, node_uuid, None)
        nodes.add_traits(conn, node_uuid, stored.traits)
    if stored.data is not None:
        hardware.replace_inventory(conn, node_uuid, stored.data)


def _conflicts(conn: sa.Connection, node: Node, ports: Sequence[Port]) -> dict[str, str]:
    """Return a sentence for each new address that a port of another node has.

    It names the other node if both have one owner and lessee.
    """
    if not ports:
        return {}
    query = (
        sa.select(PORTS.c.address, NODES.c.uuid, NODES.c.name, NODES.c.owner, NODES.c.lessee)
        .join(NODES, NODES.c.uuid == PORTS.c.node_uuid)
        .where(PORTS.c.address.in_([port.address for port in ports]), NODES.c.uuid != node.uuid)
        .order_by(PORTS.c.address)
    )
    return {
        row.address: f"the port {row.address}, which {bmc_sharing.name_of(node, row)} has"
        for row in conn.execute(query)
    }


def _taken(
    conn: sa.Connection, column: sa.Column[str], values: Sequence[str | None], but_of: str = ""
) -> set[str]:
    """Return those ``values`` that ports of other nodes have."""
    texts = [value for value in values if value is not None]
    query = sa.select(column).where(column.in_(texts), PORTS.c.node_uuid != but_of)
    return set(conn.execute(query).scalars()) if texts else set()


def check_options(conf: Conf, others: Iterable[str] = ()) -> None:
    """Raise CannotStart for unusable hooks or built-in rules.

    ``others``: further configuration errors, which go into the same sentence.
    """
    reasons = list(others)
    for option, names in (
        ("[inspector]hooks", conf.inspector.hooks),
        ("[redfish]inspection_hooks", conf.redfish.inspection_hooks),
    ):
        try:
            hooks.pipeline(names)
        except errors.HardwareInspectionFailure as exc:
            reasons.append(f"cannot use {option}: {exc.facts['reason']}")
    if reasons:
        raise errors.CannotStart(reason="; ".join(reasons))
    if conf.inspection_rules.built_in_rules:
        rule_check.load_built_in(conf.inspection_rules.built_in_rules)
