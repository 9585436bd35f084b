"""A look: what the pulse reads of a BMC again and again, without a task of its node."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol


class Reading(NamedTuple):
    """What a BMC says of its machine, in Ironic's words; None: it does not say."""

    power_state: str | None
    health: str | None


class NeedsTask(Exception):
    """The BMC's answer is for a task: it is refused, odd, or about the login."""


class Look(Protocol):
    """One node's BMC in the pulse's thread.  It holds at most 2 KiB, beside its connection."""

    async def read(self, limit_s: float) -> Reading:
        """Ask the BMC.  Never called twice at once.

        Raises BmcUnreachable for silence, BmcQueueTimeout while other calls have its slots, and
        NeedsTask.
        """
        raise NotImplementedError

    async def read_sensors(self, limit_s: float) -> dict[str, Any]:
        """Return the sensors as ``Management.get_sensors_data`` does; errors of ``read``."""
        raise NotImplementedError

    def close(self) -> None:
        """Give the login and the connection back.  In the pulse's thread; does not block."""
        raise NotImplementedError
