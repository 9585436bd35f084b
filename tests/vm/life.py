"""Take a virtual machine through its life, with the published agent in its ramdisk.

    make vm                           with UEFI, then with BIOS
    make vm ARGS=bios                 with one of them
    make vm ARGS="uefi partition"     only this life
    make vm ARGS="bios short"         the shortest life

Each machine is enrolled, inspected, cleaned and provided.  Its network has no DHCP: the agent gets
its address from the boot CD.  Then it has these lives, and is torn down and cleaned after each:

    disk        Deploy the image of a disk, with UEFI under secure boot; rescue.  The service is
                killed while the agent writes, and another one goes on.  The serial console that
                the API has opened shows the boots before and after.
    partition   Deploy the image of a root partition, with swap and an ephemeral partition; service.
    mirror      Build software RAID, and write the image to it by fast track; only with UEFI.
    url         Deploy by an agent whose CD the firmware fetches from its URL; only with UEFI.
    grub        Deploy by an agent that signed GRUB boots from the network; only with UEFI.
    attest      Prove by a TPM what was booted, to clean and to deploy; be refused with another
                value of a PCR; only with UEFI.

The life ``short`` is none of them: it deploys the image of a disk to a machine that was neither
inspected nor cleaned.

What the machine says on its console and the service in its log stays in build/vm/uefi and
build/vm/bios.

The Makefile starts this as process 1 of a namespace: whatever it started ends with it.
"""

from __future__ import annotations

import argparse
import base64
import functools
import hashlib
import http.server
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, Self

from oslo_utils import secretutils

from bloomery.lab.bmc import ROOT, Rules, SimulatedBmc
from bloomery.lab.ipmi import IpmiRack
from bloomery.lab.rack import Rack
from bloomery.lab.system import Spec
from tests.kit.servers.served import Served
from tests.kit.waiting import wait_for
from tests.vm.machine import VirtualMachine

BUILT: Final = Path("build/vm").resolve()
MODES: Final = {"uefi": "UEFI", "bios": "Legacy"}
LIVES: Final = {  # and the firmwares of each
    "disk": ("uefi", "bios"),
    "partition": ("uefi", "bios"),
    "mirror": ("uefi",),  # with BIOS, the image itself would have to install GRUB
    "url": ("uefi",),
    "grub": ("uefi",),
    "attest": ("uefi",),
}
SHORT: Final = "short"
TAP: Final = "tap0"
ADDRESS: Final = "172.31.77.1"  # of the host; of no network but that of the namespace
AGENT_ADDRESS: Final = "172.31.77.2"
API_PORT: Final = 6385
IMAGES_PORT: Final = 8080
CONSOLE_PORT: Final = 9000
MAC: Final = "52:54:00:00:00:01"
UUID: Final = "11111111-2222-3333-4444-555555555551"
NETWORK: Final = {  # of the agent
    "links": [{"id": "port0", "type": "phy", "ethernet_mac_address": MAC}],
    "networks": [
        {
            "id": "net0", "type": "ipv4", "link": "port0", "network_id": "vm", "routes": [],
            "ip_address": AGENT_ADDRESS, "netmask": "255.255.255.0",
        },
    ],
    "services": [],
}  # fmt: skip
DRIVE: Final = {"meta_data": {"uuid": UUID, "hostname": "web-1"}}
PARTITIONS: Final = {"image_type": "partition", "root_gb": 2, "swap_mb": 128, "ephemeral_gb": 1}
PARTS: Final = {  # label, file system and size
    (None, "ext4", 2 << 30), ("swap1", "swap", 128 << 20), ("ephemeral0", "ext4", 1 << 30)
}  # fmt: skip
NOTE: Final = "of the service"
BOOT_S: Final = 600  # from power on to a call of the agent, without KVM and on a busy machine
STARTED: Final = "VM-AGENT starts"
FROM_MEMORY: Final = f"{STARTED}, from /dev/pmem0"
FROM_NETWORK: Final = f"{STARTED}, from the network"
DEPLOYED: Final = re.compile(r"VM-OS up (\{.*\})\r?\n")  # a whole line: it is read meanwhile
RESCUED: Final = re.compile(r"VM-RESCUE up, password hash (\S+)\r?\n")
PASSWORD: Final = "open sesame"
TYPED: Final = "typed by a user"
DHCP: Final = (
    "dnsmasq", "--no-daemon", "--conf-file=/dev/null", "--port=0", "--user=root",
    f"--interface={TAP}",
    f"--dhcp-range={AGENT_ADDRESS},{AGENT_ADDRESS}", "--dhcp-boot=bootx64.efi", "--enable-tftp",
)  # fmt: skip
MIRROR: Final = {
    "size_gb": "MAX",
    "raid_level": "1",
    "controller": "software",
    "is_root_volume": True,
}
UNMIRROR: Final = [
    {"interface": "raid", "step": "delete_configuration"},
    {"interface": "deploy", "step": "erase_devices_metadata"},
]
CREATE: Final = {"interface": "raid", "step": "create_configuration"}
LEARN: Final = {
    "interface": "deploy", "step": "learn_endorsement_key", "args": {"pcrs": [0, 7]},
}  # fmt: skip
VERIFY: Final = {"interface": "deploy", "step": "verify_attestation"}
OPTIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "DEFAULT": {
        "enabled_hardware_types": "redfish",
        "enabled_inspect_interfaces": "agent",
        "enabled_boot_interfaces": "redfish-virtual-media,redfish-https,pxe",
        "enabled_deploy_interfaces": "direct",
        "enabled_rescue_interfaces": "agent",
        "enabled_raid_interfaces": "no-raid,agent",
        "enabled_console_interfaces": "ipmitool-socat",
    },
    "api": {
        "host_ip": ADDRESS,
        "insecure_listen": True,
        "public_endpoint": f"http://{ADDRESS}:{API_PORT}",
    },
    "conductor": {
        "deploy_kernel": f"file://{BUILT}/ramdisk/vmlinuz",
        "deploy_ramdisk": f"file://{BUILT}/ramdisk/initrd.img",
        "bootloader": f"file://{BUILT}/esp.img",
        "file_url_allowed_paths": BUILT,
    },
    "agent": {"enable_bios_bootloader_install": True},  # which GRUB of a partition needs
    "deploy": {"erase_devices_priority": 0},  # erase_devices_metadata does, in a second
    "redfish": {"kernel_append_params": "console=ttyS0 panic=-1"},
    "pxe": {"kernel_append_params": f"console=ttyS0 panic=-1 vm.address={AGENT_ADDRESS}/24"},
    "console": {"port_range": f"{CONSOLE_PORT}:{CONSOLE_PORT + 1}"},
}


