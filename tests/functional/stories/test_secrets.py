"""Secrets: what must stay one, over a whole life of a node."""

from __future__ import annotations

import json
import logging

import pytest
import sqlalchemy as sa

from bloomery.db.tables import EVENTS, METADATA, NODE_HISTORY, NODES, STEP_RUNS
from bloomery.outcome import WaitForCall
from tests.kit.machines.scripted import Script, failing, in_turn
from tests.kit.servers.stories import OWN_EVENTS

BMC_PASSWORD = "hunter2-bmc"
RESCUE_PASSWORD = "hunter2-rescue"
STEP_PASSWORD = "hunter2-step"
DRIVE = "aHVudGVyMi1kcml2ZQ=="
URL_PASSWORD = "hunter2-url"
SIGNATURE, COMMUNITY, API_KEY = "hunter2-signature", "hunter2-community", "hunter2-key"
SECRETS = (
    BMC_PASSWORD, RESCUE_PASSWORD, STEP_PASSWORD, DRIVE, URL_PASSWORD, SIGNATURE, COMMUNITY,
    API_KEY,
)  # fmt: skip
LOGIN = f"https://alice:{URL_PASSWORD}@files.test"
DRIVER_INFO = {
    "deploy_kernel": f"{LOGIN}/kernel", "deploy_ramdisk": f"{LOGIN}/ramdisk",
    "deploy_iso": f"https://s3.test/agent.iso?X-Amz-Signature={SIGNATURE}",
    "image_http_proxy": f"http://alice:{URL_PASSWORD}@proxy.test:3128",
    "redfish_address": f"alice:{URL_PASSWORD}@bmc.test",
    "snmp_community": COMMUNITY, "api_key": API_KEY,
}  # fmt: skip
INSTANCE_INFO = {
    "image_source": f"https://blobs.test/os.raw?sv=1&sig={SIGNATURE}",
    "boot_iso": f"{LOGIN}/os.iso?token={SIGNATURE}",
}
SHOWN = {
    "deploy_kernel": "https://******@files.test/kernel",
    "deploy_ramdisk": "https://******@files.test/ramdisk",
    "deploy_iso": "https://s3.test/agent.iso?******",
    "image_http_proxy": "http://******@proxy.test:3128",
    "redfish_address": "******@bmc.test",
    "snmp_community": "******", "api_key": "******",
    "image_source": "https://blobs.test/os.raw?******",
    "boot_iso": "https://******@files.test/os.iso?******",
}  # fmt: skip
SOAP = [{"url": f"https://alice:{URL_PASSWORD}@files.test/soap"}]
ARGS = {"admin_password": STEP_PASSWORD, "soap": SOAP}
ANY_ARGS = {name: {"description": "for the soap", "required": False} for name in ARGS}
WASH = {"interface": "deploy", "step": "wash", "args": ARGS}


@pytest.fixture
def script():
    return Script(has_agents=True)


@pytest.fixture
def heard(script):
    """What the driver could read of the BMC's password, each time it looked."""
    seen = []
    script.when("prepare", lambda task: seen.append(task.driver_info["redfish_password"]))
    return seen


@pytest.fixture
def stage(make_stage, script):
    """A stage whose event rows hold all that notifications would tell."""
    return make_stage(registry=script.registry(), snapshots=True)


@pytest.fixture
def answers(stage, monkeypatch):
    """Every answer of the API."""
    bodies = []
    send = stage.api._send

    def listen(environ):
        answer = send(environ)
        bodies.append(answer.body.decode() + str(answer.headers))
        return answer

    monkeypatch.setattr(stage.api, "_send", listen)
    return bodies


def enrol(stage, **values):
    info = {"redfish_password": BMC_PASSWORD, "redfish_username": "root"} | DRIVER_INFO
    return stage.enrol(driver_info=info, instance_info=INSTANCE_INFO, **values)


