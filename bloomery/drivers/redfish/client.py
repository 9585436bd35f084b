"""sushy within bounds: the only module that knows it, loaded when the first BMC is asked.

Each request has what is left of its call's time, is made once (the gateway and the steps decide
what is repeated), stays with the BMC that it was meant for, and is timed.
"""

from __future__ import annotations

import logging
import ssl
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import requests
import sushy
from sushy import auth as sushy_auth
from sushy import connector as sushy_connector
from sushy import exceptions as sushy_errors

from bloomery import errors
from bloomery.conf.redfish import Redfish
from bloomery.drivers.bmc.gateway import Call
from bloomery.drivers.redfish.driver_info import Account

LOG = logging.getLogger(__name__)
# sushy logs whole answers, whatever is in them; what matters of them is in our errors.
logging.getLogger("sushy").setLevel(logging.CRITICAL)

_MOST_BYTES: Final = 32 << 20
_CHUNK: Final = 1 << 16
_PORTS: Final = {"http": 80, "https": 443}
_ODD: Final = (AttributeError, KeyError, TypeError, ValueError)
# What tells that a login is no good any more.
SPENT: Final = (
    AttributeError, sushy_errors.AccessError, sushy_errors.MissingAttributeError,
)  # fmt: skip


class Wire(requests.Session):
    """The requests to one BMC.  ``during`` says which call a thread's requests belong to."""

    def __init__(self, origin: str, conf: Redfish) -> None:
        super().__init__()
        self.trust_env = False  # neither proxies nor .netrc are meant for BMCs
        self._origin, self._conf = _origin(origin), conf
        self._mine = threading.local()

    @contextmanager
    def during(self, call: Call) -> Iterator[None]:
        self._mine.call = call
        try:
            yield
        finally:
            del self._mine.call

    def request(self, method: Any, url: Any, *args: Any, **more: Any) -> requests.Response:
        """Make one request within the time that is left of the call."""
        call: Call = self._mine.call
        self._stay(url)
        left_s = call.left_s()
        if left_s <= 0:
            raise requests.ReadTimeout("no time is left")
        more["timeout"] = (
            min(self._conf.connect_timeout, left_s),
            min(self._conf.read_timeout, left_s),
        )
        began_at = call.clock()
        answer = super().request(method, url, *args, **more | {"stream": True})
        with answer:
            answer._content = _read(answer, call)  # noqa: SLF001
        took_s = call.clock() - began_at
        call.took(took_s)
        LOG.debug("%s %s: %s in %.3f s", method, url, answer.status_code, took_s)
        _require_no_page(answer)
        if answer.is_redirect:
            raise requests.exceptions.InvalidURL(f"redirected to {answer.headers['Location']}")
        return answer

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Follow within the BMC only: what is sent carries a password or a token."""
        target = super().get_redirect_target(resp)
        if target is None:
            return None
        absolute = urllib.parse.urljoin(str(resp.url), target)
        return target if _origin(absolute) == self._origin else None

    def _stay(self, url: str) -> None:
        if _origin(url) != self._origin:
            raise requests.exceptions.InvalidURL(
                f"it points to {urllib.parse.urlsplit(url).netloc}"
            )


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


def _require_no_page(answer: requests.Response) -> None:
    """A page that says "please wait" is no answer, whatever its status: nothing was done."""
    if answer.ok and answer.content and "html" in answer.headers.get("Content-Type", ""):
        raise requests.exceptions.ContentDecodingError("its answer is not JSON")


def _read(answer: requests.Response, call: Call) -> bytes:
    """Read the body; one that drips, or never ends, is given up."""
    body = bytearray()
    for chunk in answer.iter_content(_CHUNK):
        body += chunk
        if call.left_s() <= 0:
            raise requests.ReadTimeout("no time is left")
        if len(body) > _MOST_BYTES:
            raise requests.ConnectionError(f"an answer of more than {_MOST_BYTES >> 20} MiB")
    return bytes(body)


class _Connector(sushy_connector.Connector):  # type: ignore[misc]
    """Without the waits and repetitions of its own, which nobody could bound."""

    def __init__(self, account: Account, wire: Wire) -> None:
        super().__init__(
            account.address,
            verify=account.verify,
            server_side_retries=1,
            tls_min_version=account.tls_minimum_version,
            tls_ciphers=account.tls_ciphers,
        )
        made: requests.Session = self._session  # type: ignore[has-type]
        wire.headers.update(made.headers)
        wire.adapters = made.adapters
        self._session = wire

    def _op(self, *args: Any, **more: Any) -> Any:
        return super()._op(*args, **more | {"server_side_retries_left": 0})


class _OneLogin:
    """Two threads that find their session gone log in one after the other."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._one_at_a_time = threading.RLock()

    def authenticate(self) -> None:
        with self._one_at_a_time:
            super().authenticate()  # type: ignore[misc]

    def refresh_session(self) -> None:
        with self._one_at_a_time:
            super().refresh_session()  # type: ignore[misc]

    def close(self) -> None:
        """Leave the session to its time-out: this is called whenever the object is collected."""


class _Auto(_OneLogin, sushy_auth.SessionOrBasicAuth):  # type: ignore[misc]
    pass


