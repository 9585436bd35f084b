"""A machine whose power hangs on an operator's own HTTP server."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from bloomery.conductor.periodics import power_sync
from bloomery.conf import Conf
from bloomery.conf.default import Default
from bloomery.conf.drivers import WebhookPower
from bloomery.drivers import registry
from tests.kit.machines.power_hooks import PATH, PowerHooks
from tests.kit.servers.stories import Stage
from tests.kit.waiting import wait_for


@pytest.fixture
def hooks() -> Iterator[PowerHooks]:
    with PowerHooks() as hooks:
        yield hooks


@pytest.fixture
def stage(make_stage) -> Stage:
    conf = dataclasses.replace(
        Conf(),
        default=Default(enabled_hardware_types=("webhook",)),
        webhook=WebhookPower(allow_local=True),
    )
    return make_stage(registry=registry.load(conf))


@pytest.fixture
def node(stage: Stage, hooks: PowerHooks) -> str:
    node = stage.enrol(driver="webhook", driver_info=hooks.driver_info)
    stage.ask(node, "manage")
    stage.wait_for(node, "manageable")
    return node


def test_the_machine_goes_on_off_and_through_a_reboot(stage, hooks, node):
    assert stage.show(node)["power_state"] == "power off"
    for target, after in (
        ("power on", "power on"), ("rebooting", "power on"), ("power off", "power off"),
    ):  # fmt: skip
        shown = stage.power(node, target)
        assert (shown["last_error"], shown["target_power_state"]) == (None, None)
        assert shown["power_state"] == hooks.power == after
    orders = [call for call in hooks.calls if call != "power.read"]
    assert orders == ["power.on", "power.off", "power.on", "power.off"]


def test_secret_and_arguments_of_urls_stay_in_the_dark(stage, hooks, node):
    url = f"{hooks.url}?token=of-the-pdu"
    stage.patch(node, **{"driver_info.webhook_power_on_url": url})
    info = stage.show(node)["driver_info"]
    assert info["webhook_secret"] == "******"
    assert info["webhook_power_on_url"] == f"{hooks.url}?******"
    stage.power(node, "power on")  # the server knows no such path
    for secret in (hooks.secret, "of-the-pdu"):
        assert secret not in str(stage.site.everything())


def test_a_server_with_another_secret_is_named_in_the_error(stage, hooks, node):
    stage.patch(node, **{"driver_info.webhook_secret": "whsec_" + "A" * 32})
    shown = stage.power(node, "power on")
    assert "driver_info/webhook_secret" in shown["last_error"]
    assert hooks.power == "power off"


def test_power_sync_brings_an_outlet_that_somebody_switched_back(stage, hooks, node):
    hooks.outlets[PATH] = "on"
    sync = power_sync.PowerSync(stage.site.runtime)
    sync.run()
    wait_for(lambda: sync.is_idle and hooks.power == "power off", "the outlet to be off again")
    stage.wait_until_free(node)
    assert stage.show(node)["power_state"] == "power off"


def test_a_url_that_none_may_be_is_refused_at_once(stage, hooks):
    answer = stage.api.post(
        "/v1/nodes",
        {
            "driver": "webhook",
            "driver_info": hooks.driver_info | {"webhook_power_on_url": "ftp://pdu"},
        },
    )
    assert answer.status == 400
    assert "driver_info/webhook_power_on_url" in str(answer.json)


def test_validate_names_the_missing_key(stage, hooks):
    info = {k: v for k, v in hooks.driver_info.items() if k != "webhook_power_read_url"}
    node = stage.enrol(driver="webhook", driver_info=info)
    result = stage.api.get(f"/v1/nodes/{node}/validate").json["power"]
    assert not result["result"]
    assert "webhook_power_read_url" in result["reason"]
