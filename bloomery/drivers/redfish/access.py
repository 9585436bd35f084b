"""Access from an interface to a system behind a BMC: login, guard, errors.

One login per account is cached.  The least recently used one is logged out when there are too many,
and all are at the conductor's end.  Idle connections are closed before the process runs out of
descriptors.
"""

from __future__ import annotations

import logging
import resource
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from bloomery import errors
from bloomery.conf import Conf
from bloomery.drivers import passwords
from bloomery.drivers.base import DriverTask
from bloomery.drivers.bmc import gateway
from bloomery.drivers.bmc.gateway import BmcCall, PerConf
from bloomery.drivers.bmc.state import BmcState
from bloomery.drivers.looks import Look
from bloomery.drivers.redfish import driver_info, reading
from bloomery.drivers.redfish.driver_info import Account

if TYPE_CHECKING:
    from bloomery.drivers.redfish.client import RedfishClient
    from bloomery.drivers.redfish.wire import Wire

LOG = logging.getLogger(__name__)
T = TypeVar("T")
Json: TypeAlias = dict[str, Any]
_Work: TypeAlias = "Callable[[RedfishClient, Account], T]"

_SYSTEM, _ACCOUNT = "system", "account"  # keys of ``reads``, beside the URLs of answers
_GIVE_BACK_S: Final = 2.0  # time limit of one logout
_CLOSE_S: Final = 5.0  # time limit of all logouts at the end
_CLOSERS: Final = 16
_MOST_CONNECTED: Final = 512  # by tasks; looks have connections of their own


class Login:
    """One account's client, created at its first call."""

    __slots__ = ("_lock", "account", "built", "is_kept", "looks", "users")

    def __init__(self, account: Account) -> None:
        self.account = account
        self.users = self.looks = 0  # running calls, open looks; guarded by the table's lock
        self.is_kept = False  # whether the table has it
        self._lock = threading.Lock()
        self.built: RedfishClient | None = None

    @contextmanager
    def one_at_a_time(self, task: DriverTask, call: BmcCall) -> Iterator[None]:
        """Let one call through at a time until the BMC has accepted the login."""
        if self.built is not None and self.built.wire.is_proven:
            yield
            return
        if not self._lock.acquire(timeout=max(call.left_s(), 0)):
            raise gateway.login_busy(errors.name_of(task.node), call.bmc.address)
        try:
            yield
        finally:
            self._lock.release()

    def client(self, conf: Conf) -> RedfishClient:
        from bloomery.drivers.redfish import client

        if self.built is None:
            self.built = client.RedfishClient(self.account, conf)
        return self.built


