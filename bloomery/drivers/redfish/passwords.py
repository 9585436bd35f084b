"""The password of a node's account at its BMC: at each moment one that works is stored.

    the new one is stored beside the old -> sent -> tried -> the old one is stored beside the new

``driver_internal_info`` has the other password, sealed.  ``access`` tries it after a refused login:
a change may have been cut off, and some BMCs lose a new password when they restart.  All nodes with
the account share the change.
"""

from __future__ import annotations

import secrets
import string
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from bloomery import clock, errors
from bloomery.drivers.base import DriverTask
from bloomery.drivers.redfish import reading
from bloomery.drivers.redfish.access import Access
from bloomery.drivers.redfish.driver_info import (
    FORMER,
    NEW,
    OTHER_LOGIN,
    Account,
    OtherLogin,
    find_other,
)
from bloomery.outcome import Again

Json = dict[str, Any]

_CHARS: Final = 16  # of a generated password: no BMC or IPMI version takes fewer at most
_KINDS: Final = (string.ascii_lowercase, string.ascii_uppercase, string.digits, "-_.+=")
_IPMI: Final = 20  # characters of a password by IPMI 2.0, at most
_LOCKED_PAUSE_S: Final = 2.0  # before the next try to lock the other nodes
_MOST_LOCKED: Final = 30  # tries
_TRY_PAUSE_S: Final = 5.0  # before a password that the BMC took and refuses is tried again


def change(access: Access, task: DriverTask, password: str | None = None) -> Again | None:
    """Run an attempt to change the password of the account of a node and of those that share it.

    ``password``: None for a generated one.  Raises InvalidParameterValue for one that breaks the
    BMC's policy, MissingParameterValue for a node without a login, and StepFailure.
    """
    account = access.account(task)
    if account.username is None or account.password is None:
        raise errors.MissingParameterValue(
            reason="cannot change the BMC's password without driver_info/redfish_username and "
            "redfish_password: set them to a login that works",
        )
    try:
        with task.others_of_bmc() as others:
            sharing = [other for other in others if _has_login(access, other, account)]
            return _Change(access, task, sharing, account, password).run()
    except errors.NodeLocked as locked:
        if task.turn >= _MOST_LOCKED:
            raise errors.StepFailure(
                reason=f"cannot change the BMC's password while another node behind it is in use: "
                f"{locked}",
            ) from locked
        return Again(after_s=_LOCKED_PAUSE_S, reason=str(locked))


def _has_login(access: Access, other: DriverTask, account: Account) -> bool:
    try:
        theirs = access.account(other)
    except errors.Invalid:
        return False
    return (theirs.username, theirs.password) == (account.username, account.password)


def _shares_ipmi(task: DriverTask, account: Account) -> bool:
    """Return whether the node's login by IPMI, such as of its console, is the same."""
    info = task.driver_info
    ipmi = info.get("ipmi_username"), info.get("ipmi_password")
    return ipmi == (account.username, account.password)


