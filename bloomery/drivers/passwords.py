"""The password of a node's account at its BMC: at each moment one that works is stored.

    the new one is stored beside the old -> sent -> tried -> the old one is stored beside the new

``driver_internal_info`` has the other password, sealed.  The calls of a protocol try it after a
refused login: a change may have been cut off, and some BMCs lose a new password when they restart.
All nodes with the account share the change.
"""

from __future__ import annotations

import secrets
import string
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

from bloomery import clock, errors
from bloomery.drivers.base import DriverTask
from bloomery.outcome import Again

OTHER_LOGIN: Final = "bmc_other_login"  # in driver_internal_info
NEW, FORMER = "new", "former"  # roles of the other password
IPMI_CHARS: Final = 20  # of a password by IPMI 2.0, at most
STEP_ARGS: Final = {
    "password": {"description": "the new one; left out: a random one", "required": False},
}
_PROTOCOLS: Final = ("redfish", "ipmi")  # prefixes of keys of driver_info
_CHARS: Final = 16  # of a generated password: no BMC or IPMI version takes fewer at most
_KINDS: Final = (string.ascii_lowercase, string.ascii_uppercase, string.digits, "-_.+=")
_LOCKED_PAUSE_S: Final = 2.0  # before the next try to lock the other nodes
_MOST_LOCKED: Final = 30  # tries
_TRY_PAUSE_S: Final = 5.0  # before a password that the BMC took and refuses is tried again


class Account(Protocol):
    """A BMC's address and a login; a frozen dataclass with a field ``password``."""

    @property
    def key(self) -> str: ...
    @property
    def username(self) -> str | None: ...
    @property
    def password(self) -> str | None: ...


A = TypeVar("A", bound=Account)


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherLogin(Generic[A]):
    """The password beside that of driver_info; ``flow``: in which it was chosen."""

    role: str
    since: str
    flow: str
    account: A = field(repr=False)


def find_other(task: DriverTask, account: A) -> OtherLogin[A] | None:
    """Return what else may log in as the user of ``account``, if anything."""
    stored: dict[str, Any] = task.node.driver_internal_info.get(OTHER_LOGIN) or {}
    if (stored.get("address"), stored.get("username")) != (account.key, account.username):
        return None
    changed: Any = replace(account, password=task.opened(stored["password"]))  # type: ignore[type-var]
    return OtherLogin(
        role=stored["role"], since=stored["since"], flow=stored["flow"], account=changed
    )


