"""Boot a ramdisk on a virtual machine of ARM64, from a CD and from the network.

    make vm-arm

The machine is enrolled as one of x86 first, whose boot of a kernel for ARM64 is refused.  Then it
is inspected by a ramdisk that its BMC's virtual drive has, and by one that iPXE fetches.  The lines
of ``bloomery dhcp print`` configure DHCP and TFTP.

What the machine says on its console and the service in its log stays in build/vm-arm/machine.

The Makefile starts this as process 1 of a namespace: whatever it started ends with it.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from bloomery.lab.bmc import ROOT, Rules, SimulatedBmc
from bloomery.lab.rack import Rack
from bloomery.lab.system import Spec
from tests.kit.servers.served import Served
from tests.kit.waiting import wait_for
from tests.vm import life
from tests.vm.machine import VirtualMachine

BUILT: Final = Path("build/vm-arm").resolve()
FOLDER: Final = BUILT / "machine"
FIRMWARE: Final = Path("/usr/share/AAVMF")
BOOT_S: Final = 900  # from power on to the inventory, without KVM and on a busy machine
ARM: Final = {
    "deploy_kernel": f"file://{BUILT}/kernel", "deploy_ramdisk": f"file://{BUILT}/initrd",
    "bootloader": f"file://{BUILT}/esp.img",
}  # fmt: skip
LINE: Final = f"console=ttyAMA0 panic=-1 vm.address={life.AGENT_ADDRESS}/24"
OPTIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "DEFAULT": {
        "enabled_hardware_types": "redfish",
        "enabled_inspect_interfaces": "agent",
        "enabled_boot_interfaces": "redfish-virtual-media,ipxe",
        "enabled_deploy_interfaces": "direct",
    },
    "api": {
        "host_ip": life.ADDRESS,
        "insecure_listen": True,
        "public_endpoint": f"http://{life.ADDRESS}:{life.API_PORT}",
    },
    "conductor": {f"{name}_by_arch": f"aarch64:{url}" for name, url in ARM.items()}
    | {"file_url_allowed_paths": BUILT},
    "redfish": {"kernel_append_params": LINE},
    "pxe": {
        "kernel_append_params": LINE,
        "ipxe_bootfile_name_by_arch": "aarch64:ipxe-arm64.efi",
    },
}


class ArmMachine(VirtualMachine):
    variables: ClassVar[Path] = FIRMWARE / "AAVMF_VARS.fd"

    def _command(self) -> Iterator[str]:
        spec, folder = self.spec, self._folder
        yield from ("qemu-system-aarch64", "-nodefaults", "-display", "none", "-no-reboot")
        yield from ("-machine", "virt", "-accel", "tcg,thread=multi", "-cpu", "cortex-a57")
        yield from ("-smp", str(spec.cpus), "-m", f"{spec.memory_gib}G", "-uuid", spec.uuid)
        yield from ("-chardev", f"file,id=console,path={self.console},append=on")
        yield from ("-serial", "chardev:console", "-device", "virtio-rng-pci")
        pflash = "if=pflash,format=raw"
        yield from ("-drive", f"{pflash},readonly=on,file={FIRMWARE / 'AAVMF_CODE.fd'}")
        yield from ("-drive", f"{pflash},file={folder / 'nvram.fd'}")
        if self.booted["image"] is not None:
            cd, _ = urllib.request.urlretrieve(self.booted["image"], folder / "cd.iso")
            yield from ("-drive", f"if=none,id=cd,media=cdrom,format=raw,file={cd}")
            yield from ("-device", "virtio-scsi-pci", "-device", "scsi-cd,drive=cd,bootindex=1")
        boots_network = self.booted["target"] == "Pxe"
        yield from ("-netdev", f"tap,id=net,ifname={self._tap},script=no,downscript=no")
        nic = f"virtio-net-pci,netdev=net,mac={spec.macs[0]},romfile="
        yield from ("-device", f"{nic},bootindex={1 if boots_network else 9}")


def say(began_at: float, *words: str) -> None:
    sys.stdout.write(f"[{time.monotonic() - began_at:6.1f} s] {' '.join(words)}\n")
    sys.stdout.flush()


def show(service: Served) -> dict[str, Any]:
    node: dict[str, Any] = service.api("GET", "/v1/nodes/arm-1")
    return node


def change(service: Served, values: Mapping[str, Any]) -> None:
    patch = [{"op": "add", "path": path, "value": value} for path, value in values.items()]
    service.api("PATCH", "/v1/nodes/arm-1", patch)


def move(service: Served, target: str, end: str) -> dict[str, Any]:
    """Ask for a provision state; return the node that is there."""
    service.api("PUT", "/v1/nodes/arm-1/states/provision", {"target": target})

    def arrived() -> bool:
        node = show(service)
        state = node["provision_state"]
        assert state == end or not state.endswith("failed"), node["last_error"]
        return state == end and not node["reservation"]

    wait_for(arrived, end, timeout_s=BOOT_S, every_s=0.2)
    return show(service)


def enrol(service: Served, rack: Rack) -> None:
    """Enrol the machine, with a wrong architecture and files of another one."""
    node = {
        "name": "arm-1",
        "driver": "redfish",
        "driver_info": {
            "redfish_address": rack.address,
            "redfish_system_id": f"{ROOT}/Systems/{life.UUID}",
            "redfish_username": "admin",
            "redfish_password": "password",
            **ARM,
        },
        "properties": {"cpu_arch": "x86_64", "capabilities": "boot_mode:uefi"},
    }
    uuid = service.api("POST", "/v1/nodes", node)["uuid"]
    service.api("POST", "/v1/ports", {"node_uuid": uuid, "address": life.MAC})
    move(service, "manage", "manageable")


def run(service: Served, rack: Rack, machine: ArmMachine) -> None:
    began_at = time.monotonic()
    enrol(service, rack)
    reason = move(service, "inspect", "inspect failed")["last_error"]
    assert "is for aarch64, and properties/cpu_arch is x86_64" in reason, reason
    assert not machine.is_on, "the machine was switched on"
    say(began_at, "a kernel for another architecture is refused:", reason)
    service.api("PATCH", "/v1/nodes/arm-1",
                [{"op": "remove", "path": f"/driver_info/{name}"} for name in ARM])  # fmt: skip
    for boot, source in (("redfish-virtual-media", "/dev/sr0"), ("ipxe", "the network")):
        change(service, {"/boot_interface": boot, "/properties/cpu_arch": "arm64"})
        node = move(service, "inspect", "manageable")
        inventory = service.api("GET", "/v1/nodes/arm-1/inventory")["inventory"]
        assert inventory["cpu"]["architecture"] == "aarch64", inventory
        assert node["properties"]["cpu_arch"] == "aarch64", node["properties"]
        console = machine.console.read_text(errors="replace")
        assert f"VM-ARM starts on aarch64, from {source}" in console, console[-2000:]
        say(began_at, f"a ramdisk from {source} has inspected the machine, by {boot}")


def print_dhcp(config: Path) -> Path:
    """Write the lines of ``bloomery dhcp print`` to a file; return its path."""
    words = (
        "dhcp", "print", "--config-file", str(config), "--tftp-root", str(BUILT / "tftp"),
        "--range", f"{life.AGENT_ADDRESS},{life.AGENT_ADDRESS}",
    )  # fmt: skip
    program = "from bloomery.cli.main import main; main()"
    printed = subprocess.run(
        [sys.executable, "-c", program, *words], check=True, capture_output=True, text=True
    )
    assert printed.stderr == "", printed.stderr
    file = FOLDER / "dnsmasq.conf"
    file.write_text(printed.stdout)
    return file


def main() -> None:
    life.make_network()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    bmc = SimulatedBmc([], Rules())
    spec = Spec(uuid=life.UUID, name="arm-1", macs=(life.MAC,), cpus=2, memory_gib=1, mode="UEFI")
    machine = ArmMachine(spec, bmc.stopping, folder=FOLDER, tap=life.TAP)
    bmc.systems[life.UUID] = machine
    rack = Rack(built=[bmc]).start()
    service = Served(FOLDER / "state", port=life.API_PORT, **OPTIONS)
    service.wait_until_it_answers()
    dhcp = [
        "dnsmasq", "--no-daemon", f"--conf-file={print_dhcp(FOLDER / 'state.conf')}", "--port=0",
        "--user=root", f"--interface={life.TAP}", f"--dhcp-leasefile={FOLDER}/leases",
    ]  # fmt: skip
    try:
        with (
            (FOLDER / "dnsmasq.log").open("wb") as log,
            subprocess.Popen(dhcp, stdout=log, stderr=log) as server,
        ):
            try:
                run(service, rack, machine)
            finally:
                server.terminate()
    finally:
        service.send(signal.SIGTERM)
        service.code()
        (FOLDER / "service.log").write_text("".join(service.complaints))
        machine.stop()
        rack.stop()


if __name__ == "__main__":
    main()
