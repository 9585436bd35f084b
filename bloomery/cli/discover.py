"""``bloomery discover``: find BMCs in networks, and write the file for ``bloomery enrol``.

An address gets at most three small questions without a login: the service root of Redfish over TLS,
over plain HTTP where TLS is not spoken, and the presence ping of IPMI.  With a login, BMCs that
speak Redfish are asked for their systems as well.  Nothing is changed.
"""

from __future__ import annotations

import csv
import dataclasses
import http.client
import io
import ipaddress
import re
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import click

from bloomery import fetching, parsing
from bloomery.cli import bmc_systems, groups, terminal
from bloomery.cli.bmc_systems import Login
from bloomery.fetching import Address

_MOST_ADDRESSES: Final = 4096
_AT_ONCE: Final = 64
_MOST_BYTES: Final = 65536  # of a service root
_MOST_CHARS: Final = 64  # characters of what a BMC says of itself
_DELL: Final = "Dell"
# ASF 2.0: RMCP version 6, no acknowledgement, class ASF; enterprise 4542, Presence Ping, tag 0.
_PING: Final = bytes.fromhex("0600ff06 000011be 80000000")
_PONG: Final = 0x40
_PONG_TYPE_AT: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Bmc:
    """A machine behind a BMC that answered; ``bmc`` is the address that ``bloomery enrol`` takes.

    ``system``, ``serial`` and ``username`` are known after a login alone.  ``chassis``: what the
    hosts behind one BMC have in common, where there are several.  ``parent_node``: the name of a
    DPU's host.
    """

    name: str
    driver: str
    bmc: str
    vendor: str = ""
    product: str = ""
    uuid: str = ""
    username: str = ""
    system: str = ""
    chassis: str = ""
    serial: str = ""
    is_dpu: bool = False
    parent_node: str = ""


