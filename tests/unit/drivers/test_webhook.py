"""Power by webhook: the server of the guide, and what servers do wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.conductor import Conductor
from bloomery.conf.drivers import WebhookPower as Options
from bloomery.drivers import webhook
from bloomery.model.node import INTERFACES
from tests.kit.machines.driver_task import FakeTask, walk
from tests.kit.machines.power_hooks import PATH, PowerHooks

ON, OFF = "power on", "power off"
CONF = dataclasses.replace(
    Conf(),
    webhook=Options(allow_local=True, timeout=1),
    conductor=Conductor(power_state_change_timeout=1),
)
READ_URL = "webhook_power_read_url"


@pytest.fixture
def hooks() -> Iterator[PowerHooks]:
    with PowerHooks() as hooks:
        yield hooks


@pytest.fixture
def task(hooks: PowerHooks) -> FakeTask:
    return FakeTask(hooks.driver_info)


@pytest.fixture
def power() -> webhook.WebhookPower:
    return webhook.WebhookPower(dataclasses.replace(CONF))


def answers(status: int, body: bytes = b"", **headers: str) -> Callable[[Any], bool]:
    def fault(handler: Any) -> bool:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)
        return False

    return fault


def hangs(handler: Any) -> bool:
    handler.hooks.released.wait(30)
    return False


def floods(handler: Any) -> bool:
    """Send 100 MB, or as much as the client takes."""
    handler.send_response(200)
    handler.end_headers()
    try:
        for _ in range(1600):
            handler.wfile.write(bytes(1 << 16))
    except OSError:
        handler.close_connection = True
    return False


def loses_the_answer(handler: Any) -> bool:
    """Do it, and hang up."""
    handler.hooks.outlets[PATH] = "on"
    handler.close_connection = True
    return False


def test_its_type_names_each_kind_of_interface():
    assert sorted(webhook.WebhookHardware.supported) == sorted(INTERFACES)


@pytest.mark.parametrize(
    ("before", "target", "after", "calls"),
    [
        ("off", ON, ON, ["read", "on", "read"]),
        ("on", ON, ON, ["read"]),
        ("on", OFF, OFF, ["read", "off", "read"]),
        ("on", "rebooting", ON, ["read", "off", "read", "read", "on", "read"]),
        ("off", "rebooting", ON, ["read", "read", "on", "read"]),
    ],
)
def test_an_order_is_done_when_the_state_reads_so(hooks, task, power, before, target, after, calls):
    hooks.outlets[PATH] = before
    walk(task, lambda: power.set_power_state(task, target))
    assert (hooks.power, task.node.power_state) == (after, after)
    assert hooks.calls == [f"power.{verb}" for verb in calls]
    assert not task.node.driver_internal_info.get("webhook_power")


def test_nothing_is_written_without_the_lock(hooks, power):
    task = FakeTask(hooks.driver_info, shared=True)
    assert power.get_power_state(task) == OFF
    with pytest.raises(errors.ExclusiveLockRequired):
        power.set_power_state(task, ON)
    assert hooks.calls == ["power.read", "power.read"]


@pytest.mark.parametrize(
    ("fault", "error", "sentence"),
    [
        (answers(200, b"<html>"), errors.BmcUnreadable, "neither"),
        (answers(200, b'{"power": "maybe"}'), errors.BmcUnreadable, "neither"),
        (answers(200, b'["on"]'), errors.BmcUnreadable, "neither"),
        (answers(200, b'{"power": ["on"]}'), errors.BmcUnreadable, "neither"),
        (answers(200, b"[" * 10_000), errors.BmcUnreadable, "neither"),
        (floods, errors.BmcUnreadable, "neither"),
        (answers(302, Location="http://169.254.169.254/"), errors.BmcRefused,
         f"redirects .HTTP 302.*driver_info/{READ_URL}"),
        (answers(401), errors.BmcLoginRefused, "signature .HTTP 401.*driver_info/webhook_secret"),
        (answers(404), errors.BmcRefused, f"HTTP 404.*driver_info/{READ_URL}"),
        (answers(503, Retry_After="7"), errors.BmcBusy, "HTTP 503"),
        (answers(500), errors.BmcFailed, "HTTP 500"),
        (hangs, errors.BmcUnreachable, "longer than 1 s"),
    ],
)  # fmt: skip
def test_what_a_server_does_wrong_is_named(hooks, task, power, fault, error, sentence):
    hooks.faults["power.read"] = [fault]
    with pytest.raises(error, match=sentence) as caught:
        power.get_power_state(task)
    assert type(caught.value) is error
    assert hooks.secret not in str(caught.value)
    assert PATH not in str(caught.value)  # it may be a secret
    if error is errors.BmcBusy:
        assert caught.value.facts["retry_after_s"] == 7


def test_a_server_that_is_not_there_is_unreachable(hooks, task, power):
    task.driver_info[READ_URL] = "http://127.0.0.1:1/outlets/1"
    with pytest.raises(errors.BmcUnreachable, match=r"at http://127.0.0.1:1: Connection refused"):
        power.get_power_state(task)


@pytest.mark.parametrize(
    ("fault", "calls"),
    [
        (loses_the_answer, ["read", "on", "read"]),
        (answers(500), ["read", "on", "read", "on", "read"]),
        (answers(429), ["read", "on", "read", "on", "read"]),
    ],
)
def test_an_order_without_a_clear_answer_is_sent_again_unless_it_was_done(
    hooks, task, power, fault, calls
):
    hooks.faults["power.on"] = [fault]
    walk(task, lambda: power.set_power_state(task, ON))
    assert hooks.power == task.node.power_state == ON
    assert hooks.calls == [f"power.{verb}" for verb in calls]


def test_an_order_that_is_refused_fails_at_once(hooks, task, power):
    hooks.faults["power.on"] = [answers(404)]
    with pytest.raises(errors.BmcRefused, match="driver_info/webhook_power_on_url"):
        power.set_power_state(task, ON)
    assert hooks.calls == ["power.read", "power.on"]
    assert task.node.driver_internal_info == {}


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let the time of an order be over."""
    now = webhook.clock.now

    def pass_time() -> None:
        later = now() + webhook.timedelta(seconds=10)
        monkeypatch.setattr(webhook.clock, "now", lambda: later)

    return pass_time


