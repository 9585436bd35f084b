"""Would the tests of agents notice?  Each row takes a safeguard of their calls away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bloomery import fetching
from bloomery.api import layers
from bloomery.conductor.task_manager import TaskManager
from bloomery.drivers.agent import client
from bloomery.drivers.agent_boot import cache
from bloomery.operations import agent_callers
from tests.functional.stories import test_agent_networks as networks
from tests.functional.stories import test_agents as agents
from tests.kit.machines.agent import Agent
from tests.kit.servers.stories import Stage
from tests.unit.drivers.agent_boot import test_cache


def _not_saved(self: TaskManager) -> str:
    """A token that the row gets later."""
    self.node.driver_internal_info["agent_secret_token_pregenerated"] = True
    return "t" * 64


MUTANTS: dict[str, tuple[Any, dict[str, Any], Any, str, Any]] = {
    "a kernel's token is not in the row": (
        agents.test_a_token_for_a_kernel_is_in_the_row_before_anybody_has_it, {},
        TaskManager, "make_agent_token", _not_saved,
    ),
    "agents may be anywhere": (
        networks.test_a_caller_from_elsewhere_is_refused, {},
        agent_callers, "is_inside", lambda *_arguments: True,
    ),
    "every host may be called back": (
        networks.test_nothing_else_is_called_for_an_agent,
        {"networks": (), "url": "https://127.0.0.1:9999"},
        agent_callers, "_may_be_agent", lambda *_arguments: True,
    ),
    "an agent behind a proxy is local": (
        networks.test_an_agent_behind_a_proxy_of_the_same_machine_is_not_local,
        {"header": "Via", "value": "1.1 proxy", "is_believed": False},
        layers, "OF_PROXIES", (),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_an_agents_test_notices(name: str, make_site: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    check, more, where, attribute, broken = MUTANTS[name]
    stage = Stage(make_site())
    stage.configure("agent", require_tls=False)
    node = agents.waiting_node(stage)
    monkeypatch.setattr(where, attribute, broken)
    arguments = {"node": node, "agent": Agent(stage.api, [agents.MAC])} | more
    names = check.__code__.co_varnames[: check.__code__.co_argcount]
    with pytest.raises(AssertionError):
        check(stage, **{key: value for key, value in arguments.items() if key in names})


def test_a_name_of_this_machine_that_is_called_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_addresses", fetching.resolved)
    with pytest.raises(pytest.fail.Exception):
        networks.test_a_name_of_this_machine_is_not_called("localhost")
    with pytest.raises(pytest.fail.Exception):
        networks.test_an_address_of_the_conductors_own_machine_is_not_called(monkeypatch)


def test_a_ramdisk_that_is_removed_in_use_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "share", lambda _descriptor: None)
    room = test_cache.with_room_for_two(tmp_path)
    with test_cache.serving_large() as large, pytest.raises(pytest.fail.Exception):
        test_cache.test_what_is_in_use_is_never_removed(room, large)
