"""BMCs that say what a test wants: a power interface beside the fake ones.

``bmc.reads`` is what each look returns, or raises; ``bmc.one[uuid]`` is the same for one node.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from bloomery import errors
from bloomery.conductor.states import ENDS_ON
from bloomery.conductor.states import Power as PowerState
from bloomery.conf import Conf
from bloomery.drivers import base, registry
from bloomery.drivers.fake.hardware import FakePower
from bloomery.drivers.registry import Registry
from bloomery.outcome import DONE, Again, Outcome
from tests.kit.servers import site

UNREACHABLE = errors.BmcUnreachable(node="it", address="bmc.test", reason="no route")
AS_RECORDED = object()


class FakeBmc:
    """What every BMC says, unless one of them is told apart in ``one``; and what was asked."""

    def __init__(self) -> None:
        self.reads: Any = AS_RECORDED
        self.one: dict[str, Any] = {}
        self.accepts: BaseException | None = None
        self.usable: BaseException | None = None
        self.has_answered = False  # somebody, since it was asked
        self.budgets: list[float | None] = []  # how long each look might take
        self.syncs = True
        self.obeys = True
        self.is_busy = False
        self.mute: set[str] | None = None  # who waits for may_answer; None: everybody
        self._mutex = threading.Lock()
        self._at_once = self.most_at_once = 0
        self.looks: list[str] = []
        self.orders: list[tuple[str, float | None]] = []
        self.may_answer = threading.Event()
        self.may_answer.set()

    def registry(self, conf: Conf | None = None) -> Registry:
        conf = conf or site.conf()
        found = registry.load(conf)
        interfaces = found.interfaces | {"power": {"fake": _Power(conf, self)}}
        return Registry(found.types, interfaces, dict.fromkeys(interfaces))

    def read(self, node: Any) -> Any:
        with self._counting():
            self.looks.append(node.uuid)
            if self.mute is None or node.uuid in self.mute:
                assert self.may_answer.wait(20), "nobody let the BMC answer"
        said = self.one.get(node.uuid, self.reads)
        if isinstance(said, BaseException):
            raise said
        return node.power_state if said is AS_RECORDED else said

    @contextlib.contextmanager
    def _counting(self) -> Iterator[None]:
        with self._mutex:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        yield
        with self._mutex:
            self._at_once -= 1

    def order(self, node: Any, state: str, timeout_s: float | None) -> Outcome:
        self.orders.append((state, timeout_s))
        if self.accepts is not None:
            raise self.accepts
        if self.is_busy:
            return Again(after_s=0.01, reason="the BMC is busy")
        if self.obeys:
            node.power_state = PowerState.ON if state in ENDS_ON else PowerState.OFF
            self.one[node.uuid] = node.power_state
        return DONE


class _Power(FakePower):
    def __init__(self, conf: Conf, bmc: FakeBmc) -> None:
        super().__init__(conf)
        self.bmc, self.name = bmc, "fake"

    def validate(self, task: base.DriverTask) -> None:
        if self.bmc.usable is not None:
            raise self.bmc.usable

    def has_answered(self, task: base.DriverTask, since: datetime) -> bool:
        return self.bmc.has_answered

    def get_power_state(self, task: base.DriverTask) -> str | None:
        self.bmc.budgets.append(task.budget_s)
        return self.bmc.read(task.node)

    def set_power_state(
        self, task: base.DriverTask, state: str, timeout_s: float | None = None,
    ) -> Outcome:  # fmt: skip
        return self.bmc.order(task.node, state, timeout_s)

    def reboot(self, task: base.DriverTask, timeout_s: float | None = None) -> Outcome:
        return self.bmc.order(task.node, "rebooting", timeout_s)

    def supports_power_sync(self, task: base.DriverTask) -> bool:
        return self.bmc.syncs
