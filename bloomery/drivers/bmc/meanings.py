"""What the refusal of a BMC means, and what follows: one table for Redfish and IPMI.

The class of the error decides what a flow and the API do:

    BmcBusy          the flow waits as it does for a silent BMC; 409 with Retry-After
    BmcFailed        the flow looks whether the order was carried out; 502
    BmcRefused       the flow fails; 400, as a repetition does not help
    BmcLoginRefused  the flow fails, and the login is paused; 400
    BmcPasswordChangeRequired   the flow fails, unless it may change the password; 400
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from bloomery import errors


class Meaning(StrEnum):
    LOGIN = "login"
    PASSWORD_CHANGE = "password change"  # noqa: S105  no password
    LICENCE = "licence"
    LOCKDOWN = "lockdown"
    RIGHT = "right"
    IN_POST = "in POST"
    BUSY = "busy"
    FULL = "sessions in use"
    GONE = "gone"
    UNSUPPORTED = "unsupported"
    FAILED = "failed"
    REFUSED = "refused"


class Consequence(NamedTuple):
    """The error of a meaning, and its reason.

    {answer}: the BMC's own words; {user}, {password}: keys of driver_info.
    """

    kind: type[errors.BmcRefused | errors.BmcBusy]
    reason: str = "{answer}"


CONSEQUENCES: Final[Mapping[Meaning, Consequence]] = {
    Meaning.LOGIN: Consequence(
        errors.BmcLoginRefused,
        "the user name or the password ({answer}): check driver_info/{user} and {password}",
    ),
    Meaning.PASSWORD_CHANGE: Consequence(
        errors.BmcPasswordChangeRequired,
        "its password must be changed first ({answer}): log in at the BMC as the user of "
        "driver_info/{user}, set a new password there, then in driver_info/{password}; or let "
        "manage do it: [redfish]change_factory_password",
    ),
    Meaning.LICENCE: Consequence(
        errors.BmcRefused, "it has no licence for that ({answer}): add the licence to the BMC"
    ),
    Meaning.LOCKDOWN: Consequence(
        errors.BmcRefused,
        "it is locked down ({answer}): end the lockdown at the BMC, and ask again",
    ),
    Meaning.RIGHT: Consequence(
        errors.BmcRefused,
        "the user of driver_info/{user} may not do that ({answer}): give it the right at the BMC",
    ),
    Meaning.IN_POST: Consequence(
        errors.BmcBusy, "the machine is in POST ({answer}): ask again when that has ended"
    ),
    Meaning.BUSY: Consequence(
        errors.BmcBusy, "it did not do that ({answer}): ask again when that has ended"
    ),
    Meaning.FULL: Consequence(
        errors.BmcBusy,
        "all its sessions are in use, and it takes no password without a session ({answer}): end "
        "sessions at the BMC, or ask again later",
    ),
    Meaning.GONE: Consequence(errors.BmcRefused),
    Meaning.UNSUPPORTED: Consequence(errors.BmcRefused, "it does not offer that ({answer})"),
    Meaning.FAILED: Consequence(errors.BmcFailed),
    Meaning.REFUSED: Consequence(errors.BmcRefused),
}
