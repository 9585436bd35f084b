"""A node as a driver sees it, without a conductor: for tests of drivers alone."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bloomery import errors
from bloomery.model.node import Node
from bloomery.outcome import Again, Outcome


class FakeTask:
    """Holds ``node`` exclusively, unless told otherwise; counts what is saved."""

    def __init__(
        self, driver_info: Mapping[str, Any], *, shared: bool = False, **values: Any
    ) -> None:
        self.node = Node(uuid=str(uuid.uuid4()), driver="ipmi", **values)
        self.driver_info = dict(driver_info)
        self.ports = self.portgroups = self.volume_connectors = self.volume_targets = ()
        self.turn = 0
        self.reads: dict[str, Any] | None = None
        self.insists = False
        self.budget_s: float | None = None
        self.shared = shared
        self.saves = 0
        self.history: list[str] = []

    def opened(self, value: Any) -> Any:
        return value

    def sealed(self, value: Any) -> Any:
        return value

    @contextlib.contextmanager
    def others_of_bmc(self) -> Iterator[list[FakeTask]]:
        yield []

    def forget_agent(self) -> None:
        for key in ("agent_url", "agent_verify_ca", "agent_secret_token"):
            self.node.driver_internal_info.pop(key, None)

    def make_agent_token(self) -> str:
        return str(self.node.driver_internal_info.setdefault("agent_secret_token", "a-token"))

    def save(self) -> None:
        self.saves += 1

    def record(self, sentence: str) -> None:
        self.history.append(sentence)

    def assert_exclusive(self) -> None:
        if self.shared:
            raise errors.ExclusiveLockRequired

    def assert_lease(self) -> None:
        self.assert_exclusive()


def walk(
    task: FakeTask, step: Callable[[], Outcome | None], *, first: int = 0, most: int = 50
) -> list[Again]:
    """Take the turns of a step until it is done; return the answers on the way."""
    said = []
    for task.turn in range(first, most):
        outcome = step()
        if not isinstance(outcome, Again):
            return said
        said.append(outcome)
        time.sleep(0.001)  # a simulated machine works beside
    raise AssertionError(f"still not done after {most} turns: {said[-1]}")