class _Session(_OneLogin, sushy_auth.SessionAuth):  # type: ignore[misc]
    pass


class _Basic(_OneLogin, sushy_auth.BasicAuth):  # type: ignore[misc]
    pass


class _Open(_OneLogin, sushy_auth.AuthBase):  # type: ignore[misc]
    """For a node without a user name: nothing is shown to the BMC."""

    def _do_authenticate(self) -> None:
        """There is nothing to log in with."""

    def can_refresh_session(self) -> bool:
        return False


_AUTH: Final[dict[str, Any]] = {"auto": _Auto, "session": _Session, "basic": _Basic}


class Client:
    """A login at one BMC; built within a call, used by many."""

    def __init__(self, account: Account, conf: Redfish, call: Call) -> None:
        self.wire = Wire(account.address, conf)
        self.connector = _Connector(account, self.wire)
        kind = _Open if account.username is None else _AUTH[account.auth_type]
        auth = kind(account.username, account.password or "")
        with self.wire.during(call):
            self.root = sushy.Sushy(
                account.address,
                root_prefix=account.root,
                connector=self.connector,
                auth=auth,
            )

    def system(self, account: Account) -> Any:
        """Read a system anew.  Within ``wire.during``."""
        return self.root.get_system(account.system)


# ------------------------------------------------------------------------------------- errors


@contextmanager
def translating(account: Account, node: str, conf: Redfish) -> Iterator[None]:
    """Raise BmcUnreachable or BmcRefused for whatever sushy and requests raise.

    A BmcRefused has the facts ``http_status`` and ``message_id`` where the BMC gave them.
    """

    def said(kind: type[errors.Failure], reason: str, **more: Any) -> errors.Failure:
        return kind(node=node, address=account.address, reason=reason, **more)

    def clean(words: object) -> str:
        return _clean(str(words), account)

    try:
        yield
    except sushy_errors.ConnectionError as exc:
        raise said(errors.BmcUnreachable, _silence(exc, conf, clean)) from None
    except sushy_errors.HTTPError as exc:
        told = f"HTTP {exc.status_code}" + (f": {clean(exc.detail)}" if exc.detail else "")
        raise said(*_answer(exc, told), http_status=exc.status_code, message_id=exc.code) from None
    except sushy_errors.UnknownDefaultError:
        reason = "it has more than one system, or none: set driver_info/redfish_system_id"
        raise said(errors.BmcRefused, reason) from None
    except sushy_errors.SushyError as exc:
        raise said(errors.BmcRefused, clean(exc)) from None
    except requests.JSONDecodeError:
        raise said(errors.BmcUnreachable, "its answer is not JSON") from None
    except TimeoutError as exc:
        raise said(errors.BmcUnreachable, str(exc)) from None
    except (requests.RequestException, *_ODD) as exc:
        LOG.debug("odd answer of %s", account.address, exc_info=True)
        reason = f"its answer makes no sense ({type(exc).__name__}: {clean(exc)})"
        raise said(errors.BmcUnreachable, reason) from None


def _clean(words: str, account: Account) -> str:
    """What a BMC says, in one line; one that repeats a password must not spread it."""
    secret = account.password
    shown = " ".join(words.split())[:600]
    return shown.replace(secret, "***") if secret and len(secret) > 2 else shown


def _silence(exc: BaseException, conf: Redfish, clean: Callable[[object], str]) -> str:
    """Say in a few words why there was no answer."""
    cause = exc.__context__
    match cause:
        case requests.exceptions.SSLError():
            return (
                f"TLS refused: {clean(_innermost(cause))}; set driver_info/redfish_verify_ca to "
                "the CA of its certificate, or to false"
            )
        case requests.ConnectTimeout():
            return f"no connection within {conf.connect_timeout} s"
        case requests.ReadTimeout():
            return f"it accepted the connection and gave no answer within {conf.read_timeout} s"
        case requests.exceptions.InvalidURL():
            return f"its answer leads away from this BMC: {clean(cause)}"
        case requests.exceptions.ChunkedEncodingError():
            return f"its answer broke off ({clean(_innermost(cause))})"
        case None:
            return clean(exc)
        case _:
            return clean(_innermost(cause))


def _innermost(exc: BaseException) -> str:
    """The words of the error that the others wrap."""
    seen = exc
    for _ in range(8):
        wrapped = (getattr(seen, "reason", None), *seen.args, seen.__context__)
        inside = next((e for e in wrapped if isinstance(e, BaseException)), None)
        if inside is None:
            break
        seen = inside
    if isinstance(seen, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {seen.verify_message}"
    return str(getattr(seen, "strerror", None) or seen) or type(seen).__name__


def _answer(exc: Any, told: str) -> tuple[type[errors.Failure], str]:
    """Which error an HTTP status stands for, and what it says."""
    match exc:
        case sushy_errors.AccessError():
            return errors.BmcRefused, (
                f"the user name or the password ({told}): check driver_info/redfish_username and "
                "redfish_password"
            )
        case sushy_errors.ResourceNotFoundError():
            return errors.BmcRefused, f"{told}: check driver_info/redfish_system_id"
        case sushy_errors.ServerSideError() if "HTTP GET " in str(exc):
            return errors.BmcUnreachable, f"it answers {told}"
        case _:
            return errors.BmcRefused, told
