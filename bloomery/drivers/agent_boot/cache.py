"""A cache of the agent's files for all nodes, revalidated at each use.

The server's ETag or date decides whether a file has changed; without either, its size does.  A file
is named by the hash of its URL, with the server's headers in a note beside it.  ``cache_room``
limits the folder's size.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
import urllib.parse
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson
import urllib3
from oslo_utils import strutils

from bloomery import errors, secrets
from bloomery.conf import Conf
from bloomery.drivers.agent_boot import cache_room, sources

_PIECE: Final = 1 << 20
_MOST_BYTES: Final = 4 << 30
_MOST_S: Final = 1800.0
_MIB: Final = 1 << 20
_NOT_MODIFIED: Final = 304
_CONDITIONS: Final = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}
_WHY: Final = (
    (urllib3.exceptions.NameResolutionError, "the name of the server is not known"),
    (urllib3.exceptions.NewConnectionError, "the server takes no connection"),
    (urllib3.exceptions.TimeoutError, "the server does not answer in time"),
    (
        urllib3.exceptions.SSLError,
        "the server's certificate is not trusted ([DEFAULT]webserver_verify_ca)",
    ),
    (urllib3.exceptions.ProtocolError, "the connection broke off"),
    (urllib3.exceptions.LocationParseError, "this is no URL"),
)


class BeingFetched(Exception):
    """Another worker is fetching the file."""


class RamdiskFiles:
    """The files of one folder; an open file stays readable after its replacement."""

    def __init__(self, conf: Conf) -> None:
        """Raises CannotStart for a missing certificate file."""
        self._folder = conf.deploy.ramdisk_cache_path
        self._ttl_s = conf.deploy.ramdisk_cache_ttl * 60.0
        self._most = conf.deploy.ramdisk_cache_size * _MIB
        self._timeout = urllib3.Timeout(conf.default.webserver_connection_timeout)
        self._trust = _trust(conf.default.webserver_verify_ca)

    def open(self, url: str) -> BinaryIO:
        """Return the current file.  Raises StepFailure, BeingFetched."""
        shown = secrets.mask_address(url)
        try:
            local = sources.local_path(url)
            return local.open("rb") if local else self._fetched(url)
        except BlockingIOError as exc:
            raise BeingFetched from exc
        except urllib3.exceptions.HTTPError as exc:
            raise errors.StepFailure(reason=f"cannot fetch {shown}: {_why(exc)}") from exc
        except OSError as exc:
            raise errors.StepFailure(reason=f"cannot store {shown}: {exc.strerror}") from exc

    def _fetched(self, url: str) -> BinaryIO:
        if self._folder is None:
            raise errors.Unavailable(reason="[deploy]ramdisk_cache_path names no folder")
        path = Path(self._folder) / hashlib.sha256(url.encode()).hexdigest()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with cache_room.exclusively(path):
            self._refresh(url, path)
            file = path.open("rb")
            cache_room.share(file.fileno())
            return file

    def _refresh(self, url: str, path: Path) -> None:
        """Update the file from its server, unless it has not changed."""
        note = _read_note(path)
        asked = {header: note[name] for name, header in _CONDITIONS.items() if note.get(name)}
        asked |= _login(url)
        with urllib3.PoolManager(**self._trust) as pool:
            answer = pool.request(
                "GET", url, headers=asked, timeout=self._timeout, preload_content=False
            )
            try:
                if answer.status == _NOT_MODIFIED or (note and note == _note_of(answer)):
                    _mark_used(path)
                elif answer.status == 200:
                    self._store(answer, path, secrets.mask_address(url))
                else:
                    shown = secrets.mask_address(url)
                    raise errors.StepFailure(reason=f"cannot fetch {shown}: HTTP {answer.status}")
            finally:
                answer.close()

    def _store(self, answer: Any, path: Path, shown: str) -> None:
        """Replace the file atomically; its note is written afterwards."""
        self._make_room(answer, path, shown)
        fresh = path.with_suffix(cache_room.PART)
        fresh.touch(0o600)
        with fresh.open("wb") as part, contextlib.ExitStack() as on_failure:
            on_failure.callback(fresh.unlink)
            size = _copy(answer, part, min(_MOST_BYTES, self._most))
            on_failure.pop_all()
        fresh.replace(path)
        cache_room.note_path(path).write_bytes(orjson.dumps(_note_of(answer)))
        cache_room.make(path, size, self._most, self._ttl_s)

    def _make_room(self, answer: Any, path: Path, shown: str) -> None:
        """Remove old files for a file of the announced size."""
        length = answer.headers.get("content-length", "")
        needed = int(length) if length.isdecimal() else 0
        if not cache_room.make(path, needed, self._most, self._ttl_s):
            raise errors.StepFailure(
                reason=f"cannot fetch {shown}: it has {_mib(needed)} MiB, and [deploy]"
                f"ramdisk_cache_size leaves no room for it ({_mib(self._most)} MiB, some of which "
                "other boots may use just now)",
            )


def _login(url: str) -> dict[str, str]:
    """Return the header with the login of a URL; redirects drop it."""
    login = urllib.parse.urlsplit(url).netloc.rpartition("@")[0]
    return dict(urllib3.make_headers(basic_auth=urllib.parse.unquote(login))) if login else {}


def _mib(size: int) -> int:
    return -(-size // _MIB)


def _copy(answer: Any, part: Any, most: int) -> int:
    """Copy the answer within its limits of size and time; return its size.

    Raises StepFailure.  A ``Content-Encoding`` is kept: web servers send it for compressed
    ramdisks.
    """
    give_up_at, size = time.monotonic() + _MOST_S, 0
    while piece := answer.read(_PIECE, decode_content=False):
        size += len(piece)
        if size > most or time.monotonic() > give_up_at:
            raise errors.StepFailure(
                reason=f"cannot fetch a file for the agent: it takes more than {_MOST_S:g} s, or "
                f"has more than {_mib(most)} MiB ([deploy]ramdisk_cache_size)",
            )
        part.write(piece)
    return size


def _why(exc: urllib3.exceptions.HTTPError) -> str:
    fault = getattr(exc, "reason", None) or exc
    return next((words for kind, words in _WHY if isinstance(fault, kind)), type(fault).__name__)


def _mark_used(path: Path) -> None:
    for each in (path, cache_room.note_path(path)):
        os.utime(each)


def _read_note(path: Path) -> dict[str, Any]:
    """Return the note of a file; {} where the file or the note is missing."""
    try:
        note: dict[str, Any] = orjson.loads(cache_room.note_path(path).read_bytes())
    except (FileNotFoundError, orjson.JSONDecodeError):
        return {}
    return note if path.is_file() else {}


def _note_of(answer: Any) -> dict[str, Any]:
    """Return the headers that identify a version of a file; {} where there are none."""
    names = (*_CONDITIONS, "content-length")
    note = {name: answer.headers[name] for name in names if name in answer.headers}
    return note if answer.status == 200 else {}


def _trust(verify_ca: str) -> dict[str, Any]:
    """Return urllib3's arguments for the verification of servers."""
    try:
        verify = strutils.bool_from_string(verify_ca, strict=True)
    except ValueError:
        path = Path(verify_ca)
        if not path.exists():
            raise errors.CannotStart(
                reason=f"cannot use [DEFAULT]webserver_verify_ca {verify_ca}: there is no such "
                "file or folder; name one, or say True or False",
            ) from None
        return {"ca_cert_dir" if path.is_dir() else "ca_certs": verify_ca}
    return {} if verify else {"cert_reqs": "CERT_NONE"}
