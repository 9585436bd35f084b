"""The password of an IPMI BMC: changed by a step, and one that works is stored at each moment."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import pytest

from bloomery.drivers import registry
from bloomery.drivers.ipmi import info, tool
from bloomery.lab.ipmi import CIPHER_SUITE
from tests.functional.ipmi.conftest import conf
from tests.kit.servers.dying import Dead, Mortal
from tests.kit.servers.site import Site, database
from tests.kit.servers.stories import Stage
from tests.kit.waiting import wait_for

STEP = {"interface": "management", "step": "set_bmc_password"}
OWN = "A #'\"; of ours"
LONG = "A-long-one-of-20-cha"
RUN = tool.run


def opens(machine, password):
    """Whether the BMC takes the password, by ipmitool itself."""
    own = info.parse(machine.driver_info | {"ipmi_password": password})
    try:
        RUN(own, ("power", "status"), patience=tool.Patience(), suite=CIPHER_SUITE)
    except tool.Failed:
        return False
    return True


def forget_password(machine):
    machine.stop()
    shutil.rmtree(machine.folder / "state")
    machine.start()
    machine.wait()


def stored(site, node):
    """The passwords of the node: that of driver_info, and the other one."""
    row, opened = site.node(node), site.runtime.sealer.open
    other = opened(row.driver_internal_info.get("bmc_other_login") or {})
    return opened(row.driver_info)["ipmi_password"], other.get("password")


def clean(stage, node, **args):
    steps = [STEP | {"args": args}]
    stage.ask(node, "clean", clean_steps=steps, disable_ramdisk=True)
    stage.site.wait_for_state(node, "manageable", "clean failed")
    stage.wait_until_free(node)
    return stage.show(node)


@pytest.fixture
def stage(make_site):
    """A step waits for a silent BMC."""
    return Stage(make_site(registry=registry.load(conf()), bmc_outage_budget=60))


@pytest.fixture
def node(stage, machine):
    return manageable(stage, machine)


def manageable(stage, machine, **info):
    node = stage.enrol(driver="ipmi", driver_info=machine.driver_info | info)
    stage.ask(node, "manage")
    stage.wait_for(node, "manageable")
    stage.wait_until_free(node)
    return node


@pytest.mark.parametrize("password", [None, OWN, "p" * 16, "password"])
def test_the_step_sets_a_password_and_the_node_goes_on_with_it(stage, machine, node, password):
    args = {} if password is None else {"password": password}
    shown = clean(stage, node, **args)
    assert (shown["provision_state"], shown["last_error"]) == ("manageable", None)
    new, former = stored(stage.site, node)
    assert former == "password"
    assert password is None or new == password
    assert 1 <= len(new) <= 16
    assert opens(machine, new)
    assert opens(machine, "password") is (new == "password")
    assert stage.power(node, "power on")["power_state"] == "power on"
    assert shown["driver_internal_info"]["bmc_other_login"]["password"] == "******"


@pytest.mark.parametrize(
    ("driver_info", "password", "error"),
    [
        ({}, "p" * 21, "a BMC password of 21 characters: the BMC takes 1 to 20"),
        ({"ipmi_protocol_version": "1.5", "ipmi_cipher_suite": None}, "p" * 17, "takes 1 to 16"),
        ({}, "naïve", "printable ASCII"),
        ({}, "two\nlines", "printable ASCII"),
        ({}, 7, "takes a text"),
    ],
)
def test_a_password_that_ipmi_does_not_take_is_refused(
    stage, machine, driver_info, password, error
):
    node = manageable(stage, machine, **driver_info)
    assert error in clean(stage, node, password=password)["last_error"]
    assert stored(stage.site, node) == ("password", None)
    assert opens(machine, "password")


def test_a_bmc_that_keeps_16_of_20_bytes_is_left_with_the_first_16(
    stage, machine, node, monkeypatch
):
    monkeypatch.setattr("bloomery.drivers.passwords._TRY_PAUSE_S", 0.01)
    shown = clean(stage, node, password=LONG)  # ipmi_sim is such a BMC
    assert "refuses a login with it" in shown["last_error"]
    assert "choose 16 characters at most" in shown["last_error"]
    assert stored(stage.site, node)[0] == LONG[:16]
    assert opens(machine, LONG[:16])
    assert stage.power(node, "power on")["power_state"] == "power on"


def test_a_user_that_the_bmc_does_not_list_is_named(stage, machine, node, monkeypatch):
    lists_nobody(monkeypatch)
    error = clean(stage, node)["last_error"]
    assert "it lists no such user; change it at the BMC" in error
    assert opens(machine, stored(stage.site, node)[0])


def lists_nobody(monkeypatch):
    def run(own, arguments, **more):
        output = RUN(own, arguments, **more)
        return "" if "list" in arguments else output

    monkeypatch.setattr(tool, "run", run)


REFUSAL = "Unable to send RAW command (netfn=0x6 cmd=0x47 rsp=0xcc): Invalid data field in request"


@pytest.mark.parametrize(
    ("is_sent", "message", "times", "is_changed"),
    [
        (False, "Get Auth Capabilities error", 1, True),
        (True, "Close Session command failed", 1, True),
        (True, "Get Auth Capabilities error", 1, True),
        (False, REFUSAL, 1, False),
        (False, None, 9, False),
        (False, None, 1, True),
    ],
)
def test_at_the_end_a_password_works_whatever_the_answer(
    stage, machine, node, monkeypatch, is_sent, message, times, is_changed
):
    monkeypatch.setattr("bloomery.drivers.passwords._TRY_PAUSE_S", 0.01)
    left = [times]

    def run(own, arguments, *, secret=None, **more):
        if secret is None or not left[0]:
            return RUN(own, arguments, secret=secret, **more)
        left[0] -= 1
        output = RUN(own, arguments, secret=secret, **more) if is_sent else ""
        if message is not None:
            raise tool.Failed(message)
        return output

    monkeypatch.setattr(tool, "run", run)
    shown = clean(stage, node, password=OWN)
    assert (shown["last_error"] is None) is is_changed
    now = stored(stage.site, node)[0]
    assert (now == OWN) is is_changed
    assert any(opens(machine, each) for each in stored(stage.site, node) if each)
    assert stage.power(node, "power on")["power_state"] == "power on"
    assert OWN not in str(shown["last_error"])


def test_no_secret_is_told_and_none_is_on_a_command_line(stage, node, monkeypatch, caplog):
    lines, started = [], tool.subprocess.run
    monkeypatch.setattr(
        tool.subprocess, "run", lambda line, **more: (lines.append(line), started(line, **more))[1]
    )
    clean(stage, node, password=OWN)
    texts = [stage.api.get(f"/v1/nodes/{node}{path}").body.decode()
             for path in ("", "/history?detail=true")]  # fmt: skip
    texts += [str(stage.site.events(node)), str(stage.site.runs(node)), caplog.text, str(lines)]
    texts.append(str(stage.site.node(node).driver_internal_info))
    octets = " ".join(f"0x{byte:02x}" for byte in OWN.encode())
    assert not [text for text in texts if OWN in text or octets in text]
    assert (
        "The password of BMC user admin was changed: driver_info/ipmi_password has it" in texts[1]
    )
    assert any("exec" in line for line in lines)


def test_a_login_by_redfish_that_is_the_same_is_changed_too(stage, machine):
    redfish = {"redfish_username": "admin", "redfish_password": "password"}
    node = manageable(stage, machine, **redfish)
    clean(stage, node)
    opened = stage.site.runtime.sealer.open(stage.site.node(node).driver_info)
    assert opened["redfish_password"] == opened["ipmi_password"] != "password"


def test_a_password_that_the_bmc_lost_is_told(stage, machine, node):
    clean(stage, node, password=OWN)
    forget_password(machine)
    assert opens(machine, "password")
    assert stage.power(node, "power on")["power_state"] == "power on"
    why = stage.why(node)
    assert "takes the one before: it lost the change" in why["cause"]
    assert "management.set_bmc_password" in why["next_action"]
    clean(stage, node)
    assert opens(machine, stored(stage.site, node)[0])


def test_nodes_with_one_user_share_the_change(stage, machine, node):
    other = manageable(stage, machine)
    clean(stage, node)
    assert stored(stage.site, other)[0] == stored(stage.site, node)[0] != "password"
    assert stage.power(other, "power on")["power_state"] == "power on"


@pytest.mark.parametrize("args", [{}, {"password": LONG[:16]}], ids=["random", "own"])
def test_a_killed_conductor_leaves_a_password_that_works(tmp_path: Path, machine, args):
    commits = 0
    while _dies_after(commits, tmp_path / f"{commits}.sqlite", machine, args):
        commits += 1
        forget_password(machine)
    assert commits > 3


def _dies_after(commits: int, path: Path, machine, args) -> bool:
    """Kill the conductor after so many commits of a change; return whether it had as many."""
    hardware = registry.load(conf())
    site = Site(path, db=(db := database(path, Mortal)), registry=hardware)
    node = manageable(Stage(site), machine)
    db.lives = db.commits + commits
    steps = [STEP | {"args": args}]

    def is_over():
        row = site.node(node)
        return (row.provision_state, row.reservation) == ("manageable", None) and (
            stored(site, node)[0] != "password"
        )

    with contextlib.suppress(Dead):
        site.order(
            "do_provisioning_action", node, "clean", {"steps": steps, "disable_ramdisk": True}
        )
        wait_for(lambda: db.died.is_set() or is_over(), "an end")
    died = db.died.is_set()
    site.close()
    site = site.restarted(registry=hardware)
    try:
        assert any(opens(machine, each) for each in stored(site, node) if each), commits
        site.wait_for_state(node, "manageable")
        wait_for(lambda: site.is_free(node), "the node to be free")
        assert site.node(node).last_error is None
        assert opens(machine, stored(site, node)[0]), commits
    finally:
        site.close()
    return died
