"""[fake]: the delays of simulated hardware by interface.

Each is "0", "n" or "a,b" seconds: a random number between a and b, mostly near a.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bloomery.conf.declare import option

_DELAY: Final = "delay of the fake interface: seconds, or a range a,b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fake:
    power_delay: str = option("0", _DELAY)
    boot_delay: str = option("0", _DELAY)
    deploy_delay: str = option("0", _DELAY)
    vendor_delay: str = option("0", _DELAY)
    management_delay: str = option("0", _DELAY)
    inspect_delay: str = option("0", _DELAY)
    raid_delay: str = option("0", _DELAY)
    bios_delay: str = option("0", _DELAY)
    storage_delay: str = option("0", _DELAY)
    rescue_delay: str = option("0", _DELAY)
    firmware_delay: str = option("0", _DELAY)
