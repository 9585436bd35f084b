"""A rack: machines, their BMCs, and a thread that serves them on loopback.

    with Rack(nodes=8) as rack:
        for machine in rack.machines:
            print(machine.address, machine.system_id, machine.mac)

By default one BMC manages all machines; with ``apart`` each has its own, on its own port.  Machines
have the same UUIDs and MACs at every start.
"""

from __future__ import annotations

import dataclasses
import errno
import selectors
import ssl
import threading
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Self

from bloomery import errors
from bloomery.lab import models, overview
from bloomery.lab.bmc import ROOT, Rules, SimulatedBmc
from bloomery.lab.model import Model
from bloomery.lab.system import Spec, System
from bloomery.lab.wire import Server

HOST: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The data to enrol a machine, and its ``system`` and ``bmc``."""

    address: str
    username: str
    password: str
    system: System
    bmc: SimulatedBmc

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
        return {
            "name": self.name, "driver": "redfish", "driver_info": self.driver_info,
            "ports": [{"address": self.mac}],
        }  # fmt: skip

    @property
    def driver_info(self) -> dict[str, Any]:
        """The driver_info for a node of the driver ``redfish``."""
        return {
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
    """Return the BMCs of machines: one for all, or one for each."""
    rules = dataclasses.replace(rules, expands=rules.expands and make.expands)
    shares = [[spec] for spec in machines]
    if not apart and make is models.GENERIC:
        shares = [list(machines)]
    return [SimulatedBmc(share, rules, make, f"{seed}{share[0].name}") for share in shares if share]


class Rack:
    """``more`` sets fields of every machine's ``Spec``; ``tls``: a certificate and its key.

    ``host``: the loopback address.  ``port``: of the first BMC, the others follow; 0: any free
    ones.  ``model``: a name in ``models.ALL``; all but ``generic`` have one machine per BMC.
    ``built``: further BMCs.
    """

    def __init__(
        self,
        nodes: int = 0,
        *,
        machines: Iterable[Spec] = (),
        apart: bool = False,
        host: str = HOST,
        port: int = 0,
        rules: Rules | None = None,
        tls: tuple[str, str] | None = None,
        model: str = models.GENERIC.name,
        built: Iterable[SimulatedBmc] = (),
        **more: Any,
    ) -> None:
        make = models.of(model)
        own = [*machines, *specs(nodes, **dict(make.machine) | more)]
        self.bmcs = [*bmcs(own, rules or Rules(), make, apart=apart), *built]
        if not self.bmcs:  # a port for the page
            self.bmcs = [SimulatedBmc((), rules or Rules())]
        ports = [port + n if port else 0 for n in range(len(self.bmcs))]
        self._servers = [_server(b, host, p) for b, p in zip(self.bmcs, ports, strict=True)]
        self._context: ssl.SSLContext | None = None
        if tls:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(*tls)
        self.machines: list[Machine] = []
        for server in self._servers:
            for system in server.bmc.systems.values():
                user, password = next(iter(server.bmc.rules.users.items()))
                self.machines.append(Machine(
                    address=self._address(server), username=user, password=password, system=system,
                    bmc=server.bmc,
                ))  # fmt: skip
        self.overview: Callable[[], dict[str, Any]] = lambda: overview.document(
            self.bmcs, (machine.system for machine in self.machines), dict
        )
        self._thread = threading.Thread(target=self._serve, name="lab", daemon=True)
        self._stopping = threading.Event()

    @property
    def address(self) -> str:
        """The address of the first BMC."""
        return self._address(self._servers[0])

    def _address(self, server: Server) -> str:
        return f"{'http' if self._context is None else 'https'}://{server.netloc}"

    def start(self) -> Rack:
        """Serve in a thread, and return at once."""
        for server in self._servers:
            server.overview = self.overview
        if self._context is not None:
            for server in self._servers:
                server.socket = self._context.wrap_socket(
                    server.socket, server_side=True, do_handshake_on_connect=False,
                )  # fmt: skip
        self._thread.start()
        return self

    def stop(self) -> None:
        """End running requests and close the ports."""
        self._stopping.set()
        for bmc in self.bmcs:
            bmc.stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        for server in self._servers:
            server.socket.close()
            server.hang_up()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self.stop()

    def _serve(self) -> None:
        """Listen for all BMCs in one thread; each connection gets its own thread."""
        with selectors.DefaultSelector() as ready:
            for server in self._servers:
                server.timeout = 0
                ready.register(server.socket, selectors.EVENT_READ, server)
            while not self._stopping.is_set():
                for key, _ in ready.select(0.1):
                    key.data.handle_request()


def _server(bmc: SimulatedBmc, host: str, port: int) -> Server:
    try:
        return Server((host, port), bmc)
    except OSError as exc:
        if exc.errno == errno.EMFILE:
            raise errors.CannotStart(
                reason="cannot listen for all BMCs: too many open files; raise ulimit -n"
            ) from exc
        raise errors.CannotStart(
            reason=f"cannot listen on {host} port {port}: {exc.strerror}; choose another --port",
        ) from exc
