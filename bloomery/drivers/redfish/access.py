"""The way from an interface to a system behind a BMC: login, guard, errors.

One login per account is kept, the oldest one is dropped when there are too many; a login that
the BMC no longer honours is dropped at once.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from bloomery import errors
from bloomery.conf import Conf
from bloomery.drivers.base import HeldNode
from bloomery.drivers.bmc import gateway
from bloomery.drivers.bmc.gateway import Bmc, Call
from bloomery.drivers.redfish import driver_info
from bloomery.drivers.redfish.driver_info import Account
from bloomery.drivers.shared import Shared

if TYPE_CHECKING:
    from bloomery.drivers.redfish.client import Client

T = TypeVar("T")
Key = tuple[str, ...]

_SALT: Final = secrets.token_bytes(16)


class Login:
    """One account's client, built by whoever comes first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._client: Client | None = None

    def client(self, account: Account, conf: Conf, call: Call) -> Client:
        """Return the client; wait for whoever is logging in, as long as the call has time."""
        from bloomery.drivers.redfish import client

        if not self._lock.acquire(timeout=max(call.left_s(), 0)):
            raise TimeoutError("another call is logging in")
        try:
            if self._client is None:
                self._client = client.Client(account, conf.redfish, call)
            return self._client
        finally:
            self._lock.release()


class Access:
    """What the redfish interfaces of one configuration share."""

    def __init__(self, conf: Conf) -> None:
        self.conf = conf
        self.gateway = gateway.of(conf)
        self._mutex = threading.Lock()
        self._logins: OrderedDict[Key, Login] = OrderedDict()

    def account(self, held: HeldNode) -> Account:
        """Raises MissingParameterValue and InvalidParameterValue."""
        return driver_info.parse(held.driver_info, self.conf.redfish)

    def bmc(self, held: HeldNode) -> Bmc:
        """Return what is known of the node's BMC."""
        return self.gateway.bmc(self.account(held).address)

    def read(self, held: HeldNode, work: Callable[[Any], T]) -> T:
        """Return what ``work`` reads of the node's system, which was just read anew.

        A read that fails is tried once more while its time lasts.
        Raises BmcUnreachable, BmcRefused.
        """
        account = self.account(held)
        with self.gateway.guard(account.address, held, write=False) as call:
            return self._repeated(account, held, call, work)

    def change(self, held: HeldNode, work: Callable[[Any], T], *, repeatable: bool = False) -> T:
        """Let ``work`` change the node's system.

        It is asked once, as nobody knows what became of it, unless it is ``repeatable``: done
        twice, it lands in the same place.  Then silence and a 5xx are answered as in ``read``.
        Raises BmcUnreachable, BmcRefused, and what tells that the node is not ours.
        """
        account = self.account(held)
        with self.gateway.guard(account.address, held, write=True) as call:
            if repeatable:
                return self._repeated(account, held, call, work)
            return self._work(account, held, call, work)

    def _repeated(
        self, account: Account, held: HeldNode, call: Call, work: Callable[[Any], T]
    ) -> T:
        """Do the work, once more if it failed and time is left; a suspect is asked once."""
        suspect = call.bmc.breaker.failures > 0
        try:
            return self._work(account, held, call, work)
        except (errors.BmcUnreachable, errors.BmcRefused) as exc:
            enough_s = self.conf.redfish.connect_timeout
            if suspect or not _may_help(exc) or call.left_s() < enough_s:
                raise
        return self._work(account, held, call, work)

    def _work(self, account: Account, held: HeldNode, call: Call, work: Callable[[Any], T]) -> T:
        from bloomery.drivers.redfish import client

        key = _key(account)
        with client.translating(account, held.node.uuid, self.conf.redfish):
            try:
                found = self._login(key).client(account, self.conf, call)
                with found.wire.during(call):
                    return work(found.system(account))
            except client.SPENT:
                self._drop(key)
                raise

    def _login(self, key: Key) -> Login:
        with self._mutex:
            found = self._logins.pop(key, None) or Login()
            if self.conf.redfish.connection_cache_size:
                self._logins[key] = found
            while len(self._logins) > self.conf.redfish.connection_cache_size:
                self._logins.popitem(last=False)
            return found

    def _drop(self, key: Key) -> None:
        with self._mutex:
            self._logins.pop(key, None)


def _may_help(exc: errors.Failure) -> bool:
    """Tell whether asking again may help: it was silent, or it broke."""
    is_silent = isinstance(exc, errors.BmcUnreachable)
    return is_silent or (exc.facts.get("http_status") or 0) >= 500


def _key(account: Account) -> Key:
    """Tell accounts apart without keeping their passwords."""
    word = hmac.new(_SALT, (account.password or "").encode(), hashlib.sha256).hexdigest()
    return (
        account.address, account.root, account.username or "", word, str(account.verify),
        account.auth_type, account.tls_minimum_version or "", account.tls_ciphers or "",
    )  # fmt: skip


_ACCESSES: Final = Shared(Access)


def of(conf: Conf) -> Access:
    """Return the access that all interfaces built from ``conf`` share; it lives as they do."""
    return _ACCESSES.of(conf)
