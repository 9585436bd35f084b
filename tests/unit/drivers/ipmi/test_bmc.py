from __future__ import annotations

import dataclasses

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.drivers import Ipmi
from bloomery.drivers.base import WRITE_BUDGET_S
from bloomery.drivers.ipmi import hardware, tool
from bloomery.drivers.ipmi.bmc import RateLimit
from tests.kit.machines.driver_task import FakeTask
from tests.unit.drivers.ipmi.conftest import LEAST

BUSY = tool.Failed("Get Chassis Power Status failed: Node busy")
MUTE = tool.Failed("no answer")
NO_SUITE = tool.Failed("Error in open session response message : no matching cipher suite")
WRONG = tool.Failed("RAKP 2 HMAC is invalid")
ASK = ("power", "status")
OFF = "Chassis Power is off\n"


def test_commands_keep_their_distance(make_bmc, clock):
    asked = make_bmc()
    asked.ask(*ASK)
    assert (asked.rest_s(), clock.pauses) == (0.5, [])
    clock.now += 0.25
    asked.ask(*ASK)
    assert (asked.rest_s(), clock.pauses) == (0.5, [0.25])


def test_a_bmc_that_was_busy_gets_the_long_distance_from_then_on(make_bmc, made_up, clock):
    made_up.answers["power status"] = [BUSY]
    asked = make_bmc()
    assert asked.ask(*ASK) == OFF
    assert (asked.rest_s(), clock.pauses) == (5.0, [5.0])


def test_a_silent_bmc_gets_the_long_distance_until_it_answers(make_bmc, made_up, clock):
    made_up.answers["power status"] = [MUTE, MUTE]
    asked = make_bmc()
    assert asked.ask(*ASK) == OFF
    assert asked.ask(*ASK) == OFF
    assert (asked.rest_s(), clock.pauses) == (0.5, [5.0, 5.0, 5.0])


def test_the_distance_counts_from_the_end_of_a_command(make_bmc, made_up, clock):
    asked, made_up.takes_s = make_bmc(), 7.0
    asked.ask(*ASK)
    assert asked.rest_s() == 0.5


def test_the_distance_can_be_nothing(make_bmc, clock):
    asked = make_bmc(min_command_interval=0)
    for _ in range(3):
        asked.ask(*ASK)
    assert (asked.rest_s(), clock.pauses) == (0.0, [])


def test_a_busy_bmc_is_asked_again_until_it_answers(make_bmc, made_up, clock):
    made_up.answers["power status"] = [BUSY, MUTE]
    assert make_bmc().ask(*ASK) == OFF
    assert clock.pauses == [5.0, 5.0]


def test_a_mute_bmc_is_given_up_when_the_time_is_up(make_bmc, made_up, clock):
    made_up.answers["power status"] = [MUTE] * 100
    made_up.takes_s = 10.0
    began = clock.now
    with pytest.raises(errors.BmcUnreachable, match=r"no answer \(4 tries in 55 s\)") as caught:
        make_bmc().ask(*ASK)
    assert clock.now - began <= 60
    assert len(made_up.asked) == 4  # 10 seconds each, 5 between two
    assert caught.value.facts["address"] == "bmc.example.org:623"


def test_there_are_only_so_many_tries(make_bmc, made_up):
    made_up.answers["power status"] = [MUTE] * 100
    with pytest.raises(errors.BmcUnreachable):
        make_bmc(command_retry_timeout=20, min_command_interval=5).ask(*ASK)
    assert len(made_up.asked) == 4


def test_a_bmc_that_failed_too_often_is_left_alone(make_bmc, made_up):
    made_up.answers["power status"] = [MUTE] * 100
    asked = make_bmc(command_retry_timeout=600)
    with pytest.raises(errors.BmcUnreachable):
        asked.ask(*ASK)
    assert len(made_up.asked) == 5  # [bmc]breaker_failures
    with pytest.raises(errors.BmcUnreachable, match="left alone after 5 failures"):
        asked.ask(*ASK)
    assert len(made_up.asked) == 5


def test_a_refusal_is_final(make_bmc, made_up, clock):
    made_up.answers["power status"] = [WRONG]
    with pytest.raises(errors.BmcRefused, match=r"ipmi_password .* is wrong: RAKP 2 HMAC"):
        make_bmc().ask(*ASK)
    assert made_up.asked == ["power status"]


