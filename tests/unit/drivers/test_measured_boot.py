"""The event log of a real boot: OVMF with swtpm, GRUB 2.12 of Debian 13, Linux 6.1 from a built CD.

The CD was written by ``agent_boot.image`` for LINE; the machine has printed its PCRs and its log.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from bloomery import errors
from bloomery.drivers.agent_boot import image, measurements
from bloomery.drivers.attestation import event_log, policy
from tests.kit.machines.driver_task import FakeTask

LOG = gzip.decompress((Path(__file__).parent / "data/grub-2.12.log.gz").read_bytes())
LINE = 'console=ttyS0 panic=-1 ipa-api-url=http://192.0.2.1:6385 note="a b" ipa-agent-token=abc'
PRINTED = {
    0: "177e29c417b6b61c7cf46ed30b4468931f58642527a268b556254e39b941ec6a",
    4: "c6ea5729bf725aa4e8e8a6608ed8b0573912992b1ebcc5192f7c578a75dab8d5",
    7: "65caf8dd1e0ea7a6347b635d2b379c93b9a1351edc2afc3ecda700e534eb3068",
    8: "da5582a0b5027cd9e4308f64ea1a148b402a51f308ad2b691397da3cf32b831e",
    9: "bf2f00d988df0a72c56a9d6e74bfbb849f948ae8b67b51ad4c2a19c4a01c91d0",
}
PCRS = {pcr: bytes.fromhex(value) for pcr, value in PRINTED.items()}
KERNEL = "1a7ac0c40b10b98353b6f85fa9a0d4f2703287979567e19629d35ad2d777d124"  # of sha256sum
PROGRAM = "65c89335d8a5d25a8eeffd4de4a02087ac8dcf26165dbff8806a19f68ecd2842"  # of pesign
RAMDISK = "6b34e24fe31255bec413f2a1b99392335017f8845ce478d219e11abcc4d4d837"
GRUB = "5f4f544d7589cb3dd3def0d0e7f957a20a3b8d8341cd99ace44f4819c26726d8"


def expected(line: str = LINE, **changes: Any) -> policy.Expected:
    task = FakeTask({})
    measurements.note(task, image.KERNEL, line, {"grub.cfg": image.grub_config(line)})
    noted = measurements.noted(task)
    facts = {
        "kernel": frozenset(map(bytes.fromhex, (KERNEL, PROGRAM))),
        "ramdisk": bytes.fromhex(RAMDISK), "command_line": noted[measurements.COMMAND_LINE],
        "others": {digest: name for name, digest in noted.items()} | {bytes.fromhex(GRUB): "GRUB"},
    }  # fmt: skip
    return policy.Expected(**facts | changes)


@pytest.mark.parametrize("pcr", PCRS)
def test_the_log_explains_what_the_machine_has_printed(pcr):
    assert event_log.replay(event_log.read(LOG), pcr) == PCRS[pcr]


def test_each_measurement_is_one_of_the_files_and_texts_that_were_written():
    policy.check(event_log.read(LOG), PCRS, expected())


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"line": LINE.replace("abc", "abd")}, r"PCR 9 has EV_IPL '\(cd0\)/boot/agent.cfg' with"),
        ({"kernel": frozenset({bytes.fromhex(KERNEL)})}, "PCR 4 has EV_EFI_BOOT_SERVICES_APPLIC"),
        ({"kernel": frozenset({bytes.fromhex(PROGRAM)})}, "PCR 9 has EV_IPL '/vmlinuz' with"),
        ({"ramdisk": bytes(32)}, "PCR 9 has EV_IPL '/initrd' with"),
    ],
)
def test_other_files_and_texts_are_refused(changes, why):
    with pytest.raises(errors.StepFailure, match=why):
        policy.check(event_log.read(LOG), PCRS, expected(**changes))
