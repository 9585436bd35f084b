"""Find the servers that some suites need, or start them for the length of a suite.

A server is a context manager that yields a ``Server``: what to call it in the report, and the
environment that leads the tests to it. ``ServerMissing`` says why there is none and what helps.

    with postgresql() as server:
        subprocess.run(["pytest", "tests/servers"], env=os.environ | server.env)
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg

USERS: Final = ("postgres", "root")
TOOLS: Final = {"ipmi": {"ipmi_sim": "openipmi", "ipmitool": "ipmitool"}}  # program: package
DATABASE: Final = "test"
PORT: Final = 5432
ONE_AT_A_TIME: Final = threading.Lock()


class ServerMissing(Exception):
    """There is no such server here, and none could be started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    name: str
    env: Mapping[str, str]


@contextlib.contextmanager
def postgresql() -> Iterator[Server]:
    """The PostgreSQL that listens on this machine, else one of our own in a temporary directory."""
    if running := connect(PORT):
        yield running
        return
    with own_cluster() as port:
        if not (own := connect(port)):
            raise ServerMissing("cannot use PostgreSQL: the one started here refuses connections")
        yield own


def connect(port: int) -> Server | None:
    """The first user that is let in without a password, or None."""
    for user in USERS:
        where = f"{user}@127.0.0.1:{port}/{DATABASE}"
        try:
            with psycopg.connect(f"postgresql://{where}", connect_timeout=5) as connection:
                version = connection.info.parameter_status("server_version")
        except psycopg.OperationalError:
            continue
        url = f"postgresql+psycopg://{where}"
        return Server(name=f"PostgreSQL {version}", env={"BLOOMERY_TEST_POSTGRESQL": url})
    return None


@contextlib.contextmanager
def own_cluster() -> Iterator[int]:
    """Start a cluster that trusts loopback, yield its port, and leave nothing behind."""
    programs = find_programs() or install_programs()
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="bloomery-postgresql-") as home:
        if os.geteuid() == 0:
            shutil.chown(home, "postgres")
        data = f"{home}/data"
        run(programs / "initdb", "-D", data, "-A", "trust", "-U", USERS[0], "--no-sync")
        options = f"-p {port} -k {home} -c listen_addresses=127.0.0.1 -c fsync=off"
        run(programs / "pg_ctl", "-D", data, "-l", f"{home}/log", "-w", "-o", options, "start")
        try:
            run(programs / "createdb", "-h", "127.0.0.1", "-p", port, "-U", USERS[0], DATABASE)
            yield port
        finally:
            run(programs / "pg_ctl", "-D", data, "-m", "immediate", "stop")


def find_programs() -> Path | None:
    """Where PostgreSQL's server programs are; Debian keeps them off PATH, by version."""
    if on_path := shutil.which("initdb"):
        return Path(on_path).resolve().parent
    found = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = max(found, key=lambda path: int(path.parts[-3]), default=None)
    return newest.parent if newest else None


def install_programs() -> Path:
    """Install the Debian package if we are root on Debian; without its default cluster."""
    if not may_install():
        raise ServerMissing(
            f"cannot find PostgreSQL: neither a server on 127.0.0.1:{PORT} that lets "
            f"{' or '.join(USERS)} into database {DATABASE}, nor the Debian package postgresql"
        )
    install("postgresql")
    if not (programs := find_programs()):
        raise ServerMissing("cannot find PostgreSQL's initdb after installing postgresql")
    return programs


def provide(tool: str) -> None:
    """Install what a tool lacks, if that is possible; else its tests say what is missing."""
    missing = [package for program, package in TOOLS[tool].items() if not shutil.which(program)]
    if missing and may_install():
        with contextlib.suppress(ServerMissing):
            install(*missing)


def may_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(*packages: str) -> None:
    """Install Debian packages; suites that run side by side wait for each other."""
    with ONE_AT_A_TIME:
        run("apt-get", "-qq", "update")
        run("apt-get", "-qq", "install", "--yes", "--no-install-recommends", *packages)


def run(program: str | Path, *args: str | int) -> None:
    """Run one administrative program, as user postgres where root is refused."""
    as_postgres = os.geteuid() == 0 and Path(program).is_absolute()
    done = subprocess.run(
        [str(program), *map(str, args)],
        cwd="/",
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        user=pwd.getpwnam("postgres").pw_uid if as_postgres else None,
    )
    if done.returncode:
        raise ServerMissing(f"cannot run {Path(program).name}: {done.stderr.strip()[-500:]}")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


SERVERS: Final[Mapping[str, Callable[[], AbstractContextManager[Server]]]] = {
    "postgresql": postgresql,
}
