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
from tests.kit.machines import bmc_faults
from tests.kit.machines.bmc_faults import (
    AT_ONCE,
    DONE,
    ISO,
    OPERATIONS,
    READS,
    Attempt,
    Operation,
    Trial,
)

Json = dict[str, Any]
# What further callers ask of a BMC.
FURTHER: Final = (
    Operation(
        name="attach virtual media", requests=(),
        ask=bmc_faults.post("vmedia", device_type="cdrom", image_url=ISO),
        is_so=lambda system, _: system.media["Cd"] == ISO,
    ),
    Operation(
        name="eject_vmedia", requests=(), state="active", ends="active", is_on=True,
        ask=bmc_faults.post("vendor_passthru?method=eject_vmedia"),
        is_so=lambda system, _: not any(system.media.values()),
    ),
    Operation(
        name="switch a light", requests=(),
        ask=lambda trial, node: bmc_faults.switch_light(trial, node, "on"),
        is_so=lambda system, _: system.led == "Lit",
    ),
)  # fmt: skip
BY_NAME: Final = {operation.name: operation for operation in (*OPERATIONS, *READS, *FURTHER)}
INSERT, EJECT = r"InsertMedia$", r"EjectMedia$"
DEVICE: Final = r"/VirtualMedia/[^/]+$"
SYSTEM: Final = r"/Systems/[^/]+$"


