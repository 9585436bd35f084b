"""Webhooks, for operators.

Secrets are written and never read.  A change takes effect at once in this process, and within
seconds in others.
"""

from __future__ import annotations

import uuid as uuids
from collections.abc import Mapping
from typing import Any

from bloomery import errors
from bloomery.db import webhooks as db
from bloomery.model import webhook as model
from bloomery.model.rules import idents, patches
from bloomery.model.webhook import Webhook
from bloomery.operations import policy
from bloomery.operations.context import Context

Json = dict[str, Any]


def list_all(ctx: Context) -> list[Webhook]:
    """Return all webhooks.  Raises Forbidden."""
    policy.authorize(ctx, "baremetal:webhook:get")
    with ctx.services.db.read() as conn:
        return db.list_all(conn)


def get(ctx: Context, uuid: str) -> Webhook:
    """Return one webhook.  Raises Forbidden, WebhookNotFound."""
    policy.authorize(ctx, "baremetal:webhook:get")
    idents.check_uuid("webhook", uuid)
    with ctx.services.db.read() as conn:
        return db.get(conn, uuid)


def create(ctx: Context, values: Mapping[str, Any]) -> Webhook:
    """Create a webhook, which gets events from now on.  Raises Invalid, TooManyWebhooks."""
    policy.authorize(ctx, "baremetal:webhook:create")
    webhook = Webhook(uuid=str(uuids.uuid4()), **_checked(ctx, values))
    most = ctx.services.conf.events.max_webhooks
    ctx.services.db.transact(lambda conn: db.insert(conn, webhook, most=most))
    ctx.services.on_webhooks_changed()
    with ctx.services.db.read() as conn:
        return db.get(conn, webhook.uuid)


def update(ctx: Context, uuid: str, patch: patches.Patch) -> Webhook:
    """Change a webhook; ``state``: parked stops it, active resumes it."""
    policy.authorize(ctx, "baremetal:webhook:update")
    idents.check_uuid("webhook", uuid)
    patches.check_form(patch)
    patches.check_roots(patch, model.WRITABLE)
    if not all(patches.is_whole(operation) for operation in patch):
        raise errors.Invalid(reason="cannot patch a webhook: its attributes have no members")
    changes = _checked(ctx, patches.last_values(patch))
    ctx.services.db.transact(lambda conn: db.update(conn, uuid, changes))
    ctx.services.on_webhooks_changed()
    with ctx.services.db.read() as conn:
        return db.get(conn, uuid)


def destroy(ctx: Context, uuid: str) -> None:
    """Delete a webhook; its undelivered events are dropped."""
    policy.authorize(ctx, "baremetal:webhook:delete")
    idents.check_uuid("webhook", uuid)
    ctx.services.db.transact(lambda conn: db.delete(conn, uuid))
    ctx.services.on_webhooks_changed()


def _checked(ctx: Context, values: Mapping[str, Any]) -> Json:
    """Return values as they are stored.  Raises Invalid."""
    checked = {name: model.checked(name, value) for name, value in values.items()}
    if not ctx.services.conf.events.webhook_allow_local:
        model.check_reach(checked)
    if "secret" in checked:
        if ctx.services.sealer is None:
            raise errors.WebhooksUnavailable
        checked["secret"] = ctx.services.sealer.seal_text(checked["secret"])
    return checked