class _Change:
    """An attempt; the nodes are locked.  The rows of the ``sharing`` nodes are written first."""

    def __init__(
        self, access: Access, task: DriverTask, sharing: Sequence[DriverTask], account: Account,
        password: str | None,
    ) -> None:  # fmt: skip
        self._access, self._task, self._account = access, task, account
        self._tasks = [*sharing, task]
        self._wanted = password
        self._flow = str(task.node.provision_updated_at)  # constant during a flow

    def run(self) -> Again | None:
        other = find_other(self._task, self._account)
        new = self._wanted
        if other is not None:
            is_ours = other.role == NEW and other.flow == self._flow
            if self._settle(other) and is_ours and new in (None, other.account.password):
                return None
            if is_ours and new is None:
                new = other.account.password
        path, policy = self._find_account()
        if any(_shares_ipmi(task, self._account) for task in self._tasks):
            policy = policy | {"MaxPasswordLength": min(_limits(policy)[1] or _IPMI, _IPMI)}
        new = check(new, policy) if new is not None else _generated(policy)
        account = replace(self._account, password=new)
        for task in self._tasks:
            self._remember(task, NEW, account)
            _save(task, is_own=task is self._task)
        return self._send(path, account)

    def _settle(self, other: OtherLogin) -> bool:
        """Store as the first password the one that works; return whether it was the other.

        Raises StepFailure where the BMC refuses both.
        """
        if other.role == FORMER and self._opens(self._account):
            return False
        if self._opens(other.account):
            self._promote(other.account)
            return True
        if other.role == FORMER or not self._opens(self._account):
            raise errors.StepFailure(
                reason="cannot change the BMC's password: it refuses both that of driver_info and "
                f"the {other.role} one of {other.since}; set driver_info/redfish_password to one "
                "that works",
            )
        return False

    def _opens(self, account: Account) -> bool:
        """Return whether the BMC accepts this login, if only for a change of the password."""

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

    def _find_account(self) -> tuple[str, Json]:
        """Return the path of the user's account, and the account service's document.

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
            return self._access.at_root(self._task, account, find, secrets=self._hidden)
        except errors.BmcPasswordChangeRequired as must:
            if not must.facts.get("account"):
                raise
            return str(must.facts["account"]), {}

    def _send(self, path: str, new: Account) -> Again | None:
        """Send the new password and log in with it.  Drop it where the BMC refuses it."""
        assert new.password is not None

        def patch(root: Any) -> None:
            root._conn.patch(path, data={"Password": new.password})  # noqa: SLF001  no class

        hidden = (*self._hidden, new.password)
        own, basic = self._account, replace(self._account, auth_type="basic")
        try:
            try:
                self._access.at_root(self._task, own, patch, write=True, secrets=hidden)
            except errors.BmcPasswordChangeRequired:  # it gives no session before
                self._access.at_root(self._task, basic, patch, write=True, secrets=hidden)
        except (errors.BmcFailed, errors.BmcLoginRefused):
            pass  # the login says whether it was changed
        except (errors.BmcRefused, errors.BmcBusy, errors.BmcLeftAlone):  # it was not
            for task in self._tasks:
                task.node.driver_internal_info.pop(OTHER_LOGIN, None)
                _save(task, is_own=task is self._task)
            raise
        if self._opens(new):
            self._promote(new)
            return None
        if not self._task.turn:
            return Again(after_s=_TRY_PAUSE_S, reason="the BMC does not take its new password yet")
        raise errors.StepFailure(
            reason="the BMC was sent a new password, and refuses a login with it; the old one "
            "stays in driver_info, and both are tried",
        )

    def _promote(self, account: Account) -> None:
        """Store a password that works in driver_info, and the one from there as the former."""
        former, self._account = self._account, account
        new = {"redfish_password": account.password}
        for task in self._tasks:
            own = dict(new)
            if _shares_ipmi(task, former):
                own["ipmi_password"] = account.password
            task.node.driver_info = task.node.driver_info | task.sealed(own)
            self._remember(task, FORMER, former)
            also = " and ipmi_password, which was not tried," if len(own) > 1 else ""
            text = f"The password of BMC user {account.username} was changed: driver_info/"
            _save(task, f"{text}redfish_password{also} has it", is_own=task is self._task)

    def _remember(self, task: DriverTask, role: str, other: Account) -> None:
        stored = {
            "role": role, "since": clock.now().isoformat(timespec="seconds"), "flow": self._flow,
            "address": self._access.account(task).address, "username": other.username,
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


def _limits(policy: Json) -> tuple[int, int | None]:
    """Return the least and the most characters; None: the BMC names no most."""
    least, most = policy.get("MinPasswordLength"), policy.get("MaxPasswordLength")
    return (
        least if isinstance(least, int) else 1,
        most if isinstance(most, int) and most > 0 else None,
    )


def check(password: str, policy: Json) -> str:
    """Return a password that has the length of the account service's policy.

    Raises InvalidParameterValue.
    """
    least, most = _limits(policy)
    if not password or len(password) < least or (most is not None and len(password) > most):
        raise errors.InvalidParameterValue(
            reason=f"cannot set a BMC password of {len(password)} characters: the BMC takes "
            f"{least} to {most or 'any number'}",
        )
    return password


def _generated(policy: Json) -> str:
    """Return a random password of the usual kinds of characters, all of which it has."""
    least, most = _limits(policy)
    count = max(least, min(_CHARS, most or _CHARS), len(_KINDS))
    letters = [secrets.choice(kind) for kind in _KINDS]
    letters += [secrets.choice("".join(_KINDS)) for _ in range(count - len(letters))]
    secrets.SystemRandom().shuffle(letters)
    return "".join(letters)
