"""The part of ``bloomery bmc check --boot-media`` that serves a tiny CD and notes its readers."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import socket
import tempfile
import threading
import time
import urllib.parse
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from bloomery import boot_files, secrets
from bloomery.api.boot_files import BootFiles
from bloomery.conf import Conf
from bloomery.drivers.agent_boot import image
from bloomery.http_server.server import Server, Settings
from bloomery.http_server.wsgi import Headers, Wsgi

if TYPE_CHECKING:
    from bloomery.drivers.base import DriverTask
    from bloomery.drivers.redfish.access import Access

_THREADS: Final = 2
_ANY: Final = ("0.0.0.0", "::")  # noqa: S104  refused
_FETCHED: Final = (200, 206)
_PORTS: Final = {"http": 80, "https": 443}
_NOTE: Final = b"A check of virtual media; it boots nothing.\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """``listen``: HOST[:PORT] of the BMC's requests; None: the way to the BMC, and any port."""

    listen: str | None
    wait_s: float

    def run(self, access: Access, task: DriverTask, settings: Conf) -> dict[str, Any]:
        """Return the section ``boot_media`` of the report."""
        from bloomery.drivers.redfish import media  # it needs sushy

        address = access.account(task).address
        host, port = (_own_address(address), 0) if self.listen is None else _split(self.listen)
        with tempfile.TemporaryDirectory(prefix="bloomery-") as folder:
            path = _write_cd(Path(folder))
            readers = _Readers(BootFiles(Path(folder), settings.api))
            with _serving(readers, host, port) as url:
                outcome = media.check(
                    access, task, f"{url}/{path}",
                    begin=readers.begin, wait=lambda: readers.wait(self.wait_s),
                )  # fmt: skip
        return {
            **outcome, "served_at": url, "waited_at_most_s": self.wait_s,
            "requests": [dataclasses.asdict(request) for request in readers.requests],
        }  # fmt: skip


def _split(listen: str) -> tuple[str, int]:
    parts = urllib.parse.urlsplit(f"//{listen}")
    try:
        host, port = parts.hostname, parts.port or 0
    except ValueError:
        host = None
    if not host or host in _ANY or parts.netloc != listen or parts.username is not None:
        raise click.UsageError(
            f"cannot listen on {listen!r}: give --listen the HOST[:PORT] that the BMC reaches"
        )
    return host, port


def _own_address(bmc: str) -> str:
    """Return the address from which this host would reach the BMC; no packet leaves."""
    parts = urllib.parse.urlsplit(bmc)
    port = parts.port or _PORTS[parts.scheme]
    try:
        (family, *_, there), *_ = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_DGRAM)
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(there)
            return str(probe.getsockname()[0])
    except OSError as exc:
        raise click.UsageError(
            f"cannot find the way to {parts.hostname}: {exc.strerror}; set --listen"
        ) from None


def _write_cd(folder: Path) -> str:
    """Write the CD; return its path below ``folder``."""
    path = Path(boot_files.FOLDER, boot_files.new_name(str(uuid.uuid4()), boot_files.ISO))
    (folder / path).parent.mkdir()
    contents = image.Contents(
        kernel=io.BytesIO(_NOTE), ramdisk=io.BytesIO(_NOTE), bootloader=None, isolinux=None,
        grub_config="", command_line="", files={},
    )  # fmt: skip
    with (folder / path).open("wb") as out:
        image.write(contents, out)
    return str(path)


@contextlib.contextmanager
def _serving(app: Wsgi, host: str, port: int) -> Iterator[str]:
    """Serve; yield the URL."""
    advice = "give --listen an address of this host and a free port"
    server = Server(app, Settings(host=host, port=port, threads=_THREADS, advice=advice))
    server.start()
    try:
        yield f"http://{f'[{host}]' if ':' in host else host}:{server.address[1]}"
    finally:
        server.stop(within_s=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """``bytes``: of the answer's body.  ``after_s``: since the BMC was told to insert the CD."""

    method: str
    path: str
    range: str | None
    status: int
    bytes: int
    user_agent: str | None
    client: str
    after_s: float


class _Readers:
    """A WSGI application that notes the requests to another one."""

    def __init__(self, app: Wsgi, clock: Callable[[], float] = time.monotonic) -> None:
        self._app, self._clock = app, clock
        self._began_at = clock()
        self.requests: list[_Request] = []
        self._has_fetched = threading.Event()

    def begin(self) -> None:
        """Count the seconds of each request from now on."""
        self._began_at = self._clock()

    def wait(self, seconds: float) -> bool:
        """Return whether the CD is fetched in time."""
        if seconds and not self._has_fetched.is_set():
            click.echo(f"the CD is inserted; waiting {seconds:g} s for the BMC", err=True)
        return self._has_fetched.wait(seconds)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        def start(status: str, headers: Headers, exc_info: Any = None) -> Any:
            self._note(environ, int(status[:3]), headers)
            return start_response(status, headers, exc_info)

        return self._app(environ, start)

    def _note(self, environ: dict[str, Any], status: int, headers: Headers) -> None:
        method, sizes = environ["REQUEST_METHOD"], dict(headers).get("Content-Length", "0")
        request = _Request(
            method=method,
            path=secrets.mask_address(environ["PATH_INFO"]),
            range=environ.get("HTTP_RANGE"),
            status=status,
            bytes=0 if method == "HEAD" else int(sizes),
            user_agent=environ.get("HTTP_USER_AGENT"),
            client=environ["REMOTE_ADDR"],
            after_s=round(self._clock() - self._began_at, 3),
        )
        self.requests.append(request)
        if method == "GET" and status in _FETCHED:
            self._has_fetched.set()
