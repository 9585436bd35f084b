"""Explain the state of a stack: what it waits for, since when, and the next action."""

from __future__ import annotations

import itertools
import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
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
from bloomery.operations import allocation_why, causes
from bloomery.operations import why as nodes_why
from bloomery.operations.causes import Cause, Rule
from bloomery.orchestration.engine.resource_actions import BEGAN_AT
from bloomery.orchestration.queries import access
from bloomery.orchestration.queries.access import StackContext
from bloomery.orchestration.resources import drains, machine_group, rollouts
from bloomery.orchestration.resources.machine_group import ROLLOUT
from bloomery.orchestration.resources.states import CHANGED, Action, Status
from bloomery.orchestration.template.resource_rules import HOOKS

_MOST: Final = 200  # resources that are named
_WAIT: Final = "wait for {s.path}: {cause}{s.ends}"

# What a resource waits for.
OF_RESOURCE: Final[tuple[Rule[ResourceWait], ...]] = (
    Rule("hook", lambda s: ", ".join(s.hooks), "hook {fact} to be cleared",
         "{s.signals[0]} continues it"),
    Rule("rollout_paused", lambda s: s.is_paused, "{s.reason}",
         "{s.signals[0]}; or with {s.signals[1]}"),
    Rule("drain", lambda s: s.is_draining, "its {s.reason}",
         "{s.signals[0]} lets it go on; or with {s.signals[1]}"),
    Rule("window_closed", lambda s: s.is_closed and s.reason.partition(" for ")[2], "{fact}",
         "wait for {s.path}: {cause}; {s.signals[0]} lets it go on at any time; or with "
         "{s.signals[1]}"),
    Rule("no_node", lambda s: allocation_why.find_shortage(s.reason), "a node: {fact}", _WAIT),
    Rule("reason", lambda s: s.reason, "{fact}", _WAIT),
    Rule("stack", lambda s: s.tree.stacks.get(s.target), "child stack {fact.name}", _WAIT),
    Rule("resource", lambda s: s.tree.resources.get(s.target),
         "resource {fact.name} ({fact.type}), such as a signal to it", _WAIT),
    Rule("node", lambda s: s.follow("node", nodes_why.outline), "{fact}", _WAIT),
    Rule("allocation", lambda s: s.follow("allocation", allocation_why.explain), "{fact}", _WAIT),
    Rule("object", lambda s: s.target, "the object {fact}", _WAIT),
    Rule("attempt", lambda s: s.resource.attempt, "its next attempt, after {fact} failed ones",
         _WAIT),
    Rule("check", lambda s: s.resource.due_at, "its next check", _WAIT),
    Rule("engine", lambda _: True, "an engine", _WAIT),
)  # fmt: skip
OF_STACK: Final[tuple[Rule[StackSituation], ...]] = (
    Rule("{fact[1].code}", lambda s: s.find_stopped(), "{fact[0].path} waits for {fact[1].cause}",
         "{fact[1].next_action}"),
    Rule("delete_failed", lambda s: s.row.status == Status.FAILED and s.row.action == Action.DELETE,
         "{s.row.reason}",
         "read the reasons of the resources that failed, correct the causes (of a machine: "
         "/ext/v1/nodes/NODE/why), and delete the stack again: openstack stack delete {s.name}"),
    Rule("failed", lambda s: s.row.status == Status.FAILED, "{s.row.reason}",
         "read the reasons of the resources that failed (openstack stack failures list {s.name}), "
         "correct the causes, and update or delete the stack (bloomery stack up FILE {s.name}, "
         "openstack stack delete {s.name})"),
    Rule("drifted", lambda s: s.row.status == Status.COMPLETE and s.drifted,
         "{s.differing} resources differ from their machines, or from outputs that they have read",
         "repair the machines that differ, or let an update repair them and read the outputs: "
         "bloomery stack up FILE {s.name} --converge{s.hardware_advice}"),
    Rule("", lambda s: s.row.status == Status.COMPLETE, "{s.row.reason}",
         "nothing: the last action is complete"),
    Rule("no_engine", lambda s: s.engine is None and s.has_orders,
         "no engine has taken the request yet",
         "wait: {cause}; check that one runs (openstack orchestration service list)"),
    Rule("{fact[1].code}", lambda s: s.waits and s.waits[0],
         "{fact[0].path} waits for {fact[1].cause}", "{fact[1].next_action}"),
    Rule("engine_works", lambda _: True, "the engine is working", "wait: {cause}"),
)  # fmt: skip