@dataclass(frozen=True, slots=True, kw_only=True)
class Oddity:
    """One BMC: ``source`` is the public report, ``bmc`` says how it answers.

    ``operation``: its name in ``OPERATIONS``; ``ends``: the right outcome, DONE or the state of a
    failure; ``says``: words of the sentence that the node then shows.  ``machine`` and ``rules``:
    fields of ``Spec`` and ``Rules``.  ``before``: what happened to the machine earlier.
    ``is_so``: what is true of the machine in addition, ``reads``: of what the operation read.
    ``driver_info``: what its operator adds.
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
    reads: Callable[[Any], bool] = lambda read: True

    def __str__(self) -> str:
        return self.id

    @property
    def about(self) -> Operation:
        operation = BY_NAME[self.operation]
        return dataclasses.replace(
            operation,
            is_so=lambda system, read: operation.is_so(system, read) and self.reads(read),
        )


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


DELL: Final = "https://github.com/dell/iDRAC-Redfish-Scripting"
DENTON: Final = "J. Denton, Mounting Virtual Media Using Redfish on iDRAC 8, 2021-12-19"
SUSHY: Final = "sushy, release note"
OLD: Final = "http://images.test/old.iso"
EMPTIED: Final = "POST .*EjectMedia"
TWO_DRIVES: Final = {"media": (("Slot_0", ("CD", "DVD")), ("Slot_1", ("CD", "DVD")))}
NOT_REACHED: Final = "The remote file location is not accessible or reachable."


def _is_off(system: System) -> bool:
    return system.power == "Off"


VIRTUAL_MEDIA: Final = (
    Oddity(
        id="insert-does-nothing",
        source="https://github.com/dell/terraform-provider-redfish/issues/331",
        bmc="InsertMedia is 204, and nothing is inserted",
        operation="deploy",
        ends="deploy failed",
        says="does not show it as done",
        is_so=_is_off,
        faults=(ignored(INSERT),),
    ),
    Oddity(
        id="insert-shows-late",
        source="Ironic 39.0.0, [redfish]enable_vmedia_insert_polling",
        bmc="InsertMedia is 204, and Inserted is true some seconds later",
        operation="deploy",
        faults=({"kind": "later", "seconds": 2.5, "path": INSERT},),
    ),
    Oddity(
        id="insert-is-a-task",
        source="DMTF DSP0266, asynchronous operations",
        bmc="InsertMedia is 202 with a task, which inserts some seconds later",
        operation="deploy",
        faults=({"kind": "task", "seconds": 2.5, "path": INSERT},),
    ),
    Oddity(
        id="insert-is-a-task-that-fails",
        source=f"{DELL}/issues/265",
        bmc="InsertMedia is 202 with a task, which ends in Exception",
        operation="deploy",
        ends="deploy failed",
        says=NOT_REACHED,
        is_so=_is_off,
        faults=({"kind": "task", "seconds": 0.5, "message": NOT_REACHED, "path": INSERT},),
    ),
    Oddity(
        id="insert-cannot-fetch",
        source=f"{DELL}/issues/265",
        bmc="InsertMedia is 400 RAC0904",
        operation="deploy",
        ends="deploy failed",
        says=NOT_REACHED,
        is_so=_is_off,
        faults=(refusal(400, "IDRAC.2.8.RAC0904", NOT_REACHED, path=INSERT),),
    ),
    Oddity(
        id="insert-is-201",
        source="https://github.com/lenovo/python-redfish-lenovo/pull/289",
        bmc="InsertMedia is 201 with a document",
        operation="deploy",
        faults=({"kind": "after", "status": 201, "path": INSERT},),
    ),
    Oddity(
        id="insert-has-an-internal-error",
        source=f"{DELL}/issues/60",
        bmc="InsertMedia is 500 SYS446, several times: retry after a while",
        operation="deploy",
        faults=(refusal(500, "IDRAC.1.6.SYS446", "an internal error", path=INSERT, times=3),),
    ),
    *(
        Oddity(
            id=f"insert-is-{status}-{code.lower()}",
            source=source,
            bmc=f"InsertMedia is {status} {code} until an eject: {message}",
            operation="deploy",
            faults=(refusal(status, f"IDRAC.2.8.{code}", message, path=INSERT, until=EMPTIED),),
        )
        for status, code, source, message in (
            (
                500,
                "VRM0012",
                DENTON,
                "The Virtual Media image server is already connected.",
            ),
            (
                400,
                "VRM0021",
                "https://github.com/microsoft/lisa/pull/4168",
                "Virtual Media is detached or already in use.",
            ),
        )
    ),
    Oddity(
        id="virtual-media-are-detached",
        source=f"{DELL}/issues/236",
        bmc="InsertMedia is 400 VRM0021 whatever is ejected: VirtualMedia.Attached is Detached",
        operation="deploy",
        ends="deploy failed",
        says="Virtual Media is detached",
        faults=(
            refusal(
                400,
                "IDRAC.2.8.VRM0021",
                "Virtual Media is detached or already in use.",
                path=INSERT,
            ),
        ),
    ),
    Oddity(
        id="image-stays-after-an-eject",
        source="https://github.com/ansible-collections/community.general/issues/6969",
        bmc="Image is set with Inserted false, and InsertMedia is refused until an eject",
        operation="deploy",
        before=lambda system: system.insert(OLD),
        faults=(shows(DEVICE, {"Inserted": False}, until=EMPTIED),),
    ),
    Oddity(
        id="image-has-another-name",
        source="https://github.com/quadsproject/badfish/pull/126",
        bmc="Image is a name of the BMC's own, and not the URL",
        operation="deploy",
        faults=(shows(DEVICE, {"Image": "mymedia-read-only"}),),
    ),
    Oddity(
        id="other-media-are-inserted",
        source="https://github.com/ansible-collections/community.general/issues/3042",
        bmc="a CD of another image is inserted",
        operation="deploy",
        before=lambda system: system.insert(OLD),
    ),
    Oddity(
        id="eject-before-an-insertion-is-slow",
        source="https://storyboard.openstack.org/#!/story/2008504",
        bmc="a CD of another image is inserted, and an eject lasts some seconds",
        operation="deploy",
        before=lambda system: system.insert(OLD),
        faults=({"kind": "later", "seconds": 1.5, "path": EJECT, "times": 1},),
    ),
    Oddity(
        id="first-slot-is-of-the-console-alone",
        source="https://github.com/openshift/openstack-ironic/pull/392",
        bmc="the first of two slots takes media of the console alone: InsertMedia is 405",
        operation="deploy",
        machine=TWO_DRIVES,
        faults=(
            refusal(405, "Base.1.8.OperationNotAllowed", "not allowed", path=f"Slot_0/.*{INSERT}"),
        ),
    ),
    Oddity(
        id="first-slot-has-no-action",
        source="https://github.com/openshift/openstack-ironic/pull/392",
        bmc="the first of two slots has no InsertMedia, and PATCH of it is 405",
        operation="deploy",
        machine=TWO_DRIVES,
        faults=(shows("Slot_0$", {"Actions": None}),),
    ),
    Oddity(
        id="first-slot-is-for-uploads",
        source="https://github.com/lenovo/python-redfish-lenovo/issues/21",
        bmc="the first of two CD drives (RDOC1) is for uploads of 50 MB, the second for URLs",
        operation="deploy",
        is_so=lambda system: system.media == {"RDOC1": None, "EXT1": ISO},
        machine={"media": (("RDOC1", ("CD", "DVD")), ("EXT1", ("CD", "DVD")))},
    ),
    Oddity(
        id="media-are-of-the-system",
        source="https://github.com/lenovo/python-redfish-lenovo/pull/257",
        bmc="virtual media are of the system, and not of the manager",
        operation="deploy",
        faults=(shows(r"/Managers/[^/]+$", {"VirtualMedia": None}),),
    ),
    Oddity(
        id="media-take-patch",
        source="https://github.com/stmcginnis/gofish/issues/529",
        bmc="devices have no actions, and take PATCH",
        operation="deploy",
        machine={"media_by_patch": True},
    ),
    Oddity(
        id="insert-wants-the-protocol",
        source=f"{SUSHY} add-virtual-media-transfer-protocol",
        bmc="InsertMedia is 400 until it names TransferProtocolType",
        operation="deploy",
        faults=(
            refusal(
                400,
                "Base.1.5.GeneralError",
                "TransferProtocolType is missing",
                path=INSERT,
                times=1,
            ),
        ),
    ),
    Oddity(
        id="insert-wants-a-login",
        source=f"{SUSHY} insertmedia-credentials-detection",
        bmc="InsertMedia is 400 until it has a user name and a password for the image",
        operation="deploy",
        faults=(
            refusal(
                400,
                "Base.1.5.ActionParameterMissing",
                "the action requires the parameter UserName",
                path=INSERT,
                times=1,
            ),
        ),
    ),
    Oddity(
        id="eject-wants-a-body",
        source=f"{SUSHY} fix-eject-media-empty-dict",
        bmc="EjectMedia is 415 until it has a body",
        operation="undeploy",
        faults=(refusal(415, "Base.1.5.GeneralError", "no body", path=EJECT, times=1),),
    ),
    Oddity(
        id="no-inserted-is-shown",
        source="DMTF DSP0268, VirtualMedia: Inserted is optional",
        bmc="devices show Image, and not Inserted",
        operation="undeploy",
        faults=(shows(DEVICE, {"Inserted": None}),),
    ),
    Oddity(
        id="deploys-though-no-inserted-is-shown",
        source="DMTF DSP0268, VirtualMedia: Inserted is optional",
        bmc="devices show Image, and not Inserted",
        operation="deploy",
        faults=(shows(DEVICE, {"Inserted": None}),),
    ),
    Oddity(
        id="nothing-is-shown-of-media",
        source="DMTF DSP0268, VirtualMedia: Inserted and Image are optional",
        bmc="devices show neither Inserted nor Image",
        operation="undeploy",
        faults=(shows(DEVICE, dict.fromkeys(("Inserted", "Image", "ImageName", "ConnectedVia"))),),
    ),
    Oddity(
        id="eject-is-404",
        source="https://github.com/bmc-toolbox/bmclib/pull/406",
        bmc="EjectMedia is 404, and the CD stays",
        operation="undeploy",
        ends="error",
        says="HTTP 404",
        faults=(refusal(404, "Base.1.8.ActionNotSupported", "no such action", path=EJECT),),
    ),
    Oddity(
        id="eject-is-404-of-what-is-gone",
        source="https://github.com/bmc-toolbox/bmclib/pull/410",
        bmc="a device looks as if it has media; EjectMedia is 404, and it is empty",
        operation="undeploy",
        before=lambda system: system.eject(),
        faults=(
            shows(DEVICE, {"Inserted": True, "Image": ISO}, until=EMPTIED),
            refusal(404, "Base.1.8.ActionNotSupported", "no such action", path=EJECT),
        ),
    ),
    *(
        Oddity(
            id=f"eject-of-an-empty-drive-is-{status}",
            source=source,
            bmc=f"devices do not show whether they are empty, and EjectMedia of an empty one is "
            f"{status}",
            operation="undeploy",
            before=lambda system: system.eject(),
            faults=(
                shows(DEVICE, dict.fromkeys(("Inserted", "Image", "ImageName", "ConnectedVia"))),
                refusal(status, code, "nothing is connected", path=EJECT),
            ),
        )
        for status, code, source in (
            (400, "Base.1.8.ActionNotSupported", "https://github.com/bmc-toolbox/bmclib/pull/406"),
            (500, "IDRAC.1.6.VRM0009", DENTON),
        )
    ),
    Oddity(
        id="eject-shows-late",
        source="https://storyboard.openstack.org/#!/story/2008504",
        bmc="EjectMedia is 204, and Inserted is false some seconds later",
        operation="undeploy",
        faults=({"kind": "later", "seconds": 2.5, "path": EJECT},),
    ),
)

ORDERS: Final = (
    *(
        Oddity(
            id=f"{operation.replace(' ', '-')}-{way}",
            source=source,
            bmc=bmc,
            operation=operation,
            faults=({"kind": kind, "seconds": 1.5, "path": path, "method": method},),
        )
        for way, source, bmc, kind in (
            ("is-a-task", "DMTF DSP0266, asynchronous operations",
             "the order is 202 with a task, which acts some seconds later", "task"),
            ("acts-late", "Ironic 39.0.0, [redfish]enable_vmedia_insert_polling",
             "the order is 204, and acts some seconds later", "later"),
        )
        for operation, path, method in (
            ("attach virtual media", INSERT, "POST"),
            ("eject_vmedia", EJECT, "POST"),
            ("switch a light", SYSTEM, "PATCH"),
            ("power on", "ComputerSystem.Reset$", "POST"),
        )
    ),
    *(
        Oddity(
            id=f"{operation.replace(' ', '-')}-is-a-task-that-fails",
            source="DMTF DSP2046, Task: TaskState Exception",
            bmc="the order is 202 with a task, which ends in Exception",
            operation=operation, ends=ends, says="the chip is hot",
            faults=(
                {"kind": "task", "seconds": 0.3, "message": "the chip is hot", "path": path,
                 "method": method, "times": times},
            ),
        )
        for operation, ends, path, method, times in (
            ("attach virtual media", "failed", INSERT, "POST", -1),
            ("eject_vmedia", "failed", EJECT, "POST", -1),
            ("switch a light", "failed", SYSTEM, "PATCH", -1),
            ("power on", "failed", "ComputerSystem.Reset$", "POST", -1),
            ("boot mode", "failed", SYSTEM, "PATCH", -1),
            ("secure boot", "failed", "/SecureBoot$", "PATCH", -1),
            ("apply BIOS settings", "clean failed", "/Bios/Settings$", "PATCH", -1),
        )
    ),
    Oddity(
        id="a-light-does-not-obey",
        source="https://github.com/bmc-toolbox/bmclib/issues/459, there of Boot",
        bmc="the PATCH is 204, and nothing is stored",
        operation="switch a light", ends="failed", says="does not show it as done",
        faults=(ignored(SYSTEM, "PATCH"),),
    ),
)  # fmt: skip

DOCUMENTS: Final = (
    *(
        Oddity(
            id=f"{operation.replace(' ', '-')}-from-pages",
            source="DMTF DSP0266, resource collections in pages",
            bmc="collections show one member a page, and where the next page is",
            operation=operation,
            rules={"page_size": 1},
            machine=TWO_DRIVES,
        )
        for operation in ("inspect", "deploy", "read firmware versions")
    ),
    Oddity(
        id="the-root-wants-a-login",
        source="https://github.com/DMTF/python-redfish-library/issues/132",
        bmc="the service root is 401 without a login",
        operation="manage",
        rules={"root_needs_login": True},
    ),
)

ODDITIES: Final[tuple[Oddity, ...]] = (
    *VIRTUAL_MEDIA,
    *ORDERS,
    *DOCUMENTS,
)


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
