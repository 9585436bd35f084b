"""A machine of the simulated BMC that is real: its power is a process of qemu.

Boot override, media and the times of power are those of ``bloomery.lab``.  What is in the CD drive
is fetched when the machine boots from it, as by BMCs that stream their media.  A URL is fetched by
the firmware, over a network device of its own with DHCP.  A guest that resets itself ends qemu, and
is off.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Final

from bloomery.lab.system import Spec, System
from tests.kit.waiting import wait_for

OVMF: Final = Path("/usr/share/OVMF")
DISKS: Final = ("disk.qcow2", "second.qcow2")
SIZE: Final = "6G"
TOOLS: Final = Path("build/vm/tools").resolve()


class VirtualMachine(System):
    """``folder``: of its disks, its NVRAM and ``console.log``; ``tap``: its network device.

    ``line``: the descriptor of a terminal, to which its serial line leads; the log has a copy.

    The NVRAM begins as a copy of ``variables``.  They have Microsoft's keys, so that with secure
    boot only a signed boot loader runs.  With UEFI it has a TPM, which ``swtpm`` emulates.
    """

    variables: ClassVar[Path] = OVMF / "OVMF_VARS_4M.ms.fd"

    def __init__(
        self,
        spec: Spec,
        stopping: threading.Event,
        *,
        folder: Path,
        tap: str,
        line: int | None = None,
    ) -> None:
        super().__init__(spec, stopping)
        self.console = folder / "console.log"
        self._folder, self._tap, self._line = folder, tap, line
        self._qemu: subprocess.Popen[bytes] | None = None
        self._swtpm: subprocess.Popen[bytes] | None = None  # it ends with the qemu that it serves
        for name in DISKS:
            disk = ["qemu-img", "create", "-q", "-f", "qcow2", str(folder / name), SIZE]
            subprocess.run(disk, check=True)
        shutil.copy(self.variables, folder / "nvram.fd")

    @property
    def is_on(self) -> bool:
        return self._qemu is not None and self._qemu.poll() is None

    def start(self) -> None:
        lines = [] if self._line is None else [self._line]
        with (self._folder / "qemu.log").open("ab") as log:
            self._qemu = subprocess.Popen(
                [*self._command()], stdout=log, stderr=log, pass_fds=lines
            )

    def stop(self) -> None:
        if self._qemu is not None:
            self._qemu.terminate()
            self._qemu.wait()

    def _command(self) -> Iterator[str]:
        """Yield qemu's command line; without KVM, which not every machine has."""
        spec, folder = self.spec, self._folder
        boots_url = self.booted["target"] == "UefiHttp"
        boots_cd = self.booted["image"] is not None and not boots_url
        boots_network = self.booted["target"] == "Pxe"
        yield from ("qemu-system-x86_64", "-nodefaults", "-display", "none", "-no-reboot")
        yield from ("-machine", "q35,smm=on", "-accel", "tcg,thread=multi", "-cpu", "max")
        yield from ("-smp", str(spec.cpus), "-m", f"{spec.memory_gib}G", "-uuid", spec.uuid)
        log = f"logfile={self.console},logappend=on"
        yield from ("-add-fd", f"fd={self._line},set=1")
        yield from ("-chardev", f"serial,id=console,path=/dev/fdset/1,{log}")
        yield from ("-serial", "chardev:console", "-device", "virtio-rng-pci")
        if self.booted["mode"] == "UEFI":
            _switch_secure_boot(folder / "nvram.fd", on=self.booted["secure"])
            if boots_url:
                _boot_url(folder / "nvram.fd", self.booted["image"])
                yield from ("-netdev", "user,id=firmware")
                yield from ("-device", "virtio-net-pci,netdev=firmware,romfile=,bootindex=1")
            pflash, code = "if=pflash,format=raw", OVMF / "OVMF_CODE_4M.secboot.fd"
            yield from ("-global", "driver=cfi.pflash01,property=secure,value=on")
            yield from ("-drive", f"{pflash},readonly=on,file={code}")
            yield from ("-drive", f"{pflash},file={folder / 'nvram.fd'}")
            yield from ("-chardev", f"socket,id=swtpm,path={self._start_tpm()}")
            yield from ("-tpmdev", "emulator,id=tpm,chardev=swtpm", "-device", "tpm-crb,tpmdev=tpm")
        else:
            yield from ("-device", "VGA")  # GRUB for BIOS hangs without one
        for number, name in enumerate(DISKS):
            yield from ("-drive", f"if=none,id=disk{number},file={folder / name},cache=unsafe")
            order = number + (2 if self.booted["image"] is not None or boots_network else 1)
            yield from ("-device", f"virtio-blk-pci,drive=disk{number},bootindex={order}")
        if boots_cd:
            cd, _ = urllib.request.urlretrieve(self.booted["image"], folder / "cd.iso")
            yield from ("-drive", f"if=none,id=cd,media=cdrom,format=raw,file={cd}")
            yield from ("-device", "virtio-scsi-pci", "-device", "scsi-cd,drive=cd,bootindex=1")
        yield from ("-netdev", f"tap,id=net,ifname={self._tap},script=no,downscript=no")
        nic = f"virtio-net-pci,netdev=net,mac={spec.macs[0]},romfile="
        yield from ("-device", f"{nic},bootindex={1 if boots_network else 9}")

    def _start_tpm(self) -> Path:
        """Start the TPM with the state of its last life; return its socket."""
        state = self._folder / "tpm"
        address = state / "socket"
        if self._swtpm is not None:
            self._swtpm.terminate()
            self._swtpm.wait()
        state.mkdir(exist_ok=True)
        address.unlink(missing_ok=True)
        words = ["--tpmstate", f"dir={state}", "--ctrl", f"type=unixio,path={address}"]
        self._swtpm = subprocess.Popen(["swtpm", "socket", "--tpm2", "--terminate", *words])
        wait_for(address.exists, "the socket of swtpm", timeout_s=60)
        return address


def _boot_url(nvram: Path, url: str) -> None:
    """Set the firmware's variables for one boot from ``url``."""
    words = ["-m", "virt.firmware.vars", "--inplace", str(nvram), "--set-boot-uri", url]
    tools = os.environ | {"PYTHONPATH": str(TOOLS)}
    subprocess.run([sys.executable, *words], env=tools, check=True, capture_output=True)


def _switch_secure_boot(nvram: Path, *, on: bool) -> None:
    """Set the firmware's variable, in the valid copy and in those that are deleted."""
    name = "SecureBootEnable\0".encode("utf-16-le")
    variables = nvram.read_bytes().split(name)
    for number in range(1, len(variables)):
        variables[number] = bytes([on]) + variables[number][1:]
    nvram.write_bytes(name.join(variables))
