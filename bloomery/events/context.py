"""The request context that goes along with a message on AMQP, key by key."""

from __future__ import annotations

from typing import Any

from bloomery.db.events import Stored


def of(event: Stored) -> dict[str, Any]:
    """Return the keys that consumers know; of a request the event remembers the id."""
    return {
        "user": None,
        "project_id": None,
        "system_scope": None,
        "project": None,
        "domain": None,
        "user_domain": None,
        "project_domain": None,
        "is_admin": False,
        "read_only": False,
        "show_deleted": False,
        "auth_token": None,
        "request_id": event.request_id,
        "global_request_id": None,
        "resource_uuid": None,
        "roles": [],
        "user_identity": "- - - - -",
        "is_admin_project": True,
        "auth_token_info": None,
    }
