"""sushy with limits; imported when the first BMC is called."""

from __future__ import annotations

import dataclasses
import json as json_codec
import logging
import urllib.parse
import zlib
from typing import Any, Final, TypeAlias

import sushy
from sushy import connector as sushy_connector
from sushy import exceptions as sushy_errors

from bloomery.conf import Conf
from bloomery.drivers.bmc.gateway import BmcCall
from bloomery.drivers.bmc.state import BmcState
from bloomery.drivers.redfish import reading
from bloomery.drivers.redfish.driver_info import Account
from bloomery.drivers.redfish.session import SessionAuth
from bloomery.drivers.redfish.wire import Answer, Wire

# sushy logs whole answers, secrets included; our errors carry the relevant part.
logging.getLogger("sushy").setLevel(logging.CRITICAL)

Json: TypeAlias = dict[str, Any]

_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_WANTS_ETAG: Final = (412, 428)
_CHANGE_FIRST: Final = "PasswordChangeRequired"  # part of a message id
_ODD: Final = (AttributeError, KeyError, TypeError, sushy_errors.MissingAttributeError)
_OBJECTS: Final = "sushy's objects"  # a key of the wire's ``reads``
_GPU_BOARD: Final = "/HGX_Baseboard_"  # in the path of a system that is part of its host
_ROOT: Final = ""  # a key of them, where systems have their path


class _Connector(sushy_connector.Connector):  # type: ignore[misc]
    """sushy's connector without its own waits and retries.

    A raised HTTPError has ``request``, (method, path), ``is_login_refused``, ``is_full``: whether
    it is for want of a session, and ``retry_after_s``.
    """

    def __init__(self, account: Account, wire: Wire) -> None:
        super().__init__(account.address, verify=account.verify, server_side_retries=1)
        self._session: Wire = wire

    def _op(self, method: str, path: str = "", *args: Any, **more: Any) -> Any:
        """Make a request; repeat it in a new session if the BMC forgot the old one."""
        credential = self._session.shows
        try:
            return self._once(method, path, *args, **more)
        except sushy_errors.AccessError as exc:
            # An AccessError with an old session may mean that the BMC forgot the session.
            is_gone = exc.is_login_refused or self._auth.is_old()
            if not (isinstance(credential, str) and is_gone):
                raise
        self._auth.renew(credential)
        return self._once(method, path, *args, **more)

    def _once(self, method: str, path: str, *args: Any, **more: Any) -> Any:
        more |= {"server_side_retries_left": 0, "allow_reauth": False}
        try:
            return super()._op(method, path, *args, **more)
        except sushy_errors.HTTPError as exc:
            answer = self._session.last
            exc.request, exc.retry_after_s = (method, path), answer and answer.retry_after_s
            exc.is_login_refused = self._is_login_refused(exc, answer)
            has_sessions = self._auth is not None  # None while the root document is read
            exc.is_full = exc.is_login_refused and has_sessions and self._auth.needs_session()
            raise

    def get(self, path: str = "", *args: Any, **more: Any) -> Any:
        """GET, with all pages of a collection, whose links sushy does not follow."""
        answer: Answer = super().get(path, *args, **more)
        if reading.NEXT_PAGE.encode() not in answer.content:
            return answer
        read = reading.whole(answer.json())
        document = reading.drive(read, lambda page: self.get_page(page).json())
        return dataclasses.replace(answer, content=json_codec.dumps(document).encode())

    def get_page(self, path: str) -> Any:
        return super().get(path)

    def patch(self, path: str = "", data: Any = None, **more: Any) -> Any:
        """PATCH; once more with the document's present ETag where the BMC asks for it."""
        try:
            return super().patch(path, data=data, **more)
        except sushy_errors.HTTPError as exc:
            if exc.status_code not in _WANTS_ETAG:
                raise
            tag = self._session.request("GET", urllib.parse.urljoin(self._url, path)).etag
            if tag is None:
                raise
        return super().patch(path, data=data, **more | {"etag": tag})

    def _is_login_refused(self, exc: Any, answer: Any) -> bool:
        """Return whether the credential is refused, and not only this request.

        A session, or the first document that needs a login, must be refused.  401 is also the
        answer of some BMCs to one action for which a right or a licence is missing.  A password
        that must be changed is the right one.
        """
        wire = self._session
        if _CHANGE_FIRST in str(exc):
            return False
        if wire.shows is None:
            return exc.status_code in (_UNAUTHORIZED, _FORBIDDEN)
        if exc.status_code == _FORBIDDEN:
            return isinstance(wire.shows, tuple) and not wire.is_proven
        return exc.status_code == _UNAUTHORIZED and not wire.still_opens(answer.url)


