"""Find the servers that some suites need, or start them for the length of a suite.

A server is a context manager that yields a ``Server``: what to call it in the report, and the
environment that leads the tests to it. ``ServerMissing`` says why there is none and what helps.

    with postgresql() as server:
        subprocess.run(["pytest", "tests/servers"], env=os.environ | server.env)

The one that listens on the standard port of this machine is used where it lets us in; with
BLOOMERY_TEST_SERVERS=own it is left alone. Else one is started from Debian's packages on a free
port, with its files in a temporary directory; that is the only kind that is ever stopped.

    with own_rabbitmq() as broker:
        broker.stop(signal.SIGKILL)
        broker.start()
"""

from __future__ import annotations

import contextlib
import functools
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

import amqp
import psycopg
import pymysql

TOOLS: Final = {  # program or path: package
    "ipmi": {"ipmi_sim": "openipmi", "ipmitool": "ipmitool"},
    "curl": {"curl": "curl"},
    "qemu-img": {"qemu-img": "qemu-utils"},
    "fat": {"mkfs.vfat": "dosfstools", "mcopy": "mtools"},
    "ssh": {"ssh": "openssh-client"},
    "tpm": {"swtpm": "swtpm", "tpm2_quote": "tpm2-tools"},
    "chromium": {"chromium": "chromium", "chromedriver": "chromium-driver"},
    "debootstrap": {"debootstrap": "debootstrap"},
    "qemu": {
        "qemu-system-x86_64": "qemu-system-x86", "qemu-img": "qemu-utils",
        "/usr/share/OVMF": "ovmf", "debootstrap": "debootstrap",
        "/usr/lib/ISOLINUX": "isolinux", "syslinux": "syslinux",
        "/usr/lib/syslinux/modules": "syslinux-common", "grub-mkimage": "grub-common",
        "swtpm": "swtpm", "mcopy": "mtools",
        "mkfs.vfat": "dosfstools", "sfdisk": "fdisk", "zstd": "zstd", "cpio": "cpio",
        "ip": "iproute2", "ipmi_sim": "openipmi", "ipmitool": "ipmitool", "socat": "socat",
        "dnsmasq": "dnsmasq-base", "qemu-system-aarch64": "qemu-system-arm",
        "/usr/share/AAVMF": "qemu-efi-aarch64", "modprobe": "kmod",
    },
}  # fmt: skip
OWN_ONLY: Final = os.environ.get("BLOOMERY_TEST_SERVERS") == "own"
LOOPBACK: Final = "127.0.0.1"
DATABASE: Final = "test"
POSTGRESQL_USERS: Final = ("postgres", "root")
POSTGRESQL_FOLDERS: Final = ("/usr/lib/postgresql/*/bin",)  # off PATH, one for each version
MARIADB_FOLDERS: Final = ("/usr/sbin", "/usr/bin")
RABBITMQ_FOLDERS: Final = ("/usr/lib/rabbitmq/bin",)  # what stands on PATH insists on a user
MARIADB_PORT: Final = 3306
# Below the ports that the kernel gives to clients, and to servers that ask for any port.
PORTS_OF_SERVERS: Final = range(20000, 32000)
LOTS: Final = random.SystemRandom()  # processes that look at the same time differ
CONNECT_S: Final = 5
START_S: Final = 60.0
STOP_S: Final = 30.0
ONE_AT_A_TIME: Final = threading.Lock()


Certificate = tuple[str, str]  # PEM files: the certificate, and its key


