"""One IPMI BMC: time limits, retries, and the gap between commands.

The gap is half a second.  A BMC that says that it is busy gets [ipmi]min_command_interval from then
on; a silent one until it answers.

``ask`` waits and retries in its thread, for plain calls; ``tell`` runs a command once.  Steps check
``rest_s`` first and return Again, so that no thread waits for the gap.  Each run of ipmitool has a
slot of the gateway.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any, Final

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.drivers import Ipmi
from bloomery.drivers import base, passwords
from bloomery.drivers.bmc import gateway
from bloomery.drivers.bmc.meanings import CONSEQUENCES
from bloomery.drivers.bmc.state import BmcState
from bloomery.drivers.ipmi import info, tool

_QUICK_GAP_S: Final = 0.5
FAIR: Final = 0.9  # share of its time that a command must have had before the BMC counts as silent


class RateLimit:
    """The time of each BMC's next command, its pace, and the cipher suite that worked last.

    Shared by the process, because the minimum gap holds across interfaces and callers.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], object] = time.sleep,
    ) -> None:
        self.clock = clock
        self.pause = pause
        self._mutex = threading.Lock()
        self._free_at: dict[str, float] = {}
        self._slow: dict[str, bool] = {}  # whether it was busy; False: silent
        self._suites: dict[str, int | None] = {}

    def rest_s(self, key: str) -> float:
        """Return the seconds until the BMC may get a command."""
        return max(0.0, self._free_at.get(key, 0.0) - self.clock())

    def claim(self, key: str, gap_s: float, within_s: float) -> float | None:
        """Reserve the next command's time; return the seconds until it.

        Return None, and reserve nothing, where it is not within ``within_s``.
        """
        with self._mutex:
            rest_s = self.rest_s(key)
            if rest_s >= within_s:
                return None
            self._free_at[key] = self.clock() + rest_s + gap_s
            return rest_s

    def ended(self, key: str, gap_s: float) -> None:
        """Start the gap after a command."""
        with self._mutex:
            self._free_at[key] = max(self._free_at.get(key, 0.0), self.clock() + gap_s)

    def gap_s(self, key: str, longest_s: float) -> float:
        """Return the gap between two commands to the BMC."""
        return longest_s if key in self._slow else min(longest_s, _QUICK_GAP_S)

    def slow_down(self, key: str, *, is_busy: bool) -> None:
        self._slow[key] = is_busy or self._slow.get(key, False)

    def answered(self, key: str) -> None:
        """End the slow pace that a silent BMC was given; a busy one keeps it."""
        if self._slow.get(key) is False:
            self._slow.pop(key, None)

    def remember_suite(self, key: str, suite: int | None) -> None:
        self._suites[key] = suite

    def suite(self, key: str) -> int | None:
        return self._suites.get(key)


RATE_LIMIT = RateLimit()