def explain_stack(ctx: StackContext, identity: StackIdentity) -> Json:
    """Return what a stack and its child stacks wait for, and since when.

    {id, stack_name, project, stack_status, stack_status_reason, since, age_s, timeout_at, engine,
    orders: [{kind, accepted_at}], waiting: [{PLACE, state, since, age_s, for, for_uuid, due_at,
    attempt}], failed: [{PLACE, state, reason, node}], leaving: [{PLACE}], leftover: [{PLACE, type,
    state, physical_resource_id, node}], cause_code, cause, next_action, drifted: [{PLACE, since,
    differences: {field: sentence}}]}; times in ISO 8601.  PLACE is resource, path, stack.
    Leftovers were replaced or belong to what was, and still exist.
    """
    row = access.stack(ctx, identity)
    sealer, now = ctx.sealer, ctx.runtime.utc()
    with ctx.services.db.read() as conn:
        subtree = {each.uuid: each for each in _subtree(conn, row)}
        stored = resources.list_of_tree(conn, row.root_uuid, sealer, leftovers=True)
        orders = list(stack_orders.list_rows(conn, row.root_uuid))
        engine = stack_locks.find_engine(conn, row.root_uuid)
        drifted = _list_drifted(conn, row, subtree)
        states = {"physical_id": [row.uuid], "action": [row.action], "status": [row.status]}
        query = stack_events.Query(stacks=[row.uuid], equal=states, limit=1)
        newest = next(iter(stack_events.list_page(conn, query)), None)
    since = row.updated_at or row.created_at if newest is None else newest.created_at
    stored = [each for each in stored if each.stack_uuid in subtree]
    tree = _Tree(ctx, row, subtree, {each.uuid: each for each in stored})
    actions = [ResourceWait(tree, each) for each in stored]
    waiting = [each for each in actions if each.resource.status == Status.IN_PROGRESS or each.hooks]
    waits = [(each, causes.find(OF_RESOURCE, each)) for each in waiting[:_MOST]]
    situation = StackSituation(row, waiting, waits, bool(orders), engine, drifted)
    cause = causes.find(OF_STACK, situation)
    failed = [each for each in stored if each.status == Status.FAILED]
    leftovers = _list_leftovers(subtree, stored)
    groups = [each for each in stored if each.status == Status.IN_PROGRESS]
    members_leaving = {
        (each.physical_id, name) for each in groups for name in machine_group.leaving(each.data)
    }
    leaving = [each for each in stored if (each.stack_uuid, each.name) in members_leaving]
    advice = ""
    if leftovers and row.status != Status.IN_PROGRESS:
        advice = (
            f"; {len(leftovers)} of an earlier update are left over, and the next update takes "
            "them back or deletes them with their data: "
            f"bloomery stack plan FILE {shlex.quote(row.name)}"
        )
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
        "waiting": [
            {
                **_place(each.resource, subtree),
                "state": f"{each.resource.action}_{each.resource.status}",
                "since": _iso(each.began_at),
                "age_s": _age(each.began_at, now),
                "for": wait_cause.cause,
                "for_uuid": each.resource.waits_for,
                "due_at": _iso(each.due_at),
                "attempt": each.resource.attempt,
            }
            for each, wait_cause in waits
        ],
        "failed": [{**tree.outline(each), "reason": each.reason} for each in failed[:_MOST]],
        "drifted": drifted,
        "leaving": [_place(each, subtree) for each in leaving[:_MOST]],
        "leftover": [
            {
                **tree.outline(each),
                "type": each.type,
                "physical_resource_id": each.physical_id,
            }
            for each in leftovers[:_MOST]
        ],
        "cause_code": cause.code,
        "cause": cause.cause,
        "next_action": _shortage_advice(ctx, [*(each.resource for each in waiting), *failed])
        + cause.next_action
        + advice,
    }