class ServerMissing(Exception):
    """There is no such server here, and none could be started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    name: str
    env: Mapping[str, str]


@dataclass(slots=True, kw_only=True)
class OwnServer:
    """A server program in the foreground, in a process group of its own, on loopback."""

    command: Sequence[str | Path]
    port: int
    ready_sign: str  # in the line of output that says that clients are served
    stop_signal: signal.Signals
    env: Mapping[str, str] = field(default_factory=dict)
    user: int | None = None
    _process: subprocess.Popen[str] | None = None
    _reader: threading.Thread | None = None
    _output: deque[str] = field(default_factory=lambda: deque(maxlen=20))

    def start(self) -> None:
        """Return once it serves clients. Raises ServerMissing with its last words."""
        self._process = subprocess.Popen(
            [str(word) for word in self.command],
            cwd="/",
            env=os.environ | self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,
            user=self.user,
        )
        answered, ready = threading.Event(), threading.Event()
        pipe = (self._process.stdout, answered, ready)
        self._reader = threading.Thread(target=self._read, args=pipe, daemon=True)
        self._reader.start()
        answered.wait(START_S)
        if not ready.is_set():
            self.stop(signal.SIGKILL)
            last_words = " | ".join(self._output)[-500:]
            raise ServerMissing(f"cannot start {Path(self.command[0]).name}: {last_words}")

    def _read(self, pipe: IO[str], answered: threading.Event, ready: threading.Event) -> None:
        """Keep its last lines, so that it is never held up; say when it is ready or has ended."""
        with pipe:
            for line in pipe:
                self._output.append(line.strip())
                if self.ready_sign in line:
                    ready.set()
                    answered.set()
        answered.set()

    def stop(self, number: signal.Signals | None = None) -> None:
        """End it, in order or by this signal; the files stay for the next start.

        PostgreSQL's workers have process groups of their own, and outlive a killed postmaster for
        a moment in which no other may start.  The pipe of the output ends with the last of them.
        """
        if self._process is None or self._reader is None:
            return
        group = self._process.pid
        try:
            signal_group(group, number or self.stop_signal)
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            pass
        finally:
            signal_group(group, signal.SIGKILL)
            self._process.wait()
            self._reader.join(STOP_S)
            self._process = None


def signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


@contextlib.contextmanager
def running(server: OwnServer) -> Iterator[OwnServer]:
    try:
        server.start()
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def listening_or_own(
    connect: Callable[[int], Server | None],
    port: int,
    own: Callable[[], AbstractContextManager[OwnServer]],
) -> Iterator[Server]:
    """The server on the standard port if it lets us in, else one of our own."""
    if not OWN_ONLY and (listening := connect(port)):
        yield listening
        return
    with own() as started:
        if not (server := connect(started.port)):
            raise ServerMissing(f"cannot use {started.command[0]}: it refuses connections")
        yield server


# --------------------------------------------------------------------------- PostgreSQL


def postgresql() -> AbstractContextManager[Server]:
    return listening_or_own(connect_postgresql, 5432, own_postgresql)


def connect_postgresql(port: int) -> Server | None:
    """The first user that is let in without a password, or None."""
    for user in POSTGRESQL_USERS:
        where = f"{user}@{LOOPBACK}:{port}/{DATABASE}"
        try:
            with psycopg.connect(f"postgresql://{where}", connect_timeout=CONNECT_S) as connection:
                version = connection.info.parameter_status("server_version")
        except psycopg.OperationalError:
            continue
        url = f"postgresql+psycopg://{where}"
        return Server(name=f"PostgreSQL {version}", env={"BLOOMERY_TEST_POSTGRESQL": url})
    return None


@contextlib.contextmanager
def own_postgresql(tls: Certificate | None = None) -> Iterator[OwnServer]:
    """A cluster that trusts loopback, with a database to connect to; it survives kill -9."""
    programs = program("initdb", POSTGRESQL_FOLDERS, package="postgresql").parent
    is_root = os.geteuid() == 0
    user = pwd.getpwnam("postgres").pw_uid if is_root else None  # root is refused
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="bloomery-postgresql-") as folder:
        if is_root:
            shutil.chown(folder, "postgres")
        data, name = f"{folder}/data", POSTGRESQL_USERS[0]
        initdb = (programs / "initdb", "-D", data, "-A", "trust", "-U", name, "--no-sync")
        run(*initdb, "-E", "UTF8", "--locale=C.UTF-8", user=user)
        options = {"listen_addresses": LOOPBACK, "fsync": "off", "lc_messages": "C"}
        if tls:
            copies = {option: shutil.copy(path, folder) for option, path in
                      zip(("ssl_cert_file", "ssl_key_file"), tls, strict=True)}  # fmt: skip
            for path in copies.values():
                Path(path).chmod(0o600)
                if is_root:
                    shutil.chown(path, "postgres")
            options |= {"ssl": "on"} | copies
        server = OwnServer(
            command=[
                programs / "postgres", "-D", data, "-p", str(port), "-k", folder,
                *(f"--{option}={value}" for option, value in options.items()),
            ],
            port=port,
            ready_sign="ready to accept connections",
            stop_signal=signal.SIGINT,  # "fast": clients are cut off
            user=user,
        )  # fmt: skip
        with running(server):
            run(programs / "createdb", "-h", LOOPBACK, "-p", port, "-U", name, DATABASE, user=user)
            yield server


# ------------------------------------------------------------------------------ MariaDB


def mariadb() -> AbstractContextManager[Server]:
    return listening_or_own(connect_mariadb, MARIADB_PORT, own_mariadb)


def quick_mariadb() -> AbstractContextManager[Server]:
    """One of our own, which does not wait for the disk at each commit, where that is possible."""
    port = 0 if find_program("mariadbd", MARIADB_FOLDERS) else MARIADB_PORT
    return listening_or_own(connect_mariadb, port, own_mariadb)


def connect_mariadb(port: int) -> Server | None:
    """User root if it is let in without a password, or None."""
    try:
        with (
            pymysql.connect(
                host=LOOPBACK, port=port, user="root", connect_timeout=CONNECT_S
            ) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute("SELECT version()")
            (version,) = cursor.fetchone()
    except pymysql.MySQLError:
        return None
    url = f"mysql+pymysql://root@{LOOPBACK}:{port}/"
    return Server(name=f"MariaDB {version.partition('-')[0]}", env={"BLOOMERY_TEST_MARIADB": url})


@contextlib.contextmanager
def own_mariadb(tls: Certificate | None = None) -> Iterator[OwnServer]:
    """A server that lets root in from loopback without a password; it survives kill -9."""
    daemon = program("mariadbd", MARIADB_FOLDERS, package="mariadb-server")
    install_db = program("mariadb-install-db", MARIADB_FOLDERS, package="mariadb-server")
    user = pwd.getpwuid(os.geteuid()).pw_name
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="bloomery-mariadb-") as folder:
        options = ("--no-defaults", f"--datadir={folder}/data", f"--user={user}")
        run(install_db, *options, "--auth-root-authentication-method=normal", "--skip-test-db")
        server = OwnServer(
            command=[
                daemon, *options, f"--port={port}", f"--bind-address={LOOPBACK}",
                f"--socket={folder}/socket", f"--pid-file={folder}/pid", "--max-connections=500",
                "--innodb-flush-log-at-trx-commit=2", "--innodb-flush-method=nosync",
                "--character-set-server=utf8mb4",
                *((f"--ssl-cert={tls[0]}", f"--ssl-key={tls[1]}") if tls else ()),
            ],
            port=port,
            ready_sign="ready for connections",
            stop_signal=signal.SIGTERM,
        )  # fmt: skip
        with running(server):
            yield server


# ----------------------------------------------------------------------------- RabbitMQ


def rabbitmq() -> AbstractContextManager[Server]:
    return listening_or_own(connect_rabbitmq, 5672, own_rabbitmq)


def connect_rabbitmq(port: int) -> Server | None:
    """User guest if it is let in, or None."""
    try:
        with amqp.Connection(
            f"{LOOPBACK}:{port}", connect_timeout=CONNECT_S, read_timeout=CONNECT_S
        ) as connection:
            version = connection.server_properties["version"]
    except (OSError, amqp.AMQPError):
        return None
    url = f"rabbit://guest:guest@{LOOPBACK}:{port}/"
    return Server(name=f"RabbitMQ {version}", env={"BLOOMERY_TEST_RABBITMQ": url})


@contextlib.contextmanager
def own_rabbitmq(tls: Certificate | None = None) -> Iterator[OwnServer]:
    """A broker with the port mapper that it needs, neither of them known to another one.

    With ``tls`` it speaks nothing else.
    """
    daemon = program("rabbitmq-server", RABBITMQ_FOLDERS, package="rabbitmq-server")
    port, mapper_port = free_port(), free_port()
    with tempfile.TemporaryDirectory(prefix="bloomery-rabbitmq-") as folder:
        server = OwnServer(
            command=[daemon],
            port=port,
            ready_sign=" completed with ",
            stop_signal=signal.SIGTERM,
            env=rabbitmq_environment(Path(folder), port, mapper_port, tls),
        )
        try:
            with running(server):
                yield server
        finally:
            subprocess.run(
                ["epmd", "-port", str(mapper_port), "-kill"], capture_output=True, check=False
            )


def rabbitmq_environment(
    folder: Path, port: int, mapper_port: int, tls: Certificate | None
) -> dict[str, str]:
    """Keep the files of the system's own broker out of it; each would win where it is not named."""
    listens = [f"listeners.tcp.local = {LOOPBACK}:{port}"]
    if tls:
        files = zip(("certfile", "keyfile", "cacertfile"), (*tls, tls[0]), strict=True)
        listens = ["listeners.tcp = none", f"listeners.ssl.local = {LOOPBACK}:{port}"]
        listens += [f"ssl_options.{option} = {path}" for option, path in files]
    lines = [*listens, "disk_free_limit.absolute = 1MB", ""]
    (folder / "config.conf").write_text("\n".join(lines))
    (folder / "plugins").write_text("[].\n")
    (folder / "env.conf").touch()
    return {
        "HOME": str(folder),  # the cookie
        "ERL_EPMD_ADDRESS": LOOPBACK,
        "ERL_EPMD_PORT": str(mapper_port),
        "ERL_FLAGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        "RABBITMQ_NODENAME": "bloomery@localhost",
        "RABBITMQ_DIST_PORT": str(free_port()),
        "RABBITMQ_MNESIA_BASE": f"{folder}/data",
        "RABBITMQ_LOG_BASE": f"{folder}/log",
        "RABBITMQ_CONFIG_FILE": f"{folder}/config.conf",
        "RABBITMQ_CONF_ENV_FILE": f"{folder}/env.conf",
        "RABBITMQ_ENABLED_PLUGINS_FILE": f"{folder}/plugins",
    }


