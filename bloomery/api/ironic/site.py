"""Extensions about the site, below /ext/v1: its state, the caller, logins, events and webhooks.

Microversions do not apply here.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Final
from urllib.parse import urlencode

from webob import exc as statuses

from bloomery import errors
from bloomery.api import arguments, auth, auth_strategy, schemas
from bloomery.api.arguments import Arg
from bloomery.api.declare import Call, Reply, Schema
from bloomery.api.views import pagination
from bloomery.conductor import states
from bloomery.model import webhook as model
from bloomery.model.fields import UUID
from bloomery.model.rules import nodes, verbs
from bloomery.model.rules.patches import Patch
from bloomery.model.webhook import Webhook
from bloomery.operations import activity, event_feed, firmware, fleet, policy, status, webhooks

Json = dict[str, Any]

EVENTS: Final = {
    "limit": Arg(arguments.count),
    "node": Arg(arguments.ident),
    "object": Arg(arguments.uuid),
    "order": Arg(arguments.direction),
    "since": Arg(arguments.position),
    "stack": Arg(arguments.uuid),
    "type": Arg(arguments.text, form=model.TYPE),
    "until": Arg(arguments.integer),
}
ACTIVITY: Final = {"hours": Arg(arguments.integer, form={"minimum": 1})}
AUDIT: Final = {"limit": Arg(arguments.count)}
USERS_RULE: Final = "baremetal:user:list"
ONE_OBJECT: Final = (("node", "stack", "object"),)  # at most one of them


def list_events(call: Call, **query: Any) -> Reply | Json:
    """Answer ``text/event-stream`` with a stream, other requests with a page."""
    scope = event_feed.Query(
        event_type=query.get("type"), node=query.get("node"), stack=query.get("stack"),
        object=query.get("object"),
    )  # fmt: skip
    newest_first = pagination.is_descending(query.get("order", "asc"))
    if call.wants_stream:
        if newest_first or "until" in query:
            raise errors.Invalid(reason="cannot stream with order or until: ask for a list")
        since = query.get("since")
        if call.last_event_id is not None:
            since = arguments.integer("Last-Event-ID", call.last_event_id)
        return Reply(stream=event_feed.listen(call.context, scope, since))
    most = call.context.services.conf.api.max_limit
    limit = min(query.get("limit", most), most)
    if limit < 1:
        raise errors.Invalid(reason="cannot use limit: it has to be positive")
    page = event_feed.list_page(
        call.context, scope, query.get("since", 0), query.get("until"),
        newest_first=newest_first, limit=limit,
    )  # fmt: skip
    document = {"events": page.documents, "last_id": page.last_id}
    if page.rest is not None:
        rest = query | {"since": page.rest.since, "until": page.rest.until}
        remaining = {name: value for name, value in rest.items() if value is not None}
        document["next"] = f"{call.url}/ext/v1/events?{urlencode(remaining)}"
    return document


def describe_site(call: Call) -> Json:
    """Describe conductors, flows, stacks, event sinks and the database."""
    return status.describe(call.context)


def describe_fleet(call: Call) -> Json:
    """Count the nodes that the caller may list, by state, class and conductor."""
    return fleet.describe(call.context)


def list_orders(call: Call, *, limit: int | None = None) -> Json:
    """Who ordered what, newest first: the end of the record that the host which answers keeps."""
    most = call.context.services.conf.api.max_limit
    if limit is not None and limit < 1:
        raise errors.Invalid(reason="cannot use limit: it has to be positive")
    return status.list_orders(call.context, min(limit or most, most))


def describe_activity(call: Call, *, hours: int = 24) -> Json:
    """What happened in the last hours: flows and alarms by time, failures and times by step."""
    return activity.describe(call.context, hours)


def describe_caller(call: Call) -> Json:
    """User, project, roles, and which rules are granted for objects of the own project."""
    return policy.describe_caller(call.context)


def describe_states(call: Call) -> Json:
    """List provision states, edges between them, verbs, orders of power, and words of problems."""
    provides = call.context.services.conf.conductor.allow_provisioning_in_maintenance
    refused = verbs.REFUSED_IN_MAINTENANCE | (set() if provides else {"provide"})
    return {
        "states": [
            {
                "name": state,
                "advice": states.ADVICE.get(state),
                "is_stable": state in states.STABLE_STATES,
                "is_problem": state in states.BAD_STATES,
                "cause_code": nodes.code_of(state) if state in states.BAD_STATES else None,
                "kind": states.KINDS[state],
                "place": states.PLACES[state],
            }
            for state in states.State
        ],
        "problems": nodes.PROBLEMS,
        "edges": [edge._asdict() for edge in states.EDGES],
        "verbs": [
            {
                "verb": verb.name,
                "target": verb.target,
                "event": verb.event,
                "from": verb.sources,
                "in_maintenance": verb.event not in refused,
                "purpose": verb.purpose,
                "arguments": verb.arguments,
                "loses_data": verb.loses_data,
                "loss": verb.loss,
            }
            for verb in states.VERB_LIST
        ],
        "power": [
            {
                "target": each.target,
                "label": each.label,
                "command": each.command,
                "from": each.sources,
                "ends_in": each.ends_in,
                "loss": each.loss,
            }
            for each in states.POWER_ORDERS
        ],
    }


# -------------------------------------------------------------------------------------- logins

_TEXT: Final = {"type": "string", "minLength": 1, "maxLength": 255}
LOGIN: Final = Schema(
    thing="login",
    source={
        "type": "object",
        "properties": {
            **dict.fromkeys(("user", "domain", "project", "project_domain"), _TEXT),
            "password": {"type": "string", "maxLength": 4096},
            "system": {"type": "boolean"},
        },
        "required": ["user", "password"],
        "additionalProperties": False,
    },
    secret=frozenset({"password"}),
)


def describe_login(call: Call) -> Json:
    """How callers log in: ``noauth``, ``http_basic`` or ``keystone``."""
    return {"auth_strategy": call.context.services.conf.default.auth_strategy}


def list_users(call: Call) -> Json:
    """Who may log in now, in the order of the file of ``http_basic``; null where it has none."""
    policy.authorize(call.context, USERS_RULE)
    return describe_login(call) | {"users": auth_strategy.names(call.logins)}


def log_in(call: Call, *, body: Json) -> Json:
    """Ask the identity service for a token: of the project, or with ``system`` of the system.

    For pages that reach no identity service; nothing is stored.  Domains are names, and default to
    Default.
    """
    if not isinstance(call.logins, auth.Issuer):
        strategy = call.context.services.conf.default.auth_strategy
        raise errors.Invalid(
            reason=f"cannot issue a token: [DEFAULT]auth_strategy is {strategy}, which has none"
        )
    try:
        return call.logins.issue_token(**body)
    except auth.Unauthorized:
        raise statuses.HTTPUnauthorized(
            "the identity service takes no such user, password and project"
        ) from None
    except auth.Busy:
        raise statuses.HTTPServiceUnavailable(
            "too many logins are being checked; retry in a second"
        ) from None
    except auth.IdentityUnavailable:
        raise statuses.HTTPServiceUnavailable(
            "the identity service does not answer as it should; retry later"
        ) from None


# ------------------------------------------------------------------------------------ firmware

CATALOGUE: Final = Schema(
    thing="catalogue",
    source={
        "type": "object",
        "properties": {"catalogue": {"type": "string", "minLength": 1}},
        "required": ["catalogue"],
        "additionalProperties": False,
    },
)


def get_catalogue(call: Call) -> Json:
    """The catalogue of firmware, as its operator wrote it."""
    return firmware.get_catalogue(call.context)


def set_catalogue(call: Call, *, body: Json) -> None:
    """Replace the catalogue of firmware, a YAML text; 400 names the line of a fault."""
    firmware.set_catalogue(call.context, body["catalogue"])


def delete_catalogue(call: Call) -> None:
    """Remove the catalogue: nothing is out of date any more."""
    firmware.delete_catalogue(call.context)


# ------------------------------------------------------------------------------------ webhooks

_TEXT_OR_NULL: Final[Json] = {"type": ["string", "null"]}
_WEBHOOK: Final[dict[str, Json]] = {
    "url": {"type": "string", "maxLength": model.MOST_URL},
    "secret": {"type": "string"},
    "type": _TEXT_OR_NULL,
    "object_uuid": _TEXT_OR_NULL | UUID,
    "description": _TEXT_OR_NULL | {"maxLength": 255},
}
WEBHOOK: Final = Schema(
    thing="webhook",
    source={
        "type": "object",
        "properties": _WEBHOOK,
        "required": ["url", "secret"],
        "additionalProperties": False,
    },
    secret=frozenset({"secret"}),
    document={
        "properties": _WEBHOOK | {
            "url": _WEBHOOK["url"] | model.URL,
            "secret": _WEBHOOK["secret"] | model.SECRET,
            "type": _WEBHOOK["type"] | model.TYPE,
        }
    },
)  # fmt: skip
PATCH: Final = schemas.patch_of(model.WRITABLE)


def list_webhooks(call: Call) -> Json:
    return {"webhooks": [_webhook(each) for each in webhooks.list_all(call.context)]}


def get_webhook(call: Call, webhook: str) -> Json:
    return _webhook(webhooks.get(call.context, webhook))


def create_webhook(call: Call, *, body: Json) -> Reply:
    webhook = webhooks.create(call.context, body)
    location = f"{call.url}/ext/v1/webhooks/{webhook.uuid}"
    return Reply(document=_webhook(webhook), location=location)


def update_webhook(call: Call, webhook: str, *, body: Patch) -> Json:
    return _webhook(webhooks.update(call.context, webhook, body))


def delete_webhook(call: Call, webhook: str) -> None:
    webhooks.destroy(call.context, webhook)


def _webhook(webhook: Webhook) -> Json:
    """Return a webhook without its secret."""
    document = dataclasses.asdict(webhook)
    del document["secret"]
    return document
