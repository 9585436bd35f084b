"""BMCs of public reports that answer oddly, and what an operation makes of each.

    for oddity, attempt in try_all(trial, ODDITIES):
        assert list_faults(oddity, attempt) == []

A row changes the lab's BMC by the lab's own means: a make, fields of ``Spec`` and ``Rules``, and
faults, which here meet every request unless they say ``times``.  `make faults` writes the table
to doc/reference/bmc-faults.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from bloomery.lab import models
from bloomery.lab.bmc import Rules, SimulatedBmc
from bloomery.lab.rack import Machine, Rack, specs
from bloomery.lab.system import System
from tests.kit.machines.bmc_faults import AT_ONCE, DONE, OPERATIONS, Attempt, Operation, Trial

Json = dict[str, Any]
BY_NAME: Final = {operation.name: operation for operation in OPERATIONS}
INSERT, EJECT = r"InsertMedia$", r"EjectMedia$"
DEVICE: Final = r"/VirtualMedia/[^/]+$"
SYSTEM: Final = r"/Systems/[^/]+$"


@dataclass(frozen=True, slots=True, kw_only=True)
class Oddity:
    """One BMC: ``source`` is the public report, ``bmc`` says how it answers.

    ``operation``: its name in ``OPERATIONS``; ``ends``: the right outcome, DONE or the state of a
    failure; ``says``: words of the sentence that the node then shows.  ``machine`` and ``rules``:
    fields of ``Spec`` and ``Rules``.  ``before``: what happened to the machine earlier.
    ``is_so``: what is true of the machine in addition; ``driver_info``: what its operator adds.
    """

    id: str
    source: str
    bmc: str
    operation: str
    ends: str = DONE
    says: str = ""
    faults: Sequence[Json] = ()
    model: str = models.GENERIC.name
    machine: Mapping[str, Any] = field(default_factory=dict)
    rules: Mapping[str, Any] = field(default_factory=dict)
    driver_info: Mapping[str, Any] = field(default_factory=dict)
    before: Callable[[System], None] = lambda system: None
    is_so: Callable[[System], bool] = lambda system: True

    def __str__(self) -> str:
        return self.id

    @property
    def about(self) -> Operation:
        return BY_NAME[self.operation]


def refusal(status: int, message_id: str, message: str, **fault: Any) -> Json:
    """Return a fault: this status, with an extended error as BMCs send it."""
    info = [{"MessageId": message_id, "Message": message, "Severity": "Critical"}]
    body = {"error": {"code": message_id, "message": message, "@Message.ExtendedInfo": info}}
    return {"kind": "status", "status": status, "body": body} | fault


def ignored(path: str, method: str = "POST", status: int = 204, **fault: Any) -> Json:
    """Return a fault: the BMC answers as if it obeyed, and does nothing."""
    return {
        "kind": "status", "status": status, "body": None, "path": path, "method": method,
    } | fault  # fmt: skip


def shows(path: str, document: Json, **fault: Any) -> Json:
    """Return a fault: documents at ``path`` are shown with this merge patch."""
    return {"kind": "shows", "path": path, "method": "GET", "document": document} | fault


VIRTUAL_MEDIA: Final = (
    Oddity(
        id="first-slot-is-of-the-console-alone",
        source="https://github.com/openshift/openstack-ironic/pull/392",
        bmc="the first of two slots takes media of the console alone: InsertMedia is 405",
        operation="deploy",
        machine={"media": (("Slot_0", ("CD", "DVD")), ("Slot_1", ("CD", "DVD")))},
        faults=(
            refusal(405, "Base.1.8.OperationNotAllowed", "not allowed", path=f"Slot_0/.*{INSERT}"),
        ),
    ),
    Oddity(
        id="media-are-of-the-system",
        source="https://github.com/lenovo/python-redfish-lenovo/pull/257",
        bmc="virtual media are of the system, and not of the manager",
        operation="deploy",
        faults=(shows(r"/Managers/[^/]+$", {"VirtualMedia": None}),),
    ),
)

ODDITIES: Final[tuple[Oddity, ...]] = (*VIRTUAL_MEDIA,)


def try_all(trial: Trial, oddities: Sequence[Oddity]) -> list[Attempt]:
    """Run the operation of each row at a BMC of its own, many at a time; keep the order."""
    bmcs = [_bmc(at, oddity) for at, oddity in enumerate(oddities)]
    with Rack(built=bmcs) as rack, ThreadPoolExecutor(AT_ONCE) as pool:
        pairs = zip(oddities, rack.machines, strict=True)
        return list(pool.map(lambda pair: _try_one(trial, *pair), pairs))


def _bmc(at: int, oddity: Oddity) -> SimulatedBmc:
    model = models.of(oddity.model)
    spec = specs(1, first=at, **dict(model.machine) | dict(oddity.machine))
    rules = Rules(**{"update_s": 0.2, "restart_s": 0.5} | dict(oddity.rules))
    return SimulatedBmc(spec, dataclasses.replace(rules, expands=model.expands), model)


def _try_one(trial: Trial, oddity: Oddity, machine: Machine) -> Attempt:
    node = trial.node(oddity.about, machine, **oddity.driver_info)
    oddity.before(machine.system)
    faults = ({"times": -1} | fault for fault in oddity.faults)
    attempt = trial.attempt(oddity.about, node, machine, *faults)
    if attempt.outcome == oddity.ends and not oddity.is_so(machine.system):
        return attempt._replace(outcome="taken for done")
    return attempt


def list_faults(oddity: Oddity, attempt: Attempt) -> list[str]:
    """Return what is wrong with what came of a row; []: nothing."""
    wrong = []
    if attempt.outcome != oddity.ends:
        wrong.append(f"{attempt.outcome}, not {oddity.ends}: {attempt.sentence}")
    if oddity.says not in attempt.sentence:
        wrong.append(f"it does not say {oddity.says!r}: {attempt.sentence!r}")
    return wrong
