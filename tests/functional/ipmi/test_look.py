"""Looks read the power of ipmi_sim's BMCs; and ipmitool reads the BMC of the looks' own tests."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import pytest

from bloomery.conductor.states import Power
from bloomery.drivers.ipmi import info, tool
from bloomery.drivers.ipmi.power import IpmitoolPower
from bloomery.drivers.looks import NeedsTask, Reading
from bloomery.lab import ipmi as lab
from tests.functional.ipmi.conftest import conf
from tests.kit.machines.driver_task import FakeTask
from tests.kit.machines.rmcp_bmc import RmcpBmc

KG = b"two-way"
LIMIT_S = 30.0
OFF, ON = Reading(Power.OFF, None), Reading(Power.ON, None)


@pytest.fixture
def keyed(tmp_path, monkeypatch) -> Iterator[lab.IpmiMachine]:
    monkeypatch.setattr(
        lab,
        "_LAN",
        lab._LAN.replace("  guid {guid}", f'  guid {{guid}}\n  bmc_key "{KG.decode()}"'),
    )
    with lab.IpmiRack(tmp_path / "keyed", nodes=1) as rack:
        yield rack.machines[0]


def read_on_and_off(machine: lab.IpmiMachine, **keys: object) -> list[Reading]:
    """Look at a machine whose button is pressed between two looks."""
    power = IpmitoolPower(conf())

    async def story() -> list[Reading]:
        look = power.look(FakeTask(machine.driver_info | keys), None)
        with contextlib.closing(look):
            readings = [await look.read(LIMIT_S)]
            for kind in ("On", "ForceOff"):
                machine.reset(kind)
                readings.append(await look.read(LIMIT_S))
        return readings

    return asyncio.run(story())


@pytest.mark.parametrize("keys", [{}, {"ipmi_priv_level": "USER"}, {"ipmi_cipher_suite": None}])
def test_a_look_follows_the_machine(machine, keys):
    assert read_on_and_off(machine, **keys) == [OFF, ON, OFF]
    assert machine.calls == ["get power"] * 3


def test_a_look_knows_the_kg_key(keyed):
    assert read_on_and_off(keyed, ipmi_hex_kg_key=KG.hex()) == [OFF, ON, OFF]


@pytest.mark.parametrize(
    "keys",
    [{"ipmi_password": "wrong"}, {"ipmi_username": "nobody"}, {"ipmi_hex_kg_key": "ab"}],
    ids=["password", "user", "Kg key"],
)
def test_a_wrong_login_is_for_a_task(keyed, keys):
    with pytest.raises(NeedsTask):
        read_on_and_off(keyed, **{"ipmi_hex_kg_key": KG.hex()} | keys)
    assert keyed.calls == []


def test_a_bmc_that_starts_anew_is_logged_in_to_again(machine):
    power = IpmitoolPower(conf())

    async def story() -> list[Reading]:
        look = power.look(FakeTask(machine.driver_info), None)
        with contextlib.closing(look):
            readings = [await look.read(LIMIT_S)]
            machine.stop()
            machine.start()
            return [*readings, await look.read(LIMIT_S)]

    assert asyncio.run(story()) == [OFF, OFF]


@pytest.mark.parametrize("suite", [3, 17])
@pytest.mark.parametrize("kg", [b"", KG])
def test_ipmitool_reads_the_bmc_of_the_kit(suite, kg):
    """So the unit tests of looks prove what real consoles and BMCs say to each other."""
    bmc = RmcpBmc(kg=kg, is_on=True)

    async def story() -> str:
        await bmc.start()
        own, once = info.parse(bmc.driver_info), tool.Patience()
        try:
            return await asyncio.to_thread(
                tool.run, own, ("power", "status"), suite=suite, patience=once
            )
        finally:
            bmc.transport.close()

    assert asyncio.run(story()).strip() == "Chassis Power is on"
    assert bmc.received == ["capabilities", "open", "rakp1", "rakp3", "level", "status", "close"]
