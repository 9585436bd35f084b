"""A change of the password by Redfish: the user's account at the account service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from bloomery import errors
from bloomery.drivers.base import DriverTask
from bloomery.drivers.passwords import PasswordChange
from bloomery.drivers.redfish import reading
from bloomery.drivers.redfish.access import Access
from bloomery.drivers.redfish.driver_info import Account

Json = dict[str, Any]


class RedfishPasswordChange(PasswordChange[Account]):
    """Raises MissingParameterValue for a node without a login."""

    protocol: ClassVar[str] = "redfish"

    def __init__(self, access: Access, task: DriverTask, password: Any = None) -> None:
        self._access = access
        super().__init__(task, password)
        if self._account.username is None or self._account.password is None:
            raise errors.MissingParameterValue(
                reason="cannot change the BMC's password without driver_info/redfish_username and "
                "redfish_password: set them to a login that works",
            )

    def account(self, task: DriverTask) -> Account:
        return self._access.account(task)

    def opens(self, account: Account) -> bool:
        def read(root: Any) -> Json:
            return reading.fetch(root, root.json["Systems"]["@odata.id"])

        try:
            self._access.at_root(self._task, account, read, secrets=self._hidden)
        except errors.BmcLoginRefused:
            return False
        except errors.BmcPasswordChangeRequired:
            return True
        return True

    @property
    def _hidden(self) -> Sequence[str]:
        return [each for each in (self._wanted, self._account.password) if each]

    def find_user(self) -> tuple[str, tuple[int, int | None]]:
        """Return the path of the account, and the limits of the account service.

        A BMC that has its password changed first names the account, and shows no service.
        """
        account = self._account

        def find(root: Any) -> tuple[str, Json]:
            service = reading.follow(root, root.json, "AccountService")
            for link in reading.follow(root, service, "Accounts").get("Members") or ():
                path = str(link["@odata.id"])
                if reading.fetch(root, path).get("UserName") == account.username:
                    return path, service
            raise errors.InvalidParameterValue(
                reason=f"cannot change the password of user {account.username} of the BMC at "
                f"{account.address}: it lists no such account; change it at the BMC",
            )

        try:
            path, service = self._access.at_root(self._task, account, find, secrets=self._hidden)
        except errors.BmcPasswordChangeRequired as must:
            if not must.facts.get("account"):
                raise
            path, service = str(must.facts["account"]), {}
        return path, limits(service)

    def send(self, user: str, account: Account) -> None:
        new = str(account.password)

        def patch(root: Any) -> None:
            root._conn.patch(user, data={"Password": new})  # noqa: SLF001  no class

        hidden = (*self._hidden, new)
        own, basic = self._account, replace(self._account, auth_type="basic")
        try:
            self._access.at_root(self._task, own, patch, write=True, secrets=hidden)
        except errors.BmcPasswordChangeRequired:  # it gives no session before
            self._access.at_root(self._task, basic, patch, write=True, secrets=hidden)


def limits(service: Json) -> tuple[int, int | None]:
    """Return the least and the most characters; None: the BMC names no most."""
    least, most = service.get("MinPasswordLength"), service.get("MaxPasswordLength")
    return (
        least if isinstance(least, int) else 1,
        most if isinstance(most, int) and most > 0 else None,
    )
