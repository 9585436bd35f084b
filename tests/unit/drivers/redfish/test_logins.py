"""One login per account, refused ones left alone, sessions given back."""

from __future__ import annotations

import dataclasses
import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.drivers import BmcOptions, Redfish
from bloomery.drivers.bmc.gateway import BmcCall
from bloomery.drivers.redfish import access, reset
from bloomery.lab.bmc import Rules
from bloomery.lab.rack import Rack
from tests.kit import waiting
from tests.kit.machines.driver_task import FakeTask

SESSIONS = "Sessions$"


@pytest.fixture
def conf():
    return dataclasses.replace(
        Conf(), redfish=Redfish(connect_timeout=1, read_timeout=1), bmc=BmcOptions(login_pause=60)
    )


def power(system):
    return system.power_state.value


def mistyped(machine, **more):
    return FakeTask(machine.driver_info | {"redfish_password": "mistyped"} | more)


@pytest.mark.parametrize("auth", ["auto", "session", "basic"])
def test_a_wrong_password_is_shown_once(way, clock, machine, auth):
    task = mistyped(machine, redfish_auth_type=auth)
    with pytest.raises(errors.BmcLoginRefused, match="the user name or the password"):
        way.read(task, power)
    assert machine.bmc.refused == 1
    for _ in range(5):
        with pytest.raises(errors.BmcLeftAlone, match="next try in 60 s") as told:
            way.read(task, power)
    assert machine.bmc.refused == 1
    assert told.value.facts["retry_after_s"] == 60


def test_it_is_tried_again_after_pauses_that_grow(way, clock, machine):
    task = mistyped(machine)
    tried_at = []
    began_at = clock.now
    while clock.now < began_at + 20_000:
        before = machine.bmc.refused
        with pytest.raises((errors.BmcLoginRefused, errors.BmcLeftAlone)):
            way.read(task, power)
        if machine.bmc.refused > before:
            tried_at.append(clock.now - began_at)
        clock.now += 60
    pauses = [later - earlier for earlier, later in itertools.pairwise(tried_at)]
    assert pauses[:7] == [60, 120, 240, 480, 960, 1920, 3600]
    assert set(pauses[7:]) == {3600}


def test_another_password_is_tried_at_once_and_the_right_one_ends_it(way, clock, machine, task):
    with pytest.raises(errors.BmcLoginRefused):
        way.read(mistyped(machine), power)
    assert way.read(task, power) == "Off"
    assert way.describe(task)["login_refused"] is None


def test_an_operator_who_insists_does_not_show_a_wrong_password_again(way, machine):
    task = mistyped(machine)
    task.insists = True
    for _ in range(3):
        with pytest.raises((errors.BmcLoginRefused, errors.BmcLeftAlone)):
            way.read(task, power)
    assert machine.bmc.refused == 1


def test_a_refused_login_does_not_make_the_bmc_a_suspect(way, machine, task):
    for _ in range(10):
        with pytest.raises((errors.BmcLoginRefused, errors.BmcLeftAlone)):
            way.read(mistyped(machine), power)
    assert not way.bmc(task).is_suspect
    assert way.read(task, power) == "Off"


def test_why_tells_of_a_refused_login(way, machine):
    task = mistyped(machine)
    with pytest.raises(errors.BmcLoginRefused):
        way.read(task, power)
    told = way.describe(task)["login_refused"]
    assert told["tries"] == 1
    assert told["next_try_at"] > told["since"]


def test_a_password_that_becomes_valid_is_taken_at_the_next_try(way, clock, machine, task):
    machine.bmc.faults.add(kind="status", status=401, path=SESSIONS)
    with pytest.raises(errors.BmcLoginRefused):
        way.read(task, power)
    clock.now += 60
    assert way.read(task, power) == "Off"
    assert way.describe(task)["login_refused"] is None


@pytest.mark.parametrize("status", [404, 405, 501, 503])
def test_a_bmc_without_sessions_is_asked_with_a_password(way, task, machine, status):
    machine.bmc.faults.add(kind="status", status=status, path=SESSIONS, method="POST", times=-1)
    assert way.read(task, power) == "Off"
    assert way.read(task, power) == "Off"
    assert [fault["hits"] for fault in machine.bmc.faults.shown()] == [1]


def test_a_limit_of_sessions_is_borne_and_a_session_asked_for_later(way, clock):
    with Rack(1, rules=Rules(max_sessions=0)) as rack:
        machine = rack.machines[0]
        task = FakeTask(machine.driver_info)
        assert way.read(task, power) == "Off"
        machine.bmc.rules = Rules()
        assert way.read(task, power) == "Off"
        assert machine.bmc.sessions == {}
        clock.now += 3601
        assert way.read(task, power) == "Off"
        assert len(machine.bmc.sessions) == 1


