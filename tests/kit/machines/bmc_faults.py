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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from bloomery import errors
from bloomery.conf import Conf
from bloomery.conf.agent import Deploy
from bloomery.conf.api import Api
from bloomery.conf.conductor import Conductor
from bloomery.conf.default import Default
from bloomery.conf.drivers import BmcOptions, Redfish
from bloomery.drivers import registry
from bloomery.lab import tls as certificates
from bloomery.lab.bmc import Rules
from bloomery.lab.rack import Machine, Rack
from bloomery.lab.system import System
from tests.fakes.client import Answer
from tests.kit.sampling import some
from tests.kit.servers.site import Site
from tests.kit.servers.stories import Stage
from tests.kit.waiting import wait_for

ISO: Final = "http://images.test/rescue.iso"
FIRMWARE: Final = "http://images.test/boot-2.1"  # runs after a restart
LONG_S: Final = 60.0  # far beyond what any budget below allows
GRACE_S: Final = 30.0  # for a machine that is busy with other things
PAUSE_S: Final = 0.4
AT_ONCE: Final = 28
LOST_AT_ONCE: Final = 4  # answers of one operation, each lost in a run of its own
DONE: Final = "done"
OVER_TLS: Final = ("manage", "power on", "deploy")
MODELS: Final = {"redfish": "generic", "idrac": "dell-idrac"}  # by driver

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
LOST: Final = "Connection reset by peer"
_DIFFERS: Final = (
    (r"\b[0-9a-f]{8}((-[0-9a-f]{4}){3}-[0-9a-f]{12})?\b", "NODE"),  # its UUID, or the first digits
    (r"https?://127\.0\.0\.1:\d+", "ADDRESS"),
    (r"asked \d+ times", "asked N times"),
    (r"borne for \d+ s", "borne for N s"),
    (r"IncompleteRead\(.*?\)", "IncompleteRead"),
    (r"Remote end closed connection without response|EOF occurred.*?\)", LOST),
    (r" \(left alone after .*?\)", ""),
)


class Attempt(NamedTuple):
    """``outcome``: DONE, the state in which the node ended, or "taken for done"."""

    outcome: str
    sentence: str
    took_s: float


class Request(NamedTuple):
    """Which requests of an operation meet the fault."""

    name: str
    method: str
    path: str


ANY: Final = Request("any request", ".*", "")
LOGIN: Final = Request("login", "POST", "/Sessions$")
LOOK: Final = Request("GET of the system", "GET", r"/Systems/[^/]+$")
RESET: Final = Request("Reset", "POST", r"ComputerSystem\.Reset$")
BOOT: Final = Request("PATCH of boot", "PATCH", r"/Systems/[^/]+$")
SECURE: Final = Request("PATCH of secure boot", "PATCH", "/SecureBoot$")
MEDIA: Final = Request("GET of virtual media", "GET", "/VirtualMedia/Cd$")
INSERT: Final = Request("InsertMedia", "POST", "InsertMedia$")
EJECT: Final = Request("EjectMedia", "POST", "EjectMedia$")
PROCESSORS: Final = Request("GET of processors", "GET", "/Processors$")
BIOS: Final = Request("GET of BIOS", "GET", "/Bios$")
REGISTRY: Final = Request("GET of the registry", "GET", "/Registries/[^/]+$")
SETTINGS: Final = Request("PATCH of BIOS settings", "PATCH", "/Bios/Settings$")
UPDATE: Final = Request("SimpleUpdate", "POST", r"UpdateService\.SimpleUpdate$")
TASK: Final = Request("GET of the task", "GET", "/TaskMonitors/[^/]+$")
MANAGER: Final = Request("GET of the manager", "GET", r"/Managers/[^/]+$")
QUEUE: Final = Request("DeleteJobQueue", "POST", "DeleteJobQueue$")
IDRAC: Final = Request("iDRACReset", "POST", "iDRACReset$")

# Budgets, and the seconds that they have here.
CALL, POWER, SOFT, OUTAGE = "call", "power", "soft power", "outage"
BUDGETS: Final = {CALL: 9.0, POWER: 9.0, SOFT: 9.0, OUTAGE: 9.0}


