"""The context of operations: services, and the request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from bloomery.conf import Conf
from bloomery.db.engine import Database
from bloomery.events.live import LiveEvents
from bloomery.model.request import Request
from bloomery.operations.console_relays import Relays
from bloomery.operations.heavy_jobs import HeavyJobs
from bloomery.operations.policy_engine import Policies
from bloomery.rpc.client import Client
from bloomery.secrets import Sealer


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The services that operations need; built once in ``cmd``.

    ``sealer`` unseals secrets where a policy shows them; None: they stay masked. ``live`` streams
    events to clients; None: streams are disabled. ``on_webhooks_changed`` is called after each
    commit that changed webhooks.  ``pulse_missing`` says what is wrong with the thread that looks
    at BMCs, where it runs in this process.  ``consoles``: the open consoles of clients.
    """

    db: Database
    rpc: Client
    conf: Conf
    policies: Policies
    sealer: Sealer | None = None
    heavy_jobs: HeavyJobs = field(default_factory=HeavyJobs)
    live: LiveEvents | None = None
    consoles: Relays = field(default_factory=Relays)
    on_webhooks_changed: Callable[[], None] = lambda: None
    pulse_missing: Callable[[], list[str]] = list


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One request, and the services of the process."""

    services: Services
    request: Request


Admit: TypeAlias = Callable[..., None]


def admit_all(*feature: str | None) -> None:
    """Return a check that accepts all features.

    An operation calls ``admit`` for each feature, in Ironic's order of checks; ``admit`` raises the
    refusal of clients that are too old.  A feature is a tuple of words, such as ("verb", "rescue").
    """
