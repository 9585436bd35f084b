"""A rack: machines, their BMCs, and a thread that serves them on loopback.

    with Rack(nodes=8) as rack:
        for machine in rack.machines:
            print(machine.address, machine.system_id, machine.mac)

By default one BMC manages all machines; with ``apart`` each has its own, on its own port.  With
``first`` the BMCs have one port, each at an address of its own.  Machines have the same UUIDs and
MACs at every start.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import errno
import ipaddress
import logging
import ssl
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from bloomery import errors
from bloomery.lab import models, overview
from bloomery.lab.bmc import ROOT, Rules, SimulatedBmc
from bloomery.lab.console import SerialConsole
from bloomery.lab.model import Model
from bloomery.lab.system import Spec, System
from bloomery.lab.wire import Server

LOG = logging.getLogger(__name__)
HOST: Final = "127.0.0.1"
_EVERY_ADDRESS: Final = "0.0.0.0"  # noqa: S104  connections to other addresses are closed


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The data to enrol a machine, and its ``system`` and ``bmc``.

    ``console``: the HOST:PORT of its serial line, if there is one.
    """

    address: str
    username: str
    password: str
    system: System
    bmc: SimulatedBmc
    console: str | None = None

    @property
    def uuid(self) -> str:
        return self.system.id

    @property
    def name(self) -> str:
        return self.system.name

    @property
    def mac(self) -> str:
        return self.system.spec.macs[0]

    @property
    def system_id(self) -> str:
        generic = f"{ROOT}/Systems/{self.system.id}"
        return generic if self.bmc.view is None else self.bmc.view.own(generic)

    @property
    def node(self) -> dict[str, Any]:
        """The node to enrol, with its port."""
        console = {"console_interface": "console-server"} if self.console else {}
        return {
            "name": self.name, "driver": "redfish", "driver_info": self.driver_info, **console,
            "ports": [{"address": self.mac}],
        }  # fmt: skip

    @property
    def driver_info(self) -> dict[str, Any]:
        """The driver_info for a node of the driver ``redfish``."""
        console = {"console_server_address": self.console} if self.console else {}
        return console | {
            "redfish_address": self.address,
            "redfish_system_id": self.system_id,
            "redfish_username": self.username,
            "redfish_password": self.password,
        }


def specs(nodes: int, *, prefix: str = "sim", first: int = 0, **more: Any) -> list[Spec]:
    """Return the specifications of machines; ``more`` sets fields of ``Spec``.

    ``first``: the number of the first machine, which its UUID and MAC follow.
    """
    return [
        Spec(
            uuid=str(uuid.uuid5(uuid.NAMESPACE_DNS, f"lab-{n}")),
            name=f"{prefix}-{n - first:04d}",
            **{"macs": (f"52:54:01:{n >> 16 & 255:02x}:{n >> 8 & 255:02x}:{n & 255:02x}",)} | more,
        )
        for n in range(first, first + nodes)
    ]


def bmcs(
    machines: Iterable[Spec], rules: Rules, make: Model, *, apart: bool, seed: str = ""
) -> list[SimulatedBmc]:
    """Return the BMCs of machines: one for all, or one for as many as the make has behind one."""
    rules = dataclasses.replace(rules, expands=rules.expands and make.expands)
    own = list(machines)
    shares = [own[n : n + make.per_bmc] for n in range(0, len(own), make.per_bmc)]
    if not apart and make is models.GENERIC:
        shares = [own]
    return [SimulatedBmc(share, rules, make, f"{seed}{share[0].name}") for share in shares if share]