def test_the_operator_may_call_a_refusal_retryable(make_bmc, made_up):
    made_up.answers["power status"] = [WRONG]
    asked = make_bmc(additional_retryable_ipmi_errors=("RAKP 2 HMAC",))
    assert asked.ask(*ASK) == OFF


def test_with_retries_of_ipmitool_only_what_is_put_off_is_repeated(make_bmc, made_up):
    asked = make_bmc(use_ipmitool_retries=True)
    made_up.answers["power status"] = [BUSY]
    assert asked.ask(*ASK) == OFF
    made_up.answers["power status"] = [MUTE]
    with pytest.raises(errors.BmcUnreachable):
        asked.ask(*ASK)
    assert made_up.patience[-1] == tool.Patience(retries=12, interval_s=5)


def test_without_them_ipmitool_tries_once(make_bmc, made_up):
    make_bmc(min_command_interval=0).ask(*ASK)
    assert made_up.patience == [tool.Patience(retries=1, interval_s=1)]


@pytest.mark.parametrize(
    ("keys", "suites"),
    [
        ({"ipmi_cipher_suite": None}, [17, 3]),
        ({"ipmi_cipher_suite": 8}, [8]),
        ({"ipmi_cipher_suite": None, "ipmi_protocol_version": "1.5"}, [None]),
    ],
)
def test_cipher_suites_are_tried_from_the_last(make_bmc, made_up, keys, suites):
    made_up.answers["power status"] = [NO_SUITE] * 100
    with pytest.raises(errors.BmcRefused, match="does not take this ipmi_cipher_suite"):
        make_bmc(cipher_suite_versions=("3", "17"), **keys).ask(*ASK)
    assert made_up.suites == suites


def test_the_suite_that_worked_is_the_first_one_later(make_bmc, made_up):
    made_up.answers["power status"] = [NO_SUITE]
    asked = make_bmc(cipher_suite_versions=("3", "17"), ipmi_cipher_suite=None)
    asked.ask(*ASK)
    asked.ask(*ASK)
    assert made_up.suites == [17, 3, 3]


def test_without_suites_ipmitool_chooses(make_bmc, made_up):
    make_bmc(ipmi_cipher_suite=None).ask(*ASK)
    assert made_up.suites == [None]


def test_a_row_of_commands_that_is_too_long_is_told(make_bmc, made_up, clock):
    made_up.answers["power status"] = [BUSY]
    asked = make_bmc(command_retry_timeout=4)
    with pytest.raises(errors.BmcBusy, match="is busy: Get Chassis Power Status failed: Node busy"):
        asked.ask(*ASK)
    with pytest.raises(errors.BmcUnreachable, match="other commands keep it busy"):
        asked.ask(*ASK)
    assert clock.pauses == []
    assert asked.state.breaker.failures == 0  # a busy BMC has answered


def test_places_in_the_row_are_given_once(clock):
    rate_limit = RateLimit(clock, clock.pause)
    assert [rate_limit.claim("a", 5, 60) for _ in range(3)] == [0.0, 5.0, 10.0]
    assert rate_limit.claim("a", 5, 15) is None
    assert rate_limit.claim("b", 5, 60) == 0.0
    assert rate_limit.rest_s("a") == 15.0


def test_what_changes_something_needs_the_lock(make_bmc, made_up):
    asked = make_bmc(FakeTask({"ipmi_address": "h"}, shared=True))
    with pytest.raises(errors.ExclusiveLockRequired):
        asked.tell("power", "on", write=True)
    assert made_up.asked == []


def test_wrong_cipher_suites_keep_us_from_starting():
    conf = dataclasses.replace(Conf(), ipmi=Ipmi(cipher_suite_versions=("3", "best")))
    with pytest.raises(errors.CannotStart, match=r"\[ipmi\]: option cipher_suite_versions"):
        hardware.IpmitoolInterface(conf)


def test_a_wrong_password_is_shown_once(make_bmc, made_up):
    made_up.answers["power status"] = [WRONG] * 9
    asked = make_bmc()
    with pytest.raises(errors.BmcLoginRefused, match="RAKP 2 HMAC"):
        asked.ask(*ASK)
    for _ in range(3):
        with pytest.raises(errors.BmcLeftAlone, match="next try in") as told:
            asked.ask(*ASK)
    assert len(made_up.asked) == 1
    assert told.value.facts["retry_after_s"] > 50
    assert asked.describe()["login_refused"]["tries"] == 1


