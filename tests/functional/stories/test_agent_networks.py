"""Agents have no login: from where they may call, and where they may be called back."""

from __future__ import annotations

import functools
import logging

import pytest

from bloomery import errors, fetching
from bloomery.api import app
from bloomery.drivers.agent import client
from tests.fakes.client import Client
from tests.functional.stories.test_agents import MAC, waiting_node
from tests.kit.machines.agent import Agent

INSIDE, OUTSIDE = "192.0.2.7", "198.51.100.9"


@pytest.fixture
def stage(make_stage, tmp_path):
    stage = make_stage()
    stage.configure("agent", certificates_path=str(tmp_path / "certificates"))
    return stage


@pytest.fixture
def node(stage):
    return waiting_node(stage)


@pytest.fixture
def agent(stage, node):
    return Agent(stage.api, [MAC])


def statuses(agent):
    """Return what lookup, heartbeat and continue_inspection are answered with."""
    answers = agent.try_to_look_up(), agent.call(agent_token="x"), agent.try_to_hand_in()
    return [answer.status for answer in answers]


def test_a_caller_from_elsewhere_is_refused(stage, node, agent):
    stage.configure("api", agent_networks=("192.0.2.0/24", "2001:db8::/32"))
    agent.node = {"uuid": node}
    for stage.api.address in (OUTSIDE, "127.0.0.1", "2001:db9::1", ""):
        assert statuses(agent) == [403, 403, 403]
    assert OUTSIDE not in stage.api.get(f"/v1/nodes/{node}").body.decode()
    for stage.api.address in (INSIDE, "2001:db8::7", f"::ffff:{INSIDE}"):
        assert statuses(agent) == [200, 400, 404]


def test_the_refusal_names_the_address_and_the_option(stage, agent):
    stage.configure("api", agent_networks=("192.0.2.0/24",))
    stage.api.address = OUTSIDE
    sentence = agent.try_to_look_up().said
    assert f"cannot answer agents at {OUTSIDE}" in sentence
    assert "[api]agent_networks" in sentence


@pytest.mark.parametrize(("is_believed", "status"), [(True, 200), (False, 403)])
def test_a_proxy_is_believed_only_where_the_operator_says_so(stage, agent, is_believed, status):
    stage.configure("api", agent_networks=("192.0.2.0/24",))
    stage.configure("oslo_middleware", enable_proxy_headers_parsing=is_believed)
    api = Client(app.make_app(stage.services))
    answer = api.get(f"/v1/lookup?addresses={MAC}", headers={"X-Forwarded-For": INSIDE})
    assert answer.status == status


def test_the_log_tells_to_which_address_a_token_went(stage, node, agent, caplog):
    caplog.set_level(logging.INFO, "bloomery.operations.agents")
    for stage.api.address in (INSIDE, OUTSIDE):
        agent.try_to_look_up()
    lines = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert lines == [
        ("INFO", f"node {node}: {INSIDE} gets the agent's token"),
        ("WARNING", f"node {node}: {OUTSIDE} asks for a token that the agent has already"),
    ]


NETWORKS = ("192.0.2.0/24", "127.0.0.0/8", "2001:db8::/32")


@pytest.mark.parametrize(
    ("caller", "networks", "url"),
    [
        (INSIDE, (), "https://198.51.100.9:9999"),  # agents behind NAT, and proxies
        (INSIDE, (), "https://agent.example.org:9999/"),
        (INSIDE, NETWORKS, "https://192.0.2.200:9999"),
        (INSIDE, NETWORKS, "https://[2001:db8::200]:9999"),
        ("127.0.0.1", NETWORKS, "https://127.0.0.2:9999"),
        ("127.0.0.1", (), "https://[::1]:9999"),
        ("169.254.1.2", (), "https://169.254.1.2:9999"),
    ],
)
def test_an_agent_is_called_back_where_it_may_be(stage, agent, caller, networks, url):
    stage.configure("api", agent_networks=networks)
    stage.api.address = caller
    agent.look_up()
    assert agent.call(callback_url=url).status == 202


@pytest.mark.parametrize(
    ("networks", "url"),
    [
        (NETWORKS, "https://198.51.100.9:9999"), (NETWORKS, "https://agent.example.org:9999"),
        (NETWORKS, "https://127.0.0.1:9999"), ((), "https://127.0.0.1:9999"),
        ((), "https://[::1]:9999"), ((), "https://[::ffff:127.0.0.1]:9999"),
        ((), "https://0.0.0.0:9999"), ((), "https://[64:ff9b::7f00:1]:9999"),
        ((), "https://169.254.169.254"), ((), "https://[fe80::1]:9999"),
        ((), "https://[fe80::1%nowhere]:9999"),
        ((), "https://user:word@192.0.2.7:9999"), ((), "https://user@192.0.2.7:9999"),
        ((), "https://192.0.2.7:9999/redfish/v1"), ((), "https://192.0.2.7:9999?a=b"),
        ((), "https://192.0.2.7:9999/#part"),
    ],
)  # fmt: skip
def test_nothing_else_is_called_for_an_agent(stage, agent, networks, url):
    stage.configure("api", agent_networks=networks)
    stage.api.address = INSIDE
    agent.look_up()
    answer = agent.call(callback_url=url)
    assert (answer.status, "cannot take this callback_url: it" in answer.said) == (400, True)
    assert "word" not in answer.said
    assert agent.call(callback_url="https://192.0.2.7:9999").status == 202


@pytest.mark.parametrize("is_believed", [True, False])
@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("X-Forwarded-For", "127.0.0.1"), ("X-Forwarded-For", INSIDE), ("X-Forwarded-For", "?"),
        ("Forwarded", "for=127.0.0.1"), ("X-Forwarded-Proto", "https"), ("X-Real-IP", INSIDE),
        ("Via", "1.1 proxy"),
    ],
)  # fmt: skip
def test_an_agent_behind_a_proxy_of_the_same_machine_is_not_local(
    stage, agent, header, value, is_believed
):
    agent.look_up()
    stage.configure("oslo_middleware", enable_proxy_headers_parsing=is_believed)
    api = Client(app.make_app(stage.services))
    api.ask = functools.partial(api.ask, headers={header: value})
    agent.api = api
    answer = agent.call(callback_url="https://127.0.0.1:9999")
    assert answer.status == 400
    assert "cannot take this callback_url" in answer.said


@pytest.mark.parametrize("host", ["localhost", "127.1", "2130706433"])
def test_a_name_of_this_machine_is_not_called(host):
    with pytest.raises(OSError, match="leads to the machine of the service"):
        list(client._addresses(host, 9999))


def test_an_address_of_the_conductors_own_machine_is_not_called(monkeypatch):
    monkeypatch.setattr(fetching, "is_own", lambda _entry: True)
    with pytest.raises(OSError, match="leads to the machine of the service"):
        list(client._addresses("192.0.2.1", 9999))


@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.1", "169.254.1.2"])
def test_an_address_that_was_checked_is_called(host):
    assert [entry[4] for entry in client._addresses(host, 9999)] == [(host, 9999)]


def test_a_network_that_is_none_is_named(stage):
    stage.configure("api", agent_networks=("10.0.0.1/8",))
    with pytest.raises(errors.CannotStart, match=r"agent_networks: .*10\.0\.0\.1/8 has host"):
        app.make_app(stage.services)
