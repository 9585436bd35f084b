"""The users of a BMC, and the password that a new BMC has changed before all else.

Source: DMTF DSP0266, password change required; DSP2046, AccountService and ManagerAccount.
"""

from __future__ import annotations

from typing import Final

from bloomery.lab.bmc import ROOT, SimulatedBmc
from bloomery.lab.refusal import Refusal, Rule, checked, details_of, missing, needed
from bloomery.lab.routing import NO_CONTENT, Answer, Ask, Json, Reply, collection, ref, route

_ACCOUNTS: Final = "/AccountService/Accounts"
_SESSIONS: Final = f"{ROOT}/SessionService/Sessions/"
_ROLES: Final = ["Administrator", "Operator", "ReadOnly"]
_NEW: Final[dict[str, Rule]] = {
    "UserName": str, "Password": str, "RoleId": _ROLES, "Enabled": [True],
}  # fmt: skip
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


def _users(bmc: SimulatedBmc) -> dict[str, str]:
    """Return the user of each account, "" for an empty one."""
    if not bmc.rules.account_slots:
        return {user: user for user in bmc.passwords}
    users = ["", *bmc.passwords]
    users += [""] * (bmc.rules.account_slots - len(users))
    return {str(number): user for number, user in enumerate(users, 1)}


def _user(bmc: SimulatedBmc, ident: str) -> str:
    """Return the user of an account.  Raises Refusal without such an account."""
    try:
        return _users(bmc)[ident]
    except KeyError:
        raise missing(f"account {ident}") from None


@route("GET", _ACCOUNTS)
def list_accounts(bmc: SimulatedBmc, ask: Ask) -> Answer:
    return collection(_ACCOUNTS, "ManagerAccount", list(_users(bmc)))


@route("POST", _ACCOUNTS)
def add_account(bmc: SimulatedBmc, ask: Ask) -> Answer:
    if bmc.rules.account_slots:
        raise Refusal(405, "accounts are not created here", "OperationNotAllowed")
    user = _create(bmc, ask)
    path = f"{ROOT}{_ACCOUNTS}/{user}"
    return Reply(201, show_account(bmc, ask, user) | {"@odata.id": path}, {"Location": path})


def _create(bmc: SimulatedBmc, ask: Ask) -> str:
    body = checked(ask.body, _NEW, "an account")
    user = str(needed(body, "UserName"))
    bmc.create_user(user, needed(body, "Password"), body.get("RoleId", "ReadOnly"))
    return user


@route("GET", f"{_ACCOUNTS}/*")
def show_account(bmc: SimulatedBmc, ask: Ask, ident: str) -> Json:
    user = _user(bmc, ident)
    return {
        "@odata.type": "#ManagerAccount.v1_7_0.ManagerAccount",
        "Id": ident, "Name": "Account", "UserName": user, "Password": None,
        "RoleId": bmc.roles.get(user, "Administrator" if user else "None"), "Enabled": bool(user),
        "Locked": False, "PasswordChangeRequired": user in bmc.must_change,
    }  # fmt: skip


@route("PATCH", f"{_ACCOUNTS}/*")
def change_account(bmc: SimulatedBmc, ask: Ask, ident: str) -> Answer:
    user = _user(bmc, ident)
    if not user and ident != "1":
        _create(bmc, ask)
        return NO_CONTENT
    document = checked(ask.body, {"Password": str}, "an account")
    if "Password" in document:
        bmc.change_password(user, document["Password"])
    return NO_CONTENT
