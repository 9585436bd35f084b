"""Why a BMC gave no answer, in a few words that say what to do."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Final

from sushy import exceptions as sushy_errors
from urllib3 import exceptions as urllib3_errors

from bloomery.conf.redfish import Redfish

_FAIR: Final = 0.9  # the share of a limit that a BMC must have had, to be blamed for silence


class NoAnswer(sushy_errors.ConnectionError):  # type: ignore[misc]
    """Nothing came that could be read; the text says why, and may repeat what the BMC said.

    ``was_cut_short``: the call had less time than a BMC may take for an answer.
    """

    def __init__(self, why: str, *, was_cut_short: bool = False) -> None:
        super().__init__(why)
        self.was_cut_short = was_cut_short


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long one request may take: a connection with its handshake, silence, all of it."""

    connect_s: float
    silence_s: float
    all_s: float

    def reached(self, waited_s: float) -> float:
        """Return the limit that ended a wait for an answer: TLS shakes hands within the first."""
        return self.connect_s if waited_s < self.silence_s * _FAIR else self.silence_s


def explain(
    exc: BaseException, limits: Limits, waited_s: float, conf: Redfish, *, is_reading: bool
) -> NoAnswer:
    """Say in a few words why there was no answer, and how long it was waited for."""
    match exc:
        case urllib3_errors.SSLError():
            return no_tls(_innermost(exc))
        case urllib3_errors.NewConnectionError():
            return NoAnswer(_innermost(exc))
        case urllib3_errors.ConnectTimeoutError():
            cut = limits.connect_s < conf.connect_timeout * _FAIR
            return NoAnswer(f"no connection within {_text(limits.connect_s)}", was_cut_short=cut)
        case urllib3_errors.ReadTimeoutError():
            cut = limits.all_s <= limits.silence_s < conf.read_timeout * _FAIR
            within = _text(limits.reached(waited_s))
            why = f"it accepted the connection and gave no answer within {within}"
            return NoAnswer(why, was_cut_short=cut)
        case TimeoutError():
            cut = limits.all_s < conf.read_timeout * _FAIR
            why = f"its answer did not end within {_text(limits.all_s)}"
            return NoAnswer(why, was_cut_short=cut)
        case urllib3_errors.ProtocolError() if is_reading:
            return NoAnswer(f"its answer broke off ({_innermost(exc)})")
        case _:
            return NoAnswer(_innermost(exc))


def _text(seconds: float) -> str:
    return f"{round(seconds, 1):g} s"


def no_tls(why: str) -> NoAnswer:
    return NoAnswer(
        f"TLS refused: {why}; set driver_info/redfish_verify_ca to the CA of its certificate, or "
        "to false"
    )


def astray(why: str) -> NoAnswer:
    return NoAnswer(f"its answer leads away from this BMC: {why}")


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
