"""The password of a BMC: changed by a step, kept through crashes, and known to all its nodes."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path

import pytest

from bloomery.drivers import registry
from bloomery.lab import refusal
from bloomery.lab.bmc import Rules
from tests.functional.redfish import conftest
from tests.functional.redfish.conftest import BUDGET_S, available, enrol, manageable
from tests.kit.servers.dying import Dead, Mortal
from tests.kit.servers.site import Site, database
from tests.kit.servers.stories import Stage
from tests.kit.waiting import wait_for

STEP = {"interface": "management", "step": "set_bmc_password"}
OWN = "A-password-of-ours-1"


def step(**args):
    return STEP | {"args": args}


def clean(stage, node, *steps):
    stage.ask(node, "clean", clean_steps=list(steps), disable_ramdisk=True)
    stage.site.wait_for_state(node, "manageable", "clean failed")
    stage.wait_until_free(node)
    return stage.show(node)


def recover(stage, node):
    stage.ask(node, "manage")
    stage.wait_for(node, "manageable")
    stage.api.delete(f"/v1/nodes/{node}/maintenance")


def opened(site, node):
    return site.runtime.sealer.open(site.node(node).driver_info)


def password(machine):
    return machine.bmc.passwords["admin"]


def power(stage, node):
    return stage.power(node, "power on")["power_state"]


@pytest.fixture
def node(stage, machine):
    return manageable(stage, machine)


def test_the_step_sets_a_random_password_by_the_policy(stage, machine, node):
    shown = clean(stage, node, step())
    assert (shown["provision_state"], shown["last_error"]) == ("manageable", None)
    new = password(machine)
    assert (new != "password", len(new)) == (True, 16)
    assert opened(stage.site, node)["redfish_password"] == new
    assert power(stage, node) == "power on"
    other = shown["driver_internal_info"]["bmc_other_login"]
    assert (other["role"], other["password"]) == ("former", "******")
    assert machine.bmc.wrong_passwords <= 1  # for a look between the change and its record


def test_the_step_sets_a_password_that_the_operator_chose(stage, machine, node):
    clean(stage, node, step(password=OWN))
    assert password(machine) == opened(stage.site, node)["redfish_password"] == OWN
    clean(stage, node, step(password="password"))
    assert password(machine) == opened(stage.site, node)["redfish_password"] == "password"


def test_the_password_of_an_active_machine_is_changed_without_a_restart(stage, machine):
    node = available(stage, machine)
    stage.ask(node, "active")
    stage.wait_for(node, "active")
    before = list(machine.system.happened)
    stage.ask(node, "service", service_steps=[step()], disable_ramdisk=True)
    stage.site.wait_for_state(node, "active", "service failed")
    stage.wait_until_free(node)
    assert opened(stage.site, node)["redfish_password"] == password(machine) != "password"
    assert machine.system.happened == before
    assert stage.show(node)["last_error"] is None


def test_no_secret_is_told(stage, machine, node, caplog):
    clean(stage, node, step(password=OWN))
    told = [stage.api.get(f"/v1/nodes/{node}{path}").body.decode()
            for path in ("", "/history?detail=true")]  # fmt: skip
    told += [str(stage.site.events(node)), str(stage.site.runs(node)), caplog.text]
    told.append(str(stage.site.node(node).driver_internal_info))
    assert not [text for text in told if OWN in text]
    assert "The password of BMC user admin was changed" in told[1]


@pytest.mark.parametrize(
    ("rules", "args", "error"),
    [
        ({"password_chars": (12, 20)}, {"password": "short"}, "the BMC takes 12 to 20"),
        ({"password_chars": (1, 20)}, {"password": "p" * 21}, "the BMC takes 1 to 20"),
        ({}, {"password": 7}, "takes a text"),
        ({}, {"passwort": "x"}, "unexpected arguments: passwort"),
    ],
)
def test_a_password_that_the_bmc_does_not_take_is_refused(stage, make_rack, rules, args, error):
    machine = make_rack(rules=Rules(**rules)).machines[0]
    node = manageable(stage, machine)
    answer = stage.try_to(node, "clean", clean_steps=[step(**args)], disable_ramdisk=True)
    if answer.status == 202:
        stage.site.wait_for_state(node, "manageable", "clean failed")
        stage.wait_until_free(node)
        answer = stage.show(node)["last_error"]
        assert error in answer
    else:
        assert error in str(answer.json)
    assert password(machine) == "password"
    assert "bmc_other_login" not in stage.show(node)["driver_internal_info"]


@pytest.mark.parametrize("least", [8, 18])
def test_a_random_password_has_as_many_characters_as_the_bmc_takes(stage, make_rack, least):
    machine = make_rack(rules=Rules(password_chars=(least, least))).machines[0]
    node = manageable(stage, machine)
    assert clean(stage, node, step())["last_error"] is None
    assert len(password(machine)) == least


PATCH = {"path": "/Accounts/", "method": "PATCH"}


@pytest.mark.parametrize(
    ("fault", "is_changed"),
    [
        ({"kind": "status", "status": 500}, True),
        ({"kind": "after", "status": 500}, True),
        ({"kind": "status", "status": 400}, False),
        ({"kind": "reset"}, True),
        ({"kind": "later", "seconds": 0.5}, True),
        ({"kind": "status", "status": 204, "times": -1}, False),
    ],
    ids=str,
)
def test_at_the_end_a_password_works_whatever_the_answer(
    stage, machine, node, fault, is_changed, monkeypatch
):
    monkeypatch.setattr("bloomery.drivers.passwords._TRY_PAUSE_S", 1.0)
    machine.bmc.faults.add(**PATCH | fault)
    shown = clean(stage, node, step(password=OWN))
    assert (password(machine) == OWN) is is_changed
    assert (shown["last_error"] is None) is is_changed
    assert opened(stage.site, node)["redfish_password"] == password(machine)
    assert OWN not in str(shown["last_error"])
    assert power(stage, node) == "power on"


def test_a_password_that_the_bmc_refuses_by_code_and_sets_works_all_the_same(stage, machine, node):
    machine.bmc.faults.add(**PATCH, kind="after", status=400)
    shown = clean(stage, node, step(password=OWN))
    assert shown["provision_state"] == "clean failed"
    assert password(machine) == OWN
    recover(stage, node)
    assert power(stage, node) == "power on"
    assert clean(stage, node, step())["last_error"] is None
    assert opened(stage.site, node)["redfish_password"] == password(machine)
    assert password(machine) not in ("password", OWN)


# -------------------------------------------------------------------------- nodes of one BMC


def test_nodes_with_one_account_share_the_change(stage, make_rack):
    machines = make_rack(3, apart=False).machines
    nodes = [manageable(stage, machine) for machine in machines]
    clean(stage, nodes[1], step())
    for node in nodes:
        assert opened(stage.site, node)["redfish_password"] == password(machines[0])
        assert power(stage, node) == "power on"


def test_a_node_with_another_account_keeps_its_password(stage, make_rack):
    users = {"admin": "password", "audit": "password-2"}
    machines = make_rack(2, apart=False, rules=Rules(users=users)).machines
    first = manageable(stage, machines[0])
    other = {"redfish_username": "audit", "redfish_password": "password-2"}
    second = manageable(stage, machines[1], **other)
    clean(stage, first, step())
    assert opened(stage.site, second)["redfish_password"] == "password-2"


def test_a_change_waits_for_a_node_behind_the_bmc_that_is_in_use(stage, make_rack, monkeypatch):
    monkeypatch.setattr("bloomery.drivers.passwords._LOCKED_PAUSE_S", 0.01)
    machines = make_rack(2, apart=False).machines
    first, second = (manageable(stage, machine) for machine in machines)
    with stage.site.acquire(second, purpose="a long story"):
        shown = clean(stage, first, step())
        assert "a long story" in shown["last_error"]
        assert password(machines[0]) == "password"
    recover(stage, first)
    assert clean(stage, first, step())["last_error"] is None


# ------------------------------------------------------------------------------- bad luck


def works(site, machine, node):
    """Whether the BMC takes one of the two passwords that are stored with the node."""
    stored = site.node(node).driver_internal_info.get("bmc_other_login") or {}
    other = site.runtime.sealer.open(stored).get("password")
    return password(machine) in (opened(site, node)["redfish_password"], other)


def has_changed(site, node):
    row = site.node(node)
    is_over = (row.provision_state, row.reservation) == ("manageable", None)
    return is_over and opened(site, node)["redfish_password"] != "password"


@pytest.mark.parametrize("is_new", [False, True], ids=["clean", "manage a new BMC"])
def test_a_killed_conductor_leaves_a_password_that_works(tmp_path: Path, make_rack, is_new):
    commits = 0
    while _dies_after(commits, tmp_path / f"{commits}.sqlite", make_rack, is_new=is_new):
        commits += 1
    assert commits > 5


def _dies_after(commits: int, path: Path, make_rack, *, is_new: bool) -> bool:
    """Kill the conductor after so many commits of a change; return whether it had as many."""
    machines = make_rack(2, apart=False, rules=Rules(is_new=is_new)).machines
    db = database(path, Mortal)
    conf = conftest.conf()
    redfish = dataclasses.replace(conf.redfish, change_factory_password=is_new)
    hardware = registry.load(dataclasses.replace(conf, redfish=redfish))
    kept = {"registry": hardware, "bmc_outage_budget": int(BUDGET_S)}
    site = Site(path, db=db, **kept)
    stage = Stage(site)
    stage.configure("redfish", change_factory_password=is_new)
    nodes = [(enrol if is_new else manageable)(stage, machine) for machine in machines]
    db.lives = db.commits + commits
    verb = ("manage", {}) if is_new else ("clean", {"steps": [STEP], "disable_ramdisk": True})
    with contextlib.suppress(Dead):
        site.order("do_provisioning_action", nodes[0], *verb)
        wait_for(lambda: db.died.is_set() or has_changed(site, nodes[0]), "an end")
    died = db.died.is_set()
    wait_for(lambda: not site.runtime.workers.busy, "its workers to end")
    assert all(works(site, machines[0], node) for node in nodes), commits
    site.close()
    site = site.restarted(**kept)
    try:
        site.wait_for_state(nodes[0], "manageable", *(["enroll"] if not commits else []))
        wait_for(lambda: site.is_free(nodes[0]), "the node to be free")
        assert site.node(nodes[0]).last_error is None
        stored = {opened(site, node)["redfish_password"] for node in nodes}
        assert stored == {password(machines[0])}
    finally:
        site.close()
    return died


def test_a_password_that_the_bmc_lost_at_a_reset_is_told(stage, make_rack):
    machine = make_rack(rules=Rules(forgets_passwords=True, restart_s=0.0)).machines[0]
    node = manageable(stage, machine)
    clean(stage, node, step())
    new = password(machine)
    machine.bmc.restart(machine.system)
    assert password(machine) == "password"
    assert power(stage, node) == "power on"
    why = stage.why(node)
    assert "takes the one before: it lost the change" in why["cause"]
    assert why["contact"]["bmc"]["other_login"]["works"]
    assert "management.set_bmc_password" in why["next_action"]
    clean(stage, node, step())
    assert opened(stage.site, node)["redfish_password"] == password(machine) != new
    assert "nothing is wrong" in stage.why(node)["cause"]


def test_a_change_fails_by_name_where_the_bmc_takes_neither_password(stage, machine, node):
    clean(stage, node, step())
    machine.bmc.changed_passwords["admin"] = "of a colleague"
    machine.bmc.sessions.clear()
    shown = clean(stage, node, step())
    assert "it refuses both that of driver_info and the former one" in shown["last_error"]


# ----------------------------------------------------------------------- a new BMC


def stage_with(make_site, **options):
    conf = conftest.conf()
    conf = dataclasses.replace(conf, redfish=dataclasses.replace(conf.redfish, **options))
    stage = Stage(make_site(registry=registry.load(conf), bmc_outage_budget=int(BUDGET_S)))
    stage.configure("redfish", **options)
    return stage


@pytest.fixture
def new_machine(make_rack):
    return make_rack(rules=Rules(is_new=True)).machines[0]


def test_a_new_bmc_is_named_with_the_way_out(stage, new_machine):
    node = enrol(stage, new_machine)
    stage.ask(node, "manage")
    error = stage.wait_for(node, "enroll")["last_error"]
    assert "its password must be changed first" in error
    assert "[redfish]change_factory_password" in error


def test_manage_changes_the_password_of_a_new_bmc_where_the_option_asks_for_it(
    make_site, new_machine
):
    stage = stage_with(make_site, change_factory_password=True)
    node = manageable(stage, new_machine)
    assert opened(stage.site, node)["redfish_password"] == password(new_machine) != "password"
    assert power(stage, node) == "power on"


def test_manage_changes_no_other_password(make_site, machine):
    stage = stage_with(make_site, change_factory_password=True)
    manageable(stage, machine)
    assert password(machine) == "password"


def test_a_new_bmc_may_give_no_session_before_the_change(make_site, new_machine):
    account = "/redfish/v1/AccountService/Accounts/admin"
    body = refusal.document("change it", "PasswordChangeRequired", [account])
    new_machine.bmc.faults.add(
        kind="status", status=403, body=body, path="/Sessions", method="POST", times=-1,
        until="PATCH .*/Accounts/",
    )  # fmt: skip
    manageable(stage_with(make_site, change_factory_password=True), new_machine)
    assert new_machine.bmc.must_change == set()


@pytest.mark.parametrize("kind", [{"kind": "status", "status": 503}, {"kind": "reset"}], ids=str)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/Sessions$"),
        ("GET", "/Systems"),
        ("PATCH", "/Accounts/"),
        ("GET", "/redfish/v1/$"),
    ],
)
def test_a_new_bmc_that_fails_twice_is_managed_by_the_third_order(
    make_site, new_machine, kind, method, path
):
    stage = stage_with(make_site, change_factory_password=True)
    node = enrol(stage, new_machine)
    new_machine.bmc.faults.add(**kind, method=method, path=path, times=2)
    sentences = []
    while stage.show(node)["provision_state"] == "enroll" and len(sentences) < 3:
        stage.ask(node, "manage")
        stage.site.wait_for_state(node, "enroll", "manageable")
        stage.wait_until_free(node)
        sentences.append(str(stage.show(node)["last_error"]))
    assert sentences[-1] == "None"
    assert not any("PasswordChangeRequired" in sentence for sentence in sentences)
    assert new_machine.bmc.must_change == set()


def test_a_busy_bmc_is_sent_no_wrong_password(stage, machine, node):
    machine.bmc.faults.add(kind="status", status=503, headers={"Retry-After": "1"}, **PATCH)
    assert clean(stage, node, step(password=OWN))["last_error"] is None
    assert password(machine) == OWN
    assert machine.bmc.wrong_passwords <= 1


def test_a_login_by_ipmi_that_is_the_same_is_changed_too(stage, machine):
    own = {"ipmi_address": "127.0.0.1", "ipmi_username": "admin", "ipmi_password": "password"}
    node = manageable(stage, machine, **own)
    error = clean(stage, node, step(password="p" * 21))["last_error"]
    assert "a BMC password of 21 characters: the BMC takes 8 to 20" in error
    recover(stage, node)
    clean(stage, node, step())
    assert opened(stage.site, node)["ipmi_password"] == password(machine)
    history = stage.api.get(f"/v1/nodes/{node}/history?detail=true").body.decode()
    assert "ipmi_password, which was not tried, has it" in history
