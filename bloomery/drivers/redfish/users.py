"""A user of our own at a BMC: made by its account service, and done once it has logged in.

Most BMCs take a new account; others, such as Dell's, have a fixed number of accounts, of which an
empty one gets the name.  Source: DMTF DSP0268, AccountService and ManagerAccount.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from bloomery import errors
from bloomery.drivers import passwords
from bloomery.drivers.base import DriverTask
from bloomery.drivers.redfish import reading
from bloomery.drivers.redfish.access import Access
from bloomery.drivers.redfish.passwords import limits

Json = dict[str, Any]

_MOST_ACCOUNTS: Final = 64
_RESERVED: Final = "1"  # the first of a fixed number: it cannot be used
_NO_POST: Final = (404, 405, 501)


def create(
    access: Access, task: DriverTask, username: str, password: str, role: str
) -> dict[str, Any]:
    """Create a user with the login of the task's node; return its account's path and role.

    Raises InvalidParameterValue for a user that is there, a BMC without accounts or without an
    empty one, or a password that breaks its policy; BmcRefused, BmcUnreachable; and StepFailure
    where the BMC shows another role, or refuses the new login.
    """
    account = access.account(task)
    hidden = [each for each in (password, account.password) if each]
    new = replace(account, username=username, password=password)

    def find(root: Any) -> tuple[Json, str | None, list[Json]]:
        service = reading.follow(root, root.json, "AccountService")
        collection = next(iter(reading.links({"one": [service.get("Accounts")]}, "one")), None)
        listed = reading.follow(root, service, "Accounts")
        paths = reading.links(listed, "Members")[:_MOST_ACCOUNTS]
        return service, collection, [
            reading.fetch(root, path) | {"@odata.id": path} for path in paths
        ]  # fmt: skip

    service, collection, accounts = access.at_root(task, account, find, secrets=hidden)
    if collection is None:
        raise errors.InvalidParameterValue(
            reason=f"cannot create a user at {account.address}: the BMC offers no accounts by "
            "Redfish, or its user may not see them; create it at the BMC"
        )
    if any(each.get("UserName") == username for each in accounts):
        raise errors.InvalidParameterValue(
            reason=f"cannot create user {username} at {account.address}: it is there; choose "
            "another name, or delete it at the BMC"
        )
    passwords.check(password, *limits(service))
    document = {"UserName": username, "Password": password, "RoleId": role, "Enabled": True}

    def post(root: Any) -> None:
        root._conn.post(collection, data=document)  # noqa: SLF001  sushy has no class

    try:
        access.at_root(task, account, post, write=True, secrets=hidden)
    except (errors.BmcBusy, errors.BmcLeftAlone):
        raise
    except (errors.BmcFailed, errors.BmcUnreachable):
        pass  # the list of accounts says whether it was created
    except errors.BmcRefused as no:
        if no.facts.get("http_status") not in _NO_POST:
            raise
        _fill(access, task, accounts, document, hidden)
    _, _, accounts = access.at_root(task, account, find, secrets=hidden)
    made = next((each for each in accounts if each.get("UserName") == username), {})
    if made.get("RoleId") != role or made.get("Enabled") is False:
        state = f"role {made.get('RoleId')}, Enabled {made.get('Enabled')}" if made else "no user"
        raise errors.StepFailure(
            reason=f"the BMC at {account.address} was told to create user {username} with role "
            f"{role}, and shows {state}: look at its users there"
        )
    try:
        access.at_root(
            task, new, lambda root: reading.fetch(root, root.json["Systems"]["@odata.id"]),
            secrets=hidden,
        )  # fmt: skip
    except errors.BmcLoginRefused as no:
        raise errors.StepFailure(
            reason=f"the BMC at {account.address} shows user {username}, and refuses its login: "
            f"{no.facts['reason']}; delete the user at the BMC"
        ) from no
    return {"path": made["@odata.id"], "role": role}


def _fill(
    access: Access, task: DriverTask, accounts: Sequence[Json], document: Json,
    hidden: Sequence[str],
) -> None:  # fmt: skip
    """Give the user an empty account of a BMC with a fixed number of them."""
    account = access.account(task)
    empty = [
        str(each["@odata.id"]) for each in accounts
        if each.get("UserName") == "" and str(each.get("Id")) != _RESERVED
    ]  # fmt: skip
    if not empty:
        raise errors.InvalidParameterValue(
            reason=f"cannot create user {document['UserName']} at {account.address}: the BMC takes "
            "no new account, and has no empty one; delete a user at the BMC"
        )

    def patch(root: Any) -> None:
        root._conn.patch(empty[0], data=document)  # noqa: SLF001  sushy has no class

    access.at_root(task, account, patch, write=True, secrets=hidden)
