"""What is said to an agent, and what is made of its answers and of its silence."""

from __future__ import annotations

import dataclasses
import logging
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.agent import Agent
from bloomery.drivers.agent import client, commands
from bloomery.lab import tls
from bloomery.outcome import Done, WaitForCall
from tests.kit.machines.agent_server import AgentServer
from tests.kit.machines.driver_task import FakeTask
from tests.kit.servers import web

TOKEN = "t0k3n" * 8
PREPARE = "standby.prepare_image"
COMMANDS = f"/v1/commands/?agent_token={TOKEN}"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[AgentServer]:
    with AgentServer(tmp_path) as made:
        made.token = TOKEN
        yield made


@pytest.fixture
def task(server: AgentServer, tmp_path: Path) -> FakeTask:
    certificate = tmp_path / "shown.crt"
    certificate.write_text(server.certificate)
    info = {
        "agent_url": server.url, "agent_secret_token": TOKEN,
        "agent_verify_ca": str(certificate),
    }  # fmt: skip
    return FakeTask({}, driver_internal_info=info)


CONF = dataclasses.replace(Conf(), agent=Agent(command_timeout=2))


def run(task: FakeTask) -> Done | WaitForCall:
    outcome = commands.run(task, CONF, PREPARE, dict, "the agent writes")
    assert isinstance(outcome, Done | WaitForCall)
    return outcome


def test_a_command_is_sent_and_listed(server: AgentServer, task: FakeTask) -> None:
    agent = client.of(task, CONF)
    sent = agent.send(PREPARE, {"image_info": {"id": "a"}})
    assert (sent.name, sent.status) == ("prepare_image", "RUNNING")
    assert server.params[PREPARE] == {"image_info": {"id": "a"}}
    assert agent.commands() == [sent]


def test_a_busy_agent_says_so(server: AgentServer, task: FakeTask) -> None:
    agent = client.of(task, CONF)
    agent.send(PREPARE, {})
    with pytest.raises(errors.AgentBusy, match="Agent is busy"):
        agent.send("standby.sync", {})


def test_another_certificate_than_the_agent_has_shown_is_not_trusted(
    server: AgentServer, task: FakeTask, tmp_path: Path
) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    with AgentServer(folder) as other:
        Path(task.node.driver_internal_info["agent_verify_ca"]).write_text(other.certificate)
        with pytest.raises(errors.AgentUnreachable, match="certificate is not the one"):
            client.of(task, CONF).commands()


def test_a_certificate_that_is_gone_is_named(task: FakeTask, tmp_path: Path) -> None:
    path = Path(task.node.driver_internal_info["agent_verify_ca"])
    path.unlink()
    with pytest.raises(errors.AgentUnreachable, match=f"in {path} cannot be read: No such file"):
        client.of(task, CONF).commands()


@pytest.mark.parametrize(("word", "trusts"), [("True", False), ("False", True), (False, True)])
def test_an_agent_without_a_certificate_is_trusted_as_the_operator_says(
    task: FakeTask, word: object, trusts: bool
) -> None:
    del task.node.driver_internal_info["agent_verify_ca"]
    task.driver_info["agent_verify_ca"] = word
    agent = client.of(task, CONF)
    if trusts:
        assert agent.commands() == []
    else:
        with pytest.raises(errors.AgentUnreachable):
            agent.commands()


def test_a_wrong_token_is_refused_in_the_agents_words(server: AgentServer, task: FakeTask) -> None:
    server.token = "another"
    with pytest.raises(errors.AgentRefused, match="commands: Token invalid"):
        client.of(task, CONF).commands()


def test_a_token_reaches_neither_error_nor_log(
    task: FakeTask, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    client.of(task, CONF).commands()
    with socket.create_server(("127.0.0.1", 0)) as mute:
        task.node.driver_internal_info["agent_url"] = f"http://127.0.0.1:{mute.getsockname()[1]}"
        with pytest.raises(errors.AgentUnreachable, match="no answer within") as silent:
            client.of(task, CONF, 0.2).commands()
    with pytest.raises(errors.AgentUnreachable, match="refused") as closed:
        client.of(task, CONF).commands()
    for error in (silent.value, closed.value):
        assert TOKEN not in f"{error} {error.facts} {error.__cause__}"
    assert TOKEN not in caplog.text


def test_an_agent_that_answers_a_byte_at_a_time_is_given_up(task: FakeTask) -> None:
    enough = threading.Event()
    with web.serving({COMMANDS: web.dripping(enough)}) as site:
        task.node.driver_internal_info["agent_url"] = site.url("")
        with pytest.raises(errors.AgentUnreachable, match=r"no answer within 0\.2 s"):
            client.of(task, CONF, 0.2).commands()
        enough.set()


def test_a_callback_url_of_tls_where_the_agent_speaks_plain_http_is_explained(
    task: FakeTask,
) -> None:
    with web.serving({}) as site:
        task.node.driver_internal_info["agent_url"] = site.url("").replace("http:", "https:")
        words = r"speaks plain HTTP at this port.* callback_url .* must begin with http://"
        with pytest.raises(errors.AgentUnreachable, match=words):
            client.of(task, CONF).commands()


def test_a_plain_callback_url_where_the_agent_speaks_tls_is_explained(
    server: AgentServer, task: FakeTask
) -> None:
    task.node.driver_internal_info["agent_url"] = server.url.replace("https:", "http:")
    words = "closed the connection; if it speaks TLS .* must begin with https://"
    with pytest.raises(errors.AgentUnreachable, match=words):
        client.of(task, CONF).commands()


def test_an_alert_of_tls_in_answer_to_plain_http_is_explained(task: FakeTask) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def alert() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"\x15\x03\x01\x00\x02\x02F")

        answering = threading.Thread(target=alert)
        answering.start()
        task.node.driver_internal_info["agent_url"] = (
            f"http://127.0.0.1:{listener.getsockname()[1]}"
        )
        words = "speaks TLS at this port.* must begin with https://"
        with pytest.raises(errors.AgentUnreachable, match=words):
            client.of(task, CONF).commands()
        answering.join()