def live(stage, script, node):
    """Let a node see most of what can happen to it, failures included."""
    for verb, state in (("manage", "manageable"), ("provide", "available")):
        stage.ask(node, verb)
        stage.wait_for(node, state)
    stage.ask(node, "active", configdrive=DRIVE)
    stage.wait_for(node, "active")
    stage.power(node, "power on")
    stage.ask(node, "rescue", rescue_password=RESCUE_PASSWORD)
    stage.wait_for(node, "rescue")
    stage.ask(node, "unrescue")
    stage.wait_for(node, "active")
    stage.ask(node, "service", service_steps=[WASH])
    stage.wait_for(node, "service wait")
    look_around(stage, node)
    stage.let_agents_call(node, "active")
    stage.ask(node, "deleted")
    stage.wait_for(node, "available")
    script.when("deploy", failing(RuntimeError(f"cannot log in with password={BMC_PASSWORD}")))
    stage.ask(node, "active", configdrive=DRIVE)
    stage.wait_for(node, "deploy failed")
    look_around(stage, node)
    assert stage.try_to(node, "active", configdrive={"password": DRIVE}).status == 400


def look_around(stage, node):
    """Ask for everything that can be asked about a node."""
    for path in (
        "", "/states", "/history?detail=true", "/validate", "/traits", "/bios", "/firmware",
    ):  # fmt: skip
        stage.api.get(f"/v1/nodes/{node}{path}")
    for path in ("/v1/nodes?detail=true", "/v1/nodes/detail", f"/ext/v1/nodes/{node}/why"):
        assert stage.api.get(path).status == 200


def traces(text):
    return [secret for secret in SECRETS if secret in text]


@pytest.fixture
def life(stage, script, answers, caplog):
    """A node that has lived, with everything that was said meanwhile."""
    caplog.set_level(logging.DEBUG)
    script.add("service", "wash", in_turn(WaitForCall(reason="soaking")), argsinfo=ANY_ARGS)
    script.add("deploy", "deploy")
    node = enrol(stage)
    live(stage, script, node)
    stage.nothing_is_left()
    return node


def test_no_secret_leaves_the_house(stage, life, answers, caplog):
    assert len(answers) > 30
    assert traces("".join(answers)) == []
    assert "******" in "".join(answers), "they are there, behind stars"
    records = caplog.get_records("setup")
    assert [record for record in records if record.levelno == logging.ERROR]
    assert [record.getMessage() for record in records if traces(record.getMessage())] == []
    assert [record.exc_text for record in records if traces(str(record.exc_text))] == []
    assert [record.exc_info for record in records if traces(str(record.exc_info))] == []


def test_no_secret_stands_in_any_row(stage, life):
    for table in METADATA.sorted_tables:
        with stage.site.db.read() as conn:
            assert traces(str(conn.execute(sa.select(table)).all())) == [], table.name
    for table in (EVENTS, NODE_HISTORY, STEP_RUNS):
        assert stage.site.rows(table), f"nothing was written into {table.name}"
    versioned = [row for row in stage.site.events(life) if row["action"] not in OWN_EVENTS]
    assert all(row["snapshot"] for row in versioned)


@pytest.mark.sqlite
def test_no_secret_stands_in_the_file(stage, life):
    stage.site.close()
    data = b"".join(path.read_bytes() for path in stage.site.path.parent.glob("site-*"))
    assert b"redfish_username" in data
    assert [secret for secret in SECRETS if secret.encode() in data] == []


def test_row_holds_it_sealed_and_the_driver_reads_it(stage, heard):
    node = enrol(stage)
    for verb, state in (("manage", "manageable"), ("provide", "available"), ("active", "active")):
        stage.ask(node, verb)
        stage.wait_for(node, state)
    [row] = stage.site.rows(NODES, uuid=node)
    assert "$sealed" in json.loads(row["driver_info"])["redfish_password"]
    assert heard == [BMC_PASSWORD]


