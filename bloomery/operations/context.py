"""What every operation takes: the services that it uses, and who asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from bloomery.conf import Conf
from bloomery.db.engine import Database
from bloomery.events.live import LiveEvents
from bloomery.model.request import Request
from bloomery.operations.heavy_jobs import HeavyJobs
from bloomery.operations.policy_engine import Policies
from bloomery.rpc.client import Client
from bloomery.secrets import Sealer


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The parts of a running service that operations need; built once in ``cmd``.

    ``sealer`` opens secrets for those whom a policy shows them; None: they stay stars.
    ``live`` feeds clients that listen to events; None: nobody can.
    ``on_webhooks_changed`` is called after each commit that changed webhooks.
    """

    db: Database
    rpc: Client
    conf: Conf
    policies: Policies
    sealer: Sealer | None = None
    heavy_jobs: HeavyJobs = field(default_factory=HeavyJobs)
    live: LiveEvents | None = None
    on_webhooks_changed: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One request: where it is done, and who asks."""

    services: Services
    request: Request


Admit: TypeAlias = Callable[..., None]


def admit_all(*feature: str | None) -> None:
    """Refuse nothing.

    An operation asks ``admit`` at the place where Ironic tells a caller that was written before
    a feature that it cannot have it; it raises what that caller is told.  Features are named by
    a word or more, such as ("verb", "rescue").
    """
