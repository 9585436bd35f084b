"""A machine's life through the API, with a real conductor behind it."""

from __future__ import annotations

import logging
import os
import re
import threading

import pytest

from bloomery.api import app
from bloomery.cmd import log
from bloomery.conf import Conf
from bloomery.operations.context import Services
from bloomery.operations.policy_engine import Policies
from bloomery.rpc.client import Client
from tests.fakes.client import Client as ApiClient
from tests.kit.servers import databases, rpc
from tests.kit.servers.site import HOST
from tests.kit.waiting import wait_for

SITES = {
    "in-process": {},
    "postgresql": {databases.VARIABLE: "postgresql", rpc.TRANSPORT: "json-rpc"},
    "mariadb": {databases.VARIABLE: "mariadb", rpc.TRANSPORT: "oslo"},
}
SERVERS = {"postgresql": ["POSTGRESQL"], "mariadb": ["MARIADB", "RABBITMQ"]}
CHOSEN = databases.ON_SERVER or rpc.TRANSPORT in os.environ  # one site for all tests


@pytest.fixture(params=["in-process"] if CHOSEN else SITES)
def database(request, monkeypatch, tmp_path):
    """Tell the story on each database, over each transport."""
    for server in SERVERS.get(request.param, ()):
        if (variable := f"BLOOMERY_TEST_{server}") not in os.environ:
            pytest.skip(f"{variable} names no server")
    for variable, value in SITES[request.param].items():
        monkeypatch.setenv(variable, value)
    yield
    databases.release(tmp_path)


@pytest.fixture
def api(database, make_site):
    made = make_site()
    client = Client(made.runtime.ring, rpc.carried({HOST: made.service.manager}, made.until_closed))
    return ApiClient(
        app.make_app(Services(db=made.db, rpc=client, conf=Conf(), policies=Policies(Conf())))
    )


def ask(api, verb, ends_in, **along):
    answer = api.put("/v1/nodes/web-1/states/provision", {"target": verb} | along)
    assert answer.status == 202, answer.body

    def arrived():
        node = api.get("/v1/nodes/web-1?fields=provision_state,reservation,last_error").json
        return node["provision_state"] == ends_in and node["reservation"] is None

    wait_for(arrived, f"{verb} to end in {ends_in}")


def test_machine_goes_from_enrolled_to_running_and_back(api):
    secret = {"redfish_address": "https://bmc", "redfish_password": "secret"}
    made = api.node(name="web-1", driver_info=secret)
    assert made["driver_info"] == secret | {"redfish_password": "******"}
    assert made["boot_interface"] == "fake"
    ask(api, "manage", "manageable")
    ask(api, "provide", "available")
    ask(api, "active", "active", configdrive={"meta_data": {"name": "web-1"}})
    assert api.get("/v1/nodes/web-1").json["target_provision_state"] is None
    ask(api, "rebuild", "active")
    assert api.delete("/v1/nodes/web-1").status == 409
    ask(api, "deleted", "available")
    history = api.get("/v1/nodes/web-1/history").json["history"]
    assert len(history) >= 8
    assert api.delete("/v1/nodes/web-1").status == 204
    assert api.get("/v1/nodes").json == {"nodes": []}


def test_log_names_the_request_whose_step_failed(api, caplog):
    caplog.handler.setFormatter(log.LineFormatter("%(message)s"))
    uuid = api.node(name="web-1", driver_info={"fake": {"fail": ["deploy.deploy"]}})["uuid"]
    ask(api, "manage", "manageable")
    ask(api, "provide", "available")
    answer = api.put("/v1/nodes/web-1/states/provision", {"target": "active"})
    wait_for(lambda: "(deploy step" in caplog.text, "the step to fail")
    (line,) = [each for each in caplog.text.split("\n") if "(deploy step" in each]
    request_id = answer.headers["x-openstack-request-id"]
    assert line.startswith(f"[{request_id} -] node {uuid} web-1: deploy: ")
    assert line.count(uuid) == 1


def test_log_tells_of_orders_moves_and_steps_where_it_is_asked_for(api, caplog):
    api.node(name="web-1")
    ask(api, "manage", "manageable")
    assert not caplog.messages
    with caplog.at_level(logging.INFO, "bloomery.conductor.task_manager"):
        ask(api, "provide", "available")
        wait_for(lambda: "on done" in caplog.text, "the last line")
    lines = [re.sub(r"^node \S{36} web-1: ", "", line) for line in caplog.messages]
    lines = lines[lines.index("provide is ordered") :]  # after a late one of the verb before
    assert lines[1] == "manageable -> cleaning on provide"
    assert any(re.fullmatch("clean step .* begins", line) for line in lines), lines
    assert any(re.fullmatch("clean step .* ends", line) for line in lines), lines
    assert lines[-1] == "cleaning -> available on done"


def test_no_acknowledged_patch_is_lost(api):
    api.node(name="web-1")

    def patch(key):
        operation = {"op": "add", "path": f"/extra/k{key}", "value": key}
        answers[key] = api.patch("/v1/nodes/web-1", [operation])

    answers = {}
    callers = [threading.Thread(target=patch, args=(key,)) for key in range(16)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    acknowledged = {f"k{key}" for key, answer in answers.items() if answer.status == 200}
    assert set(api.get("/v1/nodes/web-1").json["extra"]) == acknowledged
    assert {answer.status for answer in answers.values()} <= {200, 409}
    assert acknowledged