class Life:
    """One machine, its BMC, and the service that manages it; ``firmware``: a key of MODES.

    The BMC has two parts: the one of the lab for Redfish, and ``ipmi_sim`` for the serial line.
    """

    def __init__(self, firmware: str) -> None:
        self.folder = BUILT / firmware
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.firmware = firmware
        spec = Spec(uuid=UUID, name="vm-1", macs=(MAC,), cpus=2, memory_gib=2, mode=MODES[firmware])
        bmc = SimulatedBmc([], Rules())
        self._ipmi = IpmiRack(self.folder, nodes=1).start()
        line = self._ipmi.machines[0].console
        self.machine = VirtualMachine(spec, bmc.stopping, folder=self.folder, tap=TAP, line=line)
        bmc.systems[UUID] = self.machine
        self._rack = Rack(built=[bmc]).start()
        self.service = self._start()
        self._began_at = time.monotonic()
        self._shown: tuple[str, ...] = ()
        self._read_to = 0  # where on the console the next line is looked for

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stop(signal.SIGTERM)
        self.machine.stop()
        self._ipmi.stop()
        self._rack.stop()

    def _start(self) -> Served:
        service = Served(self.folder / "state", port=API_PORT, **OPTIONS)
        service.wait_until_it_answers()
        return service

    def _stop(self, number: signal.Signals) -> None:
        self.service.send(number)
        self.service.code()
        with (self.folder / "service.log").open("a") as log:
            log.writelines(self.service.complaints)

    def say(self, *words: str) -> None:
        line = " ".join((f"[{time.monotonic() - self._began_at:6.1f} s] {self.firmware}:", *words))
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    # ------------------------------------------------------------------------------- the API

    def node(self) -> dict[str, Any]:
        """Return the node; what is new of it is printed.  Raises AssertionError if it failed."""
        node = self.service.api("GET", "/v1/nodes/vm-1")
        step = node["deploy_step"] or node["clean_step"] or {}
        shown = (node["provision_state"], step.get("step", ""))
        if shown != self._shown:
            self._shown = shown
            self.say(*shown)
        assert not node["provision_state"].endswith("failed"), node["last_error"]
        return node

    def change(self, values: Mapping[str, Any]) -> None:
        patch = [{"op": "add", "path": path, "value": value} for path, value in values.items()]
        self.service.api("PATCH", "/v1/nodes/vm-1", patch)

    def wait_until(self, condition: Callable[[dict[str, Any]], bool], what: str) -> None:
        wait_for(lambda: condition(self.node()), what, timeout_s=BOOT_S, every_s=0.1)

    def move(self, target: str, end: str, **arguments: Any) -> None:
        """Ask for a provision state, and wait until the node is there."""
        self.ask(target, **arguments)
        self.wait_until(lambda node: _rests_in(node, end), end)

    def ask(self, target: str, **arguments: Any) -> None:
        path = "/v1/nodes/vm-1/states/provision"
        self.service.api("PUT", path, {"target": target, **arguments})

    # ------------------------------------------------------------------------------ the life

    def enrol(self) -> None:
        ipmi = self._ipmi.machines[0].driver_info
        node = {
            "name": "vm-1",
            "driver": "redfish",
            "driver_info": {
                "redfish_address": self._rack.address,
                "redfish_system_id": f"{ROOT}/Systems/{UUID}",
                "redfish_username": "admin",
                "redfish_password": "password",
                **{key: ipmi[key] for key in ("ipmi_port", "ipmi_cipher_suite")},
            },
            "network_data": NETWORK,
            "properties": {
                "cpu_arch": "x86_64",
                "capabilities": f"boot_mode:{self.firmware}",
            },
        }
        uuid = self.service.api("POST", "/v1/nodes", node)["uuid"]
        self.service.api("POST", "/v1/ports", {"node_uuid": uuid, "address": MAC})
        self.move("manage", "manageable")

    def inspect(self) -> None:
        self.move("inspect", "manageable")
        inventory = self.service.api("GET", "/v1/nodes/vm-1/inventory")["inventory"]
        assert inventory["boot"]["current_boot_mode"] == self.firmware, inventory["boot"]
        assert MAC in {each["mac_address"] for each in inventory["interfaces"]}, inventory

    def provide(self) -> None:
        self.move("provide", "available")
        (erasure,) = self.service.api("GET", "/ext/v1/nodes/vm-1/erasure")["proof"]["erasures"]
        erased = {disk["name"] for disk in erasure["disks"] if disk["is_erased"]}
        assert erased == {"/dev/vda", "/dev/vdb"}, erasure

    def disk(self) -> None:
        """Deploy the image of a disk, with a service that is killed in the middle; rescue."""
        is_secure = self.firmware == "uefi"
        capabilities = {"capabilities": {"secure_boot": "true"}} if is_secure else {}
        self.change({"/instance_info": _image("os.qcow2") | capabilities})
        self.service.api("PUT", "/v1/nodes/vm-1/states/console", {"enabled": True})
        self.wait_until(lambda node: bool(node["console_enabled"]), "the console")
        self._open_console()
        self.ask("active", configdrive=DRIVE)
        self.wait_until(_writes_image, "the agent to write the image")
        self._see_by_api(STARTED)
        self._stop(signal.SIGKILL)
        self.say("the service is killed, and started again")
        self.service = self._start()
        self._open_console()
        self.wait_until(lambda node: _rests_in(node, "active"), "active")
        self.see_system(is_secure=is_secure)
        self._see_by_api("VM-OS up")
        self._terminal.sendall(f"{TYPED}\n".encode())
        self._see(re.compile(f"({TYPED})"), "what was typed into the console")
        self.say("the console that the API has opened leads to the machine")
        self.rescue()
        self.see_system(is_secure=is_secure)
        self.move("deleted", "available")
        assert not self.machine.is_on

    def rescue(self) -> None:
        """Boot the agent with a login for a user, then the deployed system again."""
        self.move("rescue", "rescue", rescue_password=PASSWORD)
        stored = self._see(RESCUED, "the rescue system")
        assert secretutils.crypt_password(PASSWORD, stored) == stored, stored
        self.say("the rescue system has the password's hash")
        self.move("unrescue", "active")

    def partition(self) -> None:
        """Deploy the image of a root partition; then put a file into it by a service."""
        self.change({"/instance_info": _image("root.qcow2") | PARTITIONS})
        self.move("active", "active", configdrive=DRIVE)
        disks = self.see_system()["disks"]["blockdevices"]
        parts = {
            (part["label"], part["fstype"], part["size"])
            for disk in disks for part in disk.get("children", ())
        }  # fmt: skip
        assert parts > PARTS, disks
        files = [{"path": "/etc/vm-note", "content": base64.b64encode(NOTE.encode()).decode()}]
        step = {"interface": "deploy", "step": "inject_files", "args": {"files": files}}
        self.move("service", "active", service_steps=[step])
        assert self.see_system()["note"] == NOTE
        self.say("the deployed system has the file that the service has put into it")
        self.move("deleted", "available")

    def mirror(self) -> None:
        """Build RAID 1 of both disks, and deploy to it the agent that has built it."""
        self.move("manage", "manageable")
        self.change(
            {
                "/raid_interface": "agent", "/driver_info/fast_track": True,
                "/instance_info": _image("os.qcow2"),
            },
        )  # fmt: skip
        self.service.api("PUT", "/v1/nodes/vm-1/states/raid", {"logical_disks": [MIRROR]})
        self.move("clean", "manageable", clean_steps=[*UNMIRROR, CREATE])
        built = self.node()["raid_config"]["logical_disks"]
        assert [disk["raid_level"] for disk in built] == ["1"], built
        boots = self._count_boots()
        self.move("provide", "available")
        self.move("active", "active", configdrive=DRIVE)
        assert self._count_boots() == boots, "fast track booted the agent"
        self.see_system()
        self.say("the deployed system runs from software RAID")
        self.move("deleted", "available")
        assert self.machine.is_on, "fast track has to keep the agent running"
        self.move("manage", "manageable")
        self.move("clean", "manageable", clean_steps=UNMIRROR)
        assert self._count_boots() == boots + 1, "only the deletion has to boot the agent"
        self.change({"/raid_interface": "no-raid", "/driver_info/fast_track": False})
        self.move("provide", "available")

    def url(self) -> None:
        """Boot the agent from a URL, without a virtual drive, to deploy and to clean."""
        boots = self._count_boots(FROM_MEMORY)
        self.change({"/boot_interface": "redfish-https", "/instance_info": _image("os.qcow2")})
        self.move("active", "active", configdrive=DRIVE)
        self.see_system()
        self.move("deleted", "available")
        assert self._count_boots(FROM_MEMORY) == boots + 2
        self.say("the firmware has fetched the agent's CD from its URL, twice")
        self.change({"/boot_interface": "redfish-virtual-media"})

    def grub(self) -> None:
        """Boot the agent by signed GRUB, with DHCP and TFTP, to deploy and to clean."""
        boots, folder = self._count_boots(FROM_NETWORK), self.folder / "state/http"
        self.change({"/boot_interface": "pxe", "/instance_info": _image("os.qcow2")})
        shutil.copytree(BUILT / "tftp", folder, dirs_exist_ok=True)
        with subprocess.Popen(
            [*DHCP, f"--tftp-root={folder}", f"--dhcp-leasefile={self.folder}/leases"]
        ) as server:
            self.move("active", "active", configdrive=DRIVE)
            self.see_system()
            self.move("deleted", "available")
            server.terminate()
        assert self._count_boots(FROM_NETWORK) == boots + 2
        self.say("signed GRUB has booted the agent from the network, twice")
        self.change({"/boot_interface": "redfish-virtual-media"})

    def attest(self) -> None:
        """Learn the TPM's key, and prove each boot by it; then enrol a firmware that differs."""
        self.move("manage", "manageable")
        self.move("clean", "manageable", clean_steps=[LEARN])
        self.move("provide", "available")
        self.change({"/instance_info": _image("os.qcow2")})
        self.move("active", "active", configdrive=DRIVE)
        self.see_system()
        proof = self.node()["driver_internal_info"]["attestation"]
        assert proof["pcrs"].keys() >= {"0", "4", "7", "8", "9"}, proof
        self.say("a TPM has proved what the agent's machine has booted")
        self.move("deleted", "available")
        self.move("manage", "manageable")
        self.change({"/driver_info/attestation_pcrs": {"0": "0" * 64}})
        self.ask("clean", clean_steps=[VERIFY])
        path = "/v1/nodes/vm-1"
        error = wait_for(
            lambda: self.service.api("GET", path)["last_error"],
            "the refusal of a firmware that differs", timeout_s=BOOT_S, every_s=0.1,
        )  # fmt: skip
        assert "PCR 0" in error, error
        self.say("a firmware that differs is refused:", error)
        names = ("attestation_ek", "attestation_pcrs")
        self.service.api(
            "PATCH", path, [{"op": "remove", "path": f"/driver_info/{name}"} for name in names]
        )
        self.service.api("DELETE", f"{path}/maintenance")
        self.move("manage", "manageable")
        self.move("provide", "available")

    def _count_boots(self, words: str = STARTED) -> int:
        return self.machine.console.read_text(errors="replace").count(words)

    def see_system(self, *, is_secure: bool = False) -> dict[str, Any]:
        """Wait for the deployed system; return what it says of itself."""
        report: dict[str, Any] = json.loads(self._see(DEPLOYED, "the deployed system"))
        assert report["meta_data"]["hostname"] == "web-1", report
        assert report["secure_boot"] == is_secure, report
        secure = ", under secure boot" if is_secure else ""
        self.say(f"the deployed system runs and has its config drive{secure}")
        return report

    def _see(self, pattern: re.Pattern[str], what: str) -> str:
        """Wait for a line on the console, of a boot after the last one seen."""

        def seen() -> re.Match[str] | None:
            text = self.machine.console.read_text(errors="replace")
            return pattern.search(text, self._read_to)

        line = wait_for(seen, what, timeout_s=BOOT_S, every_s=0.1)
        self._read_to = line.end()
        return str(line[1])

    def _open_console(self) -> None:
        """Copy what the console of the API shows to ``console-by-api.log``, a new one."""
        url = self.service.api("GET", "/v1/nodes/vm-1/states/console")["console_info"]["url"]
        parts = urllib.parse.urlsplit(url)

        def connected() -> socket.socket | None:
            try:
                return socket.create_connection((parts.hostname, parts.port))
            except ConnectionRefusedError:
                return None

        self._terminal = wait_for(connected, "the port of the console", timeout_s=BOOT_S)
        log = (self.folder / "console-by-api.log").open("wb", buffering=0)
        threading.Thread(target=_copy, args=(self._terminal, log), daemon=True).start()

    def _see_by_api(self, words: str) -> None:
        log = self.folder / "console-by-api.log"
        wait_for(lambda: words.encode() in log.read_bytes(), f"{words!r} by the API", timeout_s=60)

    def run(self, lives: Sequence[str]) -> None:
        self.enrol()
        if lives == [SHORT]:
            return self.short()
        self.inspect()
        self.provide()
        for life in lives:
            if self.firmware in LIVES[life]:
                getattr(self, life)()
        return None

    def short(self) -> None:
        self.change({"/automated_clean": False, "/instance_info": _image("os.qcow2")})
        self.move("provide", "available")
        self.move("active", "active", configdrive=DRIVE)
        self.see_system()