class IpmiBmc:
    """Raises MissingParameterValue or InvalidParameterValue for an unusable driver_info."""

    def __init__(
        self,
        conf: Conf,
        task: base.DriverTask,
        rate_limit: RateLimit = RATE_LIMIT,
        *,
        own: info.Info | None = None,
        is_trial: bool = False,
    ) -> None:
        """``own``: the connection, by default that of the node's driver_info.

        ``is_trial``: with this login alone, even just after a refusal.
        """
        self.info = own or info.parse(task.driver_info)
        self._is_trial = is_trial
        self._other = None if is_trial else passwords.find_other(task, self.info)
        self._conf = conf.ipmi
        self._task = task
        self._gateway = gateway.of(conf)
        self._rate_limit = rate_limit
        self._longest_gap_s = float(self._conf.min_command_interval)
        limits_s = (self._conf.command_retry_timeout, task.budget_s)
        self._budget_s = min(float(limit_s) for limit_s in limits_s if limit_s is not None)

    def describe(self) -> dict[str, Any]:
        """Return the BMC's part of the node's ``why``."""
        description = self.state.describe(_key(self.info))
        if self._other is not None:
            login = self.state.login(_key(self._other.account))
            works = bool(login.successes) and not login.is_open
            facts = {"role": self._other.role, "since": self._other.since, "works": works}
            description["other_login"] = facts
        return description

    @property
    def state(self) -> BmcState:
        return self._gateway.bmc(self.info.key)

    @property
    def accepted_suite(self) -> int | None:
        """The cipher suite that worked last, or None where ipmitool chose it."""
        return self._rate_limit.suite(self.info.key)

    @property
    def login(self) -> info.Info:
        """The connection with the password that works, as far as it is known."""
        is_refused = self._other is not None and self.state.login(_key(self.info)).is_open
        return self._other.account if self._other is not None and is_refused else self.info

    def rest_s(self) -> float:
        """Return the seconds until the next command."""
        return self._rate_limit.rest_s(self.info.key)

    @property
    def _gap_s(self) -> float:
        return self._rate_limit.gap_s(self.info.key, self._longest_gap_s)

    @property
    def keeps_boot_device(self) -> bool:
        """Whether the BMC must be told to keep a boot device for longer than a minute."""
        own = self.info.disable_boot_timeout
        return self._conf.disable_boot_timeout if own is None else own

    def ask(self, *arguments: str, write: bool = False) -> str:
        """Run a command, with retries while time is left.  Blocks its thread.

        Raises BmcUnreachable, BmcRefused.
        """
        began_at, tries = self._rate_limit.clock(), 0
        while True:
            tries += 1
            left_s = self._budget_s - (self._rate_limit.clock() - began_at)
            try:
                return self.tell(*arguments, write=write, within_s=left_s)
            except errors.BmcLeftAlone:
                raise
            except errors.BmcUnreachable as silent:
                took_s = self._rate_limit.clock() - began_at
                in_time = tries < self._tries and took_s + self.rest_s() < self._budget_s
                if in_time and not self.state.breaker.is_open:
                    also = self._conf.additional_retryable_ipmi_errors
                    if not self._conf.use_ipmitool_retries or tool.is_put_off(str(silent), also):
                        continue
                if tries == 1:
                    raise
                tried = f"{silent.facts['reason']} ({tries} tries in {took_s:.0f} s)"
                raise type(silent)(**silent.facts | {"reason": tried}) from None

    def tell(
        self,
        *arguments: str,
        write: bool = False,
        within_s: float | None = None,
        secret: str | None = None,
    ) -> str:
        """Run a command once, after the gap.  ``secret``: see ``tool.run``.

        A refused login is tried with the node's other password (``passwords``).  Raises
        BmcUnreachable (a retry may help), BmcRefused (it will not); for a write
        ExclusiveLockRequired, LockLost.
        """
        try:
            return self._tell(self.info, arguments, write, within_s, secret)
        except (errors.BmcLoginRefused, errors.BmcLoginLeftAlone) as refusal:
            if self._other is None:
                raise
            try:
                return self._tell(self._other.account, arguments, write, within_s, secret)
            except (errors.BmcLoginRefused, errors.BmcLoginLeftAlone):
                raise refusal from None

    def _tell(
        self,
        own: info.Info,
        arguments: tuple[str, ...],
        write: bool,
        within_s: float | None,
        secret: str | None,
    ) -> str:
        budget_s = self._budget_s if within_s is None else within_s
        with (
            self._gateway.guard(self.info.key, self._task, write=write) as call,
            self._gateway.login(call.bmc, _key(own), self._task, insists=self._is_trial),
        ):
            give_up_at = self._rate_limit.clock() + min(budget_s, call.left_s())
            left_s = give_up_at - self._rate_limit.clock()
            rest_s = self._rate_limit.claim(self.info.key, self._gap_s, left_s)
            if rest_s is None:
                busy = f"other commands keep it busy for more than {left_s:.0f} s"
                raise self._unreachable(busy, was_cut_short=True)
            if rest_s:
                self._rate_limit.pause(rest_s)
            began_at = self._rate_limit.clock()
            try:
                lease = call.assert_lease if write else None
                output = self._run(own, arguments, give_up_at, lease, secret)
                call.took(self._rate_limit.clock() - began_at)
                return output
            finally:
                self._rate_limit.ended(self.info.key, self._gap_s)

    @property
    def _tries(self) -> int:
        return max(1, int(self._budget_s / max(1.0, self._longest_gap_s)))

    def _run(
        self,
        own: info.Info,
        arguments: tuple[str, ...],
        give_up_at: float,
        assert_lease: Callable[[], None] | None,
        secret: str | None,
    ) -> str:
        """Run a command with the first cipher suite that the BMC accepts.

        ``assert_lease``: for a write.  ipmitool repeats a command until it ends, so a write is
        limited to the write budget of the lease.
        """
        failed, left_s = tool.Failed("no cipher suite to try"), 0.0
        # ipmitool itself tries once, unless use_ipmitool_retries is set.
        retries = self._tries if self._conf.use_ipmitool_retries else 1
        patience = tool.Patience(retries=retries, interval_s=max(1, int(self._longest_gap_s)))
        for suite in cipher_suites(self.info, self._conf, self.accepted_suite):
            left_s = max(1.0, give_up_at - self._rate_limit.clock())
            within_s = left_s if self._conf.kill_on_timeout else None
            if assert_lease is not None:
                assert_lease()
                within_s = min(left_s, base.WRITE_BUDGET_S)
            try:
                output = tool.run(
                    own, arguments, suite=suite, patience=patience, within_s=within_s,
                    secret=secret,
                )  # fmt: skip
            except tool.Failed as again:
                failed = again
                if not tool.is_about_suite(str(again)):
                    break
            else:
                self._rate_limit.remember_suite(self.info.key, suite)
                self._rate_limit.answered(self.info.key)
                return output
        text, also = str(failed), self._conf.additional_retryable_ipmi_errors
        meaning = tool.meaning(text, also)
        kind = None if meaning is None else CONSEQUENCES[meaning].kind
        if kind is None or issubclass(kind, errors.BmcBusy):
            self._rate_limit.slow_down(self.info.key, is_busy=tool.is_put_off(text))
        if kind is not None:
            raise kind(
                node=errors.name_of(self._task.node),
                address=self.info.key,
                reason=tool.sentence(text, failed.masked_text),
                meaning=str(meaning),
            ) from None
        was_cut_short = failed.was_killed and left_s < self._conf.command_retry_timeout * FAIR
        raise self._unreachable(failed.masked_text, was_cut_short=was_cut_short) from None

    def _unreachable(self, reason: str, *, was_cut_short: bool) -> errors.BmcUnreachable:
        return errors.BmcUnreachable(
            node=errors.name_of(self._task.node), address=self.info.key, reason=reason,
            was_cut_short=was_cut_short,
        )  # fmt: skip


def _key(own: info.Info) -> str:
    return gateway.account_key(*own.account)


def cipher_suites(own: info.Info, options: Ipmi, accepted: int | None) -> list[int | None]:
    """Return the node's own suite, or the configured ones: what worked last, then the last.

    None: ipmitool chooses.
    """
    if own.interface == "lan":
        return [None]
    if own.cipher_suite is not None:
        return [own.cipher_suite]
    suites: list[int | None] = [int(each) for each in reversed(options.cipher_suite_versions)]
    return sorted(suites, key=lambda suite: suite != accepted) or [None]
