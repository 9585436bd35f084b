"""``bloomery status``: the site on one screen."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from bloomery.cli import status_text
from bloomery.cli.client import Client
from bloomery.cli.main import main
from tests.functional.cli.conftest import Run
from tests.kit.servers.orchestration import Orchestration


@pytest.fixture
def api(site: Orchestration) -> Client:
    return Client(site.service.url)


def test_a_site_without_problems_is_one_screen_and_exit_code_0(run: Run, api: Client) -> None:
    api.post("/v1/nodes", {"driver": "fake-hardware", "name": "calm-1"})
    result = run("status")
    assert result.exit_code == 0, result.output
    first, *lines = result.stdout.splitlines()
    assert first.endswith(f"at {api.url}: nothing is wrong")
    shown = {line[:12].strip(): line[12:].strip() for line in lines}
    assert shown["conductors"] == "1 online"
    assert shown["engines"] == "1 up"
    assert shown["nodes"].startswith("1: 1 enroll")
    assert shown["event sinks"] == "none"
    assert len(lines) < 20
    api.delete("/v1/nodes/calm-1")


def test_a_problem_is_named_with_exit_code_1(run: Run, api: Client) -> None:
    hook = api.post("/ext/v1/webhooks", {"url": "http://hooks.test/", "secret": "c2VjcmV0" * 4})
    path = f"/ext/v1/webhooks/{hook['uuid']}"
    api.patch(path, [{"op": "replace", "path": "/state", "value": "parked"}])
    try:
        result = run("status --json")
        document = json.loads(result.stdout)
        problem = f"webhook:{hook['uuid']} is parked, and gets no events"
        assert (result.exit_code, document["problems"]) == (1, [problem])
        assert problem in run("status").stdout
    finally:
        api.delete(path)


def test_a_service_that_does_not_answer_is_exit_code_2() -> None:
    where = {"OS_AUTH_TYPE": "none", "OS_ENDPOINT": "http://127.0.0.1:9"}
    result = CliRunner(env={**where, "OS_CLOUD": None}).invoke(main, ["status"])
    assert result.exit_code == 2
    assert "is the service running?" in result.stderr


def test_colours_are_left_out_where_the_user_wants_none(run: Run) -> None:
    terminal = {"FORCE_COLOR": "1", "TERM": "xterm"}
    assert "\x1b[32m" in run("status", env=terminal).stdout
    assert "\x1b[3" not in run("status", env={**terminal, "NO_COLOR": "1"}).stdout


WELL: dict[str, Any] = {
    "conductors": [{"hostname": "a", "state": "online", "alive": True, "silent_s": 0.0}],
    "bmcs": {"a": {"called": 9, "left_alone": 0, "refused_logins": 0}},
    "engines": {"up": 1},
    "message_broker_connected": True,
    "database": {"kind": "postgresql", "schema": "0001", "refusal": None,
                 "connections_in_use": 2, "connections_limit": 20},
    "sinks": [{"sink": "log", "lag_s": 0.1, "is_parked": False}],
    "fleet": {"problems": [{"code": "maintenance", "text": "in maintenance", "count": 3}]},
    "stacks": {"CREATE_COMPLETE": 4},
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, None),
        ({"engines": None}, None),  # the caller may not list them
        ({"conductors": [], "bmcs": {}}, "no conductor is online"),
        (
            {"conductors": [*WELL["conductors"],
                            {"hostname": "b", "state": "dead", "alive": False, "silent_s": 9.0}]},
            "conductor b is dead",
        ),
        (
            {"conductors": [*WELL["conductors"],
                            {"hostname": "b", "state": "online", "alive": False, "silent_s": 99}]},
            "conductor b has sent no heartbeat for 99 s",
        ),
        ({"bmcs": {"a": None}}, "conductor a does not answer"),
        ({"bmcs": {"a": {"called": 9, "left_alone": 2, "refused_logins": 0}}}, "2 BMCs of"),
        ({"bmcs": {"a": {"called": 9, "left_alone": 0, "refused_logins": 1}}}, "1 BMCs of"),
        ({"engines": {"down": 1}}, "no engine is up"),
        ({"message_broker_connected": False}, "the message broker does not answer"),
        ({"database": {**WELL["database"], "refusal": "the disk is full"}}, "the disk is full"),
        ({"database": {**WELL["database"], "connections_in_use": 19}}, "19 of 20 database"),
        ({"sinks": [{"sink": "log", "lag_s": 301, "is_parked": False}]}, "sink log is 301 s late"),
        ({"fleet": {"problems": [{"code": "error", "text": "tear-down failed", "count": 2}]}},
         "2 nodes: tear-down failed"),
        ({"stacks": {"UPDATE_FAILED": 2}}, "2 stacks failed"),
    ],
)  # fmt: skip
def test_each_problem_is_one_line(changes: dict[str, Any], problem: str | None) -> None:
    lines = status_text.problems({**WELL, **changes})
    assert len(lines) == (problem is not None)
    assert all(problem in line for line in lines if problem is not None)