class Access:
    """The shared state of the redfish interfaces of one configuration."""

    def __init__(self, conf: Conf) -> None:
        self.conf = conf
        self.gateway = gateway.of(conf)
        self.documents = reading.Documents()
        self._mutex = threading.Lock()
        self._logins: OrderedDict[str, Login] = OrderedDict()
        self._watched: dict[str, Login] = {}  # those of looks, which stay as long
        self._connected: OrderedDict[str, Wire] = OrderedDict()
        descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        is_unlimited = descriptors == resource.RLIM_INFINITY
        most = _MOST_CONNECTED if is_unlimited else min(descriptors // 16, _MOST_CONNECTED)
        self._most_connected = max(most, 8)
        self._closers: ThreadPoolExecutor | None = None
        self._under_way: list[Future[None]] = []

    def account(self, task: DriverTask) -> Account:
        """Return the account of a node, cached in ``task.reads``.

        Raises MissingParameterValue and InvalidParameterValue.
        """
        info, reads = task.driver_info, {} if task.reads is None else task.reads
        if _ACCOUNT not in reads or reads[_ACCOUNT][0] is not info:
            reads[_ACCOUNT] = info, driver_info.parse(info, self.conf.redfish)
        account: Account = reads[_ACCOUNT][1]
        return account

    def working_account(self, task: DriverTask) -> Account:
        """Return the account with the password that works, as far as it is known."""
        account = self.account(task)
        other = passwords.find_other(task, account)
        is_refused = self.gateway.bmc(account.address).login(_key(account)).is_open
        return other.account if other is not None and is_refused else account

    def bmc(self, task: DriverTask) -> BmcState:
        """Return the state of the node's BMC."""
        return self.gateway.bmc(self.account(task).address)

    def describe(self, task: DriverTask) -> dict[str, Any]:
        """Return the BMC's part of the node's ``why``."""
        account = self.account(task)
        bmc = self.gateway.bmc(account.address)
        description = bmc.describe(_key(account))
        absent_since = (bmc.absent_since or {}).get(account.system or "")
        if absent_since is not None:
            description["system_absent_since"] = absent_since.isoformat()
        other = passwords.find_other(task, account)
        if other is not None:
            login = bmc.login(_key(other.account))
            works = bool(login.successes) and not login.is_open
            description["other_login"] = {"role": other.role, "since": other.since, "works": works}
        return description

    # ---------------------------------------------------------------------------- calls

    def read(self, task: DriverTask, work: Callable[[Any], T]) -> T:
        """Return what ``work`` reads from the node's system, which is fetched once per attempt.

        A failed read is repeated once while time is left.  Raises BmcUnreachable, BmcRefused,
        InvalidParameterValue.
        """
        return self._read(task, lambda client, account: work(client.system(account)))

    def document(self, task: DriverTask, *, insists: bool = False) -> Json:
        """Return the JSON document of the node's system, cached in ``task.reads``; see ``read``.

        ``insists``: also while the breaker is open.  sushy's system costs five times as much, and a
        second request where settings are linked.
        """
        document: Json | None = (task.reads or {}).get(_SYSTEM)
        if document is None:
            document = self._read(
                task, lambda client, account: client.document(account), insists=insists
            )
            if task.reads is not None:
                task.reads[_SYSTEM] = document
        return document

    def _read(self, task: DriverTask, work: _Work[T], *, insists: bool = False) -> T:
        account = self.account(task)
        with self.gateway.guard(account.address, task, write=False, insists=insists) as call:
            return self._repeated(account, task, call, work)

    def change(
        self,
        task: DriverTask,
        work: Callable[[Any], T],
        *,
        repeatable: bool = False,
        secrets: Sequence[str] = (),
    ) -> T:
        """Let ``work`` change the node's system; errors hide the ``secrets`` that it sends.

        The request is sent once, because its effect after silence is unknown.  A ``repeatable``
        (idempotent) one is repeated as in ``read``.  Raises BmcUnreachable, BmcRefused,
        InvalidParameterValue, and LockLost or ExclusiveLockRequired.
        """
        account = self.account(task)
        with self.gateway.guard(account.address, task, write=True) as call:
            run = self._repeated if repeatable else self._work
            return run(account, task, call, lambda client, _: work(client.system(account)), secrets)

    def _repeated(
        self,
        account: Account,
        task: DriverTask,
        call: BmcCall,
        work: _Work[T],
        secrets: Sequence[str] = (),
    ) -> T:
        """Run ``work``, once more after silence or a 5xx if time is left; once on a suspect."""
        is_suspect = call.bmc.is_suspect
        try:
            return self._work(account, task, call, work, secrets)
        except (errors.BmcFailed, errors.BmcUnreachable) as exc:
            is_hopeless = isinstance(exc, errors.BmcLeftAlone | errors.BmcBusy)
            if is_suspect or is_hopeless or call.left_s() < self.conf.redfish.connect_timeout:
                raise
        return self._work(account, task, call, work, secrets)

    def _work(
        self,
        account: Account,
        task: DriverTask,
        call: BmcCall,
        work: _Work[T],
        secrets: Sequence[str],
    ) -> T:
        """Run ``work`` with the login of driver_info, or the node's other one (``passwords``)."""
        try:
            result = self._log_in(account, task, call, work, secrets)
        except (errors.BmcLoginRefused, errors.BmcLoginLeftAlone) as refusal:
            other = passwords.find_other(task, account)
            if other is None:
                raise
            try:
                result = self._log_in(other.account, task, call, work, secrets)
            except (errors.BmcLoginRefused, errors.BmcLoginLeftAlone):
                raise refusal from None
        call.bmc.showed(account.system)
        return result

    def at_root(
        self,
        task: DriverTask,
        account: Account,
        work: Callable[[Any], T],
        *,
        write: bool = False,
        secrets: Sequence[str] = (),
    ) -> T:
        """Let ``work`` use the service root with this login alone, even just after a refusal.

        Nothing is repeated, and nothing comes from the task's cache.
        """
        with self.gateway.guard(account.address, task, write=write) as call:
            return self._log_in(
                account, task, call, lambda client, _: work(client.root()), secrets, is_trial=True
            )

    def _log_in(
        self,
        account: Account,
        task: DriverTask,
        call: BmcCall,
        work: _Work[T],
        secrets: Sequence[str],
        *,
        is_trial: bool = False,
    ) -> T:
        from bloomery.drivers.redfish import refusals

        key = _key(account)
        login = self._enter(key, account)

        def hidden() -> tuple[str, ...]:
            return (*secrets, *(() if login.built is None else login.built.wire.secrets))

        try:
            with (
                login.one_at_a_time(task, call),
                self.gateway.login(call.bmc, key, task, insists=is_trial),
                refusals.translating(account, errors.name_of(task.node), hidden),
            ):
                client = login.client(self.conf)
                self._keep_connected(key, client.wire)
                try:
                    with client.wire.during(call, None if is_trial else task.reads):
                        return work(client, account)
                except Exception as exc:
                    client.doubt(exc)
                    raise
        finally:
            with self._mutex:
                login.users -= 1
                is_over = not login.users and not login.is_kept
            if is_over:
                self._give_back_soon(login)

    # ---------------------------------------------------------------------------- looks

    def look(self, task: DriverTask, former: Look | None) -> Look | None:
        """Return a look at the node's system by the login of earlier calls, None without one.

        Its login stays open until the look is closed.  See ``Power.look``.
        """
        from bloomery.drivers.redfish.look import RedfishLook

        account = self.working_account(task)
        key = _key(account)
        with self._mutex:
            login = self._watched.get(key) or self._logins.get(key)
            client = None if login is None else login.built
            if login is None or client is None or not client.wire.is_proven:
                return None
            path = client.path_of(account)
            if path is None:
                return None
            if isinstance(former, RedfishLook) and former.asks(client.wire, path):
                return former
            self._logins.pop(key, None)
            self._watched[key] = login
            login.looks += 1
        node = errors.name_of(task.node)
        return RedfishLook(self.gateway, client.wire, path, node, lambda: self._unwatch(key, login))

    def _unwatch(self, key: str, login: Login) -> None:
        """Return a login to those of the calls once its last look is closed."""
        with self._mutex:
            login.looks -= 1
            if not login.looks and self._watched.pop(key, None) is not None:
                self._logins[key] = login

    # --------------------------------------------------------------------------- logins

    def _enter(self, key: str, account: Account) -> Login:
        """Return the login of an account for one call; log out evicted idle logins."""
        most = self.conf.redfish.connection_cache_size
        with self._mutex:
            watched = self._watched.get(key)
            if watched is not None:
                watched.users += 1
                return watched
            login = self._logins.pop(key, None) or Login(account)
            login.users += 1
            if most:
                self._logins[key], login.is_kept = login, True
            evicted = [self._logins.popitem(last=False) for _ in range(len(self._logins) - most)]
            for _, old in evicted:
                old.is_kept = False
            idle = [old for _, old in evicted if not old.users]
        self._give_back_soon(*idle)
        return login

    def _keep_connected(self, key: str, wire: Wire) -> None:
        """Close the connections that are idle for too long, and those beyond the limit."""
        now, unused = self.gateway.clock(), []
        with self._mutex:
            self._connected.pop(key, None)
            while self._connected:  # the least recently used ones first
                oldest, old = next(iter(self._connected.items()))
                if len(self._connected) < self._most_connected and not old.is_expired(now):
                    break
                del self._connected[oldest]
                unused.append(old)
            self._connected[key] = wire
        for old in unused:
            old.hang_up()

    def _give_back_soon(self, *logins: Login) -> None:
        if not logins:
            return
        with self._mutex:
            if self._closers is None:
                self._closers = ThreadPoolExecutor(_CLOSERS, thread_name_prefix="bmc-logout")
            pending = [future for future in self._under_way if not future.done()]
            begun = [self._closers.submit(self._give_back, login) for login in logins]
            self._under_way = pending + begun

    def _give_back(self, login: Login) -> None:
        """Log out at a BMC, unless it is a suspect."""
        client = login.built
        if client is None:
            return
        bmc, clock = self.gateway.bmc(login.account.address), self.gateway.clock
        if bmc.is_suspect:
            client.forget(bmc)
            return
        try:
            client.give_back(BmcCall(bmc, "redfish", clock() + _GIVE_BACK_S, clock))
        except Exception as exc:  # noqa: BLE001  the BMC ends the session by itself later
            LOG.debug("no logout at %s: %s", bmc.address, type(exc).__name__)

    def close(self) -> None:
        """Log out everywhere, within a few seconds.

        Each interface calls it; further calls do nothing.
        """
        with self._mutex:
            logins = [*self._logins.values(), *self._watched.values()]
            self._logins.clear()
            self._watched.clear()
            self._connected.clear()
        for login in logins:
            login.is_kept = False
        self._give_back_soon(*logins)
        with self._mutex:
            closers, self._closers = self._closers, None
            under_way, self._under_way = self._under_way, []
        wait(under_way, timeout=_CLOSE_S)
        if closers is not None:
            closers.shutdown(wait=False, cancel_futures=True)


def _key(account: Account) -> str:
    return gateway.account_key(
        account.address, account.root, account.username, account.password, str(account.verify),
        account.auth_type, account.tls_minimum_version, account.tls_ciphers,
    )  # fmt: skip


_ACCESSES: Final = PerConf(Access)


def of(conf: Conf) -> Access:
    """Return the access that all interfaces of ``conf`` share; it lives as long as they do."""
    return _ACCESSES.of(conf)