class PasswordChange(ABC, Generic[A]):
    """A change by one protocol."""

    protocol: ClassVar[str]

    def __init__(self, task: DriverTask, password: Any = None) -> None:
        """``password``: None for a generated one.  Raises InvalidParameterValue, unless a text."""
        if password is not None and not isinstance(password, str):
            raise errors.InvalidParameterValue(reason="password of set_bmc_password takes a text")
        self._task, self._wanted = task, password
        self._account = self.account(task)
        self._tasks = [task]
        self._flow = str(task.node.provision_updated_at)  # constant during a flow

    @abstractmethod
    def account(self, task: DriverTask) -> A:
        """Return the login of a node's driver_info.  Raises Invalid."""

    @abstractmethod
    def opens(self, account: A) -> bool:
        """Return whether the BMC accepts this login, if only for a change of the password.

        Raises BmcUnreachable, BmcRefused.
        """

    @abstractmethod
    def find_user(self) -> tuple[str, tuple[int, int | None]]:
        """Return the user's path or number at the BMC, and the least and most characters."""

    @abstractmethod
    def send(self, user: str, account: A) -> None:
        """Send the new password with the login that works."""

    def explain(self, account: A) -> str:
        """Return what the user may do where the BMC took a password that it refuses."""
        return ""

    def run(self) -> Again | None:
        """Run an attempt to change the password, for all nodes that share it.

        Raises InvalidParameterValue for a password that breaks the BMC's policy, and StepFailure.
        """
        try:
            with self._task.others_of_bmc() as others:
                # The rows of the others are written first.
                self._tasks = [*filter(self._is_shared_by, others), self._task]
                return self.change(self._wanted)
        except errors.NodeLocked as locked:
            if self._task.turn >= _MOST_LOCKED:
                raise errors.StepFailure(
                    reason="cannot change the BMC's password while another node behind it is in "
                    f"use: {locked}",
                ) from locked
            return Again(after_s=_LOCKED_PAUSE_S, reason=str(locked))

    def change(self, new: str | None) -> Again | None:
        """Change the password; the nodes are locked."""
        other = find_other(self._task, self._account)
        is_ours = other is not None and other.role == NEW and other.flow == self._flow
        if other is not None:
            if self._settle(other) and is_ours and new in (None, other.account.password):
                return None
            if is_ours and new is None:
                new = other.account.password
        user, (least, most) = self.find_user()
        if any(self._shared_keys(task, self._account)[1:] for task in self._tasks):
            most = min(most or IPMI_CHARS, IPMI_CHARS)
        new = check(new, least, most) if new is not None else _generated(least, most)
        account: A = replace(self._account, password=new)  # type: ignore[type-var]
        for task in self._tasks:
            self._remember(task, NEW, account)
            _save(task, is_own=task is self._task)
        try:
            self.send(user, account)
        except (errors.BmcFailed, errors.BmcLoginRefused):
            pass  # the login says whether it was changed
        except errors.BmcRefused:  # some set it all the same: both stay stored
            raise
        except (errors.BmcBusy, errors.BmcLeftAlone):  # it was not
            for task in self._tasks:
                task.node.driver_internal_info.pop(OTHER_LOGIN, None)
                _save(task, is_own=task is self._task)
            raise
        if self.opens(account):
            self._promote(account)
            return None
        if not is_ours:
            return Again(after_s=_TRY_PAUSE_S, reason="the BMC does not take its new password yet")
        raise errors.StepFailure(
            reason="the BMC was sent a new password, and refuses a login with it; the old one "
            f"stays in driver_info, and both are tried{self.explain(account)}",
        )

    def _is_shared_by(self, other: DriverTask) -> bool:
        try:
            theirs = self.account(other)
        except errors.Invalid:
            return False
        ours = self._account
        return (theirs.username, theirs.password) == (ours.username, ours.password)

    def _shared_keys(self, task: DriverTask, account: A) -> list[str]:
        """Return the keys of driver_info with the password: that of the other protocol last."""
        info = task.driver_info
        other = next(each for each in _PROTOCOLS if each != self.protocol)
        login = info.get(f"{other}_username"), info.get(f"{other}_password")
        is_same = login == (account.username, account.password)
        return [f"{self.protocol}_password", *([f"{other}_password"] if is_same else [])]

    def _settle(self, other: OtherLogin[A]) -> bool:
        """Store as the first password the one that works; return whether it was the other.

        Raises StepFailure where the BMC refuses both.
        """
        if other.role == FORMER and self.opens(self._account):
            return False
        if self.opens(other.account):
            self._promote(other.account)
            return True
        if other.role == FORMER or not self.opens(self._account):
            raise errors.StepFailure(
                reason="cannot change the BMC's password: it refuses both that of driver_info and "
                f"the {other.role} one of {other.since}; set driver_info/{self.protocol}_password "
                "to one that works",
            )
        return False

    def _promote(self, account: A) -> None:
        """Store a password that works in driver_info, and the one from there as the former."""
        former, self._account = self._account, account
        for task in self._tasks:
            own, *others = self._shared_keys(task, former)
            new = dict.fromkeys((own, *others), account.password)
            task.node.driver_info = task.node.driver_info | task.sealed(new)
            self._remember(task, FORMER, former)
            also = "".join(f" and {key}, which was not tried," for key in others)
            text = f"The password of BMC user {account.username} was changed: driver_info/"
            _save(task, f"{text}{own}{also} has it", is_own=task is self._task)

    def _remember(self, task: DriverTask, role: str, other: A) -> None:
        stored = {
            "role": role, "since": clock.now().isoformat(timespec="seconds"), "flow": self._flow,
            "address": self.account(task).key, "username": other.username,
            "password": other.password,
        }  # fmt: skip
        task.node.driver_internal_info[OTHER_LOGIN] = task.sealed(stored)


def _save(task: DriverTask, sentence: str | None = None, *, is_own: bool) -> None:
    """Write a node; a lost lock of another node fails the step, not the flow's task."""
    try:
        task.save() if sentence is None else task.record(sentence)
    except errors.LockLost as lost:
        if is_own:
            raise
        raise errors.StepFailure(reason=str(lost)) from lost


def check(password: str, least: int, most: int | None) -> str:
    """Return a password of ``least`` to ``most`` characters.  Raises InvalidParameterValue."""
    if not password or len(password) < least or (most is not None and len(password) > most):
        raise errors.InvalidParameterValue(
            reason=f"cannot set a BMC password of {len(password)} characters: the BMC takes "
            f"{least} to {most or 'any number'}",
        )
    return password


def _generated(least: int, most: int | None) -> str:
    """Return a random password of the usual kinds of characters, all of which it has."""
    count = max(least, min(_CHARS, most or _CHARS), len(_KINDS))
    letters = [secrets.choice(kind) for kind in _KINDS]
    letters += [secrets.choice("".join(_KINDS)) for _ in range(count - len(letters))]
    secrets.SystemRandom().shuffle(letters)
    return "".join(letters)
