"""Operations on simulated machines whose BMC does one thing wrong, and what came of it.

    with Trial(folder) as trial:
        for row in trial.run(cells()):
            print(row.cell, row.outcome, row.sentence)

Every cell has a machine with a BMC of its own, and a node; all nodes are of one service, which
runs many cells at a time.  Time-outs are short: a mute BMC is given up after a second or two.
"""

from __future__ import annotations

import dataclasses
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.conductor import Conductor
from bloomery.conf.default import Default
from bloomery.conf.redfish import Bmc, Redfish
from bloomery.drivers import registry
from bloomery.lab.rack import Machine, Rack
from bloomery.lab.system import System
from tests.kit import tls as certificates
from tests.kit.site import Site
from tests.kit.stories import Stage
from tests.kit.waiting import wait_for

ISO: Final = "http://images.test/rescue.iso"
LONG_S: Final = 60.0  # far beyond what any budget below allows
AT_ONCE: Final = 12
DONE: Final = "done"

FAULTS: Final[dict[str, dict[str, Any]]] = {
    "delay": {"kind": "delay", "seconds": 30},
    "status 500": {"kind": "status", "status": 500},
    "status 503": {"kind": "status", "status": 503},
    "hang": {"kind": "hang", "seconds": 30},
    "reset": {"kind": "reset"},
    "truncate": {"kind": "truncate"},
    "nojson": {"kind": "nojson"},
    "after": {"kind": "after"},
    "expire": {"kind": "expire"},
    "stuck": {"kind": "stuck"},
}


def conf() -> Conf:
    """Redfish alone; every budget is a few seconds."""
    return dataclasses.replace(
        Conf(),
        default=Default(enabled_hardware_types=("redfish",)),
        conductor=Conductor(power_state_change_timeout=6, soft_power_off_timeout=6),
        redfish=Redfish(
            connect_timeout=1, read_timeout=2, power_on_conflict_retry_interval=1,
        ),
        bmc=Bmc(call_timeout=6, breaker_failures=3, breaker_pause=1),
    )  # fmt: skip


class Request(NamedTuple):
    """Which requests of an operation meet the fault."""

    name: str
    method: str
    path: str


