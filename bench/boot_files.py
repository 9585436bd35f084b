"""How long a GET takes while machines boot: 16 fast readers of boot files beside it.

The floor is the same GET of the same server while nobody reads.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import selectors
import socket
import statistics
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from bench import harness
from bench.harness import Line, Server
from bloomery import boot_files

READERS: Final = 16
ASKED: Final = 400  # GETs of a round
SIZE: Final = 128 << 20
_PIECE: Final = 1 << 20


def measure() -> Sequence[Line]:
    line = Line(what=f"p99 of a GET beside {READERS} readers of boot files", unit="ms", at_most=30,
                connections=1, note="floor: nobody reads")  # fmt: skip
    with harness.folder() as folder:
        name = _boot_file(folder / "home" / "http")
        with Server(folder / "home") as server:
            _p99_ms(server.port)
            for _ in harness.rounds():
                alone_ms = _p99_ms(server.port)
                with _readers(server.port, name):
                    line.add(_p99_ms(server.port), alone_ms)
    return [line]


def _boot_file(http_root: Path) -> str:
    (http_root / boot_files.FOLDER).mkdir(parents=True)
    name = boot_files.new_name(str(uuid.uuid4()), boot_files.ISO)
    (http_root / boot_files.FOLDER / name).write_bytes(os.urandom(_PIECE) * (SIZE // _PIECE))
    return f"/{boot_files.FOLDER}/{name}"


def _p99_ms(port: int) -> float:
    took_ms = []
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as client:
        for _ in range(ASKED):
            began = time.perf_counter()
            client.request("GET", "/v1/nodes", headers=harness.VERSION)
            client.getresponse().read()
            took_ms.append((time.perf_counter() - began) * 1000)
    return statistics.quantiles(took_ms, n=100)[98]


@contextlib.contextmanager
def _readers(port: int, name: str) -> Iterator[None]:
    with harness.Process(
        sys.executable, "-m", "bench.boot_files", "read", str(port), name
    ) as reads:
        reads.line()
        yield


# ------------------------------------------------------------------------------ in the child


def _read(port: int, name: str) -> None:
    """Read as fast as the server sends; the kernel drops it, as if readers had other processors."""
    request = f"GET {name} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
    readers = selectors.DefaultSelector()
    for _ in range(READERS):
        readers.register(_asking(port, request), selectors.EVENT_READ)
    print("reading", flush=True)
    nothing = bytearray(_PIECE)
    while True:
        for key, _ in readers.select():
            reader = key.fileobj
            assert isinstance(reader, socket.socket)
            if not reader.recv_into(nothing, 0, socket.MSG_TRUNC):
                readers.unregister(reader)
                reader.close()
                readers.register(_asking(port, request), selectors.EVENT_READ)


def _asking(port: int, request: bytes) -> socket.socket:
    reader = socket.create_connection(("127.0.0.1", port))
    reader.sendall(request)
    return reader


if __name__ == "__main__":
    if sys.argv[1:2] == ["read"]:
        _read(int(sys.argv[2]), sys.argv[3])
    else:
        harness.main(measure)
