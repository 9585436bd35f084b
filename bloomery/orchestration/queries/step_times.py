"""The document of a plan with the durations of its steps, from flows on nodes of the same kind.

Only rows are read; no machine is contacted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import sqlalchemy as sa

from bloomery.db import nodes as node_rows
from bloomery.db import resources, stacks, timelines
from bloomery.db.timelines import FlowTime
from bloomery.model import stacks as model
from bloomery.operations.timeline import Durations
from bloomery.orchestration.foresight import document as plan_document
from bloomery.orchestration.foresight import schedule
from bloomery.orchestration.foresight.schedule import Times
from bloomery.orchestration.plan.plans import MAKE, Action, Key, Plan, Verb
from bloomery.orchestration.queries.access import StackContext
from bloomery.orchestration.template.functions.base import Function

_FLOWS_COMPARED: Final = 400  # of each phase, on all nodes
_PHASES: Final[Mapping[str, str]] = {
    "active": "deploy",
    "rebuild": "deploy",
    "deleted": "undeploy",
    "manage": "verify",
    "inspect": "inspect",
    "provide": "clean",
    "clean": "clean",
    "service": "service",
    "abort": "abort",
    "power on": "power",
    "power off": "power",
}  # of each verb

Kind = tuple[str | None, str | None]  # driver and resource class; None: any


def document(ctx: StackContext, root: model.Stack | None, plan: Plan) -> dict[str, Any]:
    changed = {key: each for key, each in plan.actions.items() if each.verb is not Verb.UNCHANGED}
    with ctx.services.db.read() as conn:
        physical_ids = _physical_ids(conn, root, changed)
        kinds = timelines.kinds_of_nodes(conn, sorted(set(physical_ids.values())))
        named = {each.effect.node for each in changed.values() if each.effect.node}
        nodes = {name: uuid for name in named if (uuid := node_rows.find_uuid(conn, name))}
        phases = {_PHASES[verb] for each in changed.values() for verb in each.effect.verbs}
        flows = {
            phase: timelines.list_flow_times(conn, phase, most=_FLOWS_COMPARED) for phase in phases
        }
    experience = _Experience(flows)

    def times_of(key: Key, action: Action) -> Times | None:
        node = kinds.get(physical_ids.get(key, ""))
        kind = _planned_kind(plan, action) if node is None else (node.driver, node.resource_class)
        return experience.times_of(action.effect.verbs, kind)

    laid_out = schedule.schedule_of(plan, times_of, ctx.runtime.utc().timestamp())
    machines = {key: uuid for key, uuid in physical_ids.items() if uuid in kinds}
    names = {uuid: node.name for uuid, node in kinds.items()}
    return plan_document.document(plan, laid_out, machines, nodes, names)


# ------------------------------------------------------------------------------------ machines


def _physical_ids(
    conn: sa.Connection, root: model.Stack | None, changed: Mapping[Key, Action]
) -> dict[Key, str]:
    present = {key: each for key, each in changed.items() if each.verb not in _MADE_BESIDE}
    nested_ids: dict[str, str] = {}  # in child stacks, by path: group/member
    if root is not None and any("/" in key.name for key in present):
        paths = {root.uuid: ""}
        for stack in stacks.list_of_tree(conn, root.root_uuid):
            if stack.owner_uuid in paths:
                paths[stack.uuid] = f"{paths[stack.owner_uuid]}{stack.owner_resource}/"
        del paths[root.uuid]
        nested_ids = {
            f"{paths[row.stack_uuid]}{row.name}": row.physical_id
            for row in resources.list_shown(conn, paths)
            if row.physical_id
        }
    physical_ids = {}
    for key, each in present.items():
        own_id = None if each.record is None else each.record.physical_id
        if (physical_id := own_id or nested_ids.get(key.name)) is not None:
            physical_ids[key] = physical_id
    return physical_ids


_MADE_BESIDE: Final = frozenset({Verb.CREATE, Verb.RECREATE, Verb.REPLACE})


def _planned_kind(plan: Plan, action: Action) -> Kind:
    effect = action.effect
    if effect.driver or effect.resource_class or action.definition is None:
        return effect.driver, effect.resource_class
    tree = action.definition.properties
    allocation = tree.get("allocation") if isinstance(tree, Mapping) else None
    if isinstance(allocation, Function) and isinstance(allocation.args, str):
        source = plan.actions.get(Key(allocation.args, MAKE))
        if source is not None:
            return None, source.effect.resource_class
    return None, None


# ------------------------------------------------------------------------------------ how long


@dataclass(slots=True)
class _Experience:
    flows: Mapping[str, list[FlowTime]]
    cache: dict[tuple[tuple[str, ...], Kind], Times | None] = field(default_factory=dict)

    def times_of(self, verbs: tuple[str, ...], kind: Kind) -> Times | None:
        if (verbs, kind) in self.cache:
            return self.cache[verbs, kind]
        usual = [self._usual(_PHASES[verb], kind) for verb in verbs]
        durations = [each for each in usual if each is not None]
        times = None
        if len(durations) == len(usual):
            times = Times(
                median_s=round(sum(each["median_s"] for each in durations), 3),
                p95_s=round(sum(each["p95_s"] for each in durations), 3),
                runs=min(each["runs"] for each in durations),
            )
        self.cache[verbs, kind] = times
        return times

    def _usual(self, phase: str, kind: Kind) -> dict[str, Any] | None:
        driver, resource_class = kind
        if driver is None and resource_class is None:
            return None
        seconds = sorted(
            each.seconds
            for each in self.flows[phase]
            if driver in (None, each.driver) and resource_class in (None, each.resource_class)
        )
        return Durations(seconds).usual()
