"""A rack walks through all that IPMI can do; a fifth of it goes mute meanwhile, and returns.

It has fifty machines, and ten in `make test`.

What is asserted is where each machine ends and what is told of it: a mute BMC is its own node's
trouble, and nobody else's.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from bloomery.drivers import registry
from bloomery.lab.ipmi import IpmiMachine, IpmiRack
from tests.functional.ipmi.conftest import conf
from tests.kit.sampling import count
from tests.kit.servers.stories import Stage

MUTE = max(2, count(10))
NODES = 5 * MUTE
AT_ONCE = 8
LONG_S = 120.0  # for fifty machines on two busy cores
SILENCE_S = 8  # living BMCs, too, answer late while fifty are asked at once
STEPS = [
    {"interface": "vendor", "step": "send_raw", "args": {"raw_bytes": "0x00 0x08 0x03 0x08"}},
    {"interface": "vendor", "step": "bmc_reset", "args": {"warm": False}},
]


class Machine:
    """A node and its machine."""

    def __init__(self, stage: Stage, hardware: IpmiMachine) -> None:
        self.stage, self.hardware = stage, hardware
        self.node = stage.enrol(driver="ipmi", driver_info=hardware.driver_info)
        self.place = f"/v1/nodes/{self.node}/management/boot_device"

    # ------------------------------------------------------------------------- what is asked

    def manage(self) -> None:
        self.stage.ask(self.node, "manage")

    def order(self, target: str) -> None:
        assert self.stage.try_power(self.node, target).status == 202

    def clean(self) -> None:
        self.stage.site.provision(self.node, "clean", steps=STEPS, disable_ramdisk=True)

    def boot_from(self, device: str) -> None:
        answer = self.stage.api.put(self.place, {"boot_device": device, "persistent": False})
        assert answer.status == 204, answer.body
        assert self.stage.api.get(self.place).json["boot_device"] == device
        assert self.hardware.boot_device == device

    # ---------------------------------------------------------------------- where it arrives

    def arrives(self, state: str = "manageable") -> None:
        self.stage.site.wait_for_state(self.node, state, "enroll", "clean failed", timeout_s=LONG_S)
        shown = self.stage.show(self.node)
        assert (shown["provision_state"], shown["last_error"]) == (state, None)

    def is_powered(self, on: bool) -> None:
        self.arrives()
        assert self.hardware.is_on is on
        assert self.stage.show(self.node)["power_state"] == ("power on" if on else "power off")

    @property
    def is_left_alone(self) -> bool:
        return self.stage.why(self.node)["contact"]["bmc"]["left_alone"]

    def tells_of_silence(self) -> None:
        self.stage.site.wait_for_state(self.node, "manageable", timeout_s=LONG_S)
        shown = self.stage.show(self.node)
        assert (
            f"the BMC of node {shown['name'] or self.node[:8]} at 127.0.0.1:{self.hardware.port}"
            in (shown["last_error"])
        )
        assert shown["target_power_state"] is None
        assert self.stage.why(self.node)["contact"]["bmc"]["last_error"]


ENDS = {"power off": False, "soft power off": False, "rebooting": True, "soft rebooting": True}


@pytest.fixture
def stage(make_site) -> Iterator[Stage]:
    patient = conf(command_retry_timeout=SILENCE_S)
    stage = Stage(make_site(registry=registry.load(patient), workers_pool_size=NODES * 2))
    yield stage
    assert stage.nothing_is_left(), "a reservation is left"


@pytest.fixture
def machines(stage, folder) -> Iterator[list[Machine]]:
    with IpmiRack(folder / "rack", nodes=NODES) as rack:
        yield [Machine(stage, hardware) for hardware in rack.machines]
        for hardware in rack.machines:
            hardware.resume()


def all_of(*calls) -> None:
    """Make the calls, some at a time; the first that fails is raised."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(call) for call in calls]:
            done.result()


def each(machines: list[Machine], act, *args) -> None:
    for machine in machines:
        act(machine, *args)


def test_machines_do_all_that_ipmi_can_while_a_fifth_is_mute(machines):
    mute, living = machines[:MUTE], machines[MUTE:]
    each(machines, Machine.manage)
    each(machines, Machine.arrives)
    each(machines, Machine.order, "power on")
    each(machines, Machine.is_powered, True)
    for machine in mute:
        machine.hardware.pause()
        machine.order("rebooting")
    walk(living)
    each(mute, Machine.tells_of_silence)
    for machine in mute:
        machine.hardware.resume()
        machine.order("rebooting")
    each(mute, Machine.is_powered, True)
    assert not any(machine.is_left_alone for machine in machines)
    all_of(*[partial(machine.boot_from, "cdrom") for machine in mute])


def walk(machines: list[Machine]) -> None:
    """Power in each way, boot devices, and steps of cleaning."""
    orders = [(machine, target) for machine, target in zip(machines, [*ENDS] * NODES, strict=False)]
    for machine, target in orders:
        machine.order(target)
    for machine, target in orders:
        machine.is_powered(ENDS[target])
    all_of(*[partial(machine.boot_from, "pxe") for machine in machines])
    each(machines[:MUTE], Machine.clean)
    each(machines, Machine.arrives)
