"""What the redfish interfaces share: the way to the BMC, and what they need to know of it."""

from __future__ import annotations

from bloomery.conf import Conf
from bloomery.drivers import base
from bloomery.drivers.redfish import access, driver_info


class Redfish(base.Interface):
    def __init__(self, conf: Conf) -> None:
        super().__init__(conf)
        self.access = access.of(conf)

    def get_properties(self) -> dict[str, str]:
        return dict(driver_info.PROPERTIES)

    def validate(self, task: base.DriverTask) -> None:
        self.access.account(task)

    def close(self) -> None:
        self.access.close()
