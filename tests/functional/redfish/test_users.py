"""``bloomery bmc user create``: a user is made once it has logged in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bloomery.cli.main import main
from bloomery.lab.bmc import Rules
from bloomery.lab.rack import Machine

NEW = "s3cret-of-bloomery"
Create = Callable[..., Result]


@pytest.fixture
def create(tmp_path: Path) -> Create:
    """Create a user as one types it; no output has a password."""

    def run(machine: Machine, *words: str, password: str = NEW, name: str = "bloomery") -> Result:
        file = tmp_path / "new"
        file.write_text(f"{password}\n")
        line = [
            "bmc", "user", "create", machine.address, name, "--username", "admin",
            "--new-password-file", str(file), *words,
        ]  # fmt: skip
        env = {"BLOOMERY_BMC_PASSWORD": machine.password}
        result = CliRunner(env=env).invoke(main, line)
        assert password not in result.output
        return result

    return run


@pytest.mark.parametrize("slots", [0, 16], ids=["new accounts", "a fixed number of them"])
def test_a_user_is_created_and_logs_in(make_rack: Any, create: Create, slots: int) -> None:
    machine = make_rack(rules=Rules(account_slots=slots)).machines[0]
    done = create(machine, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == {
        "address": machine.address, "username": "bloomery", "role": "Administrator",
        "path": f"/redfish/v1/AccountService/Accounts/{'3' if slots else 'bloomery'}",
    }  # fmt: skip
    assert machine.bmc.passwords == {"admin": "password", "bloomery": NEW}
    assert machine.bmc.sessions == {}, "all logins are given back"
    assert "has logged in" in create(machine, name="second").stdout


@pytest.mark.parametrize(
    ("rules", "faults", "words", "says"),
    [
        ({"users": {"admin": "password", "bloomery": "other-password"}}, (), (),
         "cannot create user bloomery at http://127.0.0.1:"),
        ({"account_slots": 2}, (), (), "has no empty one; delete a user at the BMC"),
        ({"password_chars": (8, 10)}, (), (), "the BMC takes 8 to 10"),
        ({}, (), ("--role", "King"), "RoleId: 'King' is not one of"),
        ({}, ({"kind": "status", "status": 404, "path": "/AccountService", "times": -1},), (),
         "offers no accounts by Redfish"),
        ({}, ({"kind": "status", "status": 201, "method": "POST", "path": "/Accounts$",
               "body": {}},), (), "and shows no user: look at its users there"),
        ({}, ({"kind": "shows", "path": "/Accounts/bloomery$", "times": -1,
               "document": {"RoleId": "ReadOnly"}},), (), "shows role ReadOnly, Enabled True"),
    ],
    ids=["is there", "all full", "too long", "no such role", "no accounts", "does nothing",
         "another role"],
)  # fmt: skip
def test_what_was_not_done_is_said(
    make_rack: Any, create: Create, rules: Any, faults: Any, words: Any, says: str
) -> None:
    machine = make_rack(rules=Rules(**rules)).machines[0]
    for fault in faults:
        machine.bmc.faults.add(**fault)
    refused = create(machine, *words)
    assert (refused.exit_code, says in refused.output) == (1, True), refused.output


@pytest.mark.parametrize("fault", [{"kind": "after", "status": 500}, {"kind": "truncate"}])
def test_where_the_answer_is_lost_the_accounts_say_whether_it_was_done(
    make_rack: Any, create: Create, fault: Any
) -> None:
    machine = make_rack().machines[0]
    machine.bmc.faults.add(method="POST", path="/Accounts$", **fault)
    done = create(machine)
    assert (done.exit_code, machine.bmc.passwords["bloomery"]) == (0, NEW), done.output
    again = create(machine)
    assert (again.exit_code, "it is there" in again.output) == (1, True)
