"""The reason why a BMC gave no answer, with advice."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from http.client import RemoteDisconnected
from typing import Final, NamedTuple

from sushy import exceptions as sushy_errors
from urllib3 import exceptions as urllib3_errors

from bloomery import fetching
from bloomery.conf.drivers import Redfish
from bloomery.fetching import ONLY_TLS, PLAIN_HTTP

_TLS_ADVICE: Final = {  # parts of OpenSSL's messages: the option that helps
    ("UNSUPPORTED_PROTOCOL", "PROTOCOL_VERSION", "NO_PROTOCOLS_AVAILABLE"): (
        "it has another TLS version: set driver_info/redfish_tls_minimum_version to 1.1 for an old "
        "BMC, with redfish_tls_ciphers DEFAULT:@SECLEVEL=0, or update its firmware"
    ),
    (
        "HANDSHAKE_FAILURE", "NO_CIPHER", "NO_SHARED_CIPHER", "KEY_TOO_SMALL", "MD_TOO_WEAK",
        "KEY_TOO_WEAK", "WRONG_SIGNATURE_TYPE", "CIPHER_RETURNED", "INSUFFICIENT_SECURITY",
    ): (
        "it has other ciphers or a weak key: set driver_info/redfish_tls_ciphers, such as "
        "DEFAULT:@SECLEVEL=0 for an old BMC, or update its firmware"
    ),
}  # fmt: skip
_FAIR: Final = 0.9  # share of a limit that a BMC must have had before it counts as silent


class NoAnswer(sushy_errors.ConnectionError):  # type: ignore[misc]
    """No readable answer; the text says why, and may repeat the BMC's message.

    ``was_cut_short``: the call had less time than the limit for an answer.
    """

    def __init__(self, why: str, *, was_cut_short: bool = False) -> None:
        super().__init__(why)
        self.was_cut_short = was_cut_short


class Limit(NamedTuple):
    """The limit of one wait, its usual value, and its option."""

    seconds: float
    usual_s: float
    option: str

    @property
    def is_cut_short(self) -> bool:
        """Whether the call had less time left than the option gives."""
        return self.seconds < self.usual_s * _FAIR

    def __str__(self) -> str:
        bound = "the rest of the call, see [bmc]call_timeout" if self.is_cut_short else self.option
        return f"{round(self.seconds, 1):g} s ({bound})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one request: connection with handshake, silence, total."""

    conf: Redfish
    all_s: float

    @property
    def connect(self) -> Limit:
        usual_s = self.conf.connect_timeout
        return Limit(min(usual_s, self.all_s), usual_s, "[redfish]connect_timeout")

    @property
    def silence(self) -> Limit:
        usual_s = self.conf.read_timeout
        return Limit(min(usual_s, self.all_s), usual_s, "[redfish]read_timeout")

    def reached(self, waited_s: float) -> Limit:
        """Return the limit that ended a wait for an answer.

        The TLS handshake counts as connecting.
        """
        return self.connect if waited_s < self.silence.seconds * _FAIR else self.silence


def explain(
    exc: BaseException,
    limits: Limits,
    waited_s: float,
    *,
    is_reading: bool,
    may_be_tls: bool,
    handled: BaseException | None = None,
) -> NoAnswer:
    """Return the reason for a missing answer, with the limit that was reached.

    ``may_be_tls``: plain HTTP is used at a BMC that has accepted no login yet.  ``handled``: an
    earlier error that the caller is handling, which is the context of ``exc`` and not its cause.
    """
    why = _innermost(exc, handled)
    match exc:
        case urllib3_errors.SSLError():
            return no_tls(why)
        case urllib3_errors.NewConnectionError():
            return NoAnswer(why)
        case urllib3_errors.ConnectTimeoutError():
            limit = limits.connect
            return NoAnswer(f"no connection within {limit}", was_cut_short=limit.is_cut_short)
        case urllib3_errors.ReadTimeoutError():
            limit = limits.reached(waited_s)
            text = f"it accepted the connection and gave no answer within {limit}"
            return NoAnswer(text, was_cut_short=limit.is_cut_short)
        case TimeoutError():
            limit = Limit(limits.all_s, limits.conf.read_timeout, "[bmc]call_timeout")
            text = f"its answer did not end within {limit}"
            return NoAnswer(text, was_cut_short=limit.is_cut_short)
        case urllib3_errors.ProtocolError() if fetching.explain_mismatch(why) == ONLY_TLS:
            return NoAnswer(f"{ONLY_TLS}: write https:// in driver_info/redfish_address")
        case urllib3_errors.ProtocolError(args=(_, RemoteDisconnected())) if may_be_tls:
            hint = "if the BMC speaks TLS there, use https:// in driver_info/redfish_address"
            return NoAnswer(f"{why}; {hint}")
        case urllib3_errors.ProtocolError() if is_reading:
            return NoAnswer(f"its answer broke off ({why})")
        case _:
            return NoAnswer(why)


def no_tls(why: str) -> NoAnswer:
    if fetching.explain_mismatch(why) == PLAIN_HTTP:
        return NoAnswer(
            f"{PLAIN_HTTP}: write http:// in driver_info/redfish_address, or the port of its TLS"
        )
    code = why.upper().replace(" ", "_")
    for parts, advice in _TLS_ADVICE.items():
        if any(part in code for part in parts):
            return NoAnswer(f"TLS refused: {why}; {advice}")
    if "not yet valid" in why:
        return NoAnswer(
            "its certificate is not valid yet: set the clock of the BMC, or of this conductor"
        )
    return NoAnswer(
        f"TLS refused: {why}; set driver_info/redfish_verify_ca to the CA of its certificate, or "
        "to false"
    )


def _innermost(exc: BaseException, handled: BaseException | None) -> str:
    """Return the message of the innermost wrapped error, which ``handled`` is not."""
    seen = exc
    for _ in range(8):
        wrapped = (getattr(seen, "reason", None), *seen.args, seen.__context__)
        inside = next((e for e in wrapped if isinstance(e, BaseException)), None)
        if inside is None or inside is handled:
            break
        seen = inside
    if isinstance(seen, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {seen.verify_message}"
    return str(getattr(seen, "strerror", None) or seen) or type(seen).__name__
