"""The system event log of a simulated BMC, through ipmitool."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bloomery.drivers.ipmi.management import IpmitoolManagement
from tests.functional.ipmi.conftest import conf
from tests.kit.machines.driver_task import FakeTask, walk

UNCORRECTABLE_ECC = "0x0a 0x44 0 0 2 {time} 0x20 0 4 0x0c 0x03 0x6f 0x01 0xff 0xff"


@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(days=400)])
def test_the_log_is_read_with_its_clock_and_cleared(machine, ahead) -> None:
    task = FakeTask(machine.driver_info)
    management = IpmitoolManagement(conf())
    bmc = management.bmc(task)
    time = datetime.now(UTC) + ahead
    bmc.ask("-Z", "sel", "time", "set", f"{time:%m/%d/%y %H:%M:%S}", write=True)
    stamp = " ".join(f"0x{byte:02x}" for byte in int(time.timestamp()).to_bytes(4, "little"))
    bmc.ask("raw", *UNCORRECTABLE_ECC.format(time=stamp).split(), write=True)
    log = management.read_bmc_log(task)
    assert log["clock_difference_s"] == pytest.approx(ahead.total_seconds(), abs=5)
    entry = next(each for each in log["entries"] if each["message"].startswith("Memory"))
    assert entry["message"] == "Memory #0x03: Uncorrectable ECC: Asserted"
    assert entry["severity"] == "Critical"
    assert abs(datetime.fromisoformat(entry["created_at"]) - time) < timedelta(seconds=10)
    walk(task, lambda: management.clear_bmc_log(task))
    assert management.read_bmc_log(task)["entries"] == []