def _subtree(conn: sa.Connection, row: Stack) -> list[Stack]:
    within = {row.uuid: row}
    for each in stacks.list_of_tree(conn, row.root_uuid):
        if each.owner_uuid in within:
            within[each.uuid] = each
    return list(within.values())


@dataclass(frozen=True, slots=True)
class _Tree:
    """The stack that is explained, its child stacks, and their resources by UUID."""

    ctx: StackContext
    row: Stack
    stacks: Mapping[str, Stack]
    resources: Mapping[str, StoredResource]

    def outline(self, resource: StoredResource) -> Json:
        """Return where a resource stands, its state, and what its node does, if it is one."""
        return {
            **_place(resource, self.stacks),
            "state": f"{resource.action}_{resource.status}",
            "node": self.ask(nodes_why.outline, resource.physical_id),
        }

    def ask(self, explain: Callable[[StackContext, str], Json], uuid: str | None) -> Json | None:
        """Return the why of an object; None: there is none, or the caller may not read it."""
        try:
            return explain(self.ctx, uuid) if uuid else None
        except errors.Failure:
            return None


@dataclass(frozen=True, slots=True)
class ResourceWait:
    """A resource whose action is not complete."""

    tree: _Tree
    resource: StoredResource

    @property
    def began_at(self) -> datetime:
        """Return when the pending action began; at a hook: the time of the last change."""
        action = self.resource.pending_action
        began_at = None if action is None else action.arguments.get(BEGAN_AT)
        if began_at is not None:
            return datetime.fromisoformat(began_at)
        at = self.resource.updated_at or self.resource.created_at
        assert at is not None, "a stored resource has a creation time"
        return at

    @property
    def hooks(self) -> list[str]:
        return [hook for hook in HOOKS if self.resource.data.get(hook)]

    @property
    def is_paused(self) -> bool:
        """Whether the resource is a group whose roll-out waits for a signal."""
        is_underway = self.resource.status == Status.IN_PROGRESS
        return is_underway and machine_group.is_paused(self.resource.data)

    @property
    def is_closed(self) -> bool:
        """Whether the resource is a group whose roll-out waits for its window."""
        is_underway = self.resource.status == Status.IN_PROGRESS
        return is_underway and machine_group.opens_at(self.resource.data) is not None

    @property
    def due_at(self) -> datetime | None:
        """Return when the next attempt begins, the window opens, or the drain ends by itself."""
        at = machine_group.opens_at(self.resource.data) if self.is_closed else None
        at = drains.ends_at(self.resource.data) if self.is_draining else at
        return self.resource.due_at if at is None else datetime.fromtimestamp(at, UTC)

    @property
    def is_draining(self) -> bool:
        """Whether the resource is an instance that waits for its drain to be cleared."""
        is_underway = self.resource.status == Status.IN_PROGRESS
        return is_underway and drains.is_waiting(self.resource.data)

    @property
    def reason(self) -> str:
        """Return the kind's own words of its wait."""
        return "" if self.resource.reason == CHANGED else self.resource.reason

    @property
    def target(self) -> str:
        return self.resource.waits_for or ""

    def follow(self, noun: str, explain: Callable[[StackContext, str], Json]) -> str | None:
        """Return the cause of the object that is waited for, if it is one of that noun."""
        why = self.tree.ask(explain, self.target)
        return None if why is None else f"{noun} {why['name'] or why['uuid']}: {why['cause']}"

    @property
    def path(self) -> str:
        return _path(self.resource, self.tree.stacks)

    @property
    def signals(self) -> list[str]:
        """Return the commands that continue the resource; of further ones the data alone."""
        row, resource = self.tree.row, self.resource
        stack = row.name if resource.stack_uuid == row.uuid else resource.stack_uuid
        signals: list[Json] = [{ROLLOUT: word} for word in rollouts.ENDS_OF_PAUSE]
        if self.is_draining:
            signals = [{drains.DRAIN: each} for each in (drains.CLEAR, drains.ABORT)]
        if self.hooks:
            signals = [{"unset_hook": self.hooks[0]}]
        data, *others = [json.dumps(each) for each in signals]
        order = f"openstack stack resource signal {shlex.quote(stack)} {shlex.quote(resource.name)}"
        return [f"{order} --data {shlex.quote(data)}", " or ".join(others)]

    @property
    def ends(self) -> str:
        """Return what would end the wait, where the stack takes it."""
        row, name = self.tree.row, shlex.quote(self.tree.row.name)
        may_cancel = row.action in (Action.CREATE, Action.UPDATE)
        cancel = f" cancel (openstack stack cancel {name}), or" if may_cancel else ""
        delete = f"; or{cancel} delete it (openstack stack delete {name})"
        return "" if row.action == Action.DELETE else delete