# -------------------------------------------------------------------------------- Redis


def redis() -> AbstractContextManager[Server]:
    return listening_or_own(connect_redis, 6379, own_redis)


def connect_redis(port: int) -> Server | None:
    """A server that wants no password, or None."""
    try:
        with socket.create_connection((LOOPBACK, port), CONNECT_S) as connection:
            connection.sendall(b"PING\r\n")
            answer = connection.recv(64)
    except OSError:
        return None
    if answer != b"+PONG\r\n":
        return None
    return Server(name="Redis", env={"BLOOMERY_TEST_REDIS": str(port)})


@contextlib.contextmanager
def own_redis() -> Iterator[OwnServer]:
    """A server that writes no files."""
    daemon = program("redis-server", ("/usr/bin",), package="redis-server")
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="bloomery-redis-") as folder:
        server = OwnServer(
            command=[
                daemon, "--port", str(port), "--bind", LOOPBACK, "--dir", folder, "--save", "",
                "--appendonly", "no",
            ],
            port=port,
            ready_sign="Ready to accept connections",
            stop_signal=signal.SIGTERM,
        )  # fmt: skip
        with running(server):
            yield server


# --------------------------------------------------------------------------------- NATS


@contextlib.contextmanager
def own_nats(folder: Path) -> Iterator[OwnServer]:
    """A server with JetStream, whose streams stay in the folder between two starts."""
    daemon = program("nats-server", ("/usr/sbin",), package="nats-server")
    port = free_port()
    server = OwnServer(
        command=[daemon, "-a", LOOPBACK, "-p", str(port), "-js", "-sd", folder],
        port=port,
        ready_sign="Server is ready",
        stop_signal=signal.SIGTERM,
    )
    with running(server):
        yield server


