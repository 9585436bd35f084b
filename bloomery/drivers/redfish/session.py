"""Login to a BMC: one session per account, or basic authentication where there are no sessions.

A wrong password is sent once: a refusal is raised and not followed by another method.  A lost
session is opened again once for all threads.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Final

from sushy import auth as sushy_auth
from sushy import exceptions as sushy_errors

from bloomery import fetching
from bloomery.drivers.bmc.state import BmcState
from bloomery.drivers.redfish.driver_info import Account
from bloomery.drivers.redfish.wire import Answer, Wire

_LIMIT: Final = "SessionLimitExceeded"
_NO_SESSIONS: Final = (400, 404, 405, 500, 501, 503)  # statuses after which the password is used
_FULL: Final = (500, 503)  # those that may be temporary
_RETRY_S: Final = 3600.0  # before another try to open a session; the age of an old one


class LoginBusy(Exception):
    """Another call is logging in, and this call has no time left."""


class SessionAuth(sushy_auth.AuthBase):  # type: ignore[misc]
    """The authentication of one account; sushy calls it, ``wire`` makes the requests."""

    def __init__(self, account: Account, wire: Wire) -> None:
        super().__init__(account.username, account.password or "")
        self._account, self._wire = account, wire
        self._one_at_a_time = threading.Lock()
        self._sessions_path = ""
        self._session: str | None = None
        self._since = 0.0
        self._was_full = False
        self._needs_session = False  # no basic authentication is taken

    def set_context(self, root: Any, connector: Any) -> None:
        """Keep the path of the sessions instead of the root, which lives as long as one call."""
        connector.set_auth(self)
        self._connector = connector
        sessions = (root.json.get("Links") or {}).get("Sessions") or {}
        path: str | None = sessions.get("@odata.id")
        self._sessions_path = path or f"{self._account.root}SessionService/Sessions"

    def authenticate(self) -> None:
        """Log in after a failed login; retry a session where the BMC had none free."""
        wire = self._wire
        now = wire.call.clock()
        if wire.shows is None and self._account.username is not None:
            self.renew(None)
        elif self._was_full and now - self._since > _RETRY_S:
            self.renew(wire.shows)

    def _do_authenticate(self) -> None:
        """Do nothing: ``authenticate`` does it all."""

    def can_refresh_session(self) -> bool:
        """Return False: the connector calls ``renew`` itself."""
        return False

    def needs_session(self) -> bool:
        """Return whether the password was refused at a BMC that had no session free.

        It says nothing of the password, which is then not sent without a session again.
        """
        if not self._was_full or self._wire.is_proven:
            return False
        self._needs_session, self._wire.basic = True, None
        return True

    def is_old(self) -> bool:
        """Whether the session is so old that the BMC may have ended it."""
        return self._wire.call.clock() - self._since > _RETRY_S

    def renew(self, spent: Any) -> None:
        """Log in, unless another thread has since ``spent`` was used.

        Raises AccessError when the login is refused; ``ready`` makes the next one.  Raises
        LoginBusy when the other thread takes longer than this call may.
        """
        wait_s = max(self._wire.call.left_s(), 0)
        if not self._one_at_a_time.acquire(timeout=wait_s):
            raise LoginBusy
        try:
            if self._wire.shows == spent and self._account.username is not None:
                self._log_in()
        finally:
            self._one_at_a_time.release()

    def _log_in(self) -> None:
        wire = self._wire
        self.forget(wire.call.bmc)
        wire.basic = self._session = None
        wire.is_proven = self._was_full = False
        password = (self._username, self._password)
        self._since = wire.call.clock()
        if self._account.auth_type == "basic":
            wire.basic = password
            return
        try:
            with wire.bare():
                self._open_session()
        except sushy_errors.HTTPError as exc:
            is_limited = _LIMIT in str(exc)
            has_no_session = is_limited or isinstance(exc, sushy_errors.MissingXAuthToken)
            if self._account.auth_type != "auto" or not (
                has_no_session or exc.status_code in _NO_SESSIONS
            ):
                raise
            self._was_full = exc.status_code in _FULL or is_limited
            if self._was_full and self._needs_session:
                exc.is_full = True
                raise
            wire.basic = password

    def _open_session(self) -> None:
        """Open a session at the BMC.  Source: DSP0266, session login."""
        url = self._sessions_path
        answer: Answer = self._connector.post(
            url, data={"UserName": self._username, "Password": self._password}
        )
        token = answer.headers.get("X-Auth-Token")
        if token is None:
            raise sushy_errors.MissingXAuthToken(method="POST", url=url, response=answer)
        location = answer.headers.get("Location")
        if not location:
            with contextlib.suppress(ValueError, AttributeError):
                location = answer.json().get("@odata.id")
        self._session = fetching.path_of(str(location)) if location else None
        self._wire.token = token
        self._wire.call.bmc.count_sessions(1)

    def give_back(self) -> None:
        """End the session at the BMC, if any.  Within ``wire.during``; raises nothing.

        The request is sent once, without a new session.
        """
        session, self._session = self._session, None
        if session is not None and self._wire.token is not None:
            with contextlib.suppress(sushy_errors.SushyError):
                self._connector._once("DELETE", session)  # noqa: SLF001
        self.forget(self._wire.call.bmc)
        self._wire.hang_up()

    def forget(self, bmc: BmcState) -> None:
        """Drop the token; the BMC may end the session by itself later."""
        if self._wire.token is not None:
            self._wire.token = None
            bmc.count_sessions(-1)

    def close(self) -> None:
        """Keep the session: sushy calls this whenever the root object is collected."""
