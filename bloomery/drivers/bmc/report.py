"""The report of a BMC check: what works, what is missing, and the driver_info to write.

Each protocol fills one ``Report`` with reads alone; ``document`` turns it into JSON for the API and
the command ``bloomery bmc check``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from bloomery import secrets
from bloomery.drivers.bmc.state import BmcState

MOST_REQUESTS: Final = 60
NEEDED: Final = ("power", "boot device")  # without them no machine is deployed


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One feature of a BMC.  ``allowed``: the values that the BMC takes, as it names them."""

    name: str
    works: bool
    detail: str = ""
    allowed: Sequence[str] = ()


@dataclass(slots=True, kw_only=True)
class Report:
    """Facts of a BMC by one protocol; unknown facts are None.

    ``error``: why it cannot be checked.  ``clock_difference_s``: its clock less this host's.
    """

    protocol: str
    address: str
    driver_info: Mapping[str, Any]
    error: str | None = None
    identity: dict[str, str | None] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    sessions_in_use: int | None = None
    tls: dict[str, Any] | None = None
    clock_difference_s: float | None = None
    quirks: list[str] = field(default_factory=list)

    @property
    def is_usable(self) -> bool:
        """Whether machines behind this BMC can be deployed."""
        working = {check.name for check in self.checks if check.works}
        return self.error is None and working.issuperset(NEEDED)

    def read_clock(self, time: datetime | None) -> None:
        if time is not None:
            self.clock_difference_s = round((time - datetime.now(UTC)).total_seconds(), 1)

    def document(self, bmc: BmcState) -> dict[str, Any]:
        """Return the report as JSON, with the latency of ``bmc`` and masked secrets."""
        latency = bmc.latency.summary()
        document = dataclasses.asdict(self) | {
            "usable": self.is_usable,
            "latency": None if latency is None else dataclasses.asdict(latency),
        }
        masked: dict[str, Any] = secrets.mask(document)
        return masked
