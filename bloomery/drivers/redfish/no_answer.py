"""Why a BMC gave no answer, in a few words that say what to do."""

from __future__ import annotations

import ssl
from typing import Final

from sushy import exceptions as sushy_errors
from urllib3 import exceptions as urllib3_errors

from bloomery.conf.redfish import Redfish
from bloomery.drivers.bmc.gateway import BmcCall

_FAIR: Final = 0.9  # the share of a limit that a BMC must have had, to be blamed for silence
_ROUNDING_S: Final = 0.1  # by which a time-out may come before its time


class NoAnswer(sushy_errors.ConnectionError):  # type: ignore[misc]
    """Nothing came that could be read; the text says why, and may repeat what the BMC said.

    ``was_cut_short``: the call had less time than a BMC may take for an answer.
    """

    def __init__(self, why: str, *, was_cut_short: bool = False) -> None:
        super().__init__(why)
        self.was_cut_short = was_cut_short


def explain(
    exc: BaseException, waited_s: float, conf: Redfish, call: BmcCall, *, is_reading: bool
) -> NoAnswer:
    """Say in a few words why there was no answer, and how long it was waited for."""
    waited = f"within {round(waited_s, 1):g} s"
    match exc:
        case urllib3_errors.SSLError():
            return no_tls(_innermost(exc))
        case urllib3_errors.NewConnectionError():
            return NoAnswer(_innermost(exc))
        case urllib3_errors.ConnectTimeoutError():
            cut = _is_cut_short(call, waited_s, conf.connect_timeout)
            return NoAnswer(f"no connection {waited}", was_cut_short=cut)
        case urllib3_errors.ReadTimeoutError() | TimeoutError():
            cut = _is_cut_short(call, waited_s, conf.read_timeout)
            why = f"it accepted the connection and gave no answer {waited}"
            return NoAnswer(why, was_cut_short=cut)
        case urllib3_errors.ProtocolError() if is_reading:
            return NoAnswer(f"its answer broke off ({_innermost(exc)})")
        case _:
            return NoAnswer(_innermost(exc))


def _is_cut_short(call: BmcCall, waited_s: float, limit_s: float) -> bool:
    """Tell whether the call's time ended before that of a BMC."""
    return call.left_s() <= _ROUNDING_S and waited_s < limit_s * _FAIR


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