def test_a_user_who_may_not_do_it_is_no_refused_login(way, task, machine):
    way.read(task, power)
    machine.bmc.faults.add(kind="status", status=403, path="/Systems/", times=-1)
    with pytest.raises(errors.BmcRefused, match="may not do that") as told:
        way.read(task, power)
    assert not isinstance(told.value, errors.BmcLoginRefused)
    assert machine.bmc.logins == 1


def reset_by(way, task):
    way.change(task, lambda system: reset.send(system, "ForceOff"))


@pytest.mark.parametrize("auth", ["session", "basic"])
@pytest.mark.parametrize(
    ("method", "path", "ask"),
    [
        ("POST", "Reset$", reset_by),
        ("GET", "/Bios$", lambda way, task: way.read(task, lambda system: system.bios)),
    ],
    ids=["action", "document"],
)
def test_a_401_of_one_action_or_document_is_no_refused_login(way, machine, auth, method, path, ask):
    info = machine.driver_info | {"redfish_auth_type": auth}
    task, other = FakeTask(info), FakeTask(info)
    way.read(task, power)
    machine.bmc.faults.add(kind="status", status=401, method=method, path=path, times=-1)
    for _ in range(3):
        with pytest.raises(errors.BmcRefused, match=r"may not do that \(HTTP 401") as refused:
            ask(way, task)
        assert not isinstance(refused.value, errors.BmcLoginRefused)
    assert way.read(other, power) == "Off"
    assert machine.bmc.logins == (auth == "session")
    assert way.describe(task)["login_refused"] is None


@pytest.mark.parametrize("auth", ["session", "basic"])
def test_a_password_that_was_changed_at_the_bmc_is_a_refused_login(way, machine, auth):
    task = FakeTask(machine.driver_info | {"redfish_auth_type": auth})
    way.read(task, power)
    machine.bmc.sessions.clear()
    machine.bmc.rules = dataclasses.replace(machine.bmc.rules, users={"admin": "another"})
    for _ in range(3):
        with pytest.raises((errors.BmcLoginRefused, errors.BmcLoginLeftAlone)):
            reset_by(way, task)
    assert way.describe(task)["login_refused"]["tries"] == 1
    assert machine.bmc.refused <= 2


@pytest.mark.parametrize(
    ("status", "body"),
    [(503, None), (400, {"error": {"code": "Base.1.8.SessionLimitExceeded", "message": "Full."}})],
    ids=["503", "limit"],
)
def test_a_bmc_without_a_free_session_that_takes_no_basic_says_nothing_of_the_password(
    way, task, machine, status, body
):
    full = {"kind": "status", "status": status, "body": body, "method": "POST", "path": SESSIONS}
    machine.bmc.faults.add(**full, times=-1)
    machine.bmc.faults.add(kind="status", status=401, path="/Systems", times=-1)
    for _ in range(3):
        with pytest.raises(errors.BmcBusy, match="all its sessions are in use, and it takes no"):
            way.read(task, power)
    sessions, systems = (fault["hits"] for fault in machine.bmc.faults.shown())
    assert (sessions, systems) == (3, 1)  # the password is sent once without a session
    assert way.describe(task)["login_refused"] is None
    machine.bmc.faults.clear()
    assert way.read(task, power) == "Off"


@pytest.mark.parametrize("auth", ["auto", "basic"])
def test_a_password_that_must_be_changed_is_no_wrong_one(way, machine, auth):
    """Source: OpenBMC's bmcweb: a session is given, and each request of it is 403."""
    task = FakeTask(machine.driver_info | {"redfish_auth_type": auth})
    info = [{"MessageId": "Base.1.13.0.PasswordChangeRequired", "Message": "Change it."}]
    body = {"error": {"code": "Base.1.13.0.PasswordChangeRequired", "@Message.ExtendedInfo": info}}
    machine.bmc.faults.add(kind="status", status=403, body=body, path="/Systems", times=-1)
    for _ in range(2):
        with pytest.raises(errors.BmcRefused, match="set a new password there, then in") as no:
            way.read(task, power)
        assert type(no.value) is errors.BmcPasswordChangeRequired
    machine.bmc.faults.clear()
    assert way.read(task, power) == "Off"


def test_a_refusal_that_is_older_than_a_success_pauses_nothing(way, task, machine):
    """Two calls begin; one is refused, and ends after the other one has succeeded."""
    way.read(task, power)
    bmc, key = way.bmc(task), access._key(way.account(task))
    refused = errors.BmcLoginRefused(node="n", address="a", reason="late")

    def be_overtaken():
        with way.gateway.login(bmc, key, task):
            way.read(task, power)
            raise refused

    with pytest.raises(errors.BmcLoginRefused):
        be_overtaken()
    assert way.read(task, power) == "Off"


def test_a_session_that_the_bmc_forgot_is_one_new_login(way, task, machine):
    way.read(task, power)
    machine.bmc.sessions.clear()
    assert way.read(task, power) == "Off"
    assert (machine.bmc.logins, len(machine.bmc.sessions)) == (2, 1)


