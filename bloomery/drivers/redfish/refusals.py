"""Translation of sushy's errors into ours, with advice.

Messages of BMCs are masked, because some repeat what they were sent.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from sushy import exceptions as sushy_errors

from bloomery import errors, fetching, parsing, secrets
from bloomery.drivers.bmc import gateway
from bloomery.drivers.bmc.meanings import CONSEQUENCES, Meaning
from bloomery.drivers.redfish import shapes
from bloomery.drivers.redfish.driver_info import Account
from bloomery.drivers.redfish.session import LoginBusy
from bloomery.drivers.redfish.wire import basic_credential

LOG = logging.getLogger(__name__)

_MOST_CHARS: Final = 600
_LEAST_SECRET: Final = 3  # shorter ones are parts of words
_ENUM: Final = re.compile(r"<\w+\.\w+: '([^']*)'>|\b[A-Z]\w+\.([A-Z][A-Z0-9_]+)\b")


class _Rule(NamedTuple):
    """The answers with a meaning: statuses, and a pattern of ids or messages."""

    meaning: Meaning
    statuses: Collection[int]
    pattern: str = ""


_ALL: Final = range(400, 600)
_RULES: Final = (  # the first match counts
    _Rule(Meaning.PASSWORD_CHANGE, _ALL, r"PasswordChangeRequired|password.{0,80} must be changed"),
    _Rule(Meaning.LOCKDOWN, _ALL, r"lock ?down"),
    _Rule(Meaning.LICENCE, _ALL, r"licen[cs]e|\bLIC\d{3}\b"),
    _Rule(
        Meaning.IN_POST, _ALL,
        r"DuringSystemPOST|InvalidOperationForSystemState|(during|in) ?(the )?(system )?post\b",
    ),
    _Rule(Meaning.BUSY, _ALL, r"\bSYS518\b|ServiceTemporarilyUnavailable"),
    _Rule(
        Meaning.BUSY, (409, 503),
        r"busy|in ?use\b|in ?progress|\b(task|job)\b.{0,80}\b(running|pending)\b",
    ),
    _Rule(Meaning.BUSY, (423, 429)),
    _Rule(Meaning.RIGHT, (401, 403)),
    _Rule(Meaning.GONE, (404, 410)),
    _Rule(Meaning.UNSUPPORTED, (405, 501)),
    _Rule(Meaning.UNSUPPORTED, (400,), r"(Action|Property|Query|Operation)\w*NotSupported"),
    _Rule(Meaning.FAILED, range(500, 600)),
    _Rule(Meaning.REFUSED, _ALL),
)  # fmt: skip


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

    def clean(text: object) -> str:
        own: tuple[str, ...] = ()
        if account.password is not None:
            basic = basic_credential(account.username or "", account.password)
            own = (basic, account.password, " ".join(account.password.split()))
        hidden = [each for each in (*own, *tokens()) if len(each) >= _LEAST_SECRET]
        return " ".join(secrets.hide(str(text), hidden).split())[:_MOST_CHARS]

    try:
        yield
    except sushy_errors.ConnectionError as exc:
        cut_short = getattr(exc, "was_cut_short", False)
        raise failure(errors.BmcUnreachable, clean(exc), was_cut_short=cut_short) from None
    except sushy_errors.MissingXAuthToken:
        reason = "it gave no token for a session: set redfish_auth_type to basic"
        raise failure(errors.BmcRefused, reason) from None
    except sushy_errors.HTTPError as exc:
        raise _refusal(exc, failure, clean, account) from None
    except sushy_errors.UnknownDefaultError as exc:
        systems = clean(", ".join(exc.systems)) or "none"
        reason = f"it has not one system: set driver_info/redfish_system_id; there are: {systems}"
        raise failure(errors.BmcRefused, reason) from None
    except sushy_errors.InvalidParameterValueError as exc:
        reason = f"the BMC of node {node} at {account.address} does not offer it: "
        raise errors.InvalidParameterValue(reason=reason + _without_enums(clean(exc))) from None
    except sushy_errors.SushyError as exc:
        text = clean(exc)
        raise failure(errors.BmcRefused, shapes.lacking(text) or _without_enums(text)) from None
    except json.JSONDecodeError:
        raise failure(errors.BmcUnreachable, "its answer is not JSON") from None
    except parsing.TooMuch as exc:
        raise failure(errors.BmcUnreadable, f"cannot read its answer: {exc}") from None
    except LoginBusy:
        raise gateway.login_busy(node, account.address) from None
    except shapes.ODD as exc:
        LOG.debug("BMC %s: %s", account.address, clean(secrets.trace(exc)))
        [odd] = getattr(exc, "__notes__", ())[-1:] or (shapes.describe(()),)
        raise failure(errors.BmcUnreadable, clean(odd)) from None


def _without_enums(text: str) -> str:
    """Replace sushy's enumerations by the BMC's values: Cd for <BootSource.CD: 'Cd'>."""
    text = _ENUM.sub(lambda m: m[1] or m[2].title().replace("_", ""), text)
    return re.sub(r"[{}]", "", text)


def _refusal(
    exc: Any,
    failure: Callable[..., errors.Failure],
    clean: Callable[[object], str],
    account: Account,
) -> errors.Failure:
    """Return our error for an HTTPError of ``client``, which has noted the request.

    The error of a 404 names the driver_info key that names the document.
    """
    info, (method, path) = exc.extended_info or (), exc.request
    ids = [str(each["MessageId"]) for each in info if each.get("MessageId")]
    messages = [str(each["Message"]) for each in info if each.get("Message")]
    ids.append(str(exc.code))  # the specific ones come first
    meaning = _meaning(exc, " ".join((*ids, *messages, str(exc.detail or ""))))
    answer = f"HTTP {exc.status_code}" + (f": {clean(exc.detail)}" if exc.detail else "")
    kind, reason = CONSEQUENCES[meaning]
    facts: dict[str, Any] = {
        "http_status": exc.status_code, "message_id": clean(ids[0]), "meaning": str(meaning),
    }  # fmt: skip
    if meaning is Meaning.FAILED and (method == "GET" or path.rstrip("/").endswith("/Sessions")):
        return failure(errors.BmcUnreachable, f"it answers {answer}", **facts)
    if kind is errors.BmcPasswordChangeRequired:
        facts["account"] = next(iter(_accounts(info)), None)
    if kind is errors.BmcBusy:
        facts["cause"] = answer
        if exc.retry_after_s is not None:
            facts["retry_after_s"] = exc.retry_after_s
    if meaning is Meaning.GONE:
        document = path.partition("?")[0].rstrip("/")
        if account.system is not None and document == account.system.rstrip("/"):
            kind, facts["system"] = errors.BmcSystemAbsent, account.system
            answer += (
                f": it has no {document}: see whether its tray is in place, or check "
                "driver_info/redfish_system_id"
            )
        elif document == account.root.rstrip("/"):
            answer += ": there is no Redfish at this address: check driver_info/redfish_address"
        elif document:
            answer += f": it has no {document}"
    user, password = "redfish_username", "redfish_password"
    return failure(kind, reason.format(answer=answer, user=user, password=password), **facts)


def _accounts(info: Iterable[Any]) -> Iterator[str]:
    """Yield the paths of accounts that messages name.  Source: DSP0266, password change."""
    for each in info:
        for argument in each.get("MessageArgs") or ():
            path = fetching.path_of(str(argument))
            if path is not None and "/Accounts/" in path:
                yield path


def _meaning(exc: Any, text: str) -> Meaning:
    if exc.is_full:
        return Meaning.FULL
    meaning = next(
        rule.meaning
        for rule in _RULES
        if exc.status_code in rule.statuses and re.search(rule.pattern, text, re.IGNORECASE)
    )
    if exc.is_login_refused and meaning is Meaning.RIGHT:
        return Meaning.LOGIN
    if exc.retry_after_s is not None and meaning in (Meaning.FAILED, Meaning.REFUSED):
        return Meaning.BUSY
    return meaning