def test_patch_of_another_key_keeps_it_readable(stage, heard):
    node = enrol(stage)
    stage.patch(node, **{"driver_info.redfish_address": "https://bmc.test", "extra.rack": "7"})
    for verb, state in (("manage", "manageable"), ("provide", "available"), ("active", "active")):
        stage.ask(node, verb)
        stage.wait_for(node, state)
    assert heard == [BMC_PASSWORD]
    assert stage.show(node)["driver_info"]["redfish_password"] == "******"


def test_addresses_are_shown_without_their_secrets_and_drivers_read_them(stage):
    node = enrol(stage)
    shown = stage.show(node)
    assert shown["driver_info"] | shown["instance_info"] == SHOWN | {
        "redfish_password": "******", "redfish_username": "root",
    }  # fmt: skip
    with stage.site.acquire(node) as task:
        assert DRIVER_INFO.items() <= task.driver_info.items()
        assert task.opened(task.node.instance_info) == INSTANCE_INFO


@pytest.mark.parametrize("path", ["driver_info", "driver_info/deploy_iso", "instance_info"])
def test_a_shown_address_that_is_written_back_is_refused(stage, path):
    node = enrol(stage)
    column, _, key = path.partition("/")
    value = {name: text for name, text in stage.show(node)[column].items() if text != "******"}
    patch = [{"op": "replace", "path": f"/{path}", "value": value[key] if key else value}]
    answer = stage.api.patch(f"/v1/nodes/{node}", patch)
    assert (answer.status, "is the mask that answers show" in answer.said) == (400, True)
    assert stage.show(node)["driver_info"]["deploy_iso"] == SHOWN["deploy_iso"]


def test_a_row_from_before_is_masked_and_sealed_by_the_next_write(stage):
    node = enrol(stage)
    stage.site.set(
        node, driver_info=json.dumps(DRIVER_INFO), instance_info=json.dumps(INSTANCE_INFO)
    )
    for answer in (stage.api.get(f"/v1/nodes/{node}"), stage.api.get("/v1/nodes?detail=true")):
        assert traces(answer.body.decode()) == []
    with stage.site.acquire(node) as task:
        assert task.driver_info == DRIVER_INFO
    stage.patch(node, **{"driver_info.other": "x", "instance_info.other": "x"})
    [row] = stage.site.rows(NODES, uuid=node)
    assert traces(str(row)) == []
    assert stage.show(node)["instance_info"]["image_source"] == SHOWN["image_source"]


def test_patch_of_the_secret_itself_is_what_counts_next(stage, heard):
    node = enrol(stage)
    stage.patch(node, **{"driver_info.redfish_password": "hunter3"})
    for verb, state in (("manage", "manageable"), ("provide", "available"), ("active", "active")):
        stage.ask(node, verb)
        stage.wait_for(node, state)
    assert heard == ["hunter3"]


def test_step_reads_its_secret_argument(stage, script):
    read = []
    given = {name: {"description": "for the soap", "required": True} for name in ARGS}
    script.add("service", "wash", argsinfo=given)
    steps = stage.site.runtime.registry.interfaces["deploy"]["fake"]
    play = steps.run_step
    steps.run_step = lambda task, step: read.append(step.args) or play(task, step)
    node = stage.bring_to("active")
    stage.ask(node, "service", service_steps=[WASH])
    stage.wait_for(node, "active")
    assert ARGS in read


def test_step_that_waits_shows_stars(stage, script):
    script.add("service", "wash", in_turn(WaitForCall(reason="soaking")), argsinfo=ANY_ARGS)
    node = stage.bring_to("active")
    stage.ask(node, "service", service_steps=[WASH])
    shown = stage.wait_for(node, "service wait")
    stars = {"admin_password": "******", "soap": [{"url": "https://******@files.test/soap"}]}
    assert shown["service_step"]["args"] == stars
    [step] = shown["driver_internal_info"]["service_steps"]
    assert step["args"] == stars
    stage.let_agents_call(node, "active")
