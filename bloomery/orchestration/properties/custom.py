"""Custom constraints: checks that templates call by name, found through entry points.

A check is a function of the value and of a ``ConstraintContext`` that says why it refuses the
value, or None.  A site adds its own under ``bloomery.constraints`` in its package's entry points::

    ip_addr = bloomery.orchestration.properties.custom:ip_addr

As in Heat, the checks of DNS names, cron expressions, time zones, JSON and expirations accept empty
text as "not set".
"""

from __future__ import annotations

import datetime as dt
import functools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import stevedore
from oslo_utils import timeutils

from bloomery.orchestration.limits import LIMITS, Limits

GROUP: Final = "bloomery.constraints"

_LABEL: Final = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)")
_NAME_CHARS: Final = 255  # RFC 1035, 2.3.4


class Check(Protocol):
    def __call__(self, value: Any, context: ConstraintContext) -> str | None: ...


def find(name: str) -> Check | None:
    """Return the check called ``name``, or None if no package has it."""
    return _checks().get(name)


def offer(name: str, check: Check) -> None:
    """Add or replace a check; call it before a template is read."""
    _checks()[name] = check


def names() -> list[str]:
    """Return the names of all installed checks."""
    return sorted(_checks())


@functools.cache
def _checks() -> dict[str, Check]:
    manager: Any = stevedore.ExtensionManager(GROUP, invoke_on_load=False)
    return {extension.name: extension.plugin for extension in manager}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstraintContext:
    """The context of constraints.  ``service``: for custom ones; ``now``: the time, with a zone."""

    limits: Limits = LIMITS
    find: Callable[[str], Check | None] = find
    service: Any = None
    now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC)


CONSTRAINT_CONTEXT: Final = ConstraintContext()


class _TextCheck(Protocol):
    def __call__(self, text: str, context: ConstraintContext) -> str | None: ...


def _of_text(check: _TextCheck) -> Check:
    """Refuse values that are no text, or too long (custom_text_chars), before ``check``."""

    @functools.wraps(check)
    def checked(value: Any, context: ConstraintContext) -> str | None:
        if not isinstance(value, str):
            return "it must be text"
        most = context.limits.custom_text_chars
        if len(value) > most:
            return f"it has more than {most} characters (custom_text_chars)"
        return check(value, context)

    return checked


@_of_text
def ip_addr(text: str, context: ConstraintContext) -> str | None:
    return None if _is_address(text) else "write an address such as 192.0.2.7 or 2001:db8::7"


@_of_text
def mac_addr(text: str, context: ConstraintContext) -> str | None:
    import netaddr

    return None if netaddr.valid_mac(text) else "write an address such as 52:54:00:12:34:56"


@_of_text
def net_cidr(text: str, context: ConstraintContext) -> str | None:
    return None if _is_network(text) else "write a network such as 192.0.2.0/24 or 2001:db8::/32"


@_of_text
def ip_or_cidr(text: str, context: ConstraintContext) -> str | None:
    if _is_address(text) or _is_network(text):
        return None
    return "write an address such as 192.0.2.7 or a network such as 192.0.2.0/24"


def _is_address(text: str) -> bool:
    import netaddr

    return bool(netaddr.valid_ipv4(text, netaddr.INET_PTON) or netaddr.valid_ipv6(text))


def _is_network(text: str) -> bool:
    """Return whether ``text`` is an address with a prefix length; host bits may be set."""
    address, slash, prefix = text.partition("/")
    if not (slash and prefix.isascii() and prefix.isdigit() and _is_address(address)):
        return False
    return len(prefix) <= 3 and int(prefix) <= (128 if ":" in address else 32)


@_of_text
def dns_name(text: str, context: ConstraintContext) -> str | None:
    return _name_fault(text) if text else None


@_of_text
def rel_dns_name(text: str, context: ConstraintContext) -> str | None:
    if text.endswith("."):
        return "a relative name has no dot at its end"
    return _name_fault(text) if text else None


@_of_text
def dns_domain(text: str, context: ConstraintContext) -> str | None:
    if not text:
        return None
    if not text.endswith("."):
        return "a domain ends with a dot"
    if text.split(".")[-2].isdigit():
        return "the last label of a domain is not only digits"
    return _name_fault(text)


def _name_fault(text: str) -> str | None:
    if len(text) > _NAME_CHARS:
        return f"a name has {_NAME_CHARS} characters at most"
    for label in text.removesuffix(".").split("."):
        if not _LABEL.fullmatch(label):
            return f"{label!r} is no label of a name: 1 to 63 of a-z, 0-9 and -, no - at either end"
    return None


@_of_text
def cron_expression(text: str, context: ConstraintContext) -> str | None:
    import croniter

    try:
        if text:
            croniter.croniter.expand(text)
    except croniter.CroniterError as exc:
        return str(exc)
    return None


@_of_text
def timezone(text: str, context: ConstraintContext) -> str | None:
    import zoneinfo

    try:
        if text:
            zoneinfo.ZoneInfo(text)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return "write the name of a time zone such as Europe/Berlin"
    return None


@_of_text
def json_string(text: str, context: ConstraintContext) -> str | None:
    try:
        if text:
            json.loads(text)
    except ValueError as exc:
        return str(exc)
    except RecursionError:
        return "it is nested too deep"
    return None


@_of_text
def iso_8601(text: str, context: ConstraintContext) -> str | None:
    return _NO_TIME if _time(text) is None else None


@_of_text
def expiration(text: str, context: ConstraintContext) -> str | None:
    if not text:
        return None
    at = _time(text)
    if at is None:
        return _NO_TIME
    return None if at > context.now() else "the time has passed"


_NO_TIME: Final = "write a time such as 2030-12-31T12:00:00Z"


def _time(text: str) -> dt.datetime | None:
    """Return the time in ``text``, in UTC if it names no zone, or None."""
    try:
        return timeutils.parse_isotime(text)
    except ValueError:
        return None
