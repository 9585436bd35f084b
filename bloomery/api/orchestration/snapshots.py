"""Snapshots of a stack.  As in Heat, GET wraps the snapshot and POST does not."""

from __future__ import annotations

from typing import Any

from bloomery.api.orchestration import faults, identity
from bloomery.api.orchestration.call import StackCall
from bloomery.api.orchestration.views import stacks as views

Json = dict[str, Any]


def create(call: StackCall, stack_name: str, stack_id: str) -> Json:
    name = (call.optional_document or {}).get("name")
    if not (name is None or isinstance(name, str)):
        raise faults.BadRequest(reason="the name of a snapshot must be a text")
    stack = identity.of(call, stack_name, stack_id)
    return views.snapshot(call.operations.stack_snapshot(call.request, stack, name))


def index(call: StackCall, stack_name: str, stack_id: str) -> Json:
    stack = identity.of(call, stack_name, stack_id)
    snapshots = call.operations.stack_list_snapshots(call.request, stack)
    return {"snapshots": [views.snapshot(each) for each in snapshots]}


def show(call: StackCall, stack_name: str, stack_id: str, snapshot_id: str) -> Json:
    stack = identity.of(call, stack_name, stack_id)
    return {
        "snapshot": views.snapshot(call.operations.show_snapshot(call.request, stack, snapshot_id))
    }


def delete(call: StackCall, stack_name: str, stack_id: str, snapshot_id: str) -> None:
    stack = identity.of(call, stack_name, stack_id)
    call.operations.delete_snapshot(call.request, stack, snapshot_id)


def restore(call: StackCall, stack_name: str, stack_id: str, snapshot_id: str) -> None:
    stack = identity.of(call, stack_name, stack_id)
    call.operations.stack_restore(call.request, stack, snapshot_id)