def test_a_certificate_of_the_future_is_a_matter_of_clocks(task: FakeTask, tmp_path: Path) -> None:
    folder = tmp_path / "early"
    folder.mkdir()
    with AgentServer(folder, tls.certificate(folder, starts_in_days=1)) as early:
        early.token = TOKEN
        Path(task.node.driver_internal_info["agent_verify_ca"]).write_text(early.certificate)
        task.node.driver_internal_info["agent_url"] = early.url
        with pytest.raises(errors.AgentUnreachable, match="its clock is ahead of this conductor's"):
            client.of(task, CONF).commands()


def test_an_answer_that_is_too_large_is_refused(
    task: FakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_MOST_BYTES", 1 << 20)
    with web.serving({COMMANDS: web.text(b" " * (1 << 20) + b"{}")}) as site:
        task.node.driver_internal_info["agent_url"] = site.url("")
        with pytest.raises(errors.AgentRefused, match="more than 1 MiB"):
            client.of(task, CONF).commands()


def test_an_agent_cannot_send_us_elsewhere(task: FakeTask) -> None:
    with web.serving({}) as other, web.serving({COMMANDS: web.moved(other.url("/"))}) as site:
        task.node.driver_internal_info["agent_url"] = site.url("")
        with pytest.raises(errors.AgentRefused, match="HTTP 302"):
            client.of(task, CONF).commands()
    assert other.asked == []


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:99999", "https://[::1", "http://", f"http://{'a' * 70}"]
)
def test_an_address_that_is_none_is_one_that_cannot_be_reached(task: FakeTask, url: str) -> None:
    task.node.driver_internal_info["agent_url"] = url
    with pytest.raises(errors.AgentUnreachable):
        client.of(task, CONF).commands()


def test_a_node_whose_agent_never_called_has_nobody_to_tell(task: FakeTask) -> None:
    del task.node.driver_internal_info["agent_url"]
    with pytest.raises(errors.StepFailure, match="no agent has sent a heartbeat"):
        client.of(task, CONF)


# ------------------------------------------------------------------ a command over its turns


def test_a_command_runs_over_several_turns(server: AgentServer, task: FakeTask) -> None:
    assert isinstance(run(task), WaitForCall)
    assert not commands.may_go_on(task, CONF)
    assert isinstance(run(task), WaitForCall)
    server.finish()
    assert commands.may_go_on(task, CONF)
    for _ in range(2):  # until the step has ended, which takes more than this command
        assert isinstance(run(task), Done)
    assert server.told == [PREPARE]


def test_a_second_command_of_one_name_is_another_one(server: AgentServer, task: FakeTask) -> None:
    for _ in range(2):
        run(task)
        server.finish()
        assert isinstance(run(task), Done)
        commands.forget(task)
    assert server.told == [PREPARE, PREPARE]


def test_what_was_sent_before_a_crash_is_not_sent_again(
    server: AgentServer, task: FakeTask
) -> None:
    """The row of before names what was about to be sent, and not that it was."""
    run(task)
    del task.node.driver_internal_info[commands.MEMORY]["id"]
    assert isinstance(run(task), WaitForCall)
    server.finish()
    assert isinstance(run(task), Done)
    assert server.told == [PREPARE]


def test_an_answer_that_is_lost_is_looked_for_at_the_next_call(
    server: AgentServer, task: FakeTask
) -> None:
    server.loses_answers_to.add(PREPARE)
    outcome = run(task)
    assert isinstance(outcome, WaitForCall)
    assert "asked again when it calls (try 1 of 3)" in outcome.reason
    assert commands.may_go_on(task, CONF)
    run(task)
    server.finish()
    assert isinstance(run(task), Done)
    assert server.told == [PREPARE]


def test_an_agent_that_cannot_be_reached_is_given_up_after_some_calls(
    server: AgentServer, task: FakeTask
) -> None:
    task.node.driver_internal_info["agent_url"] = "http://127.0.0.1:1"
    assert [type(run(task)) for _ in range(2)] == [WaitForCall, WaitForCall]
    with pytest.raises(errors.AgentUnreachable, match="cannot reach the agent"):
        run(task)


def test_a_failure_is_told_in_the_agents_words_without_secrets(
    server: AgentServer, task: FakeTask
) -> None:
    server.fails["prepare_image"] = "cannot fetch http://user:geheim@images.test/os?sig=geheim"
    run(task)
    server.finish()
    with pytest.raises(errors.StepFailure, match="the agent failed") as failed:
        run(task)
    assert "images.test" in str(failed.value)
    assert "geheim" not in str(failed.value)


def test_an_agents_words_are_few_and_without_passwords(server: AgentServer, task: FakeTask) -> None:
    server.fails["prepare_image"] = "login failed, password=geheim " + "x" * 5000
    run(task)
    server.finish()
    with pytest.raises(errors.StepFailure, match="login failed") as failed:
        run(task)
    assert "geheim" not in str(failed.value)
    assert len(str(failed.value)) < 1100


def test_a_command_that_the_agent_has_forgotten_fails(server: AgentServer, task: FakeTask) -> None:
    run(task)
    server.commands.clear()
    with pytest.raises(errors.StepFailure, match="does not know"):
        run(task)
