"""Wait conditions and their handles: who signals what, who waits how long, what is told of it."""

from __future__ import annotations

import json

import pytest

from bloomery import errors
from bloomery.orchestration.resources import base
from bloomery.orchestration.resources.value import Value
from bloomery.orchestration.resources.wait_condition import (
    CfnWaitCondition,
    WaitCondition,
    WaitConditionFailure,
    WaitConditionTimeout,
)
from bloomery.orchestration.resources.wait_condition_handle import (
    CfnWaitConditionHandle,
    UpdateWaitConditionHandle,
    WaitConditionHandle,
)
from bloomery.outcome import DONE
from tests.kit.stacks.kinds import Clock, Siblings, made

URL = "http://h:8004/v1/p/stacks/s/1/resources/h/signal"


def created(kind=WaitConditionHandle, transport=None, **context):
    properties = {} if transport is None else {"signal_transport": transport}
    handle = made(kind, properties, name="h", endpoint="http://h:8004/v1", **context)
    handle.validate()
    handle.handle_create()
    return handle


def waiting(handle, clock=None, kind=WaitCondition, **properties):
    given = {"handle": handle.get_reference_id(), "timeout": 60, "count": 2, **properties}
    return made(kind, given, name="w", clock=clock, siblings=Siblings(handle))


# ------------------------------------------------------------------------------------ handles


def test_a_handle_gives_out_its_address_and_a_token_that_is_kept_secret():
    handle = created()
    token = handle.resolve_attribute("token")
    assert len(token) > 40
    assert handle.record.redacted == {"token"}
    assert handle.resolve_attribute("endpoint") == URL
    command = handle.resolve_attribute("curl_cli")
    assert command.startswith("curl -i -X POST ")
    assert f"-H 'X-Auth-Token: {token}'" in command
    assert command.endswith(f" {URL}")
    assert json.loads(handle.resolve_attribute("signal")) == {"endpoint": URL, "token": token}
    assert handle.resolve_attribute("other") is None


def test_other_transports_have_no_token():
    handle = created(transport="HEAT_SIGNAL")
    names = ("token", "endpoint", "curl_cli")
    assert [handle.resolve_attribute(name) for name in names] == [None] * 3
    assert json.loads(handle.resolve_attribute("signal")) == {
        "endpoint": URL,
        "project_id": "p",
        "stack_id": "s/1",
        "resource_name": "h",
    }
    handle = created(transport="CFN_SIGNAL")
    alarm_url = f"{URL}?token={handle.token()}"
    assert json.loads(handle.resolve_attribute("signal")) == {"alarm_url": alarm_url}
    assert json.loads(created(transport="NO_SIGNAL").resolve_attribute("signal")) == {}


@pytest.mark.parametrize("transport", ["TEMP_URL_SIGNAL", "ZAQAR_SIGNAL"])
def test_transports_of_other_services_are_refused_by_name(transport):
    with pytest.raises(errors.StackValidationFailed, match=f"{transport}.*use TOKEN_SIGNAL"):
        created(transport=transport)


@pytest.mark.parametrize(
    ("signal", "key", "kept"),
    [
        (None, "1", ("SUCCESS", "Signal 1 received", None)),
        ({}, "1", ("SUCCESS", "Signal 1 received", None)),
        ({"status": "FAILURE", "reason": "bad"}, "1", ("FAILURE", "bad", None)),
        ({"id": "x", "data": {"a": [1]}}, "x", ("SUCCESS", "Signal x received", {"a": [1]})),
        ({"id": 7}, "7", ("SUCCESS", "Signal 7 received", None)),
    ],
)
def test_a_signal_is_kept_under_its_id(signal, key, kept):
    handle = created()
    text = handle.handle_signal(signal)
    status, reason, data = kept
    assert handle.record.metadata == {key: {"status": status, "reason": reason, "data": data}}
    assert text == f"status:{status} reason:{reason}"


def test_the_number_of_a_signal_is_how_many_there_are_and_a_repeated_id_takes_the_place():
    handle = created()
    for signal in ({}, {}, {"id": "x"}, {"id": "x", "data": 5}, {}):
        handle.handle_signal(signal)
    assert list(handle.record.metadata) == ["1", "2", "x", "4"]
    assert handle.payload()["x"] == 5


@pytest.mark.parametrize("signal", [{"status": "MAYBE"}, {"stat": "SUCCESS"}, {"status": None}])
def test_a_signal_that_cannot_be_read_leaves_nothing(signal):
    handle = created()
    with pytest.raises(ValueError, match="cannot read the signal"):
        handle.handle_signal(signal)
    assert handle.record.metadata == {}


def test_signals_that_grow_beyond_all_measure_are_refused():
    handle = created()
    handle.handle_signal({"id": "a", "data": "x" * 900_000})
    with pytest.raises(ValueError, match="cannot keep the signal"):
        handle.handle_signal({"id": "b", "data": "x" * 200_000})
    assert list(handle.record.metadata) == ["a"]


