"""BIOS and RAID of Dell machines: a pending job of an earlier change is in nobody's way."""

from __future__ import annotations

from bloomery.drivers.idrac.jobs import JobQueueInterface
from bloomery.drivers.redfish.bios import RedfishBios
from bloomery.drivers.redfish.raid import RedfishRaid


class IdracBios(JobQueueInterface, RedfishBios):
    pass


class IdracRaid(JobQueueInterface, RedfishRaid):
    pass
