"""A node's whole life while the answer to every other COMMIT is lost, or the COMMIT itself."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from bloomery.db import engine
from tests.kit.servers.site import Site
from tests.kit.servers.stories import Stage
from tests.kit.servers.tcp_proxy import Cut, TcpProxy, is_commit

CUTS = (Cut.AFTER, Cut.NOT, Cut.BEFORE, Cut.NOT)


def live(stage: Stage) -> dict[str, Any]:
    """Enrol, change, deploy and undeploy a node; return what is told of it."""
    node = stage.bring_to("active", name="web-1")
    stage.patch(node, description="mine")
    stage.power(node, "power off")
    stage.ask(node, "deleted")
    stage.wait_for(node, "available")
    assert stage.nothing_is_left()
    return {
        "events": stage.told(node), "moves": stage.moves(node), "steps": stage.steps(node),
        "errors": stage.errors(node), "generation": stage.site.node(node).lock_generation,
    }  # fmt: skip


def cut_commits(proxy: TcpProxy, *each: Cut) -> None:
    cuts = itertools.cycle(each)
    proxy.on_request = lambda data: next(cuts) if is_commit(data) else Cut.NOT


def test_a_life_is_the_same_when_answers_to_commits_are_lost(
    far: engine.Database, proxy: TcpProxy, tmp_path: Path, make_site: Any
):
    expected = live(Stage(make_site()))
    site = Site(tmp_path / "cut", db=far)
    try:
        cut_commits(proxy, *CUTS)
        assert live(Stage(site)) == expected
    finally:
        proxy.on_request = lambda data: Cut.NOT
        site.close()