def _rests_in(node: Mapping[str, Any], state: str) -> bool:
    return bool(node["provision_state"] == state and not node["reservation"])


def _writes_image(node: Mapping[str, Any]) -> bool:
    return bool(
        node["provision_state"] == "wait call-back" and node["deploy_step"]["step"] == "write_image"
    )


def _copy(connection: socket.socket, log: BinaryIO) -> None:
    """Write what arrives, until the other side ends."""
    with connection, log:
        while text := connection.recv(4096):
            log.write(text)


def _image(name: str) -> dict[str, Any]:
    image = BUILT / "http" / name
    return {
        "image_source": f"http://{ADDRESS}:{IMAGES_PORT}/{image.name}",
        "image_os_hash_algo": "sha256",
        "image_os_hash_value": hashlib.sha256(image.read_bytes()).hexdigest(),
        "image_disk_format": "qcow2",
    }


def serve_images() -> None:
    """Serve the images over HTTP, for as long as this process lives."""
    handler = functools.partial(_Quiet, directory=str(BUILT / "http"))
    server = http.server.ThreadingHTTPServer((ADDRESS, IMAGES_PORT), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_words: Any) -> None:
        """Say nothing."""


def hide_locks() -> None:
    """Hide the locks of serial lines, whose process numbers are not those of this namespace."""
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/var/lock"], check=True)


