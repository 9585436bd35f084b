"""The fleet page at 10,000 nodes that move, and what 50 open streams cost the service.

A real browser lists the nodes and follows them while clients order moves; at rest its store is
compared with the service's list, field by field.  BENCH_MOVES_S changes how long they move.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

from selenium.webdriver.remote.webdriver import WebDriver

from bench import harness, population
from bench.harness import Client, Line, Server
from tests.kit.clients import browser

MOVES_PER_S: Final = 20
MOVES_S: Final = float(os.environ.get("BENCH_MOVES_S", "300"))
SOME_S: Final = max(MOVES_S / 10, 10)  # of moves with and without streams
STREAMS: Final = 50
_SECRET_FREE: Final = ("seen", "text", "updated_at")  # the page's own, and the time of the write
_WATCH: Final = """
    window.longest = 0
    new PerformanceObserver(list => { for (const each of list.getEntries()) {
        window.longest = Math.max(window.longest, each.duration) } })
        .observe({type: 'longtask', buffered: true})
"""
_READY: Final = """
    const done = arguments[0];
    import(`${location.origin}/ui/store.js`).then(({status, rows}) =>
        done(status.loaded && document.querySelector('.vbody .vrow') ? rows.size : 0));
"""
_ROWS: Final = """
    const done = arguments[0];
    import(`${location.origin}/ui/store.js`).then(
        ({rows}) => done(JSON.stringify([...rows.values()])));
"""
_SCROLL: Final = """
    const done = arguments[0], table = document.querySelector('.vtable'), times = [];
    const step = now => {
        times.push(now);
        table.scrollTop += 40;
        times.length < 120 ? requestAnimationFrame(step) : done((times.at(-1) - times[0]) / 119);
    };
    requestAnimationFrame(step);
"""


def measure() -> Sequence[Line]:
    with harness.folder() as folder:
        home = population.make(folder / "home")
        return [*_page(home), _streams(home)]


# ----------------------------------------------------------------------------------- the page


def _page(home: Path) -> list[Line]:
    first = Line(what="page of 10,000: until listed and drawn", unit="s", at_most=3)
    task = Line(what="page of 10,000: longest task, 20 moves/s", unit="ms", at_most=100)
    heap = Line(what="page of 10,000: heap after the moves", unit="MiB", at_most=40)
    frame = Line(what="page of 10,000: a frame while scrolling", unit="ms", at_most=17)
    differ = Line(what="page of 10,000: fields unlike the list, at rest", unit="fields", at_most=0)
    with harness.folder() as profile, Server(home) as server, browser.chromium(profile) as driver:
        driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _WATCH})
        first.add(_opened(driver, server.port))
        with _moves(server, MOVES_S):
            pass
        task.add(driver.execute_script("return window.longest"))
        frame.add(driver.execute_async_script(_SCROLL))
        differ.add(_differences(driver, server.client()))
        driver.execute_cdp_cmd("HeapProfiler.enable", {})
        driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
        used = driver.execute_cdp_cmd("Runtime.getHeapUsage", {})["usedSize"]
        heap.add(used / 2**20)
    return [first, task, heap, frame, differ]


def _opened(driver: WebDriver, port: int) -> float:
    began = time.monotonic()
    driver.get(f"http://127.0.0.1:{port}/ui/")
    ready = lambda: driver.execute_async_script(_READY) == population.MANY  # noqa: E731
    harness.until(ready, "the page")
    return time.monotonic() - began


def _differences(driver: WebDriver, client: Client) -> int:
    """Count fields of the store unlike those of the list, once both are still."""
    count = 0
    for _ in range(20):
        shown = {row["uuid"]: row for row in json.loads(driver.execute_async_script(_ROWS))}
        stored = {row["uuid"]: row for row in _list(client)}
        count = len(shown.keys() ^ stored.keys()) + sum(
            row[name] != shown.get(uuid, {}).get(name)
            for uuid, row in stored.items() for name in row if name not in _SECRET_FREE
        )  # fmt: skip
        if not count:
            break
        time.sleep(0.5)
    return count


def _list(client: Client) -> Iterator[dict[str, Any]]:
    path = "/ext/v1/nodes?limit=1000"
    while path:
        page = json.loads(client.ask("GET", path))
        yield from page["nodes"]
        path = "/".join(["", *page["next"].split("/")[3:]]) if "next" in page else ""


# ---------------------------------------------------------------------------------- the moves


@contextmanager
def _moves(server: Server, lasts_s: float) -> Iterator[list[str]]:
    """Order maintenance on and off, and verbs, of one node after the other, at an even pace."""
    client = server.client()
    nodes = [row["uuid"] for row in _list(client) if row["provision_state"] == "available"]
    began = time.monotonic()
    for number in range(int(lasts_s * MOVES_PER_S)):
        node = nodes[number // 2 % len(nodes)]
        target = "provide" if number % 2 else "manage"
        client.ask("PUT", f"/v1/nodes/{node}/states/provision", {"target": target},
                   allowed=(202, 400, 409))  # fmt: skip
        time.sleep(max(0.0, began + (number + 1) / MOVES_PER_S - time.monotonic()))
    harness.until(lambda: _is_at_rest(client), "the moves to end")
    yield nodes
    client.close()


def _is_at_rest(client: Client) -> bool:
    states = json.loads(client.ask("GET", "/ext/v1/fleet"))["provision_states"]
    return not states.keys() & {"cleaning", "clean wait", "verifying"}


def _streams(home: Path) -> Line:
    """CPU of the service for the same moves with 50 streams, in times of that without."""
    line = Line(what=f"moves with {STREAMS} streams", unit="s CPU", at_most=1.5, ratio=True)
    for _ in harness.rounds():
        with Server(home) as server:
            floor = _cpu_of_moves(server)
            with _listeners(server.port):
                line.add(_cpu_of_moves(server), floor)
    return line


def _cpu_of_moves(server: Server) -> float:
    before = server.cpu_s()
    with _moves(server, SOME_S):
        pass
    return server.cpu_s() - before


@contextmanager
def _listeners(port: int) -> Iterator[None]:
    """Hold open streams, which one thread reads."""
    selector, stop = selectors.DefaultSelector(), threading.Event()
    with ExitStack() as stack:
        for _ in range(STREAMS):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            connection.sendall(
                b"GET /ext/v1/events?since=latest HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                b"Accept: text/event-stream\r\n\r\n"
            )
            selector.register(connection, selectors.EVENT_READ)
        reader = threading.Thread(target=_read, args=(selector, stop))
        reader.start()
        try:
            yield
        finally:
            stop.set()
            reader.join()


def _read(selector: selectors.BaseSelector, stop: threading.Event) -> None:
    while not stop.is_set():
        for key, _ in selector.select(0.5):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.recv(65536)


if __name__ == "__main__":
    harness.main(measure)