SECRET = {"ipmi_password": "pa55word", "ipmi_hex_kg_key": "c0ffee"}


@pytest.mark.parametrize("said", ["Get Device ID failed", "RAKP 2 HMAC is invalid"])
def test_what_a_bmc_echoes_of_its_login_is_told_to_nobody(make_bmc, made_up, said):
    told = f"{said}: user admin, ******, key ******"
    failed = tool.Failed(f"{said}: user admin, pa55word, key C0FFEE", told)
    made_up.answers["power status"] = failed
    with pytest.raises(errors.Failure, match=f"{said}: user admin, [*]{{6}}, key [*]{{6}}$"):
        make_bmc(**SECRET, command_retry_timeout=1).ask("power", "status")


@pytest.mark.parametrize("password", ["invalid", "password", "wrong"])
def test_a_password_that_is_an_everyday_word_confuses_nobody(make_bmc, made_up, password):
    made_up.answers["power status"] = tool.Failed("RAKP 2 HMAC is invalid")
    with pytest.raises(errors.BmcLoginRefused, match=r"ipmi_password \(or .*\) is wrong: RAKP 2"):
        make_bmc(ipmi_password=password).ask("power", "status")


def test_a_look_with_a_short_budget_is_given_up_soon(make_bmc, made_up, clock):
    made_up.answers["power status"] = [MUTE] * 100
    made_up.takes_s, task = 4.0, FakeTask(LEAST)
    task.budget_s, began = 10.0, clock.now
    with pytest.raises(errors.BmcUnreachable):
        make_bmc(task).ask(*ASK)
    assert clock.now - began < 15  # one that was begun in time ends


@pytest.mark.parametrize(("budget_s", "failures"), [(10.0, 0), (None, 1)])
def test_who_had_little_time_himself_blames_no_bmc(make_bmc, made_up, budget_s, failures):
    made_up.answers["power status"] = tool.Failed("no answer", was_killed=True)
    task = FakeTask(LEAST)
    task.budget_s = budget_s
    asked = make_bmc(task)
    with pytest.raises(errors.BmcUnreachable):
        asked.tell(*ASK)
    record = asked._gateway.bmc(asked.info.key)
    assert (record.breaker.failures, record.is_suspect) == (failures, True)


def test_the_lease_is_looked_at_when_the_gap_has_passed(make_bmc, made_up, clock):
    task = FakeTask(LEAST)
    asked = make_bmc(task)
    asked.tell("power", "on", write=True)
    ends_at = clock.now + 0.25

    def look():
        if clock.now > ends_at:
            raise errors.LockLost(node="n", holder="other")

    task.assert_lease = look
    with pytest.raises(errors.LockLost):
        asked.tell("power", "off", write=True)
    assert made_up.asked == ["power on"]
    assert clock.pauses == [0.5]


def test_the_lease_is_looked_at_before_each_cipher_suite(make_bmc, made_up):
    task, looks = FakeTask({"ipmi_address": "bmc"}), []

    def look():
        looks.append(len(made_up.suites))
        if made_up.suites:
            raise errors.LockLost(node="n", holder="other")

    task.assert_lease = look
    made_up.answers["power on"] = NO_SUITE
    with pytest.raises(errors.LockLost):
        make_bmc(task, cipher_suite_versions=("3", "17")).tell("power", "on", write=True)
    assert made_up.suites == [17]
    assert looks[-1] == 1


def test_a_look_needs_no_lease(make_bmc):
    task = FakeTask(LEAST, shared=True)
    assert make_bmc(task).ask(*ASK) == OFF


@pytest.mark.parametrize("kills", [True, False])
def test_a_write_ends_before_the_lease_may_be_anothers(make_bmc, made_up, kills):
    bmc = make_bmc(kill_on_timeout=kills)
    bmc.ask("power", "on", write=True)
    bmc.ask("power", "status")
    write_s, look_s = made_up.limits_s
    assert write_s == WRITE_BUDGET_S
    assert (look_s is None) is not kills
