"""What every operation is given: the site that it acts on, and who asks."""

from __future__ import annotations

from dataclasses import dataclass

from bloomery.conf import Conf
from bloomery.db.engine import Database
from bloomery.model.request import Request
from bloomery.operations.policy_engine import Policies
from bloomery.rpc.client import Client


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The parts of a running service that operations need; built once in ``cmd``."""

    db: Database
    rpc: Client
    conf: Conf
    policies: Policies


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One request.

    ``version`` is its minor microversion (stacks speak the newest), ``url`` the address under
    which the caller reached us, which links begin with.
    """

    services: Services
    request: Request
    version: int
    url: str = ""