@dataclass(slots=True, kw_only=True)
class Pace:
    """At most so many addresses a second, whichever thread asks."""

    every_s: float
    clock: Callable[[], float] = time.monotonic
    wait: Callable[[float], object] = field(default_factory=lambda: threading.Event().wait)
    _next_at: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def wait_for_slot(self) -> None:
        with self._lock:
            now = self.clock()
            at = max(self._next_at, now)
            self._next_at = at + self.every_s
        if at > now:
            self.wait(at - now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prober:
    redfish_port: int
    timeout_s: float
    pace: Pace
    ipmi_port: int = 623
    login: Login | None = None
    notes: list[str] = field(default_factory=list)  # systems and BMCs that were left out, and why

    def probe(self, address: Address) -> list[Bmc]:
        """Return the machines behind the BMC at an address: one, unless a login shows more."""
        self.pace.wait_for_slot()
        bmc = self._redfish(address)
        if bmc is not None:
            return [bmc] if self.login is None else self._hosts(bmc, self.login)
        bmc = self._ipmi(address)
        return [] if bmc is None else [bmc]

    def _hosts(self, bmc: Bmc, login: Login) -> list[Bmc]:
        """Return a row for each host and DPU behind a BMC; the BMC's own where it shows none."""
        try:
            systems = bmc_systems.list_systems(bmc.bmc, login, self.timeout_s)
        except bmc_systems.SystemsUnreadable as no:
            self.notes.append(terminal.visible(str(no)))
            return [bmc]
        self.notes.extend(
            f"left out: {_text(system.path)} at {bmc.bmc}: {terminal.visible(system.why_no_node)}"
            for system in systems if system.why_no_node is not None
        )  # fmt: skip
        nodes = [system for system in systems if system.why_no_node is None]
        hosts = [system for system in nodes if not system.is_dpu]
        names = {
            system.path: bmc.name if len(nodes) == 1
            else f"{bmc.name}-{re.sub('[^A-Za-z0-9-]', '-', system.name)}"
            for system in nodes
        }  # fmt: skip
        only_host = hosts[0].path if len(hosts) == 1 else ""
        return [
            dataclasses.replace(
                bmc,
                name=names[system.path],
                username=login.username,
                system=_text(system.path),
                chassis=bmc.name if len(hosts) > 1 and not system.is_dpu else "",
                product=bmc.product or _text(system.model),
                serial=_text(system.serial).strip(),
                is_dpu=system.is_dpu,
                parent_node=names.get(system.hosted_by or only_host, "") if system.is_dpu else "",
            )
            for system in nodes
        ]

    def with_hosts(self, bmcs: list[Bmc], login: Login) -> list[Bmc]:
        """Return hosts first, and then DPUs, each with the host that has its serial on a card."""
        hosts = [bmc for bmc in bmcs if bmc.system and not bmc.is_dpu]
        if all(bmc.parent_node for bmc in bmcs if bmc.is_dpu):
            hosts = []  # no card is looked for
        owners = dict[str, str]()
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for host, serials in zip(
                hosts, pool.map(partial(self._cards, login), hosts), strict=True
            ):
                owners |= dict.fromkeys(serials, host.name)
        placed = [
            dataclasses.replace(bmc, parent_node=bmc.parent_node or owners.get(bmc.serial, ""))
            if bmc.is_dpu else bmc
            for bmc in bmcs
        ]  # fmt: skip
        self.notes.extend(
            f"no host has a card with the serial of the DPU {bmc.name}: write its parent_node"
            for bmc in placed if bmc.is_dpu and not bmc.parent_node
        )  # fmt: skip
        return sorted(placed, key=lambda bmc: bmc.is_dpu)

    def _cards(self, login: Login, host: Bmc) -> set[str]:
        try:
            return bmc_systems.list_card_serials(host.bmc, host.system, login, self.timeout_s)
        except bmc_systems.SystemsUnreadable as no:
            self.notes.append(terminal.visible(str(no)))
            return set()

    def _redfish(self, address: Address) -> Bmc | None:
        host = f"[{address}]" if address.version == 6 else str(address)
        for scheme, default in (("https", 443), ("http", 80)):
            port = "" if self.redfish_port == default else f":{self.redfish_port}"
            url = f"{scheme}://{host}{port}"
            # no login is needed, and nothing secret is sent or taken: certificates are not verified
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            until_s = time.monotonic() + self.timeout_s  # of the whole answer
            connection = fetching.Connection(
                urllib.parse.urlsplit(url), fetching.resolved, until_s, context
            )
            try:
                connection.request("GET", "/redfish/v1/", headers=fetching.HEADERS)
                with connection.getresponse() as answer:
                    root = parsing.load_json(connection.content(answer, _MOST_BYTES))
            except ssl.SSLError:
                continue  # it speaks, but not TLS
            except (http.client.HTTPException, OSError, ValueError):
                return None
            finally:
                connection.end()
            if not isinstance(root, dict) or "RedfishVersion" not in root:
                return None
            vendor = _text(root.get("Vendor"))
            driver = "idrac" if vendor.startswith(_DELL) else "redfish"
            return Bmc(
                name=_name(address), driver=driver, bmc=url, vendor=vendor,
                product=_text(root.get("Product")), uuid=_text(root.get("UUID")),
            )  # fmt: skip
        return None

    def _ipmi(self, address: Address) -> Bmc | None:
        family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as client:
            client.settimeout(self.timeout_s)
            try:
                client.connect((str(address), self.ipmi_port))
                client.send(_PING)
                answer = client.recv(_MOST_BYTES)
            except OSError:
                return None
        if len(answer) <= _PONG_TYPE_AT or answer[_PONG_TYPE_AT] != _PONG:
            return None
        return Bmc(name=_name(address), driver="ipmi", bmc=str(address))


def _name(address: Address) -> str:
    return f"bmc-{str(address).replace('.', '-').replace(':', '-')}"


def _text(value: object) -> str:
    """Return a text of a BMC in one short line; other values are no text."""
    return terminal.visible(value)[:_MOST_CHARS] if isinstance(value, str) else ""


def find(addresses: Iterable[Address], prober: Prober) -> Iterator[Bmc]:
    """Yield the machines behind the BMCs in the order of addresses."""
    pool = ThreadPoolExecutor(_AT_ONCE)
    try:
        for bmcs in pool.map(prober.probe, addresses):
            yield from bmcs
    finally:
        pool.shutdown(cancel_futures=True)


def expand(networks: Iterable[str]) -> list[Address]:
    """Return the addresses of the networks.  Raises UsageError."""
    addresses: dict[Address, None] = {}
    for text in networks:
        try:
            network = ipaddress.ip_network(text, strict=False)
        except ValueError as exc:
            raise click.UsageError(
                f"cannot read the network {text!r}: {exc}; write it as 10.0.0.0/24"
            ) from exc
        if len(addresses) + network.num_addresses > _MOST_ADDRESSES:
            raise click.UsageError(
                f"cannot search {text}: one command takes {_MOST_ADDRESSES} addresses at most, as "
                "in a /20; name the networks of BMCs alone"
            )
        addresses |= dict.fromkeys(network.hosts())
    return list(addresses)


@click.command()
@click.argument("networks", metavar="CIDR...", nargs=-1, required=True)
@click.option("--redfish-port", type=click.IntRange(1, 65535), default=443, show_default=True)
@click.option(
    "--rate", type=click.FloatRange(0.1, 1000), default=50.0, show_default=True,
    help="Addresses a second at most.",
)  # fmt: skip
@click.option(
    "--timeout", "timeout_s", type=groups.DURATION, default="2s", show_default=True,
    metavar="TIME", help="How long a BMC may take to answer.",
)  # fmt: skip
@click.option("--username", help="Also list the systems behind each BMC, as this user.")
@click.option(
    "--password-file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help=f"File with the password; else the variable {groups.BMC_PASSWORD}, else a prompt.",
)  # fmt: skip
@click.option(
    "--ca-file", type=click.Path(exists=True, dir_okay=False),
    help="CAs of the BMCs' certificates.  [default: those of the system]",
)  # fmt: skip
@click.option(
    "--insecure", is_flag=True,
    help="Send the password to BMCs with any certificate, and over plain HTTP.",
)  # fmt: skip
@groups.AS_JSON
def discover(
    networks: tuple[str, ...],
    redfish_port: int,
    rate: float,
    timeout_s: float,
    username: str | None,
    password_file: Path | None,
    ca_file: str | None,
    insecure: bool,
    as_json: bool,
) -> None:
    """Find BMCs by Redfish and IPMI, and print the CSV that bloomery enrol reads.

    Search only networks that are yours.  Without --username no login is tried.  With it, each host
    and DPU behind a BMC has a line: hosts behind one BMC have a chassis in common, and a DPU has
    its host as parent_node.  Add passwords to the file.
    """
    addresses = expand(networks)
    login = None
    if username is not None:
        trust = False if insecure else ca_file or True
        password = groups.read_bmc_password(password_file)
        login = Login(username=username, password=password, trust=trust)
    elif password_file is not None or ca_file is not None or insecure:
        raise click.UsageError("name the user of the login: --username")
    prober = Prober(
        redfish_port=redfish_port, timeout_s=timeout_s, pace=Pace(every_s=1 / rate), login=login
    )  # fmt: skip
    bmcs = []
    if not as_json:
        of_login = (
            ",driver_info.redfish_system_id,chassis,extra.serial,parent_node" if login else ""
        )
        click.echo(f"name,driver,bmc,username,password,extra.vendor,extra.product{of_login}")
    found = find(addresses, prober)
    for bmc in prober.with_hosts(list(found), login) if login else found:
        bmcs.append(bmc)
        if not as_json:
            click.echo(csv_row(bmc, is_logged_in=login is not None))
    if as_json:
        click.echo(terminal.as_json([asdict(bmc) for bmc in bmcs], indent=2))
    for note in sorted(prober.notes):
        click.echo(note, err=True)
    machines = f", with {len(bmcs)} machines" if login else ""
    count = len({bmc.bmc for bmc in bmcs})
    click.echo(f"{count} BMCs answered at {len(addresses)} addresses{machines}", err=True)


def csv_row(bmc: Bmc, *, is_logged_in: bool = False) -> str:
    cells = [bmc.name, bmc.driver, bmc.bmc, bmc.username, "", bmc.vendor, bmc.product]
    if is_logged_in:
        cells += [bmc.system, bmc.chassis, bmc.serial, bmc.parent_node]
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(map(terminal.csv_cell, cells))
    return line.getvalue()
