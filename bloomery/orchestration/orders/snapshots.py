"""Snapshots of stacks: create, list, show, delete and restore."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

import sqlalchemy as sa

from bloomery import errors
from bloomery.db import snapshots as db
from bloomery.model.stack_views import Json, StackArguments, StackIdentity
from bloomery.model.stacks import OrderKind, Snapshot, Stack
from bloomery.orchestration.orders import (
    acceptance,
    adoption,
    checks,
    plan_checks,
    snapshot_handlers,
    stacks,
)
from bloomery.orchestration.orders.acceptance import Change
from bloomery.orchestration.queries import access
from bloomery.orchestration.queries.access import StackContext
from bloomery.orchestration.queries.stored_values import StoredStack
from bloomery.orchestration.resources.states import Action, Status
from bloomery.orchestration.template import environment

RESTORE: Final = "RESTORE"
_VISIBLE: Final = ("name", "type", "resource_id", "action", "status")  # of a resource, to readers


def stack_snapshot(ctx: StackContext, identity: StackIdentity, name: str | None) -> Snapshot:
    """Accept a snapshot and return it: without resources, which an engine adds."""
    name = checks.snapshot_name(name)

    def attempt() -> Snapshot:
        row = access.living(ctx, identity)
        if row.status == Status.IN_PROGRESS:
            raise checks.busy(row)
        most = ctx.services.conf.engine.max_snapshots_per_stack
        snapshot = Snapshot(
            uuid=ctx.runtime.new_id(),
            stack_uuid=row.uuid,
            name=name,
            project=row.project,
            action=row.action,
            status=Status.IN_PROGRESS,
            reason="",
            data=adoption.data_of(ctx, row) | {"resources": {}},
            created_at=ctx.runtime.utc(),
        )

        def check(conn: sa.Connection) -> None:
            if 0 <= most <= db.count(conn, row.uuid):
                raise errors.RequestLimitExceeded(
                    what="another snapshot", limit=most, unit="snapshots",
                    option="max_snapshots_per_stack",
                )  # fmt: skip

        change = Change(
            stack=row,
            kind=OrderKind.SNAPSHOT,
            payload={"snapshot": snapshot.uuid},
            action=Action.SNAPSHOT,
            snapshot=snapshot,
            check=check,
        )
        acceptance.accept(ctx, change)
        return snapshot

    return acceptance.retried(attempt, identity.name)


def stack_list_snapshots(ctx: StackContext, identity: StackIdentity) -> list[Snapshot]:
    row = access.living(ctx, identity)
    with ctx.services.db.read() as conn:
        rows = db.list_of_stack(conn, row.uuid, ctx.sealer)
    return [_visible(ctx, each) for each in rows]


def show_snapshot(ctx: StackContext, identity: StackIdentity, snapshot: str) -> Snapshot:
    row = access.living(ctx, identity)
    return _visible(ctx, _get(ctx, row, snapshot))


def delete_snapshot(ctx: StackContext, identity: StackIdentity, snapshot: str) -> None:
    """Delete a snapshot, after its resources have removed what they keep for it.

    Raises NotSupported while an engine makes the snapshot.
    """
    row = access.living(ctx, identity)
    stored = _get(ctx, row, snapshot)
    if stored.status == Status.IN_PROGRESS:
        raise errors.NotSupported(feature="Deleting in-progress snapshot")
    snapshot_handlers.clean(ctx, row, stored.data)
    ctx.services.db.transact(lambda conn: db.delete(conn, snapshot))


def _get(ctx: StackContext, row: Stack, uuid: str) -> Snapshot:
    with ctx.services.db.read() as conn:
        snapshot = db.find(conn, row.uuid, uuid, ctx.sealer)
    if snapshot is None:
        raise errors.SnapshotNotFound(snapshot=uuid, stack=row.name)
    return snapshot


def _visible(ctx: StackContext, snapshot: Snapshot) -> Snapshot:
    """Return a snapshot as the caller may see it.

    Its data hold hidden parameters and tokens of signals, which a restore needs.
    """
    if access.may(ctx, "stacks:restore_snapshot"):
        return snapshot
    data = dict(snapshot.data)
    values: Json = {environment.PARAMETERS: {}, environment.DEFAULTS: {}}
    return dataclasses.replace(
        snapshot,
        data={
            **data,
            "environment": {**data.get("environment", {}), **values},
            "resources": {
                name: {key: entry.get(key) for key in _VISIBLE}
                for name, entry in data.get("resources", {}).items()
            },
        },
    )


# --------------------------------------------------------------------------------------- restore


def stack_restore(ctx: StackContext, identity: StackIdentity, snapshot: str) -> None:
    """Accept the restore of a stack from a snapshot."""

    def attempt() -> None:
        row = access.living(ctx, identity)
        stored_snapshot = _get(ctx, row, snapshot)
        if stored_snapshot.status != Status.COMPLETE:
            raise errors.NotSupported(feature="Restoring a snapshot that is not complete")
        checks.not_deleting(row, "Restoring")
        checks.not_busy(ctx, row)
        stored = StoredStack(ctx, row)
        data: Any = stored_snapshot.data or {}
        arguments = StackArguments(
            template=data.get("template"),
            environment=data.get("environment"),
            files=data.get("files") or {},
        )
        inputs, new = stacks.read_update(stored, arguments)
        document = snapshot_handlers.restored_document(ctx, row, new, data)
        if document is not None:
            arguments = dataclasses.replace(arguments, template=document)
            inputs, new = stacks.read_update(stored, arguments)
        checks.definition(ctx, new)
        plan_checks.check(stored, new, converges=False, is_overridden=False)
        template = inputs.stored(ctx.runtime.new_id())
        if document is not None:  # values from handlers may be secret
            template = dataclasses.replace(template, has_secret=True)
        change = Change(
            stack=row,
            kind=OrderKind.RESTORE,
            payload={"snapshot": snapshot},
            action=RESTORE,
            columns={
                "template_uuid": template.uuid,
                "previous_template_uuid": row.template_uuid,
                "updated_at": ctx.runtime.utc(),
            },
            template=template,
        )
        acceptance.accept(ctx, change)

    acceptance.retried(attempt, identity.name)