class Rack:
    """``more`` sets fields of every machine's ``Spec``; ``tls``: a certificate and its key.

    ``host``: the loopback address.  ``port``: of the first BMC, the others follow; 0: any free
    ones.  ``first``: the loopback address of the first BMC, where the next addresses are those of
    the others; all have one port, and so one file is open for all.  ``model``: a name in
    ``models.ALL``; all but ``generic`` have as many machines per BMC as the make.
    ``built``: further BMCs.  ``consoles``: each machine has a serial line, at a port of its own.
    """

    def __init__(
        self,
        nodes: int = 0,
        *,
        machines: Iterable[Spec] = (),
        apart: bool = False,
        host: str = HOST,
        port: int = 0,
        first: str | None = None,
        rules: Rules | None = None,
        tls: tuple[str, str] | None = None,
        model: str = models.GENERIC.name,
        built: Iterable[SimulatedBmc] = (),
        consoles: bool = False,
        **more: Any,
    ) -> None:
        make = models.of(model)
        own = [*machines, *specs(nodes, **dict(make.machine) | more)]
        self.bmcs = [*bmcs(own, rules or Rules(), make, apart=apart), *built]
        if not self.bmcs:  # a port for the page
            self.bmcs = [SimulatedBmc((), rules or Rules())]
        if first is None:
            ports = [port + n if port else 0 for n in range(len(self.bmcs))]
            self._servers = [
                _server(host, p, {host: b}) for b, p in zip(self.bmcs, ports, strict=True)
            ]
        else:
            start = ipaddress.IPv4Address(first)
            by_address = {str(start + n): bmc for n, bmc in enumerate(self.bmcs)}
            self._servers = [_server(_EVERY_ADDRESS, port, by_address)]
        systems = [each for bmc in self.bmcs if consoles for each in bmc.systems.values()]
        self._consoles = {system.id: _console(system, host) for system in systems}
        self._context: ssl.SSLContext | None = None
        if tls:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(*tls)
        self.machines: list[Machine] = []
        for server in self._servers:
            for at, bmc in server.bmcs.items():
                user, password = next(iter(bmc.rules.users.items()))
                self.machines += [
                    Machine(
                        address=self._address(at, server), username=user, password=password,
                        system=system, bmc=bmc,
                        console=self._consoles[system.id].address if consoles else None,
                    )
                    for system in bmc.systems.values()
                ]  # fmt: skip
        self.overview: Callable[[], dict[str, Any]] = lambda: overview.document(
            self.bmcs, (machine.system for machine in self.machines), dict
        )
        self._thread = threading.Thread(target=self._serve, name="lab", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()

    @property
    def address(self) -> str:
        """The address of the first BMC."""
        server = self._servers[0]
        return self._address(next(iter(server.bmcs)), server)

    def address_of(self, bmc: SimulatedBmc) -> str:
        """Return the address of one of ``bmcs``, such as a switch."""
        pairs = ((at, server) for server in self._servers for at in server.bmcs)
        return next(self._address(at, s) for at, s in pairs if s.bmcs[at] is bmc)

    def _address(self, at: str, server: Server) -> str:
        host = f"[{at}]" if ":" in at else at
        return f"{'http' if self._context is None else 'https'}://{host}:{server.port}"

    def start(self) -> Rack:
        """Serve in a thread, and return once it does."""
        for server in self._servers:
            server.overview = self.overview
        self._thread.start()
        self._ready.wait()
        return self

    def stop(self) -> None:
        """End running requests and close the ports."""
        for bmc in self.bmcs:
            bmc.stopping.set()
        if self._loop is None:
            self._close()
            return
        with contextlib.suppress(RuntimeError):  # it has stopped before
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    def _serve(self) -> None:
        """Serve all BMCs in the event loop of this thread."""
        with contextlib.closing(asyncio.new_event_loop()) as loop:
            loop.set_exception_handler(_log_broken)
            for server in self._servers:
                server.start(loop, self._context)
            for console in self._consoles.values():
                console.start(loop)
            self._loop = loop
            self._ready.set()
            loop.run_forever()
            self._close()

    def _close(self) -> None:
        for server in self._servers:
            server.stop()
        for console in self._consoles.values():
            console.stop()


def _log_broken(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what broke, unless a client has disconnected."""
    if not isinstance(exc := context.get("exception"), OSError):
        LOG.error("the lab's server broke: %s", context["message"], exc_info=exc)


def _console(system: System, host: str) -> SerialConsole:
    try:
        return SerialConsole(system, host)
    except OSError as exc:
        raise errors.CannotStart(
            reason=f"cannot listen for the console of {system.name}: {exc.strerror}; raise ulimit "
            "-n, or leave out the consoles"
        ) from exc


def _server(host: str, port: int, by_address: Mapping[str, SimulatedBmc]) -> Server:
    try:
        return Server((host, port), by_address)
    except OSError as exc:
        if exc.errno == errno.EMFILE:
            raise errors.CannotStart(
                reason="cannot listen for all BMCs: too many open files; raise ulimit -n"
            ) from exc
        raise errors.CannotStart(
            reason=f"cannot listen on {host} port {port}: {exc.strerror}; choose another --port",
        ) from exc