class RedfishClient:
    """A login at one BMC, shared by calls.

    Between calls it keeps connections and facts: the service root as compressed JSON, and the path
    of the only system.  sushy's objects live as long as the answers that they were parsed from: an
    attempt without writes.
    """

    __slots__ = ("_account", "_auth", "_connector", "_root", "_system", "wire")

    def __init__(self, account: Account, conf: Conf) -> None:
        self.wire = Wire(account, conf)
        self._account, self._auth = account, SessionAuth(account, self.wire)
        self._connector = _Connector(account, self.wire)
        self._root: bytes | None = None
        self._system: str | None = None

    def root(self) -> Any:
        """Return the service root, logged in; the BMC is asked for it once, and when in doubt."""
        kept = self._objects.get(_ROOT)
        if kept is not None:
            self._auth.authenticate()
            return kept
        url = urllib.parse.urljoin(self._account.address, self._account.root)
        document = self._root and zlib.decompress(self._root)
        try:
            root = self._parse_root(url, document)
        except sushy_errors.AccessError as refusal:
            root = self._parse_root(url, self._read_closed_root(url, refusal))
        if self._root is None:
            self._root = zlib.compress(json_codec.dumps(root.json).encode())
        self._objects[_ROOT] = root
        return root

    def _parse_root(self, url: str, document: bytes | None) -> Any:
        """Return sushy's root, logged in; from ``document`` where that is its document."""
        account = self._account
        with self.wire.knowing(url, document):
            return sushy.Sushy(
                account.address, root_prefix=account.root, connector=self._connector,
                auth=self._auth,
            )  # fmt: skip

    def _read_closed_root(self, url: str, refusal: Any) -> bytes:
        """Read a root that a BMC shows to users alone, against DSP0266, with the password.

        Raises the refusal where that is of a login, or stays.
        """
        account, wire = self._account, self.wire
        if refusal.request[0] != "GET" or wire.shows is not None or account.username is None:
            raise refusal
        wire.basic = (account.username, account.password or "")
        try:
            answer = wire.request("GET", url)
        finally:
            wire.basic = None
        if not answer.ok:
            raise refusal
        return answer.content

    def system(self, account: Account) -> Any:
        """Return a system, read anew in each attempt.  Within ``wire.during``."""
        root = self.root()
        path = self._path(account, root)
        system = self._objects.get(path)
        if system is None:
            system = root.get_system(path)
            self._objects[path] = system
        return system

    @property
    def _objects(self) -> dict[str, Any]:
        """The objects of this attempt; a write drops them, and another login has its own."""
        kept: tuple[Any, dict[str, Any]] = self.wire.reads.get(_OBJECTS, (None, {}))
        if kept[0] is not self:
            kept = self.wire.reads[_OBJECTS] = self, {}
        return kept[1]

    def document(self, account: Account) -> Json:
        """Read a system's document again: sushy would parse it whole.  Within ``wire.during``."""
        path = account.system or self._system
        if self._root is None or path is None:
            path = self._path(account, self.root())
        else:
            self._auth.authenticate()
        document: Json = self._connector.get(path).json()
        if not isinstance(document, dict) or "Id" not in document:
            raise sushy_errors.MissingAttributeError(attribute="Id", resource=path)
        return document

    def _path(self, account: Account, root: Any) -> str:
        if account.system is None and self._system is None:
            systems: tuple[str, ...] = root.get_system_collection().members_identities
            hosts = [path for path in systems if _GPU_BOARD not in path]
            if len(hosts) != 1:
                exc = sushy_errors.UnknownDefaultError(
                    entity="ComputerSystem", error="not one system"
                )
                exc.systems = systems
                raise exc
            self._system = hosts[0]
        return account.system or str(self._system)

    def path_of(self, account: Account) -> str | None:
        """Return the path of a system as far as it is known; asks no BMC."""
        return account.system or self._system

    def doubt(self, exc: BaseException) -> None:
        """Forget the root document, and the system's path, after errors that they may cause."""
        is_odd = isinstance(exc, _ODD)
        if is_odd:
            self._root = None
        if is_odd or isinstance(exc, sushy_errors.ResourceNotFoundError):
            self._system = None

    def give_back(self, call: BmcCall) -> None:
        """End the session at the BMC within the call's time."""
        with self.wire.during(call):
            self._auth.give_back()

    def forget(self, bmc: BmcState) -> None:
        """Leave the session to the BMC, which ends it later."""
        self._auth.forget(bmc)