# ----------------------------------------------------------------------------- programs


def program(name: str, folders: Sequence[str], *, package: str) -> Path:
    """Where the program is: the newest in these folders, else on PATH, else freshly installed."""
    if path := find_program(name, folders):
        return path
    if not may_install():
        raise ServerMissing(
            f"cannot find {name}: no server on {LOOPBACK} lets us in at the standard port, and "
            f"the Debian package {package} is not installed"
        )
    install(package)
    if path := find_program(name, folders):
        return path
    raise ServerMissing(f"cannot find {name} after installing {package}")


def find_program(name: str, folders: Sequence[str]) -> Path | None:
    paths = [path for folder in folders for path in Path("/").glob(f"{folder[1:]}/{name}")]
    newest = max(paths, key=version_in_path, default=None)
    on_path = shutil.which(name)
    return newest or (Path(on_path).resolve() if on_path else None)


def version_in_path(path: Path) -> int:
    return max((int(part) for part in path.parts if part.isdecimal()), default=0)


def lacking(tool: str) -> list[str]:
    """The packages that a tool still needs."""
    there = {name for name in TOOLS[tool] if shutil.which(name) or Path(name).exists()}
    return [package for name, package in TOOLS[tool].items() if name not in there]


@contextlib.contextmanager
def chromium() -> Iterator[Server]:
    """Installed, for tests that start one each."""
    provide("chromium")
    if missing := lacking("chromium"):
        raise ServerMissing(f"there is no Chromium: apt-get install {' '.join(missing)}")
    yield Server(name="Chromium", env={})


