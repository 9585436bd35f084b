"""Who asks: what the API knows of a request, and what RPC carries beside each call."""

from __future__ import annotations

import uuid
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The context of a request; every row and event that it causes names ``request_id``.

    ``wait_s``: how long the caller agreed to wait for a busy node (``Prefer: wait=N``).
    ``user`` and ``project`` are ids; ``system_scope`` is "all" for a token of the whole system.
    Roles come from whoever checked the login, never from headers that a client could send.
    """

    request_id: str
    user: str | None = None
    project: str | None = None
    project_name: str | None = None
    roles: tuple[str, ...] = ()
    system_scope: str | None = None
    wait_s: float | None = None

    @classmethod
    def new(cls, *, user: str | None = None, project: str | None = None) -> Request:
        return cls(request_id=f"req-{uuid.uuid4()}", user=user, project=project)