def test_a_bmc_that_forgets_each_session_is_left_alone(way, task, machine):
    machine.bmc.faults.add(kind="expire", times=-1)
    for _ in range(5):
        with pytest.raises((errors.BmcLoginRefused, errors.BmcLeftAlone)):
            way.read(task, power)
    assert machine.bmc.logins == 2


def test_odd_documents_cost_no_further_login(way, task, machine):
    def odd(system):
        raise AttributeError("no such thing")

    for _ in range(4):
        with pytest.raises(errors.BmcUnreachable):
            way.read(task, odd)
    assert way.bmc(task).breaker.failures == 4
    assert machine.bmc.logins == 1


def test_sessions_are_given_back_when_the_conductor_ends(way, task, machine):
    way.read(task, power)
    assert len(machine.bmc.sessions) == 1
    way.close()
    assert machine.bmc.sessions == {}


def test_the_oldest_login_is_given_back_when_there_are_too_many():
    conf = dataclasses.replace(Conf(), redfish=Redfish(connection_cache_size=2))
    way = access.of(conf)
    with Rack(3, apart=True) as rack:
        for machine in rack.machines:
            way.read(FakeTask(machine.driver_info), power)
        oldest = rack.machines[0].bmc
        waiting.wait_for(lambda: not oldest.sessions, "the logout")
        assert [len(m.bmc.sessions) for m in rack.machines] == [0, 1, 1]
        way.close()


def test_a_mute_bmc_does_not_hold_up_the_end(way, task, machine, monkeypatch):
    monkeypatch.setattr(access, "_CLOSE_S", 0.05)
    way.read(task, power)
    machine.bmc.faults.add(kind="hang", seconds=30, method="DELETE", times=-1)
    way.close()
    assert len(machine.bmc.sessions) == 1  # nobody waited for its answer
    machine.bmc.stopping.set()


def test_a_bmc_that_echoes_what_it_was_shown_leaks_nothing(way, task, machine):
    import base64

    way.read(task, power)
    token = next(iter(machine.bmc.sessions))
    basic = base64.b64encode(b"admin:password").decode()
    echo = {"error": {"message": f"X-Auth-Token: {token}; Basic {basic}; password", "code": token}}
    machine.bmc.faults.add(kind="status", status=400, body=echo, path="/Systems/", times=-1)
    with pytest.raises(errors.BmcRefused, match=r"X-Auth-Token: \*\*\*") as told:
        way.read(task, power)
    said = str(told.value) + repr(told.value.facts)
    assert not [secret for secret in (token, basic, "password") if secret in said]


def test_the_end_is_waited_for_once_however_many_ask(way, task, machine, monkeypatch):
    """Each interface closes what all of them share."""
    waits = []
    monkeypatch.setattr(access, "wait", lambda pending, timeout: waits.append(len(pending)))
    way.read(task, power)
    for _ in range(3):
        way.close()
    assert [count for count in waits if count] == [1]


def test_a_session_that_is_gone_is_not_opened_to_be_given_back(way, task, machine):
    way.read(task, power)
    machine.bmc.sessions.clear()
    way.close()
    assert (machine.bmc.logins, machine.bmc.sessions) == (1, {})


def test_an_account_without_a_user_waits_for_no_login(way, machine, monkeypatch):
    """A BMC that asks for none gets as many calls at a time as any other."""
    monkeypatch.setattr(machine.bmc, "admit", lambda *_shown: None)
    nameless = {"redfish_username": None, "redfish_password": None}
    task = FakeTask({k: v for k, v in (machine.driver_info | nameless).items() if v is not None})
    way.read(task, power)
    other = FakeTask(task.driver_info)
    other.budget_s = 5.0
    with ThreadPoolExecutor(1) as pool:
        within = way.read(task, lambda _system: pool.submit(way.read, other, power).result())
    assert within == "Off"


def test_who_waits_for_the_login_of_another_call_is_no_failure_of_the_bmc(way, task):
    """The first call may take long; the BMC answers all the time."""
    account = way.account(task)
    login = way._enter(access._key(account), account)
    impatient = FakeTask(task.driver_info)
    impatient.budget_s = 0.01
    with login.one_at_a_time(task, BmcCall(way.bmc(task), "redfish", 1.0, lambda: 0.0)):
        for _ in range(6):
            with pytest.raises(errors.BmcLeftAlone, match="another call is logging in"):
                way.read(impatient, power)
    assert way.bmc(task).breaker.failures == 0
    assert way.read(task, power) == "Off"


def test_who_waits_for_a_renewal_is_no_failure_of_the_bmc(way, task, machine):
    way.read(task, power)
    auth = next(iter(way._logins.values())).built._auth
    machine.bmc.sessions.clear()
    impatient = FakeTask(task.driver_info)
    impatient.budget_s = 0.5
    with auth._one_at_a_time, pytest.raises(errors.BmcLeftAlone, match="logging in"):
        way.read(impatient, power)
    assert way.bmc(task).breaker.failures == 0
    assert way.read(task, power) == "Off"
