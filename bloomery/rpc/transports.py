"""What carries a call to a conductor: here, a plain function call in one process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from bloomery import errors
from bloomery.rpc.contract import Conductor


class Transport(Protocol):
    def proxy(self, host: str) -> Conductor:
        """Return a proxy of the conductor on ``host``.  Raises TemporaryFailure."""


class InProcess:
    """All conductors live in this process: a call is a call."""

    def __init__(self, conductors: Mapping[str, Conductor]) -> None:
        self._conductors = conductors

    def proxy(self, host: str) -> Conductor:
        try:
            return self._conductors[host]
        except KeyError:
            raise errors.TemporaryFailure(
                reason=f"conductor {host} is not in this process",
            ) from None