ANY: Final = Request("any", ".*", "")
LOOK: Final = Request("GET of the system", "GET", r"/Systems/[^/]+$")
RESET: Final = Request("POST of Reset", "POST", r"\.Reset$")
BOOT: Final = Request("PATCH of boot", "PATCH", r"/Systems/[^/]+$")
MEDIA: Final = Request("GET of virtual media", "GET", r"/VirtualMedia/Cd$")
INSERT: Final = Request("POST of InsertMedia", "POST", "InsertMedia$")
EJECT: Final = Request("POST of EjectMedia", "POST", "EjectMedia$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What is asked of a node that stands in ``state`` before a machine that runs, or not.

    ``ask`` returns when it is over; ``is_so``: what is then true of the machine;
    ``requests``: those that a single fault may meet.
    """

    name: str
    ask: Callable[[Trial, str], Any]
    ends: str
    is_so: Callable[[System], bool]
    requests: tuple[Request, ...]
    state: str = "manageable"
    is_on: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    operation: Operation
    fault: str
    request: Request = ANY
    lasts: bool = False
    tls: bool = False

    def __str__(self) -> str:
        often = "for ever" if self.lasts else "once"
        return f"{self.operation.name}: {self.fault}, {often}, at {self.request.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What came of a cell: the state that the node ended in, and what it says of it."""

    cell: Cell
    outcome: str
    sentence: str
    took_s: float

    def __str__(self) -> str:
        return f"{self.cell}: {self.outcome}: {self.sentence}"


def _verb(verb: str) -> Callable[[Trial, str], Any]:
    def ask(trial: Trial, node: str) -> None:
        trial.stage.ask(node, verb)
        trial.wait(node)

    return ask


def _power(target: str) -> Callable[[Trial, str], Any]:
    def ask(trial: Trial, node: str) -> None:
        answer = trial.stage.try_power(node, target)
        assert answer.status == 202, answer.body
        trial.wait(node)

    return ask


OPERATIONS: Final = (
    Operation(
        name="deploy", ask=_verb("active"), state="available", ends="active",
        is_so=lambda system: system.power == "On" and system.booted["image"] == ISO,
        requests=(LOOK, MEDIA, INSERT, BOOT, RESET), is_on=False,
    ),
    Operation(
        name="undeploy", ask=_verb("deleted"), state="active", ends="available",
        is_so=lambda system: system.power == "Off" and not any(system.media.values()),
        requests=(LOOK, MEDIA, EJECT, RESET), is_on=True,
    ),
)  # fmt: skip


def cells() -> Iterator[Cell]:
    for operation in OPERATIONS:
        for request in operation.requests:
            for fault in FAULTS:
                yield Cell(operation=operation, fault=fault, request=request)


class Trial:
    """One service, and a rack for its cells."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._until_closed = ExitStack()

    def __enter__(self) -> Self:
        site = Site(self._folder / "site.sqlite", registry=registry.load(conf()))
        self._until_closed.callback(site.close)
        self.stage = Stage(site)
        return self

    def __exit__(self, *_exc: object) -> None:
        self._until_closed.close()

    def run(self, asked: Iterable[Cell]) -> list[Row]:
        """Run these cells, so many at a time; return their rows in order."""
        listed = list(asked)
        with ExitStack() as racks, ThreadPoolExecutor(AT_ONCE) as pool:
            machines = iter(self._machines(racks, listed))
            return list(pool.map(self._row, listed, machines))

    def _machines(self, racks: ExitStack, listed: list[Cell]) -> list[Machine]:
        made = []
        for over_tls in (False, True):
            count = sum(cell.tls is over_tls for cell in listed)
            files = certificates.certificate(self._folder) if over_tls and count else None
            rack = racks.enter_context(Rack(count, apart=True, tls=files)) if count else None
            made.append(iter(rack.machines if rack else ()))
        return [next(made[cell.tls]) for cell in listed]

    def _row(self, cell: Cell, machine: Machine) -> Row:
        node = self._node(cell.operation, machine)
        machine.bmc.faults.add(
            **FAULTS[cell.fault], path=cell.request.path, method=cell.request.method,
            times=-1 if cell.lasts else 1,
        )  # fmt: skip
        began_at = time.monotonic()
        outcome, sentence = self._outcome(cell.operation, node)
        if outcome == DONE and not cell.operation.is_so(machine.system):
            outcome = "taken for done"
        took_s = time.monotonic() - began_at
        machine.bmc.faults.clear()
        return Row(cell=cell, outcome=outcome, sentence=_plain(sentence), took_s=took_s)

    def _node(self, operation: Operation, machine: Machine) -> str:
        """Return a node in the state that the operation begins with."""
        machine.system._on = operation.is_on
        info = machine.driver_info | {"redfish_verify_ca": False}
        node = self.stage.enrol(driver="redfish", driver_info=info)
        if operation.state == "active":
            machine.system.insert(ISO)
        self.stage.site.set(
            node, provision_state=operation.state, instance_info=json.dumps({"boot_iso": ISO}),
            power_state="power on" if operation.is_on else "power off",
        )  # fmt: skip
        return node

    def _outcome(self, operation: Operation, node: str) -> tuple[str, str]:
        try:
            operation.ask(self, node)
        except errors.Failure as exc:
            return "failed", str(exc)
        shown = self.stage.site.node(node)
        ended = shown.provision_state
        is_done = ended == operation.ends and not shown.last_error
        return DONE if is_done else str(ended), shown.last_error or ""

    def wait(self, node: str) -> None:
        wait_for(lambda: self.stage.site.is_free(node), f"{node} to be free", timeout_s=LONG_S)


def _plain(sentence: str) -> str:
    """A sentence without what differs from run to run."""
    sentence = re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", sentence)
    return re.sub(r"https?://127\.0\.0\.1:\d+", "ADDRESS", sentence)
