"""Who asks: what the API knows of a request, and what RPC carries beside each call."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The context of a request; every row and event that it causes names ``request_id``.

    ``wait_s``: how long the caller agreed to wait for a busy node (``Prefer: wait=N``).
    ``user``, ``project`` and the domains are ids; ``domain`` is that of a token for a whole domain,
    and ``system_scope`` is "all" for a token of the whole system.  ``is_admin_project``: the token
    says that its project is the one whose admins run the cloud.  ``is_restricted``: the token is
    good for some requests only (access rules of an application credential, a binding).
    Roles come from whoever checked the login, never from headers that a client could send.
    """

    request_id: str
    user: str | None = None
    user_name: str | None = None
    user_domain: str | None = None
    project: str | None = None
    project_name: str | None = None
    project_domain: str | None = None
    domain: str | None = None
    roles: tuple[str, ...] = ()
    system_scope: str | None = None
    is_admin_project: bool = False
    is_restricted: bool = False
    wait_s: float | None = None

    @classmethod
    def new(cls, *, user: str | None = None, project: str | None = None) -> Request:
        return cls(request_id=f"req-{uuid.uuid4()}", user=user, project=project)


IN_LOG: Final[ContextVar[Request | None]] = ContextVar("bloomery.request_in_log", default=None)
"""What the lines name that this thread logs; changes nothing else."""


@contextmanager
def in_name_of(request: Request) -> Iterator[None]:
    """Let the lines that this thread logs inside the block name ``request``."""
    of_thread = IN_LOG.set(request)
    try:
        yield
    finally:
        IN_LOG.reset(of_thread)
