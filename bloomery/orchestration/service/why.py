"""Explain the state of a stack: what it waits for, since when, and the next action."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import (
    resources,
    rows,
    stack_drift,
    stack_events,
    stack_locks,
    stack_orders,
    stacks,
)
from bloomery.model.stack_views import Json, StackIdentity
from bloomery.model.stacks import Stack, StoredResource
from bloomery.operations import allocation_why
from bloomery.operations import why as nodes_why
from bloomery.orchestration.engine.events import CHANGED
from bloomery.orchestration.engine.resource_actions import BEGAN_AT
from bloomery.orchestration.plan.builder import gone
from bloomery.orchestration.resources import machine_group, rollouts
from bloomery.orchestration.resources.machine_group import ROLLOUT
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.service import acceptance, access
from bloomery.orchestration.service.access import StackContext
from bloomery.orchestration.template.resource_rules import HOOKS

_MOST: Final = 200  # resources that are named
_DRIFTED: Final = (
    "repair the machines that differ, or let an update repair them: "
    "bloomery stack up FILE {} --converge"
)
_DELETE_FAILED: Final = (
    "read the reasons of the resources that failed, correct the causes (of a machine: "
    "/ext/v1/nodes/NODE/why), and delete the stack again: openstack stack delete {}"
)
_DELETE: Final = "delete it (openstack stack delete {0})"
_CANCEL: Final = f"; or cancel (openstack stack cancel {{0}}), or {_DELETE}"
_ENDS: Final = {Action.CREATE: _CANCEL, Action.UPDATE: _CANCEL, Action.DELETE: ""}
_ADVICE: Final = {
    Status.COMPLETE: "nothing: the last action is complete",
    Status.FAILED: "read the reasons of the resources that failed (openstack stack failures list "
    "{0}), correct the causes, and update or delete the stack (bloomery stack up FILE {0}, "
    "openstack stack delete {0})",
}


def explain_stack(ctx: StackContext, identity: StackIdentity) -> Json:
    """Return what a stack and its child stacks wait for, and since when.

    {id, stack_name, project, stack_status, stack_status_reason, since, age_s, timeout_at, engine,
    orders: [{kind, accepted_at}], waiting: [{PLACE, state, since, age_s, for, for_uuid, due_at,
    attempt}], failed: [{PLACE, state, reason, node}], leaving: [{PLACE}], leftover: [{PLACE, type,
    state, physical_resource_id, node}], next_action, drifted: [{PLACE, since, differences:
    {field: sentence}}]}; times in ISO 8601.  PLACE is resource, path, stack.  Leftovers were
    replaced or belong to what was, and still exist.
    """
    row = access.stack(ctx, identity)
    sealer, now = acceptance.sealer_of(ctx), ctx.runtime.utc()
    with ctx.services.db.read() as conn:
        subtree = {each.uuid: each for each in _subtree(conn, row)}
        stored = resources.list_of_tree(conn, row.root_uuid, sealer, leftovers=True)
        orders = list(stack_orders.list_rows(conn, row.root_uuid))
        engine = stack_locks.find_engine(conn, row.root_uuid)
        drifted = _list_drifted(conn, row, subtree)
        since = _in_state_since(conn, row)
    stored = [each for each in stored if each.stack_uuid in subtree]
    targets = _WaitTargets(ctx, subtree, stored)
    waiting = [each for each in stored if each.status == Status.IN_PROGRESS or _hooks(each)]
    failed = [each for each in stored if each.status == Status.FAILED]
    leftovers = _list_leftovers(subtree, stored)
    return {
        "id": row.uuid,
        "stack_name": row.name,
        "project": row.project,
        "stack_status": f"{row.action}_{row.status}",
        "stack_status_reason": row.reason,
        "since": _iso(since),
        "age_s": _age(since, now),
        "timeout_at": _iso(row.deadline_at) if row.status == Status.IN_PROGRESS else None,
        "engine": engine,
        "orders": [
            {"kind": str(each.kind), "accepted_at": _iso(each.created_at)}
            for each in orders
            if each.stack_uuid in subtree
        ],
        "waiting": [_waiting(each, targets, now) for each in waiting[:_MOST]],
        "failed": [_failed(each, targets) for each in failed[:_MOST]],
        "drifted": drifted,
        "leaving": [_place(each, subtree) for each in _list_leaving(stored)[:_MOST]],
        "leftover": [_leftover(each, targets) for each in leftovers[:_MOST]],
        "next_action": _shortage_advice(ctx, [*waiting, *failed])
        + _next_action(row, waiting, targets, bool(orders), engine, bool(drifted))
        + _plan_advice(row, len(leftovers)),
    }


def _in_state_since(conn: sa.Connection, row: Stack) -> datetime:
    states = {"physical_id": [row.uuid], "action": [row.action], "status": [row.status]}
    query = stack_events.Query(stacks=[row.uuid], equal=states, limit=1)
    newest = next(iter(stack_events.list_page(conn, query)), None)
    return row.updated_at or row.created_at if newest is None else newest.created_at


def _subtree(conn: sa.Connection, row: Stack) -> list[Stack]:
    within = {row.uuid: row}
    for each in stacks.list_of_tree(conn, row.root_uuid):
        if each.owner_uuid in within:
            within[each.uuid] = each
    return list(within.values())


class _WaitTargets:
    """Describe what resources of a tree wait for."""

    def __init__(
        self, ctx: StackContext, subtree: Mapping[str, Stack], stored: Sequence[StoredResource]
    ) -> None:
        self._ctx = ctx
        self.stacks = subtree
        self._resources = {each.uuid: each for each in stored}

    def describe(self, resource: StoredResource) -> str:
        if hooks := _hooks(resource):
            return f"hook {', '.join(hooks)} to be cleared"
        if (shortage := allocation_why.find_shortage(resource.reason)) is not None:
            return f"a node: {shortage}"
        if resource.reason not in ("", CHANGED):
            return resource.reason
        uuid = resource.waits_for or ""
        if uuid in self.stacks:
            return f"child stack {self.stacks[uuid].name}"
        if uuid in self._resources:
            other = self._resources[uuid]
            return f"resource {other.name} ({other.type}), such as a signal to it"
        if uuid and (node := self.node(uuid)):
            return f"{_name_of(node)}: {node['cause']}"
        if uuid:
            return f"the object {uuid}"
        if resource.attempt:
            return f"its next attempt, after {resource.attempt} failed ones"
        return "its next check" if resource.due_at else "an engine"

    def node(self, uuid: str | None) -> Json | None:
        """Return the outline of a node; None: there is none, or the caller may not read it."""
        try:
            return nodes_why.outline(self._ctx, uuid) if uuid else None
        except errors.Failure:
            return None


def _name_of(node: Json) -> str:
    return f"node {node['name'] or node['uuid']}"


def _waiting(resource: StoredResource, targets: _WaitTargets, now: datetime) -> Json:
    since = _began_at(resource)
    return {
        **_place(resource, targets.stacks),
        "state": f"{resource.action}_{resource.status}",
        "since": _iso(since),
        "age_s": _age(since, now),
        "for": targets.describe(resource),
        "for_uuid": resource.waits_for,
        "due_at": _iso(resource.due_at),
        "attempt": resource.attempt,
    }


def _began_at(resource: StoredResource) -> datetime:
    """Return when the pending action began; at a hook: the time of the last change."""
    began_at = (
        None if resource.pending_action is None else resource.pending_action.arguments.get(BEGAN_AT)
    )
    if began_at is not None:
        return datetime.fromisoformat(began_at)
    at = resource.updated_at or resource.created_at
    assert at is not None, "a stored resource has a creation time"
    return at


def _hooks(resource: StoredResource) -> list[str]:
    return [hook for hook in HOOKS if resource.data.get(hook)]


def _is_paused(resource: StoredResource) -> bool:
    return resource.status == Status.IN_PROGRESS and machine_group.is_paused(resource.data)


def _signal_advice(row: Stack, group: StoredResource) -> str:
    words = [json.dumps({ROLLOUT: word}) for word in rollouts.ENDS_OF_PAUSE]
    return f"{_signal_command(row, group, words[0])}; or with {' or '.join(words[1:])}"


def _signal_command(row: Stack, resource: StoredResource, data: str) -> str:
    stack = row.name if resource.stack_uuid == row.uuid else resource.stack_uuid
    order = f"openstack stack resource signal {shlex.quote(stack)} {shlex.quote(resource.name)}"
    return f"{order} --data {shlex.quote(data)}"


def _failed(resource: StoredResource, targets: _WaitTargets) -> Json:
    return {
        **_place(resource, targets.stacks),
        "state": f"{resource.action}_{resource.status}",
        "reason": resource.reason,
        "node": targets.node(resource.physical_id),
    }


def _path(resource: Any, subtree: Mapping[str, Stack]) -> str:
    parts, stack = [resource.name], subtree.get(resource.stack_uuid)
    while stack is not None and stack.owner_uuid in subtree:
        parts.append(str(stack.owner_resource))
        stack = subtree.get(stack.owner_uuid or "")
    return "/".join(reversed(parts))


def _place(resource: Any, subtree: Mapping[str, Stack]) -> Json:
    path, stack = _path(resource, subtree), subtree[resource.stack_uuid]
    return {"resource": resource.name, "path": path, "stack": stack.name}


def list_drifted(ctx: StackContext, row: Stack) -> list[Json]:
    with ctx.services.db.read() as conn:
        return _list_drifted(conn, row, {each.uuid: each for each in _subtree(conn, row)})


def _list_drifted(conn: sa.Connection, row: Stack, subtree: Mapping[str, Stack]) -> list[Json]:
    resources = stack_drift.list_of_tree(conn, row.root_uuid)
    own = [each for each in resources if each.stack_uuid in subtree]
    return [_drifted(each, subtree) for each in own[:_MOST]]


def _drifted(resource: sa.Row[Any], subtree: Mapping[str, Stack]) -> Json:
    return {
        **_place(resource, subtree),
        "since": _iso(resource.since),
        "differences": rows.load(resource.differences),
    }


def _list_leaving(stored: Sequence[StoredResource]) -> list[StoredResource]:
    groups = [each for each in stored if each.status == Status.IN_PROGRESS]
    leaving = {(each.physical_id, name) for each in groups
               for name in machine_group.leaving(each.data)}  # fmt: skip
    return [each for each in stored if (each.stack_uuid, each.name) in leaving]


def _list_leftovers(
    subtree: Mapping[str, Stack], stored: Sequence[StoredResource]
) -> list[StoredResource]:
    """Return replaced resources that still exist, with the resources of their child stacks."""
    leftovers = [each for each in stored if not each.is_current and not gone(each)]
    owners = {each.physical_id for each in leftovers}
    below = [uuid for uuid in subtree if uuid in owners]
    for uuid in below:
        below += [each.uuid for each in subtree.values() if each.owner_uuid == uuid]
    members = [each for each in stored if each.stack_uuid in below and each.is_current]
    return leftovers + [each for each in members if not gone(each)]


def _leftover(resource: StoredResource, targets: _WaitTargets) -> Json:
    return {
        **_place(resource, targets.stacks),
        "type": resource.type,
        "state": f"{resource.action}_{resource.status}",
        "physical_resource_id": resource.physical_id,
        "node": targets.node(resource.physical_id),
    }


def _shortage_advice(ctx: StackContext, resources: Sequence[StoredResource]) -> str:
    """Return the ways out where a resource got no node; empty: nodes are not what is missing."""
    if not any(allocation_why.find_shortage(each.reason) for each in resources):
        return ""
    try:
        return f"{allocation_why.advise_on_shortage(ctx)}; then "
    except errors.Failure:  # the caller may not list nodes
        return ""


def _plan_advice(row: Stack, leftovers: int) -> str:
    if not leftovers or row.status == Status.IN_PROGRESS:
        return ""
    return (
        f"; {leftovers} of an earlier update are left over, and the next update takes them back "
        f"or deletes them with their data: bloomery stack plan FILE {shlex.quote(row.name)}"
    )


def _next_action(
    row: Stack,
    waiting: Sequence[StoredResource],
    targets: _WaitTargets,
    has_orders: bool,
    engine: str | None,
    has_drifted: bool,
) -> str:
    hooked = next((each for each in waiting if _hooks(each)), None)
    if hooked is not None:
        command = _signal_command(row, hooked, json.dumps({"unset_hook": _hooks(hooked)[0]}))
        return f"{command} continues it"
    if (paused := next(filter(_is_paused, waiting), None)) is not None:
        return _signal_advice(row, paused)
    name = shlex.quote(row.name)
    if row.status != Status.IN_PROGRESS:
        if (row.action, row.status) == (Action.DELETE, Status.FAILED):
            return _DELETE_FAILED.format(name)
        is_drifted = has_drifted and row.status == Status.COMPLETE
        return (_DRIFTED if is_drifted else _ADVICE[Status(row.status)]).format(name)
    if engine is None and has_orders:
        return (
            "wait: no engine has taken the request yet; check that one runs (openstack "
            "orchestration service list)"
        )
    if waiting:
        ends = _ENDS.get(Action(row.action), f"; or {_DELETE}").format(name)
        place = _path(waiting[0], targets.stacks)
        return f"wait for {place}: {targets.describe(waiting[0])}{ends}"
    return "wait: the engine is working"


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _age(since: datetime, now: datetime) -> float:
    return round((now - since).total_seconds(), 3)
