"""A change of the password by IPMI: Set User Password, with 16 or 20 bytes.

The command goes to ipmitool in a memory file, which it executes: no other process can read it.
Source: IPMI 2.0, section 22.30.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from bloomery import errors
from bloomery.conf import Conf
from bloomery.drivers import passwords
from bloomery.drivers.base import DriverTask
from bloomery.drivers.ipmi.bmc import IpmiBmc
from bloomery.drivers.ipmi.info import Info, parse
from bloomery.outcome import Again

_SHORT, _LONG = 16, passwords.IPMI_CHARS  # bytes; the long form is for IPMI 2.0
_NULL_USER: Final = "1"  # always the user without a name
_SET, _IS_LONG = 0x02, 0x80  # the operation; the flag beside the number of the user


class IpmiPasswordChange(passwords.PasswordChange[Info]):
    protocol: ClassVar[str] = "ipmi"

    def __init__(self, conf: Conf, task: DriverTask, password: Any = None) -> None:
        self._conf = conf
        super().__init__(task, password)
        if self._wanted is not None and not (self._wanted.isascii() and self._wanted.isprintable()):
            raise errors.InvalidParameterValue(
                reason="cannot set a BMC password with other characters than printable ASCII"
            )

    def account(self, task: DriverTask) -> Info:
        return parse(task.driver_info)

    def opens(self, account: Info) -> bool:
        try:
            IpmiBmc(self._conf, self._task, own=account, is_trial=True).tell("power", "status")
        except errors.BmcLoginRefused:
            return False
        return True

    def find_user(self) -> tuple[str, tuple[int, int | None]]:
        """Return the number of the user, and 20 characters for IPMI 2.0, else 16."""
        own, name = self._account, self._account.username
        most = _LONG if own.interface == "lanplus" else _SHORT
        if name is None:
            return _NULL_USER, (1, most)
        bmc = IpmiBmc(self._conf, self._task, own=own)
        for line in bmc.tell("-c", "user", "list").splitlines():
            number, _, rest = line.partition(",")
            if number.isdecimal() and rest.rsplit(",", 4)[0] == name:
                return number, (1, most)
        raise errors.InvalidParameterValue(
            reason=f"cannot change the password of user {name} of the BMC at {own.key}: it lists "
            "no such user; change it at the BMC",
        )

    def send(self, user: str, account: Info) -> None:
        password = account.password.encode()
        is_long = len(password) > _SHORT
        octets = [
            int(user) | (_IS_LONG if is_long else 0), _SET,
            *password.ljust(_LONG if is_long else _SHORT, b"\0"),
        ]  # fmt: skip
        command = " ".join(f"0x{octet:02x}" for octet in (0x06, 0x47, *octets))
        bmc = IpmiBmc(self._conf, self._task, own=self._account)
        bmc.tell(write=True, secret=f"raw {command}")

    def explain(self, account: Info) -> str:
        is_long = len(account.password) > _SHORT
        return (
            f"; it may keep {_SHORT} bytes: choose {_SHORT} characters at most" if is_long else ""
        )

    def change(self, new: str | None) -> Again | None:
        """Change the password; a long one after its first 16 characters.

        Some BMCs accept 20 bytes and keep 16: they then have the password that was set before.
        """
        if new is not None and len(new) > _SHORT:
            passwords.check(new, 1, self.find_user()[1][1])
            if self._account.password not in (new, new[:_SHORT]):
                again = super().change(new[:_SHORT])
                if again is not None:
                    return again
        return super().change(new)