def test_an_outlet_that_does_not_switch_is_named_at_the_end(hooks, task, power, late):
    hooks.faults["power.on"] = [answers(204)]
    power.set_power_state(task, ON)
    late()
    task.turn = 1
    with pytest.raises(errors.PowerStateFailure, match="accepted the order, and still reads power"):
        power.set_power_state(task, ON)
    assert task.node.power_state != ON


def test_silence_at_the_end_is_named_as_such(hooks, task, power, late):
    power.set_power_state(task, ON)
    hooks.faults["power.read"] = [answers(503)]
    late()
    task.turn = 1
    with pytest.raises(errors.BmcBusy):
        power.set_power_state(task, ON)


def test_a_crash_between_order_and_read_orders_nothing_twice(hooks, task, power):
    power.set_power_state(task, ON)
    again = FakeTask(hooks.driver_info)
    again.node.driver_internal_info.update(task.node.driver_internal_info)
    walk(again, lambda: power.set_power_state(again, ON))
    assert hooks.calls.count("power.on") == 1


def test_a_machine_that_must_not_go_off_is_not_rebooted(hooks, task, power):
    task.node.disable_power_off = True
    with pytest.raises(errors.InvalidParameterValue, match="disable_power_off"):
        power.reboot(task)
    assert hooks.calls == []


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"webhook_secret": None}, errors.MissingParameterValue, "webhook_secret is missing"),
        ({READ_URL: ""}, errors.MissingParameterValue, f"{READ_URL} is missing"),
        ({"webhook_secret": "short"}, errors.InvalidParameterValue, "24 to 64 bytes in base64"),
        ({READ_URL: 5}, errors.InvalidParameterValue, "URL in ASCII"),
        ({READ_URL: "ftp://pdu/1"}, errors.InvalidParameterValue, "http and https"),
        ({READ_URL: "https://u:p@pdu/1"}, errors.InvalidParameterValue, "leave user and password"),
        ({READ_URL: "http://pdu/1\r\nX: y"}, errors.InvalidParameterValue, "URL in ASCII"),
        ({"webhook_verify_ca": "/none"}, errors.InvalidParameterValue, "path of a file"),
    ],
)
def test_a_setting_is_refused_by_name(hooks, task, power, change, error, sentence):
    power.validate(task)
    task.driver_info.update(change)
    with pytest.raises(error, match=sentence) as caught:
        power.validate(task)
    assert hooks.secret not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1/1", "http://[::1]/1", "http://169.254.169.254/", "http://2130706433/"]
)
def test_the_conductors_own_host_is_called_only_where_that_is_allowed(hooks, task, url):
    task.driver_info[READ_URL] = url
    own = webhook.WebhookPower(Conf())
    for ask in (own.validate, own.get_power_state):
        with pytest.raises(errors.InvalidParameterValue, match=r"\[webhook\]allow_local"):
            ask(task)


def test_a_name_that_leads_to_the_own_host_is_refused_at_the_call(hooks, task):
    task.driver_info = {
        key: value.replace("127.0.0.1", "localhost") for key, value in task.driver_info.items()
    }
    own = webhook.WebhookPower(Conf())
    own.validate(task)  # names are not resolved there
    with pytest.raises(errors.InvalidParameterValue, match=r"\[webhook\]allow_local"):
        own.get_power_state(task)
    assert hooks.calls == []


def test_two_nodes_with_one_url_are_one_system_and_a_sealed_url_is_none():
    kind = webhook.WebhookHardware()
    one, other = "https://pdu/outlets/1", "https://pdu/outlets/2"
    same, differs = (kind.bmc_system({READ_URL: url}) for url in (one, other))
    assert same is not None
    assert differs is not None
    assert same.is_same(kind.bmc_system({READ_URL: one}))
    assert not same.is_same(differs)
    assert kind.bmc_system({READ_URL: {"$sealed": "a", "token": "b"}}) is None