@contextlib.contextmanager
def of_root(tool: str) -> Iterator[Server]:
    """Installed, for what root alone may do: connect virtual machines, change the root folder."""
    if os.geteuid():
        raise ServerMissing(f"what is done with {tool} needs root")
    provide(tool)
    if missing := lacking(tool):
        raise ServerMissing(f"there is no {tool}: apt-get install {' '.join(missing)}")
    yield Server(name=tool, env={})


def provide(tool: str) -> None:
    """Install what a tool lacks, if that is possible; else its tests say what is missing."""
    missing = lacking(tool)
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


def run(command: str | Path, *args: str | int, user: int | None = None) -> None:
    """Run one administrative program to its end. Raises ServerMissing with its last words."""
    done = subprocess.run(
        [str(command), *map(str, args)],
        cwd="/",
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        user=user,
    )
    if done.returncode:
        raise ServerMissing(f"cannot run {Path(command).name}: {done.stderr.strip()[-500:]}")


def free_port(host: str = LOOPBACK) -> int:
    """A port for a server that starts later, or is stopped and started again."""
    for port in LOTS.sample(PORTS_OF_SERVERS, len(PORTS_OF_SERVERS)):
        with contextlib.suppress(OSError), socket.create_server((host, port)):
            return port
    raise ServerMissing(f"no port of {host} is free")


SERVERS: Final[Mapping[str, Callable[[], AbstractContextManager[Server]]]] = {
    "chromium": chromium,
    "debootstrap": functools.partial(of_root, "debootstrap"),
    "mariadb": mariadb,
    "quick mariadb": quick_mariadb,
    "postgresql": postgresql,
    "qemu": functools.partial(of_root, "qemu"),
    "rabbitmq": rabbitmq,
    "redis": redis,
}
