"""Lives of stacks led in a Bloomery of our own, over REST."""

from __future__ import annotations

import collections
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from tests.conformance.life_client import LifeClient
from tests.kit.servers.orchestration import Orchestration

PATIENCE_S: Final = 8  # of a resource that is slow on purpose: longer than a busy machine needs
CROWD: Final = 20

Observations = list[dict[str, Any]]


def lead(lives: Sequence[Mapping[str, Any]], theirs: Sequence[Observations]) -> list[Observations]:
    """Lead each life; ``theirs`` says which events a race has to wait for."""
    with (
        tempfile.TemporaryDirectory(prefix="bloomery-") as directory,
        Orchestration(Path(directory, "state")) as site,
        ThreadPoolExecutor(CROWD) as pool,
    ):

        def lead_one(life: Mapping[str, Any], seen: Observations) -> Observations:
            return LifeClient(site.url, life["id"], gate(life, seen)).live(life)

        return list(pool.map(lead_one, lives, theirs))


def gate(life: Mapping[str, Any], theirs: Observations) -> Callable[[LifeClient], None]:
    """Make what waits until all has happened that had happened in Heat when it was quiet."""
    [race] = [n for n, step in enumerate(life["steps"]) if step["do"] == "race"]
    events = theirs[race]["events"]
    second = [n for n, line in enumerate(events) if line == "/ UPDATE_IN_PROGRESS"][1]
    before = collections.Counter(events[:second])

    def wait(client: LifeClient) -> None:
        client.wait(
            lambda: not before - collections.Counter(client.fresh_events().values()),
            "what Heat did before the second update",
            timeout_s=PATIENCE_S - 1,
        )

    return wait
