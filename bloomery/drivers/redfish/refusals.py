"""Translation of sushy's errors into ours, with advice.

Messages of BMCs are masked, because some repeat what they were sent.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from sushy import exceptions as sushy_errors

from bloomery import errors, secrets
from bloomery.drivers.bmc import gateway
from bloomery.drivers.redfish.driver_info import Account
from bloomery.drivers.redfish.session import LoginBusy
from bloomery.drivers.redfish.wire import basic_credential

LOG = logging.getLogger(__name__)

_ODD: Final = (AttributeError, KeyError, TypeError, ValueError)
_MOST_CHARS: Final = 600
_LEAST_SECRET: Final = 3  # shorter ones are parts of words
_BUSY: Final = re.compile(  # in a message of the BMC, or its id
    r"busy|in ?use\b|in ?progress|\b(task|job)\b.{0,80}\b(running|pending)\b"
    r"|(during|in) ?(the )?(system)? ?post\b",
    re.IGNORECASE,
)
_ENUM: Final = re.compile(r"<\w+\.\w+: '([^']*)'>|\b[A-Z]\w+\.([A-Z][A-Z0-9_]+)\b")


@contextmanager
def translating(
    account: Account,
    node: str,
    tokens: Callable[[], tuple[str, ...]] = tuple,
) -> Iterator[None]:
    """Raise one of our errors for any of sushy's.

    ``tokens`` returns the session tokens.  Raises BmcUnreachable, BmcLoginRefused, BmcRefused with
    the facts ``http_status`` and ``message_id`` where known, and InvalidParameterValue for what
    sushy refuses.
    """

    def failure(kind: type[errors.Failure], reason: str, **more: Any) -> errors.Failure:
        return kind(node=node, address=account.address, reason=reason, **more)

    def clean(words: object) -> str:
        return _clean(str(words), account, tokens())

    try:
        yield
    except sushy_errors.ConnectionError as exc:
        cut_short = getattr(exc, "was_cut_short", False)
        raise failure(errors.BmcUnreachable, clean(exc), was_cut_short=cut_short) from None
    except sushy_errors.HTTPError as exc:
        answer = f"HTTP {exc.status_code}" + (f": {clean(exc.detail)}" if exc.detail else "")
        kind, reason = _answer(exc, answer, account)
        raise failure(
            kind, reason, http_status=exc.status_code, message_id=clean(exc.code)
        ) from None
    except sushy_errors.UnknownDefaultError as exc:
        systems = clean(", ".join(exc.systems)) or "none"
        reason = f"it has not one system: set driver_info/redfish_system_id; there are: {systems}"
        raise failure(errors.BmcRefused, reason) from None
    except sushy_errors.InvalidParameterValueError as exc:
        reason = f"the BMC of node {node} at {account.address} does not offer it: "
        raise errors.InvalidParameterValue(reason=reason + _plain(clean(exc))) from None
    except sushy_errors.SushyError as exc:
        raise failure(errors.BmcRefused, _plain(clean(exc))) from None
    except json.JSONDecodeError:
        raise failure(errors.BmcUnreachable, "its answer is not JSON") from None
    except LoginBusy:
        raise gateway.login_busy(node, account.address) from None
    except _ODD as exc:
        reason = f"its answer makes no sense ({type(exc).__name__}: {clean(exc)})"
        LOG.debug("BMC %s: %s", account.address, reason)
        raise failure(errors.BmcUnreachable, reason) from None


def _clean(words: str, account: Account, tokens: tuple[str, ...]) -> str:
    hidden = [each for each in (*_secrets(account), *tokens) if len(each) >= _LEAST_SECRET]
    return " ".join(secrets.hide(words, hidden).split())[:_MOST_CHARS]


def _secrets(account: Account) -> tuple[str, ...]:
    if account.password is None:
        return ()
    basic = basic_credential(account.username or "", account.password)
    return (basic, account.password, " ".join(account.password.split()))


def _plain(words: str) -> str:
    """Replace sushy's enumerations by the BMC's values: Cd for <BootSource.CD: 'Cd'>."""
    plain = _ENUM.sub(lambda m: m[1] or m[2].title().replace("_", ""), words)
    return re.sub(r"[{}]", "", plain)


def _answer(exc: Any, answer: str, account: Account) -> tuple[type[errors.Failure], str]:
    """Return the error class and the reason for an HTTP status."""
    method, path = getattr(exc, "asked", ("", ""))
    match exc:
        case sushy_errors.AccessError() if getattr(exc, "login", False):
            return errors.BmcLoginRefused, (
                f"the user name or the password ({answer}): check driver_info/redfish_username and "
                "redfish_password"
            )
        case sushy_errors.AccessError():
            return errors.BmcRefused, (
                f"the user of driver_info/redfish_username may not do that ({answer})"
            )
        case sushy_errors.ResourceNotFoundError():
            return errors.BmcRefused, _missing(path, answer, account)
        case sushy_errors.MissingXAuthToken():
            return (
                errors.BmcRefused,
                "it gave no token for a session: set redfish_auth_type to basic",
            )
        case sushy_errors.HTTPError(status_code=409) if _is_busy(exc):
            return (
                errors.BmcRefused,
                f"it is busy and did not do it ({answer}): ask again when that has ended",
            )
        case sushy_errors.ServerSideError() if method == "GET" or _is_login(path):
            return errors.BmcUnreachable, f"it answers {answer}"
        case _:
            return errors.BmcRefused, answer


def _is_busy(exc: Any) -> bool:
    return _BUSY.search(f"{exc.code} {exc.detail} {exc.extended_info}") is not None


def _is_login(path: str) -> bool:
    return path.rstrip("/").endswith("/Sessions")


def _missing(path: str, answer: str, account: Account) -> str:
    """Return the reason for a 404, with the driver_info key where one names the document."""
    document = path.partition("?")[0].rstrip("/")
    if account.system is not None and document == account.system.rstrip("/"):
        return f"{answer}: check driver_info/redfish_system_id"
    if document == account.root.rstrip("/"):
        return f"{answer}: there is no Redfish at this address: check driver_info/redfish_address"
    return f"{answer}: it has no {document}" if document else answer
