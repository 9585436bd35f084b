"""A rack of IPMI BMCs: one ``ipmi_sim`` (Debian package openipmi) per machine.

    with IpmiRack(folder, nodes=2) as rack:
        rack.machines[0].driver_info      # for a node of the driver ``ipmi``
        rack.machines[0].pause()          # now it hangs

Each answers IPMI 2.0 and 1.5 on its own UDP port.  No machine runs behind it: files hold power and
boot device, and the file ``calls`` the commands.

Limits of ipmi_sim: it does not list cipher suites, so name one, or ipmitool waits for seconds; it
drops the persistence of a boot device; it has no NMI.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
import tty
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from bloomery import errors
from bloomery.lab.rack import specs

HOST: Final = "127.0.0.1"
USERNAME: Final = "admin"
PASSWORD: Final = "password"  # noqa: S105  that of a simulated machine
CIPHER_SUITE: Final = 3
PROGRAM: Final = "ipmi_sim"
_START_S: Final = 10.0
_ARE_YOU_THERE: Final = bytes.fromhex("0600ff07000000000000000000092018c88100388e04b5")

# ipmi_sim calls it: get ITEM..., set ITEM VALUE..., check ITEM.  A file named ``stuck`` in the
# folder makes power requests have no effect; one named ``hard-of-hearing``, soft ones.
_CHASSIS: Final = """\
#!/bin/sh
cd "$(dirname "$0")" || exit 1
echo "$*" >>calls
verb=$1; shift
put() {
    if [ -e stuck ]; then return; fi
    if [ "$1 $(cat power)" = "1 0" ]; then echo >>boots; fi
    echo "$1" >power
}
case $verb in
get)
    for item; do
        case $item in
        power) echo "power:$(cat power)" ;;
        boot) echo "boot:$(cat bootdev)" ;;
        *) echo "no $item here"; exit 1 ;;
        esac
    done ;;
set)
    while [ $# -ge 2 ]; do
        case $1 in
        power) put "$2" ;;
        shutdown) if [ ! -e hard-of-hearing ]; then put 0; fi ;;
        boot) echo "$2" >bootdev ;;
        esac
        shift 2
    done ;;
esac
"""

_LAN: Final = """\
name "{name}"
set_working_mc 0x20
startlan 1
  addr {host} {port}
  priv_limit admin
  allowed_auths_callback none md2 md5 straight
  allowed_auths_user none md2 md5 straight
  allowed_auths_operator none md2 md5 straight
  allowed_auths_admin none md2 md5 straight
  guid {guid}
endlan
sol "{line}" 115200
chassis_control "{chassis}"
user 1 true "" "" user 10 none md2 md5 straight
user 2 true "{username}" "{password}" admin 10 none md2 md5 straight
"""

_MC: Final = """\
mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02
sel_enable 0x20 1000 0x0a
{sensors}mc_enable 0x20
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sensor:
    """A sensor of the simulated board: IPMI's numbers of its type, unit and entity."""

    name: str
    type: int
    unit: int
    entity: int
    raw: int
    factor: int = 1

    def lines(self, number: int) -> str:
        """Return the lines of ipmi_sim for the sensor and its record.  Source: IPMI 2.0, 43.1."""
        name = self.name.encode()
        head = [0, 0, 0x51, 0x01, 43 + len(name), 0x20, 0, number, self.entity, 1, 0x67, 0x68]
        body = [self.type, 0x01, 0, 0, 0, 0, 0, 0, 0, self.unit, 0, 0, self.factor, *[0] * 9, 0xFF]
        record = [*head, *body, *[0] * 12, 0xC0 | len(name), *name]
        data = " ".join(f"0x{byte:02x}" for byte in record)
        return (
            f"sensor_add 0x20 0 {number} 0x{self.type:02x} 0x01\n"
            f"sensor_set_value 0x20 0 {number} {self.raw} 0\n"
            f"main_sdr_add 0x20 {data}\n"
        )


_SENSORS: Final = (
    _Sensor(name="CPU Temp", type=0x01, unit=1, entity=3, raw=42),
    _Sensor(name="Inlet Temp", type=0x01, unit=1, entity=64, raw=21),
    _Sensor(name="Fan1A", type=0x04, unit=18, entity=29, raw=50, factor=60),
)


