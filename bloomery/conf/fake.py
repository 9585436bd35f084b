"""[fake]: how slow simulated hardware is, per interface.

Each is "0", "n" or "a,b" seconds: b at random between a and b, nearer to a.
"""

from __future__ import annotations

from dataclasses import dataclass

from bloomery.conf.declare import option


@dataclass(frozen=True, slots=True, kw_only=True)
class Fake:
    power_delay: str = option("0", "seconds, or a,b")
    boot_delay: str = option("0", "seconds, or a,b")
    deploy_delay: str = option("0", "seconds, or a,b")
    vendor_delay: str = option("0", "seconds, or a,b")
    management_delay: str = option("0", "seconds, or a,b")
    inspect_delay: str = option("0", "seconds, or a,b")
    raid_delay: str = option("0", "seconds, or a,b")
    bios_delay: str = option("0", "seconds, or a,b")
    storage_delay: str = option("0", "seconds, or a,b")
    rescue_delay: str = option("0", "seconds, or a,b")
    firmware_delay: str = option("0", "seconds, or a,b")
