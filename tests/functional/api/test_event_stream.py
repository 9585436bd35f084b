"""/ext/v1/events: the list, and the stream of server-sent events on a real server."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bloomery.api import app, server
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.db import events
from bloomery.events.relay import Relay
from bloomery.http_server import streams
from bloomery.http_server.server import Server
from bloomery.lab import tls
from tests.kit.clients import callers, slow_clients
from tests.kit.waiting import wait_for

PATH = "/ext/v1/events"
NODE = "5f3c1b0a-7c1e-4d57-9a55-0d2f6a1e9b11"
OTHER = "6f3c1b0a-7c1e-4d57-9a55-0d2f6a1e9b12"
BEGIN = b": events\n\n"
STREAM = {"Accept": "text/event-stream"}


class Site:
    """A service that listens, and what happens there."""

    def __init__(self, services: Any, *, most: int = 1000) -> None:
        self.db = services.db
        self.relay = Relay(self.db, [], holder="here:1", keep_hours=1, most_listeners=most)
        self.services = dataclasses.replace(services, live=self.relay.live)
        self.relay.start()
        self.servers: list[Server] = []
        self.serve(Conf(api=Api(port=0)))

    def serve(self, conf: Conf, logins: Any = None) -> Server:
        self.app = app.make_app(self.services, logins=logins)
        self.servers.append(server.make(self.app, conf))
        self.servers[-1].start()
        return self.servers[-1]

    @property
    def address(self) -> tuple[str, int]:
        return self.servers[-1].address

    def happen(self, action: str = "update", **more: Any) -> int:
        values = {"object": "node", "object_uuid": NODE, "status": "end"} | more
        row = events.encode(events.Event(action=action, **values))
        self.db.transact(lambda conn: events.insert(conn, [row]))
        self.relay.wake()
        with self.db.read() as conn:
            return events.last_id(conn)

    def close(self) -> None:
        for serving in self.servers:
            serving.stop()
        self.relay.stop()


class Listener:
    """A client that listens, and what it got."""

    def __init__(self, address: tuple[str, int], query: str = "", **headers: str) -> None:
        self._connection = http.client.HTTPConnection(*address, timeout=20)
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request("GET", PATH + query, headers=STREAM | more)
        self.answer = self._connection.getresponse()

    def frame(self) -> dict[str, str]:
        """Return the next frame, comments apart."""
        fields: dict[str, str] = {}
        while line := self.answer.readline():
            text = line.decode().rstrip("\n")
            if not text and fields:
                return fields
            name, colon, value = text.partition(": ")
            if colon and name:
                fields[name] = value
        return {}

    def event(self) -> dict[str, Any]:
        return json.loads(self.frame()["data"])

    def close(self) -> None:
        self.answer.close()
        self._connection.close()


Listen = Callable[..., Listener]


@pytest.fixture
def site(world) -> Iterator[Site]:
    site = Site(world.site)
    yield site
    site.close()


@pytest.fixture
def listen(site: Site) -> Iterator[Listen]:
    with contextlib.ExitStack() as opened:

        def connect(query: str = "", **headers: str) -> Listener:
            return opened.enter_context(
                contextlib.closing(Listener(site.address, query, **headers))
            )

        yield connect


# -------------------------------------------------------------------------------------- the list


def test_list_goes_on_where_the_last_page_ended(site: Site, world):
    numbers = [site.happen() for _ in range(5)]
    first = world.api.get(f"{PATH}?limit=2").json
    assert [each["id"] for each in first["events"]] == numbers[:2]
    second = world.api.get(first["next"].removeprefix("http://localhost")).json
    assert [each["id"] for each in second["events"]] == numbers[2:4]
    last = world.api.get(f"{PATH}?since={second['last_id']}").json
    assert ([each["id"] for each in last["events"]], "next" in last) == (numbers[4:], False)


def ids(page: dict[str, Any]) -> list[int]:
    return [each["id"] for each in page["events"]]


def test_list_shows_the_newest_first(site: Site, world):
    numbers = [site.happen() for _ in range(5)]
    site.happen(object_uuid=OTHER)
    first = world.api.get(f"{PATH}?order=desc&limit=2&node={NODE}").json
    assert (ids(first), first["last_id"]) == ([numbers[4], numbers[3]], numbers[4] + 1)
    new = site.happen()
    second = world.api.get(first["next"].removeprefix("http://localhost")).json
    assert ids(second) == [numbers[2], numbers[1]]
    last = world.api.get(second["next"].removeprefix("http://localhost")).json
    assert (ids(last), "next" in last) == ([numbers[0]], False)
    later = world.api.get(f"{PATH}?order=desc&since={first['last_id']}").json
    assert (ids(later), later["last_id"]) == ([new], new)


def test_list_ends_at_a_number(site: Site, world):
    numbers = [site.happen() for _ in range(5)]
    page = world.api.get(f"{PATH}?until={numbers[2]}&limit=2").json
    assert ids(page) == numbers[:2]
    assert ids(world.api.get(page["next"].removeprefix("http://localhost")).json) == [numbers[2]]
    both = f"{PATH}?order=desc&since={numbers[0]}&until={numbers[2]}"
    assert ids(world.api.get(both).json) == [numbers[2], numbers[1]]


def test_list_and_stream_begin_behind_the_last_event(site: Site, world, listen: Listen):
    site.happen()
    last = site.happen()
    page = world.api.get(f"{PATH}?since=latest").json
    assert (page, world.api.get(f"{PATH}?since={last}").json) == (
        {"events": [], "last_id": last},
    ) * 2
    listener = listen("?since=latest")
    new = site.happen()
    assert listener.event()["id"] == new


@pytest.mark.parametrize("query", ["order=desc", "until=5"])
def test_a_stream_goes_forward(site: Site, listen: Listen, query: str):
    assert listen(f"?{query}").answer.status == 400


def test_events_of_an_object_are_found_by_an_index(site: Site):
    ask = (
        "EXPLAIN QUERY PLAN SELECT id FROM events WHERE id > 0 AND object_uuid = 'x' "
        "ORDER BY id DESC LIMIT 5"
    )
    with site.db.read() as conn:
        (plan,) = [row[-1] for row in conn.exec_driver_sql(ask)]
    assert "ix_events_object_uuid" in plan


def test_list_tells_what_happened_and_no_whole_object(site: Site, world):
    site.happen("power_set", facts={"to_power": "power on"}, snapshot={"driver": "fake"})
    (event,) = world.api.get(PATH).json["events"]
    assert event["event_type"] == "baremetal.node.power_set.end"
    assert event["facts"] == {"to_power": "power on"}
    assert "driver" not in json.dumps(event)


@pytest.mark.parametrize(
    ("query", "actions"),
    [
        (f"node={OTHER}", ["delete"]),
        ("type=baremetal.node", ["create", "delete"]),
        ("type=baremetal.node.create.end", ["create"]),
        ("type=baremetal.nod", []),
        ("type=orchestration", ["resume"]),
        (f"stack={NODE}", ["resume"]),
        (f"object={OTHER}", ["delete"]),
    ],
)
def test_list_and_stream_are_filtered_alike(
    site: Site, world, listen: Listen, query: str, actions: list[str]
):
    site.happen("create")
    site.happen("delete", object_uuid=OTHER)
    site.happen("resume", object="stack")
    listed = world.api.get(f"{PATH}?{query}").json["events"]
    assert [each["event_type"].split(".")[2] for each in listed] == actions
    listener = listen(f"?{query}&since=0")
    assert [listener.event() for _ in actions] == listed


@pytest.mark.parametrize(
    "query",
    ["since=x", "until=latest", "order=up", "limit=0", "type=Bad.type", "type=a.b.c.d.e",
     f"node={NODE}&stack={NODE}", f"node={NODE}&object={NODE}", "stack=x", "object=x",
     "colour=red"],
)  # fmt: skip
def test_bad_questions_are_refused(world, query: str):
    assert world.api.get(f"{PATH}?{query}").status == 400


def test_a_name_that_no_node_has_is_not_found(world):
    assert world.api.get(f"{PATH}?node=nobody").status == 404


def test_a_page_examines_no_more_rows_than_it_should(site: Site, world, monkeypatch):
    monkeypatch.setattr("bloomery.operations.event_feed._MOST_EXAMINED", 500)
    rows = [events.encode(events.Event(object="node", object_uuid=NODE, action="update",
                                       status="end")) for _ in range(600)]  # fmt: skip
    site.db.transact(lambda conn: events.insert(conn, rows))
    page = world.api.get(f"{PATH}?type=baremetal.port").json
    assert (page["events"], page["last_id"], "next" in page) == ([], 500, True)


def test_another_web_server_streams_nothing_and_says_so(world):
    answer = world.api.ask("GET", PATH, headers=STREAM)
    assert (answer.status, "cannot stream" in answer.said) == (406, True)


# ------------------------------------------------------------------------------------ the stream


def test_events_come_as_they_happen(site: Site, listen: Listen):
    site.happen("before")
    listener = listen()
    assert listener.answer.headers["Content-Type"] == "text/event-stream"
    number = site.happen("update")
    frame = listener.frame()
    assert (frame["id"], frame["event"]) == (str(number), "baremetal.node.update.end")
    assert json.loads(frame["data"])["object_uuid"] == NODE


def test_who_comes_back_misses_nothing_and_gets_nothing_twice(site: Site, listen: Listen):
    first = listen()
    seen = [site.happen() for _ in range(3)]
    assert [first.event()["id"] for _ in seen] == seen
    first.close()
    missed = [site.happen() for _ in range(450)]  # more than a batch
    again = listen("?since=0", Last_Event_ID=str(seen[-1]))
    live = site.happen()
    assert [again.event()["id"] for _ in range(451)] == [*missed, live]


def test_idle_listeners_cost_no_thread(site: Site, listen: Listen):
    one = listen()
    site.happen()
    one.event()
    before = threading.active_count()
    many = [listen() for _ in range(200)]
    number = site.happen()
    assert {each.event()["id"] for each in many} == {number}
    assert threading.active_count() <= before
    for each in many[::2]:
        each.close()
    wait_for(lambda: len(site.servers[0]._connections) <= 102, "half of them to be gone")


def test_a_reader_that_takes_nothing_is_cut_off_and_holds_up_nobody(site: Site, listen: Listen):
    slow = socket.create_connection(site.address)
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.sendall(
        b"GET /ext/v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"
    )
    quick = listen()
    wait_for(lambda: len(site.relay.live) == 2, "both to listen")
    facts = {"text": "x" * 50_000}
    for _ in range(200):
        number = site.happen(facts=facts)
        assert quick.event()["id"] == number
        if len(site.relay.live) == 1:
            break
    wait_for(lambda: len(site.servers[0]._connections) == 1, "the slow one to be cut off")
    slow.close()


def test_who_catches_up_slowly_is_waited_for(site: Site):
    facts = {"text": "x" * 20_000}
    numbers = [site.happen(facts=facts) for _ in range(60)]
    with slow_clients.clients(
        site.servers[0],
        b"GET /ext/v1/events?since=0 HTTP/1.1\r\nHost: localhost\r\n"
        b"Accept: text/event-stream\r\n\r\n",
    ) as (client,):
        text = b""
        while f"id: {numbers[-1]}\n".encode() not in text:
            text += client.recv(65536)
    assert all(f"id: {number}\n".encode() in text for number in numbers)


def test_a_connection_shows_that_it_lives_and_ends_in_time():
    now, wire = [0.0], FakeWire()
    stream = streams.Stream(wire, lambda: now[0])
    now[0] = 14.9
    stream.beat()
    assert wire.sent == b""
    now[0] = 15.0
    stream.beat()
    assert wire.sent == b": still here\n\n"
    now[0] = 3600.0
    stream.beat()
    assert (stream.is_closed, wire.is_hung_up, stream.push(b"x")) == (True, True, False)


class FakeWire:
    """A client that takes everything."""

    def __init__(self) -> None:
        self.sent, self.is_hung_up = b"", False

    def send(self, data: memoryview) -> int:
        self.sent += bytes(data)
        return len(data)

    def receive(self) -> bytes:
        raise BlockingIOError

    def await_turn(self, *, to_write: bool) -> None: ...

    def hang_up(self) -> None:
        self.is_hung_up = True


def test_more_listeners_than_there_may_be_are_refused(world):
    site = Site(world.site, most=1)
    try:
        with contextlib.closing(Listener(site.address)):
            wait_for(lambda: len(site.relay.live) == 1, "it to listen")
            with contextlib.closing(Listener(site.address)) as second:
                assert second.answer.status == 503
                assert second.answer.headers["Retry-After"] == "5"
    finally:
        site.close()


def test_a_stopping_server_ends_streams(site: Site, listen: Listen):
    listener = listen()
    site.servers[0].stop()
    assert listener.answer.read() == BEGIN


def test_streams_speak_tls(site: Site, tmp_path):
    cert_file, key_file = tls.certificate(tmp_path)
    api = Api(port=0, enable_ssl_api=True, cert_file=cert_file, key_file=key_file)
    serving = site.serve(Conf(api=api))
    context = ssl.create_default_context(cafile=cert_file)
    context.check_hostname = False
    connection = http.client.HTTPSConnection(*serving.address, context=context, timeout=20)
    with contextlib.closing(connection):
        connection.request("GET", PATH, headers=STREAM)
        answer = connection.getresponse()
        wait_for(lambda: len(site.relay.live) == 1, "it to listen")
        numbers = [site.happen(facts={"text": "x" * 30_000}) for _ in range(20)]
        ids: list[int] = []
        while len(ids) < len(numbers):
            line = answer.readline()
            ids += [int(line[4:])] if line.startswith(b"id: ") else []
        assert ids == numbers
        answer.close()


# ---------------------------------------------------------------------------------- who sees what


@pytest.fixture
def guarded(tmp_path) -> Iterator[tuple[callers.Site, Site]]:
    door = callers.Site(tmp_path)
    site = Site(door.services)
    site.serve(Conf(api=Api(port=0)), logins=door.claims)
    yield door, site
    site.close()
    door.db.close()


@pytest.mark.parametrize(
    ("place", "actions", "is_told_why"),
    [
        ("system", ["update", "create", "delete"], True),
        (callers.OWNER, ["update", "create"], True),
        (callers.LESSEE, ["update"], False),
        (callers.STRANGER, [], False),
    ],
)
def test_projects_see_what_is_theirs(guarded, place: str, actions: list[str], is_told_why: bool):
    door, site = guarded
    shared = {"owner": callers.OWNER, "lessee": callers.LESSEE}
    condition = {
        "last_error": "no power", "maintenance": False, "maintenance_reason": None, "fault": None,
        "provision_state": "available", "cause_code": "last_error", "cause": "no power",
    }  # fmt: skip
    site.happen("update", facts=condition, **shared)
    site.happen("create", object="stack", owner=callers.OWNER)
    site.happen("delete", object="port")
    door.become(place, "reader")
    listed = door.ask("GET", PATH).json["events"]
    assert [each["event_type"].split(".")[2] for each in listed] == actions
    if actions:
        facts = listed[0]["facts"]
        assert ("last_error" in facts) == is_told_why
        expected = ("last_error", "no power") if is_told_why else (None, None)
        assert (facts["cause_code"], facts["cause"]) == expected
    listener = Listener(site.address, "?since=0")
    number = site.happen("end", **shared, object_uuid=OTHER)
    streamed = [listener.event() for _ in actions]
    assert streamed == listed
    if place != callers.STRANGER:
        assert listener.event()["object_uuid"] == OTHER
    else:
        (its,) = wait_for(lambda: site.relay.live._listeners, "it to be listened to")
        wait_for(lambda: its.last_id == number, "all to be looked at for it")
        site.servers[-1].stop()
        assert listener.answer.read() == BEGIN
    listener.close()


def test_a_node_of_somebody_else_is_not_there(guarded):
    door, _ = guarded
    node = door.as_admin("GET", f"/v1/nodes/{door.node()}").json["uuid"]
    door.as_admin("PATCH", f"/v1/nodes/{node}",
                  [{"op": "add", "path": "/name", "value": "web-1"}])  # fmt: skip
    door.become(callers.STRANGER, "reader")
    assert door.ask("GET", f"{PATH}?node=web-1").status == 404
    door.become(callers.OWNER, "reader")
    assert door.ask("GET", f"{PATH}?node=web-1").status == 200