def make_network() -> None:
    """Bring up loopback, and a network device for the machine, in the namespace of this process."""
    for words in (
        "link set lo up",
        f"tuntap add {TAP} mode tap",
        f"address add {ADDRESS}/24 dev {TAP}",
        f"link set {TAP} up",
    ):
        subprocess.run(["ip", *words.split()], check=True)


def parse(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the firmwares and the lives that the arguments of the command name."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("firmware", nargs="?", choices=MODES, help="default: both, one by one")
    parser.add_argument("life", nargs="*", help=f"{SHORT}, or: {', '.join(LIVES)}; default: these")
    named = parser.parse_args(arguments)
    if named.life == [SHORT]:
        return [named.firmware], named.life
    if unknown := set(named.life) - set(LIVES):
        parser.error(f"no such life: {', '.join(unknown)}")
    for life in named.life:
        if named.firmware not in LIVES[life]:
            parser.error(f"{life} needs firmware {' or '.join(LIVES[life])}")
    return [named.firmware] if named.firmware else list(MODES), named.life or list(LIVES)


def main() -> None:
    firmwares, lives = parse(sys.argv[1:])
    hide_locks()
    make_network()
    serve_images()
    for firmware in firmwares:
        with Life(firmware) as life:
            life.run(lives)


if __name__ == "__main__":
    main()