def test_the_handles_of_cloudformation_are_known_by_an_address_and_have_words_of_their_own():
    assert made(CfnWaitConditionHandle).get_reference_id() == "a"
    handle = created(CfnWaitConditionHandle)
    assert handle.get_reference_id() == f"{URL}?token={handle.token()}"
    handle.handle_signal({"Status": "SUCCESS", "Reason": "r", "Data": "d", "UniqueId": "u"})
    assert handle.record.metadata == {"u": {"Status": "SUCCESS", "Reason": "r", "Data": "d"}}
    with pytest.raises(ValueError, match="status"):
        handle.handle_signal({"status": "SUCCESS"})


def test_an_update_handle_is_made_anew_by_each_update():
    handle = created(UpdateWaitConditionHandle)
    assert handle.always_updated
    with pytest.raises(base.UpdateReplace):
        handle.handle_update(None, {}, {})
    assert created(UpdateWaitConditionHandle, random=lambda: 0.1).get_reference_id() != (
        handle.get_reference_id()
    )


def test_an_adopted_handle_has_a_token_of_its_own():
    handle = made(WaitConditionHandle, name="h")
    handle.handle_adopt({"resource_id": "17", "resource_data": {"token": "of another"}})
    assert handle.token() != "of another"
    assert handle.record.redacted == {"token"}


# --------------------------------------------------------------------------------- conditions


def test_a_condition_waits_for_its_handle_until_it_was_signalled_often_enough():
    clock, handle = Clock(100), created()
    condition = waiting(handle, clock)
    token = condition.handle_create()
    for number in range(2):
        clock.now_s += 10
        waits = base.wait_for(handle.record.uuid, 50 - 10 * number)
        assert condition.check_create_complete(token) == waits
        handle.handle_signal({"data": number})
    assert condition.check_create_complete(json.loads(json.dumps(token))) == DONE
    assert condition.resolve_attribute("data") == '{"1": 0, "2": 1}'
    assert condition.resolve_attribute("other") is None


def test_a_failure_ends_the_wait_with_all_reasons():
    handle = created()
    condition = waiting(handle, count=5)
    token = condition.handle_create()
    for reason in ("no disk", "no net"):
        handle.handle_signal({"status": "FAILURE", "reason": reason})
    with pytest.raises(WaitConditionFailure, match=r"^no disk;no net$"):
        condition.check_create_complete(token)


@pytest.mark.parametrize(
    ("signals", "text"), [(0, "0 of 2 received"), (1, "1 of 2 received - Signal 1 received")]
)
def test_signals_that_do_not_come_in_time_fail_the_condition(signals, text):
    clock, handle = Clock(), created()
    condition = waiting(handle, clock)
    token = condition.handle_create()
    for _ in range(signals):
        handle.handle_signal({})
    clock.now_s = 60
    with pytest.raises(WaitConditionTimeout) as failure:
        condition.check_create_complete(token)
    assert str(failure.value) == text


def test_an_update_waits_anew_and_for_as_many_as_it_says():
    clock, handle = Clock(), created()
    condition = waiting(handle, clock, count=1)
    handle.handle_signal({})
    assert condition.check_create_complete(condition.handle_create()) == DONE
    clock.now_s, condition.properties["count"] = 1000, 2
    token = condition.handle_update(None, {}, {"count": 2})
    assert condition.check_update_complete(token).timeout_s == 60


def test_a_handle_that_is_not_signalled_is_not_waited_for():
    condition = waiting(created(transport="NO_SIGNAL"))
    assert condition.check_create_complete(condition.handle_create()) == DONE


def test_a_deleted_condition_forgets_the_signals():
    handle = created()
    condition = waiting(handle)
    handle.handle_signal({})
    condition.handle_delete()
    assert handle.record.metadata == {}


@pytest.mark.parametrize("sibling", [None, Value])
def test_a_condition_needs_a_handle_of_its_stack(sibling):
    siblings = Siblings(made(sibling, name="h")) if sibling else None
    condition = made(WaitCondition, {"handle": "h", "timeout": 1}, siblings=siblings)
    with pytest.raises(errors.NotFound, match="cannot wait at 'h': it is no wait condition handle"):
        condition.handle_create()
    condition.handle_delete()
    assert condition.resolve_attribute("data") is None


def test_a_condition_of_cloudformation_waits_likewise():
    handle = created(CfnWaitConditionHandle)
    given = {"Handle": handle.get_reference_id(), "Timeout": "60", "Count": 1}
    condition = made(CfnWaitCondition, given, siblings=Siblings(handle))
    token = condition.handle_create()
    handle.handle_signal({"UniqueId": "u", "Data": "d"})
    assert condition.check_create_complete(token) == DONE
    assert condition.resolve_attribute("Data") == '{"u": "d"}'
