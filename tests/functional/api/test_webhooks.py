"""/ext/v1/webhooks: what operators may say of them, and what is delivered."""

from __future__ import annotations

import base64
import dataclasses
import http.server
import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
import standardwebhooks

from bloomery.api import app
from bloomery.conf.notifications import Events
from bloomery.db import event_cursors, events, rows
from bloomery.db.tables import EVENTS, WEBHOOKS
from bloomery.events.relay import Relay
from bloomery.events.sink_worker import Pace
from bloomery.events.trimmer import CATCH_UP_S, Trimmer
from bloomery.events.webhooks import Webhooks
from bloomery.secrets import Sealer
from tests.kit.clients import documented
from tests.kit.clock import HandClock
from tests.kit.servers import site as kit
from tests.kit.servers import web
from tests.kit.waiting import wait_for

PATH = "/ext/v1/webhooks"
NODE = "5f3c1b0a-7c1e-4d57-9a55-0d2f6a1e9b11"
OTHER = "6f3c1b0a-7c1e-4d57-9a55-0d2f6a1e9b12"
SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
QUICK = Pace(acknowledge_s=0.0, retry_least_s=0.001, retry_most_s=0.002)


class Receiver(http.server.ThreadingHTTPServer):
    """Takes what is delivered, and answers as it is told."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.taken: list[dict[str, Any]] = []
        self.ids: list[str] = []
        self.paths: list[str] = []
        self.status = 204
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/hook?token=t"

    @property
    def numbers(self) -> list[int]:
        return [each["data"]["id"] for each in self.taken]

    def end(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.paths.append(self.path)
        if self.server.status == 204:
            verified = standardwebhooks.Webhook(SECRET).verify(body, dict(self.headers))
            self.server.taken.append(verified)
            self.server.ids.append(self.headers["webhook-id"])
        self.send_response(self.server.status)
        if self.server.status == 302:
            self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, *_args: Any) -> None: ...


class Site:
    """An API whose webhooks are delivered."""

    def __init__(self, services: Any, **options: Any) -> None:
        conf = Events(**({"webhook_allow_local": True, "webhook_max_failures": 3} | options))
        sealer = Sealer(kit.KEY)
        self.db = services.db
        self.relay = Relay(self.db, [], holder="here:1", keep_hours=1)
        self.webhooks = Webhooks(self.db, sealer, conf, self.relay, holder="here:1", pace=QUICK)
        services = dataclasses.replace(
            services, conf=dataclasses.replace(services.conf, events=conf), sealer=sealer,
            on_webhooks_changed=self.webhooks.poll,
        )  # fmt: skip
        self.app = app.make_app(services)
        self.api = documented.Client(self.app)
        self.relay.start()
        self.webhooks.start()

    def add(self, url: str, **more: Any) -> str:
        answer = self.api.post(PATH, {"url": url, "secret": SECRET, **more})
        assert answer.status == 201, answer.body
        return answer.json["uuid"]

    def show(self, uuid: str) -> dict[str, Any]:
        return self.api.get(f"{PATH}/{uuid}").json

    def set(self, uuid: str, **values: Any) -> Any:
        patch = [{"op": "add", "path": f"/{name}", "value": each} for name, each in values.items()]
        return self.api.patch(f"{PATH}/{uuid}", patch)

    def happen(self, action: str = "update", node: str = NODE) -> int:
        event = events.Event(object="node", object_uuid=node, action=action, status="end")
        self.db.transact(lambda conn: events.insert(conn, [events.encode(event)]))
        self.relay.wake()
        with self.db.read() as conn:
            return events.last_id(conn)

    def close(self) -> None:
        self.webhooks.stop()
        self.relay.stop()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.end()


@pytest.fixture
def site(world) -> Iterator[Site]:
    site = Site(world.site)
    yield site
    site.close()


def test_events_are_delivered_signed_and_in_order(site: Site, receiver: Receiver):
    site.happen("before")
    uuid = site.add(receiver.url)
    numbers = [site.happen() for _ in range(5)]
    wait_for(lambda: receiver.numbers == numbers, "all deliveries")
    assert {each["type"] for each in receiver.taken} == {"baremetal.node.update.end"}
    assert set(receiver.paths) == {"/hook?token=t"}
    wait_for(lambda: site.show(uuid)["last_delivered_at"], "it to be noted")


@pytest.mark.parametrize(
    ("chosen", "actions"),
    [({"type": "baremetal.node.create"}, ["create"]), ({"object_uuid": OTHER}, ["delete"])],
)
def test_only_what_was_chosen_is_delivered(
    site: Site, receiver: Receiver, chosen: dict[str, str], actions: list[str]
):
    site.add(receiver.url, **chosen)
    site.happen("update")
    site.happen("create")
    site.happen("delete", OTHER)
    wait_for(lambda: receiver.taken, "a delivery")
    assert [each["type"].split(".")[2] for each in receiver.taken] == actions


def test_one_that_fails_is_parked_and_goes_on_where_it_stopped(
    site: Site, receiver: Receiver, caplog
):
    receiver.status = 500
    uuid = site.add(receiver.url)
    numbers = [site.happen() for _ in range(3)]
    parked = wait_for(lambda: site.show(uuid)["state"] == "parked" and site.show(uuid), "parking")
    assert (parked["failures"], parked["last_error"]) == (3, "the server answers 500")
    wait_for(lambda: not site.webhooks._workers, "its worker to end")
    receiver.status = 204
    assert site.set(uuid, state="active").json["failures"] == 0
    wait_for(lambda: receiver.numbers == numbers, "what it missed")
    wait_for(lambda: site.show(uuid)["last_delivered_at"], "it to be noted")
    assert site.show(uuid)["state"] == "active"


def test_a_slow_receiver_gets_events_of_two_nodes_at_once(site: Site):
    both = threading.Barrier(2, timeout=10)

    def meet(request: http.server.BaseHTTPRequestHandler) -> None:
        both.wait()
        web.text("", 204)(request)

    with web.serving({"/": meet}) as receiver:
        uuid = site.add(receiver.url("/"))
        rows = [
            events.encode(events.Event(object="node", object_uuid=node, action="x", status="end"))
            for node in (NODE, OTHER)
        ]
        site.db.transact(lambda conn: events.insert(conn, rows))
        site.relay.wake()
        wait_for(lambda: site.show(uuid)["last_delivered_at"], "both")


def test_a_failure_is_tried_again_under_the_same_id(site: Site, receiver: Receiver):
    receiver.status = 503
    uuid = site.add(receiver.url)
    site.happen()
    wait_for(lambda: site.show(uuid)["failures"], "a failure")
    receiver.status = 204
    site.set(uuid, state="active")
    wait_for(lambda: receiver.taken, "the delivery")
    with site.db.read() as conn:
        (stored,) = events.list_after(conn, 0, 9)
    assert set(receiver.ids) == {stored.message_id}


def test_one_that_fails_holds_up_no_other(site: Site, receiver: Receiver):
    site.add("http://127.0.0.1:1/")
    site.add(receiver.url)
    number = site.happen()
    wait_for(lambda: receiver.numbers == [number], "the other's")


def test_redirects_are_not_followed(site: Site, receiver: Receiver):
    receiver.status = 302
    uuid = site.add(receiver.url)
    site.happen()
    wait_for(lambda: site.show(uuid)["state"] == "parked", "parking")
    assert site.show(uuid)["last_error"] == "the server answers 302"
    assert "/elsewhere" not in receiver.paths


def test_the_machine_itself_is_not_called_unless_that_is_allowed(world, receiver: Receiver):
    site = Site(world.site, webhook_allow_local=False)
    try:
        uuid = site.add(receiver.url.replace("127.0.0.1", "localhost"))
        site.happen()
        wait_for(lambda: site.show(uuid)["state"] == "parked", "parking")
        assert "webhook_allow_local" in site.show(uuid)["last_error"]
        assert receiver.paths == []
    finally:
        site.close()


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:8080", "127.1", "[::1]", "0.0.0.0", "169.254.169.254", "[fe80::1]",
     "[::ffff:127.0.0.1]", "[fd00:ec2::254]", "2130706433"],
)  # fmt: skip
def test_addresses_that_are_never_called_are_refused_at_once(world, host: str):
    site = Site(world.site, webhook_allow_local=False)
    try:
        answer = site.api.post(PATH, {"url": f"http://{host}/hook", "secret": SECRET})
        assert (answer.status, b"webhook_allow_local" in answer.body) == (400, True)
        uuid = site.add("http://192.0.2.1/hook")
        assert site.set(uuid, url=f"http://{host}/hook").status == 400
    finally:
        site.close()


def test_a_parked_one_keeps_no_old_rows(site: Site, receiver: Receiver):
    uuid = site.add(receiver.url)
    site.set(uuid, state="parked")
    wait_for(lambda: not site.webhooks._workers, "its worker to end")
    old = rows.now() - timedelta(hours=2)
    site.happen()
    site.db.transact(lambda conn: conn.execute(sa.update(EVENTS).values(created_at=old)))
    assert Trimmer(site.db, [], keep_hours=1).trim() == 1


@pytest.fixture
def patient(world) -> Iterator[Site]:
    """A site that parks no webhook for its failures."""
    site = Site(world.site, webhook_max_failures=1000)
    yield site
    site.close()


def test_one_that_lags_too_far_is_parked_and_keeps_no_rows(patient: Site, caplog):
    site = patient
    uuid = site.add("http://127.0.0.1:1/")
    old = rows.now() - timedelta(hours=2)
    row = events.encode(events.Event(object="node", object_uuid=NODE, action="x", status="end"))
    site.db.transact(lambda conn: events.insert(conn, [row | {"created_at": old}]))
    assert Trimmer(site.db, [], keep_hours=3).trim() == 0
    assert site.show(uuid)["state"] != "parked"
    clock = HandClock()
    trimmer = Trimmer(site.db, [], keep_hours=1, clock=clock)
    assert trimmer.trim() == 0
    clock.turn(CATCH_UP_S)
    assert trimmer.trim() == 1
    webhook = site.show(uuid)
    assert (webhook["state"], str(old) in webhook["last_error"]) == ("parked", True)
    assert f"webhook {uuid} is parked: it lags too far" in caplog.text
    assert site.set(uuid, state="active").json["state"] in ("active", "failing")  # asked again
    assert trimmer.trim() == 0
    assert site.show(uuid)["state"] != "parked"


def test_webhooks_that_hang_while_they_are_deleted_delay_no_other(world, receiver: Receiver):
    site = Site(world.site, webhook_timeout=60)
    enough = threading.Event()
    with web.serving({"/": lambda request: enough.wait()}) as hanging:
        try:
            uuids = [site.add(hanging.url("/")) for _ in range(4)]
            site.happen()
            wait_for(lambda: len(hanging.asked) == 4, "all to hang")
            for uuid in uuids:
                site.api.delete(f"{PATH}/{uuid}")
            site.add(receiver.url)
            number = site.happen()
            wait_for(lambda: receiver.numbers == [number], "the delivery")
        finally:
            enough.set()
            site.close()


def test_a_webhook_that_hangs_is_told_at_its_new_address_once_the_old_one_let_go(
    world, receiver: Receiver
):
    site = Site(world.site, webhook_timeout=60)
    enough = threading.Event()
    with web.serving({"/": lambda request: enough.wait()}) as hanging:
        try:
            uuid = site.add(hanging.url("/"))
            number = site.happen()
            wait_for(lambda: hanging.asked, "it to hang")
            site.set(uuid, url=receiver.url)
            wait_for(lambda: site.webhooks._ending, "the old worker to be stopped")
            site.webhooks.settle()
            assert not site.webhooks._workers
            enough.set()
            wait_for(lambda: receiver.numbers == [number], "the delivery")
        finally:
            enough.set()
            site.close()


def test_the_secret_is_sealed_and_never_shown(site: Site, receiver: Receiver):
    uuid = site.add(receiver.url)
    shown = [site.api.get(PATH), site.api.get(f"{PATH}/{uuid}"), site.set(uuid, secret=SECRET)]
    assert all(b"secret" not in answer.body for answer in shown)
    refused = site.set(uuid, secret="bad " + SECRET)
    assert (refused.status, SECRET[6:].encode() in refused.body) == (400, False)
    with site.db.read() as conn:
        assert SECRET[6:] not in conn.execute(sa.select(WEBHOOKS.c.secret)).scalar_one()


def test_a_new_secret_and_url_are_used_from_then_on(site: Site, receiver: Receiver):
    uuid = site.add("http://127.0.0.1:1/")
    assert site.set(uuid, url=receiver.url, description="ours").status == 200
    number = site.happen()
    wait_for(lambda: receiver.numbers == [number], "the delivery")
    assert site.show(uuid)["description"] == "ours"


def test_a_worker_makes_no_cursor_for_one_that_was_deleted_meanwhile(site: Site):
    uuid = site.add("http://127.0.0.1:1/")
    wait_for(lambda: site.webhooks._workers, "a worker")
    _, worker = site.webhooks._workers[uuid]
    site.db.transact(lambda conn: event_cursors.delete(conn, f"webhook:{uuid}"))
    worker._cursor = None
    assert not worker._take_cursor()
    with site.db.read() as conn:
        assert event_cursors.list_all(conn) == []


def test_one_that_is_deleted_is_gone_with_its_cursor(site: Site, receiver: Receiver):
    uuid = site.add(receiver.url)
    assert site.api.delete(f"{PATH}/{uuid}").status == 204
    assert site.api.get(f"{PATH}/{uuid}").status == 404
    assert site.set(uuid, description="x").status == 404
    wait_for(lambda: not site.webhooks._workers, "its worker to end")
    with site.db.read() as conn:
        assert event_cursors.list_all(conn) == []


@pytest.mark.parametrize(
    "wrong",
    [{"url": "ftp://x/"}, {"url": "http://u:p@x/"}, {"url": "http://ä/"}, {"url": "http://x/ y"},
     {"url": "x" * 3000}, {"secret": "short"}, {"secret": "whsec_!!"}, {"type": "Not.A"},
     {"object_uuid": "x"}, {"description": "x" * 256}, {"description": "\0"}, {"colour": "red"}],
)  # fmt: skip
def test_what_cannot_be_used_is_refused(site: Site, wrong: dict[str, str]):
    body = {"url": "http://example.org/", "secret": SECRET} | wrong
    assert site.api.post(PATH, body).status == 400
    uuid = site.add("http://127.0.0.1:1/")
    assert site.set(uuid, **wrong).status == 400


@pytest.mark.parametrize(
    "patch",
    [[{"op": "remove", "path": "/url"}], [{"op": "remove", "path": "/secret"}],
     [{"op": "add", "path": "/url/x", "value": "y"}],
     [{"op": "add", "path": "/uuid", "value": "y"}],
     [{"op": "add", "path": "/state", "value": "failing"}],
     [{"op": "add", "path": "/description", "value": 5}]],
)  # fmt: skip
def test_patches_that_cannot_be_are_refused(site: Site, patch: list[dict[str, Any]]):
    uuid = site.add("http://127.0.0.1:1/")
    assert site.api.patch(f"{PATH}/{uuid}", patch).status == 400


def test_more_than_there_may_be_are_refused(world):
    site = Site(world.site, max_webhooks=1)
    try:
        site.add("http://127.0.0.1:1/")
        answer = site.api.post(PATH, {"url": "http://example.org/", "secret": SECRET})
        assert (answer.status, "max_webhooks" in answer.said) == (409, True)
    finally:
        site.close()
