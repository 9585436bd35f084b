"""Webhooks: /ext/v1/webhooks."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from bloomery.api.declare import Call, Reply, Schema, endpoint
from bloomery.api.routing import Rest
from bloomery.api.schemas import patch
from bloomery.model import webhook as model
from bloomery.model.rules.patches import Patch
from bloomery.model.webhook import Webhook
from bloomery.operations import webhooks

Json = dict[str, Any]

_TEXT_OR_NULL: Final = {"type": ["string", "null"]}
CREATE: Final = Schema(
    thing="webhook",
    source={
        "type": "object",
        "properties": {
            "url": {"type": "string", "maxLength": model.MOST_URL},
            "secret": {"type": "string"},
            "type": _TEXT_OR_NULL,
            "object_uuid": _TEXT_OR_NULL,
            "description": _TEXT_OR_NULL | {"maxLength": 255},
        },
        "required": ["url", "secret"],
        "additionalProperties": False,
    },
    secret=frozenset({"secret"}),
)


class Webhooks(Rest):
    """Webhooks as a collection; microversions do not apply here."""

    @endpoint(rule="baremetal:webhook:get")
    def get_all(self, call: Call) -> Json:
        return {"webhooks": [shown(each) for each in webhooks.list_all(call.context)]}

    @endpoint(rule="baremetal:webhook:get")
    def get_one(self, call: Call, webhook: str) -> Json:
        return shown(webhooks.get(call.context, webhook))

    @endpoint(rule="baremetal:webhook:create", status=201, body=CREATE)
    def post(self, call: Call, *, body: Json) -> Reply:
        webhook = webhooks.create(call.context, body)
        location = f"{call.url}/ext/v1/webhooks/{webhook.uuid}"
        return Reply(document=shown(webhook), location=location)

    @endpoint(rule="baremetal:webhook:update", body=patch.PATCH)
    def patch(self, call: Call, webhook: str, *, body: Patch) -> Json:
        return shown(webhooks.update(call.context, webhook, body))

    @endpoint(rule="baremetal:webhook:delete", status=204)
    def delete(self, call: Call, webhook: str) -> None:
        webhooks.destroy(call.context, webhook)


def shown(webhook: Webhook) -> Json:
    """Return a webhook without its secret."""
    document = dataclasses.asdict(webhook)
    del document["secret"]
    return document
