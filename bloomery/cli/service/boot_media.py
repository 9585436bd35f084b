"""The part of ``bloomery bmc check --boot-media`` that serves a tiny CD and notes its readers."""

from __future__ import annotations

import dataclasses
import io
import socket
import tempfile
import threading
import time
import urllib.parse
import uuid
from collections.abc import Callable
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

        host, port = self._place(access.account(task).address)
        url = f"http://{f'[{host}]' if ':' in host else host}"
        with tempfile.TemporaryDirectory(prefix="bloomery-") as folder:
            path = Path(boot_files.FOLDER, boot_files.new_name(str(uuid.uuid4()), boot_files.ISO))
            (Path(folder) / path).parent.mkdir()
            contents = image.Contents(
                kernel=io.BytesIO(_NOTE), ramdisk=io.BytesIO(_NOTE), bootloader=None,
                isolinux=None, grub_config="", command_line="", files={},
            )  # fmt: skip
            with (Path(folder) / path).open("wb") as out:
                image.write(contents, out)
            readers = _Readers(BootFiles(Path(folder), settings.api))
            advice = "give --listen an address of this host and a free port"
            server = Server(
                readers, Settings(host=host, port=port, threads=_THREADS, advice=advice)
            )
            server.start()
            url += f":{server.address[1]}"
            try:
                outcome = media.check(
                    access, task, f"{url}/{path}",
                    begin=readers.begin, wait=lambda: readers.wait(self.wait_s),
                )  # fmt: skip
            finally:
                server.stop(within_s=0)
        return {
            **outcome, "served_at": url, "waited_at_most_s": self.wait_s,
            "requests": [dataclasses.asdict(request) for request in readers.requests],
        }  # fmt: skip

    def _place(self, bmc: str) -> tuple[str, int]:
        """Return host and port of the server; without --listen, the way to the BMC decides."""
        if self.listen is not None:
            parts = urllib.parse.urlsplit(f"//{self.listen}")
            try:
                host, port = parts.hostname, parts.port or 0
            except ValueError:
                host = None
            is_whole = parts.netloc == self.listen and parts.username is None
            if not host or host in _ANY or not is_whole:
                raise click.UsageError(
                    f"cannot listen on {self.listen!r}: give --listen the HOST[:PORT] that the "
                    "BMC reaches"
                )
            return host, port
        parts = urllib.parse.urlsplit(bmc)
        port = parts.port or _PORTS[parts.scheme]
        try:
            way, *_ = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_DGRAM)
            with socket.socket(way[0], socket.SOCK_DGRAM) as probe:
                probe.connect(way[-1])  # no packet leaves
                return str(probe.getsockname()[0]), 0
        except OSError as exc:
            raise click.UsageError(
                f"cannot find the way to {parts.hostname}: {exc.strerror}; set --listen"
            ) from None


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
            method, code = environ["REQUEST_METHOD"], int(status[:3])
            size = 0 if method == "HEAD" else int(dict(headers).get("Content-Length", "0"))
            request = _Request(
                method=method,
                path=secrets.mask_address(environ["PATH_INFO"]),
                range=environ.get("HTTP_RANGE"),
                status=code,
                bytes=size,
                user_agent=environ.get("HTTP_USER_AGENT"),
                client=environ["REMOTE_ADDR"],
                after_s=round(self._clock() - self._began_at, 3),
            )
            self.requests.append(request)
            if method == "GET" and code in _FETCHED:
                self._has_fetched.set()
            return start_response(status, headers, exc_info)

        return self._app(environ, start)