@dataclass(frozen=True, slots=True)
class StackSituation:
    """A stack; its resources that wait, the first of them with their causes."""

    row: Stack
    waiting: Sequence[ResourceWait]
    waits: Sequence[tuple[ResourceWait, Cause]]
    has_orders: bool
    engine: str | None
    drifted: Sequence[Json]

    @property
    def name(self) -> str:
        return shlex.quote(self.row.name)

    def find_stopped(self) -> tuple[ResourceWait, Cause] | None:
        """Return the first resource that waits for somebody: a hook, a roll-out, a drain."""
        hooked = (each for each in self.waiting if each.hooks)
        paused = (each for each in self.waiting if each.is_paused)
        draining = (each for each in self.waiting if each.is_draining)
        first = next(itertools.chain(hooked, paused, draining), None)
        return None if first is None else (first, causes.find(OF_RESOURCE, first))

    @property
    def differing(self) -> int:
        return len(self.drifted)

    @property
    def hardware_advice(self) -> str:
        """Return how the hardware that differs is repaired: an update applies what has changed."""
        parts = {name.split("/")[0] for each in self.drifted for name in each["differences"]}
        if parts.isdisjoint({"bios", "firmware", "hardware"}):
            return ""
        return "; hardware is applied again where its catalogue, settings or triggers change"


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
    return [
        {
            **_place(each, subtree),
            "since": _iso(each.since),
            "differences": rows.load(each.differences),
        }
        for each in own[:_MOST]
    ]


def _list_leftovers(
    subtree: Mapping[str, Stack], stored: Sequence[StoredResource]
) -> list[StoredResource]:
    """Return replaced resources that still exist, with the resources of their child stacks."""
    leftovers = [each for each in stored if not each.is_current and not each.has_no_object]
    owners = {each.physical_id for each in leftovers}
    below = [uuid for uuid in subtree if uuid in owners]
    for uuid in below:
        below += [each.uuid for each in subtree.values() if each.owner_uuid == uuid]
    members = [each for each in stored if each.stack_uuid in below and each.is_current]
    return leftovers + [each for each in members if not each.has_no_object]


def _shortage_advice(ctx: StackContext, resources: Sequence[StoredResource]) -> str:
    """Return the ways out where a resource got no node; empty: nodes are not what is missing."""
    if not any(allocation_why.find_shortage(each.reason) for each in resources):
        return ""
    try:
        return f"{allocation_why.advise_on_shortage(ctx)}; then "
    except errors.Failure:  # the caller may not list nodes
        return ""


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _age(since: datetime, now: datetime) -> float:
    return round((now - since).total_seconds(), 3)