CONDUCTOR: Final[dict[str, Any]] = {
    "power_state_change_timeout": int(BUDGETS[POWER]),
    "soft_power_off_timeout": int(BUDGETS[SOFT]),
    "automated_clean": False,
    "workers_pool_size": 60,
    "bmc_outage_budget": int(BUDGETS[OUTAGE]),
    "preflight_timeout": 0,  # no server has the ISO
}


def conf(folder: Path) -> Conf:
    """Redfish and idrac; every budget is a few seconds."""
    return dataclasses.replace(
        Conf(),
        api=Api(public_endpoint="http://192.0.2.1:6385"),
        deploy=Deploy(http_root=str(folder / "http")),
        default=Default(
            enabled_hardware_types=("redfish", "idrac"),
            enabled_inspect_interfaces=("redfish", "agent"),
        ),
        conductor=Conductor(**CONDUCTOR, file_url_allowed_paths=(str(folder),)),
        redfish=Redfish(
            connect_timeout=2,
            read_timeout=3,
            power_on_conflict_retry_interval=1,
            firmware_update_status_interval=1,
            vmedia_insert_timeout=int(BUDGETS[CALL]),
            vmedia_insert_poll_interval=1,
            firmware_update_validation_interval=0,
            boot_device_timeout=4,
        ),
        bmc=BmcOptions(
            call_timeout=int(BUDGETS[CALL]),
            breaker_failures=5,
            breaker_pause=1,
            login_pause=1,
            login_longest_pause=2,
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What is asked of a node that stands in ``state`` before a machine that runs, or not.

    ``ask`` returns when it is over, with what was read; ``is_so``: what is then true of the
    machine, and of what was read; ``requests``: those that a single fault may meet; ``budgets``:
    those that together bound it; ``boot``: the boot interface, None: the default.
    """

    name: str
    ask: Callable[[Trial, str], Any]
    is_so: Callable[[System, Any], bool]
    requests: tuple[Request, ...]
    budgets: tuple[str, ...] = (CALL,)
    state: str = "manageable"
    ends: str = "manageable"
    is_on: bool = False
    driver: str = "redfish"
    boot: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """``passed``: so many requests of the kind meet no fault, before one does."""

    operation: Operation
    fault: str
    request: Request = ANY
    passed: int = 0
    lasts: bool = False
    tls: bool = False

    def __str__(self) -> str:
        often = "for ever" if self.lasts else "once"
        wire = " over TLS" if self.tls else ""
        after = f" after {self.passed}" if self.passed else ""
        return f"{self.operation.name}{wire}: {self.fault}, {often}, at {self.request.name}{after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What came of a cell: the state that the node ended in, and what it says of it.

    ``hits``: how many requests met the fault; ``recovers``: asked for once more without the
    fault, it is done.
    """

    cell: Cell
    outcome: str
    sentence: str
    took_s: float
    hits: int
    recovers: bool = True

    def __str__(self) -> str:
        again = "" if self.recovers else "; and not when the fault is gone"
        return f"{self.cell}: {self.outcome}: {self.sentence}{again}"

    @property
    def is_in_time(self) -> bool:
        allowed_s = sum(BUDGETS[name] for name in self.cell.operation.budgets)
        return self.took_s < allowed_s + GRACE_S


# ------------------------------------------------------------------------------ operations


def _verb(verb: str) -> Callable[[Trial, str], Any]:
    def ask(trial: Trial, node: str) -> None:
        trial.stage.ask(node, verb)
        trial.wait(node)

    return ask


def _put(path: str, **body: Any) -> Callable[[Trial, str], Any]:
    def ask(trial: Trial, node: str) -> None:
        _checked(trial.stage.api.put(f"/v1/nodes/{node}/{path}", body))
        trial.wait(node)

    return ask


def post(path: str, **body: Any) -> Callable[[Trial, str], Any]:
    def ask(trial: Trial, node: str) -> None:
        _checked(trial.stage.api.post(f"/v1/nodes/{node}/{path}", body))
        trial.wait(node)

    return ask


def switch_light(trial: Trial, node: str, state: str) -> None:
    """Switch the light of the system."""
    path = f"/v1/nodes/{node}/management/indicators"
    listed = _checked(trial.stage.api.get(path)).json["indicators"]
    name = next(each["name"] for each in listed if each["name"].endswith("@system"))
    _checked(trial.stage.api.put(f"{path}/{name}", {"state": state}))


def _get(path: str) -> Callable[[Trial, str], Any]:
    return lambda trial, node: _checked(trial.stage.api.get(f"/v1/nodes/{node}/{path}")).json


def _checked(answer: Answer) -> Answer:
    if answer.status >= 400:
        raise Refused(answer.said)
    return answer


def _read(interface: str, method: str) -> Callable[[Trial, str], Any]:
    def ask(trial: Trial, node: str) -> Any:
        with trial.stage.site.acquire(node, shared=True) as task:
            return getattr(task.driver.interface(interface), method)(task)

    return ask


def _clean(interface: str, step: str, *settings: dict[str, Any]) -> Callable[[Trial, str], Any]:
    """Clean by one step; a node that failed before is made manageable by an operator."""

    def ask(trial: Trial, node: str) -> None:
        if trial.stage.site.node(node).provision_state == "clean failed":
            _checked(trial.stage.api.delete(f"/v1/nodes/{node}/maintenance"))
            trial.stage.ask(node, "manage")
            trial.wait(node)
        args = {"settings": list(settings)} if settings else {}
        steps = [{"interface": interface, "step": step, "args": args}]
        trial.stage.ask(node, "clean", clean_steps=steps, disable_ramdisk=True)
        trial.wait(node)

    return ask


class Refused(Exception):
    """The API said no."""


def _power(target: str, reached: str, *, is_on: bool, budgets: tuple[str, ...]) -> Operation:
    return Operation(
        name=target, ask=_put("states/power", target=target), requests=(LOOK, RESET),
        is_so=lambda system, _: system.power == reached, is_on=is_on, budgets=budgets,
    )  # fmt: skip


def _was_flashed_once(system: System) -> bool:
    version = FIRMWARE.rpartition("/")[2]
    flashed = [what for what in system.happened if what.endswith(f"firmware is {version}")]
    return system.firmware["BIOS"] == version and len(flashed) == 1


def _booted_from(target: str) -> Callable[[System, Any], bool]:
    return lambda system, _: bool(system.booted["target"] == target)


def _has(*kinds: str) -> Callable[[System, Any], bool]:
    return lambda _system, read: all(read.get(kind) for kind in kinds)


OPERATIONS: Final = (
    Operation(
        name="manage", ask=_verb("manage"), state="enroll", requests=(LOGIN, LOOK),
        is_so=lambda _system, _: True,
    ),
    _power("power on", "On", is_on=False, budgets=(CALL, POWER)),
    _power("power off", "Off", is_on=True, budgets=(CALL, POWER)),
    _power("rebooting", "On", is_on=True, budgets=(CALL, POWER, POWER)),
    _power("soft power off", "Off", is_on=True, budgets=(CALL, SOFT)),
    _power("soft rebooting", "On", is_on=True, budgets=(CALL, SOFT)),
    Operation(
        name="set boot device", requests=(LOOK, BOOT),
        ask=_put("management/boot_device", boot_device="pxe", persistent=True),
        is_so=lambda system, _: system.boot["target"] == "Pxe",
    ),
    Operation(
        name="get boot device", ask=_get("management/boot_device"), requests=(LOOK,),
        is_so=lambda _system, read: "boot_device" in read,
    ),
    Operation(
        name="boot mode", ask=_put("states/boot_mode", target="bios"), requests=(LOOK, BOOT),
        is_so=lambda system, _: system.boot["mode"] == "Legacy", budgets=(CALL, CALL),
    ),
    Operation(
        name="secure boot", ask=_put("states/secure_boot", target=True),
        requests=(LOOK, SECURE), is_so=lambda system, _: system.secure_next is True,
        budgets=(CALL, CALL),
    ),
    Operation(
        name="inspect", ask=_verb("inspect"), requests=(LOOK, PROCESSORS),
        is_so=lambda _system, _: True, budgets=(OUTAGE, CALL),
    ),
    Operation(
        name="deploy", ask=_verb("active"), state="available", ends="active",
        is_so=lambda system, _: system.power == "On" and system.booted["image"] == ISO,
        requests=(LOOK, MEDIA, INSERT, BOOT, RESET), budgets=(OUTAGE, CALL, POWER),
    ),
    Operation(
        name="undeploy", ask=_verb("deleted"), state="active", ends="available", is_on=True,
        is_so=lambda system, _: system.power == "Off" and not any(system.media.values()),
        requests=(LOOK, MEDIA, EJECT, RESET), budgets=(OUTAGE, CALL, POWER),
    ),
    Operation(
        name="deploy by redfish-https", ask=_verb("active"), state="available", ends="active",
        is_so=lambda system, _: system.power == "On" and system.booted["image"] == ISO,
        requests=(LOOK, BOOT, RESET), budgets=(OUTAGE, CALL, POWER), boot="redfish-https",
    ),
    Operation(
        name="undeploy by redfish-https", ask=_verb("deleted"), state="active", ends="available",
        is_so=lambda system, _: system.power == "Off" and not system.http_uri, is_on=True,
        requests=(LOOK, BOOT, RESET), budgets=(OUTAGE, CALL, POWER), boot="redfish-https",
    ),
    *(
        Operation(
            name=f"boot agent by {boot}", ask=_verb("inspect"), ends="inspect wait", boot=boot,
            is_so=_booted_from(target),
            requests=(LOOK, BOOT, RESET), budgets=(OUTAGE, CALL, POWER),
        )
        for boot, target in (("pxe", "Pxe"), ("http", "UefiHttp"))
    ),
    Operation(
        name="read BIOS settings", ask=_read("bios", "cache_bios_settings"),
        requests=(BIOS, REGISTRY),
        is_so=lambda _system, read: read.result["bios_settings"][0].get("attribute_type"),
    ),
    Operation(
        name="read firmware versions", ask=_read("firmware", "cache_firmware_components"),
        requests=(LOOK, MANAGER), is_so=lambda _system, read: len(read.result["firmware"]) == 3,
    ),
    Operation(
        name="apply BIOS settings", requests=(BIOS, SETTINGS, RESET),
        ask=_clean("bios", "apply_configuration", {"name": "NumCores", "value": 4}),
        is_so=lambda system, _: system.bios["NumCores"] == 4,
        budgets=(CALL, CALL, OUTAGE, POWER, POWER),
    ),
    Operation(
        name="update firmware", requests=(LOOK, UPDATE, TASK),
        ask=_clean("firmware", "update", {"component": "bios", "url": FIRMWARE}),
        is_so=lambda system, _: _was_flashed_once(system),
        budgets=(CALL, CALL, OUTAGE, POWER, POWER),
    ),
    Operation(
        name="clear job queue", requests=(LOOK, QUEUE), driver="idrac",
        ask=_clean("management", "clear_job_queue"),
        is_so=lambda system, _: "job queue cleared" in system.happened,
        budgets=(CALL, CALL, OUTAGE),
    ),
    Operation(
        name="reset iDRAC", requests=(LOOK, MANAGER, IDRAC), driver="idrac",
        ask=_clean("management", "reset_idrac"),
        is_so=lambda system, _: "BMC restarts" in system.happened,
        budgets=(CALL, CALL, OUTAGE, OUTAGE),
    ),
)  # fmt: skip


def _inspect(trial: Trial, node: str) -> dict[str, Any]:
    _verb("inspect")(trial, node)
    if trial.stage.site.node(node).last_error:
        return {}
    return (
        _get("")(trial, node) | _get("inventory")(trial, node) | _get("ports/detail")(trial, node)
    )


READS: Final = tuple(  # operations of odd BMCs alone, of which a row says what they read
    Operation(name=name, ask=ask, requests=(), is_so=lambda _system, _read: True)
    for name, ask in (
        ("check the BMC", lambda trial, node: _checked(
            trial.stage.api.get(f"/ext/v1/nodes/{node}/bmc")).json),
        ("inspect and show", _inspect),
        ("list boot devices", _get("management/boot_device/supported")),
        ("read sensors", _read("management", "get_sensors_data")),
        ("detect the vendor", _read("management", "detect_vendor")),
    )
)  # fmt: skip


def single_cells(*, tls: bool = False) -> Iterator[Cell]:
    """One fault of each kind at each of the named requests of each operation."""
    for operation in OPERATIONS:
        for request in operation.requests:
            for fault in FAULTS:
                yield Cell(operation=operation, fault=fault, request=request, tls=tls)


def first_lost_answers() -> Iterator[Cell]:
    """The first answer of an operation that is lost, before or after the work."""
    for operation in OPERATIONS:
        for fault in ("reset", "after") if not operation.name.startswith(("get", "read")) else ():
            yield Cell(operation=operation, fault=fault)


def lasting_cells(*, tls: bool = False) -> Iterator[Cell]:
    """Faults that meet every request of an operation, until somebody sees to them."""
    for operation in OPERATIONS:
        for fault in FAULTS:
            yield Cell(operation=operation, fault=fault, lasts=True, tls=tls)


def all_cells() -> list[Cell]:
    """Those that wait mixed with those that work, so that neither does so alone.

    No operation knows of TLS, which is below the requests: a few of them are tried over it.
    """
    over_tls = [*lasting_cells(tls=True), *single_cells(tls=True)]
    chosen = [cell for cell in over_tls if cell.operation.name in OVER_TLS]
    groups = [some(cells) for cells in (list(lasting_cells()), chosen, list(single_cells()))]
    placed = [(at / len(group), cell) for group in groups for at, cell in enumerate(group)]
    return [cell for _, cell in sorted(placed, key=lambda place: place[0])]


# ------------------------------------------------------------------------------------ trial


class Trial:
    """One service, and racks for its cells."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._until_closed = ExitStack()

    def __enter__(self) -> Self:
        site = Site(
            self._folder / "site.sqlite", registry=registry.load(conf(self._folder)), **CONDUCTOR
        )
        self._until_closed.callback(site.close)
        self.stage = Stage(site)
        return self

    def __exit__(self, *_exc: object) -> None:
        self._until_closed.close()

    def run(self, asked: Iterable[Cell]) -> list[Row]:
        """Run these cells, so many at a time; return their rows in order."""
        listed = list(asked)
        with ExitStack() as racks, ThreadPoolExecutor(AT_ONCE) as pool:
            machines = self._machines(racks, listed)
            return list(pool.map(self._row, listed, machines))

    def lose_each_answer(self) -> list[Row]:
        """Lose the answers of each operation one by one, a few of them at a time, to its end."""
        rows, begun = [], some(list(first_lost_answers()))
        while begun:
            tried = self.run(
                dataclasses.replace(cell, passed=cell.passed + further)
                for cell in begun
                for further in range(LOST_AT_ONCE)
            )
            rows += tried
            begun = [
                dataclasses.replace(last.cell, passed=last.cell.passed + 1)
                for last in tried[LOST_AT_ONCE - 1 :: LOST_AT_ONCE]
                if last.hits
            ]
        return rows

    def _machines(self, racks: ExitStack, listed: list[Cell]) -> list[Machine]:
        kinds = [(cell.tls, cell.operation.driver) for cell in listed]
        made = {}
        for kind, count in Counter(kinds).items():
            over_tls, driver = kind
            rack = Rack(
                count, apart=True, model=MODELS[driver], rules=Rules(update_s=0.2, restart_s=0.5),
                tls=certificates.certificate(self._folder) if over_tls else None,
            )  # fmt: skip
            made[kind] = iter(racks.enter_context(rack).machines)
        return [next(made[kind]) for kind in kinds]

    def _row(self, cell: Cell, machine: Machine) -> Row:
        operation = cell.operation
        fault = FAULTS[cell.fault] | {"path": cell.request.path, "method": cell.request.method}
        fault |= {"times": -1 if cell.lasts else 1, "skip": cell.passed}
        try:
            node = self.node(operation, machine)
            attempt = self.attempt(operation, node, machine, fault)
        except AssertionError as exc:
            exc.add_note(str(cell))
            raise
        [shown] = machine.bmc.faults.shown()
        machine.bmc.faults.clear()
        return Row(
            cell=cell, outcome=attempt.outcome, sentence=_plain(attempt.sentence),
            took_s=attempt.took_s, hits=shown["hits"],
            recovers=attempt.outcome == DONE
            or (bool(attempt.sentence) and self._recovers(operation, node, machine)),
        )  # fmt: skip

    def attempt(
        self, operation: Operation, node: str, machine: Machine, *faults: dict[str, Any]
    ) -> Attempt:
        """Run an operation of ``node`` while its BMC has these faults, which stay."""
        for fault in faults:
            machine.bmc.faults.add(**fault)
        began_at = time.monotonic()
        outcome, sentence = self._outcome(operation, node, machine)
        return Attempt(outcome, sentence, time.monotonic() - began_at)

    def _recovers(self, operation: Operation, node: str, machine: Machine) -> bool:
        """Ask again, without the fault, until it is done: a BMC may be left alone for a while."""
        give_up_at = time.monotonic() + LONG_S
        while self.attempt(operation, node, machine).outcome != DONE:
            if time.monotonic() > give_up_at:
                return False
            time.sleep(PAUSE_S)
        return True

    def node(self, operation: Operation, machine: Machine, **driver_info: Any) -> str:
        """Return a node in the state that the operation begins with."""
        machine.system._on = operation.is_on
        info = machine.driver_info | {"redfish_verify_ca": False} | driver_info
        interfaces: dict[str, Any] = {"boot_interface": operation.boot} if operation.boot else {}
        if operation.ends == "inspect wait":
            interfaces["inspect_interface"] = "agent"
            (self._folder / "ramdisk").touch()
            info |= dict.fromkeys(
                ("deploy_kernel", "deploy_ramdisk"), f"file://{self._folder}/ramdisk"
            )
        node = self.stage.enrol(driver=operation.driver, driver_info=info, **interfaces)
        machine.system.firmware["BIOS"] = node  # what is read once for each BIOS is read here, too
        if operation.state == "active" and operation.boot:
            machine.system.http_uri = ISO
        elif operation.state == "active":
            machine.system.insert(ISO)
        if operation.ends == "inspect wait":
            mac = ":".join(("52", "54", *re.findall("..", node[:8])))  # those of racks are alike
            _checked(self.stage.api.post("/v1/ports", {"node_uuid": node, "address": mac}))
        self.stage.site.set(
            node, provision_state=operation.state, instance_info=json.dumps({"boot_iso": ISO}),
            power_state="power on" if operation.is_on else "power off",
        )  # fmt: skip
        return node

    def _outcome(self, operation: Operation, node: str, machine: Machine) -> tuple[str, str]:
        try:
            read = operation.ask(self, node)
        except (errors.Failure, Refused) as exc:
            return "failed", str(exc)
        shown = self.stage.site.node(node)
        if shown.last_error:
            ended = shown.provision_state
            return "failed" if ended == operation.state else str(ended), shown.last_error
        assert shown.provision_state == operation.ends, shown.provision_state
        if shown.power_state != f"power {machine.system.power.lower()}":
            return f"recorded as {shown.power_state}", ""
        return DONE if operation.is_so(machine.system, read) else "taken for done", ""

    def wait(self, node: str) -> None:
        site = self.stage.site
        wait_for(
            lambda: site.is_free(node), f"{node} to be free", timeout_s=LONG_S, every_s=PAUSE_S / 8,
        )  # fmt: skip


def _plain(sentence: str) -> str:
    """A sentence without what differs from run to run."""
    for pattern, word in _DIFFERS:
        sentence = re.sub(pattern, word, sentence)
    return sentence
