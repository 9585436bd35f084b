"""The users of a BMC, and the password that a new BMC has changed before all else.

Source: DMTF DSP0266, password change required; DSP2046, AccountService and ManagerAccount.
"""

from __future__ import annotations

from typing import Final

from bloomery.lab.bmc import ROOT, SimulatedBmc
from bloomery.lab.refusal import Refusal, checked, details_of, missing
from bloomery.lab.routing import NO_CONTENT, Answer, Ask, Json, collection, ref, route

_ACCOUNTS: Final = "/AccountService/Accounts"
_SESSIONS: Final = f"{ROOT}/SessionService/Sessions/"
_CHANGE: Final = ("PasswordChangeRequired", "the password must be changed before anything else")


def change_first(user: str) -> Json:
    """Return the message of a login whose password must be changed."""
    kind, text = _CHANGE
    return details_of(text, kind, [f"{ROOT}{_ACCOUNTS}/{user}"])


def require_changed(bmc: SimulatedBmc, user: str, method: str, path: str) -> None:
    """Raise Refusal where the user must change the password first, and does something else."""
    own = f"{ROOT}{_ACCOUNTS}/{user}"
    is_logout = method == "DELETE" and path.startswith(_SESSIONS)
    if user in bmc.must_change and not is_logout and (method, path) not in (
        ("GET", own), ("PATCH", own),
    ):  # fmt: skip
        kind, text = _CHANGE
        raise Refusal(403, text, kind, args=[own])


@route("GET", "/AccountService")
def account_service(bmc: SimulatedBmc, ask: Ask) -> Answer:
    least, most = bmc.rules.password_chars
    return {
        "@odata.type": "#AccountService.v1_7_2.AccountService",
        "Id": "AccountService", "Name": "Accounts", "ServiceEnabled": True,
        "MinPasswordLength": least, "MaxPasswordLength": most, "Accounts": ref(_ACCOUNTS),
    }  # fmt: skip


@route("GET", _ACCOUNTS)
def list_accounts(bmc: SimulatedBmc, ask: Ask) -> Answer:
    return collection(_ACCOUNTS, "ManagerAccount", list(bmc.passwords))


@route("GET", f"{_ACCOUNTS}/*")
def show_account(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    if ident not in bmc.passwords:
        raise missing(f"account {ident}")
    return {
        "@odata.type": "#ManagerAccount.v1_7_0.ManagerAccount",
        "Id": ident, "Name": "Account", "UserName": ident, "Password": None,
        "RoleId": "Administrator", "Enabled": True, "Locked": False,
        "PasswordChangeRequired": ident in bmc.must_change,
    }  # fmt: skip


@route("PATCH", f"{_ACCOUNTS}/*")
def change_account(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    if ident not in bmc.passwords:
        raise missing(f"account {ident}")
    document = checked(ask.body, {"Password": str}, "an account")
    if "Password" in document:
        bmc.change_password(ident, document["Password"])
    return NO_CONTENT