class IpmiMachine:
    """One BMC: a process, and a folder of files with its state and behaviour.

    ``poll`` calls ``changed`` where the machine was started or stopped since the last poll.
    """

    def __init__(self, folder: Path, name: str, port: int, macs: tuple[str, ...] = ()) -> None:
        self.folder, self.name, self.port, self.macs = folder, name, port, macs
        self.changed: Callable[[], None] = lambda: None
        self.history: deque[tuple[float, str]] = deque(maxlen=200)
        self._last_poll = (False, 0)
        self._process: subprocess.Popen[bytes] | None = None
        self._line: tuple[int, int] | None = None  # the machine's end and the BMC's

    @property
    def console(self) -> int:
        """The machine's end of its serial line: a descriptor to read and to write."""
        return self._serial_line()[0]

    def _serial_line(self) -> tuple[int, int]:
        if self._line is None:
            self._line = os.openpty()
            tty.setraw(self._line[1])
        return self._line

    @property
    def driver_info(self) -> dict[str, Any]:
        return {
            "ipmi_address": HOST,
            "ipmi_port": self.port,
            "ipmi_username": USERNAME,
            "ipmi_password": PASSWORD,
            "ipmi_cipher_suite": CIPHER_SUITE,
        }

    @property
    def node(self) -> dict[str, Any]:
        """The node to enrol, with its port."""
        return {
            "name": self.name, "driver": "ipmi", "driver_info": self.driver_info,
            "ports": [{"address": mac} for mac in self.macs],
        }  # fmt: skip

    @property
    def is_on(self) -> bool:
        return self._read_file("power") == "1"

    @property
    def medium(self) -> str | None:
        """``network``, if the machine has booted from it; None: off, or its disk."""
        return "network" if self.is_on and self.boot_device == "pxe" else None

    def note(self, what: str) -> None:
        self.history.append((round(time.time(), 2), what))

    def poll(self) -> None:
        boots = self.folder / "boots"
        state = self.is_on, boots.stat().st_size if boots.exists() else 0
        if state != self._last_poll:
            self._last_poll = state
            self.note(f"power is {'On' if self.is_on else 'Off'}")
            self.changed()

    def reset(self, kind: str) -> None:
        """Switch the machine off, and on again unless ``kind`` is ForceOff, from within."""
        (self.folder / "power").write_text("0\n")
        if kind != "ForceOff":
            (self.folder / "bootdev").write_text("default\n")
            (self.folder / "power").write_text("1\n")
            with (self.folder / "boots").open("a") as boots:
                boots.write("\n")

    @property
    def boot_device(self) -> str:
        return self._read_file("bootdev")

    @property
    def calls(self) -> list[str]:
        """The BMC's commands in order: ``get power``, ``set power 1``."""
        return self._read_file("calls").splitlines()

    def _read_file(self, file: str) -> str:
        return (self.folder / file).read_text(encoding="utf-8").strip()

    def behave(self, how: str, *, so: bool = True) -> None:
        """Switch a behaviour, ``stuck`` or ``hard-of-hearing``, on or off."""
        if so:
            (self.folder / how).touch()
        else:
            (self.folder / how).unlink(missing_ok=True)

    def start(self) -> None:
        """Write its files and start the BMC; ``wait`` returns when it answers."""
        (self.folder / "state").mkdir(parents=True, exist_ok=True)
        chassis = self.folder / "chassis"
        lan = _LAN.format(
            name=self.name, host=HOST, port=self.port, chassis=chassis, username=USERNAME,
            guid=uuid.uuid5(uuid.NAMESPACE_DNS, self.name).hex, password=PASSWORD,
            line=os.ttyname(self._serial_line()[1]),
        )  # fmt: skip
        sensors = "".join(sensor.lines(number) for number, sensor in enumerate(_SENSORS, 1))
        files = {"lan.conf": lan, "bmc.emu": _MC.format(sensors=sensors), "chassis": _CHASSIS}
        fresh = {"power": "0\n", "bootdev": "default\n", "calls": ""}
        fresh = {name: text for name, text in fresh.items() if not (self.folder / name).exists()}
        for name, text in (files | fresh).items():
            (self.folder / name).write_text(text, encoding="utf-8")
        chassis.chmod(0o755)
        # ipmi_sim is killed with its parent, where that is available.
        prefix = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        with (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [*prefix, PROGRAM, "-n", "-c", "lan.conf", "-f", "bmc.emu", "-s", "state"],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def wait(self) -> None:
        """Wait until the BMC answers.  Raises CannotStart."""
        give_up_at = time.monotonic() + _START_S
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.settimeout(0.05)
            sock.connect((HOST, self.port))
            while True:
                try:
                    sock.send(_ARE_YOU_THERE)
                    if sock.recv(512):
                        return
                except TimeoutError:
                    """It has not answered in time."""
                except ConnectionRefusedError:
                    time.sleep(0.02)
                if time.monotonic() > give_up_at:
                    raise errors.CannotStart(
                        reason=f"cannot start {self.name}: {PROGRAM} does not answer on UDP port "
                        f"{self.port}; see {self.folder / 'log'}",
                    )

    def pause(self) -> None:
        """Hang: keep the port open without answers."""
        self._require().send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._require().send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Kill the BMC, as if unplugged; ``start`` brings it back."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        for end in self._line or ():
            os.close(end)
        self._line = None

    def _require(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError(f"{self.name} does not run")
        return self._process


class IpmiRack:
    """Machines, each in a folder of its own.

    ``port``: of the first BMC, the others follow; 0: any free ones.  ``prefix``, ``first``: of
    names, and the number of the first machine, as in ``rack.specs``.
    """

    def __init__(
        self, folder: Path, nodes: int, *, port: int = 0, prefix: str = "ipmi", first: int = 0
    ) -> None:
        ports = range(port, port + nodes) if port else _free_ports(nodes)
        self.machines = [
            IpmiMachine(folder.absolute() / spec.name, spec.name, each, spec.macs)
            for spec, each in zip(specs(nodes, prefix=prefix, first=first), ports, strict=True)
        ]

    def start(self) -> Self:
        """Start all BMCs and wait until they answer.  Raises CannotStart."""
        if shutil.which(PROGRAM) is None:
            raise errors.CannotStart(
                reason=f"cannot start an IPMI rack: the program {PROGRAM} is not on PATH; "
                "install the package openipmi",
            )
        for machine in self.machines:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                try:
                    sock.bind((HOST, machine.port))
                except OSError:  # ipmi_sim itself ignores that
                    raise errors.CannotStart(
                        reason=f"cannot start an IPMI rack: UDP port {machine.port} of {HOST} is "
                        "taken",
                    ) from None
            machine.start()
        try:
            for machine in self.machines:
                machine.wait()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        for machine in self.machines:
            machine.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_exc: object) -> None:
        self.stop()


def _free_ports(count: int) -> list[int]:
    """Return free ports; all stay bound until the last is chosen."""
    with contextlib.ExitStack() as sockets:
        ports = []
        for _ in range(count):
            sock = sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            sock.bind((HOST, 0))
            ports.append(int(sock.getsockname()[1]))
        return ports
