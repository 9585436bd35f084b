"""The console of a simulated machine through a web socket of a real server, by the CLI's client."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import http.client
import json
import os
import ssl
import termios
import threading

import bcrypt
import pytest

from bloomery.api import app, server
from bloomery.api.auth import NoAuth
from bloomery.cli.client import ApiError, Client
from bloomery.cli.console import Console, Notice, Session
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.drivers import Console as ConsoleOptions
from bloomery.conf.notifications import Audit
from bloomery.drivers import registry
from bloomery.http_server import login
from bloomery.lab import tls
from bloomery.operations.policy_engine import Policies
from tests.functional.redfish.conftest import conf, enrol
from tests.kit.servers.stories import Stage
from tests.kit.waiting import wait_for
from tools.servers import free_port


class Claims(NoAuth):
    """Says who calls."""

    roles = ("admin", "member", "reader")

    def identify(self, request, environ):
        return dataclasses.replace(
            request, user="ann", roles=self.roles, system_scope="all", user_name="Ann"
        )


@pytest.fixture
def stage(make_site):
    port = free_port()
    ours = dataclasses.replace(
        conf(),
        default=dataclasses.replace(
            conf().default, enabled_console_interfaces=("console-server", "no-console")
        ),
        console=ConsoleOptions(port_range=f"{port}:{port + 2}", allow_local=True),
    )
    made = Stage(make_site(registry=registry.load(ours)))
    yield made
    made.services.consoles.stop()
    made.site.runtime.registry.close()


@pytest.fixture
def machine(make_rack):
    return make_rack(consoles=True).machines[0]


@pytest.fixture
def node(stage, machine):
    uuid = enrol(stage, machine)
    stage.patch(uuid, console_interface="console-server")
    switch(stage, uuid, on=True)
    return uuid


@pytest.fixture
def serve(stage):
    with contextlib.ExitStack() as stack:

        def serve(logins=None, api=Api(port=0), tls=None, **options):  # noqa: B008  is frozen
            ours = Conf(**options)
            services = dataclasses.replace(stage.services, conf=ours, policies=Policies(ours))
            made = server.make(app.make_app(services, logins=logins), Conf(api=api))
            made.start()
            stack.callback(made.stop)
            return Client(made.url, tls=tls)

        yield serve


def switch(stage, node, *, on):
    assert stage.api.put(f"/v1/nodes/{node}/states/console", {"enabled": on}).status == 202
    stage.wait_until_free(node)


@contextlib.contextmanager
def opened(client, node, query=""):
    with contextlib.closing(Console(client, f"/ext/v1/nodes/{node}/console{query}")) as console:
        yield Reader(console)


class Reader:
    def __init__(self, console):
        self.console, self.output, self.notices = console, b"", []

    def read(self):
        for each in self.console.receive():
            if isinstance(each, Notice):
                self.notices.append(each)
            else:
                self.output += each

    def until(self, words):
        while words not in self.output:
            self.read()

    def until_state(self, state):
        while not any(each.state == state for each in self.notices):
            with contextlib.suppress(ApiError) if state == "ended" else contextlib.nullcontext():
                self.read()
        return next(each for each in self.notices if each.state == state)


def test_a_boot_is_read_and_the_login_typed_into(serve, machine, node):
    with opened(serve(), node) as reader:
        notice = reader.until_state("open")
        assert (notice.may_type, notice.message) == (True, "connected")
        reader.console.type(b"x")
        machine.system.reset("On")
        reader.until(b"login: ")
        assert machine.mac.encode() in reader.output
        reader.console.type(b"root\r")
        reader.until(b"login: root\r\n")


def test_a_console_speaks_tls(serve, machine, node, tmp_path):
    cert_file, key_file = tls.certificate(tmp_path)
    api = Api(port=0, enable_ssl_api=True, cert_file=cert_file, key_file=key_file)
    client = serve(api=api, tls=ssl.create_default_context(cafile=cert_file))
    with opened(client, node) as reader:
        reader.until_state("open")
        reader.console.type(b"x")
        machine.system.reset("On")
        reader.until(b"login: ")
        reader.console.type(b"\0" * 40_000 + b"root")  # several records; NUL has no echo
        reader.until(b"login: root")


def test_two_readers_share_a_console_and_both_may_type(serve, stage, machine, node):
    client = serve()
    with opened(client, node) as first, opened(client, node) as second:
        for reader in (first, second):
            reader.until_state("open")
        first.console.type(b"x")
        machine.system.reset("On")
        first.until(b"login: ")
        second.until(b"login: ")
        second.console.type(b"ab")
        first.until(b"login: ab")
        assert len(stage.services.consoles) == 2
    wait_for(lambda: len(stage.services.consoles) == 0, "the relays to end")


@pytest.mark.parametrize(("roles", "query"), [(("reader",), ""), (Claims.roles, "?read_only=true")])
def test_a_reader_reads_alone(serve, machine, node, roles, query):
    claims = Claims()
    claims.roles = roles
    options = conf().default
    client = serve(claims, default=dataclasses.replace(options, auth_strategy="keystone"))
    with opened(client, node, query) as reader, opened(client, node, query) as other:
        assert reader.until_state("open").may_type is False
        reader.console.type(b"x")
        while "read-only" not in reader.notices[-1].message:
            reader.read()
        other.until_state("open")
        machine.system.reset("On")
        other.until(b"login: ")
    assert b"login: x" not in other.output


def test_a_console_that_is_switched_off_ends_in_words(serve, stage, node):
    with opened(serve(), node) as reader:
        reader.until_state("open")
        switch(stage, node, on=False)
        assert "it is not enabled" in reader.until_state("ended").message
        assert b"console it is switched off" in reader.output


def test_the_console_of_a_node_that_is_deleted_ends_in_words(serve, stage, node):
    with opened(serve(), node) as reader:
        reader.until_state("open")
        assert stage.api.delete(f"/v1/nodes/{node}").status == 204
        assert "could not be found" in reader.until_state("ended").message


def test_a_service_that_stops_says_so(serve, stage, node):
    with opened(serve(), node) as reader:
        reader.until_state("open")
        threading.Thread(target=stage.services.consoles.stop).start()
        notice = reader.until_state("ended")
        assert (notice.message, notice.again) == ("the service stops", True)


def test_the_command_passes_each_key_and_ends_by_its_escape(serve, machine, node, tmp_path):
    client, notices = serve(), []
    ours, theirs = os.openpty()
    with (
        (tmp_path / "screen").open("wb+") as screen,
        os.fdopen(theirs, "rb", buffering=0) as keyboard,
    ):
        session = Session(
            lambda: Console(client, f"/ext/v1/nodes/{node}/console"), keyboard, screen,
            notices.append,
        )  # fmt: skip
        before = termios.tcgetattr(theirs)
        running = threading.Thread(target=session.run)
        running.start()
        wait_for(lambda: notices == ["connected"], "the console")
        assert not termios.tcgetattr(theirs)[3] & termios.ECHO
        os.write(ours, b"x")
        machine.system.reset("On")

        def shows(words):
            return words in (tmp_path / "screen").read_bytes()

        wait_for(lambda: shows(b"login: "), "the boot")
        os.write(ours, b"ab\x03")
        wait_for(lambda: shows(b"login: ab"), "the echo")
        os.write(ours, b"\r~?")
        wait_for(lambda: shows(b"type a tilde"), "the help")
        os.write(ours, b"~.")
        running.join()
        assert termios.tcgetattr(theirs) == before
    os.close(ours)


def refusal(client, node, query=""):
    with pytest.raises(ApiError) as caught, opened(client, node, query):
        pass
    return caught.value.facts["answer"], str(caught.value)


def test_a_console_that_is_not_enabled_is_refused_with_the_way_out(serve, stage, node):
    client = serve()
    switch(stage, node, on=False)
    status, words = refusal(client, node)
    assert (status, "baremetal node console enable" in words) == (409, True)
    document = client.get(f"/ext/v1/nodes/{node}/console")
    assert (document["console_enabled"], document["may_type"]) == (False, True)
    assert document["advice"].startswith("enable it: ")
    stage.patch(node, console_interface="no-console")
    assert "--console-interface ipmitool-socat" in refusal(client, node)[1]


def test_a_console_of_nobody_is_refused(serve, node):
    assert refusal(serve(), "nobody")[0] == 404


def test_a_caller_without_rights_is_refused(serve, node):
    claims = Claims()
    claims.roles = ()
    default = dataclasses.replace(conf().default, auth_strategy="keystone")
    assert refusal(serve(claims, default=default), node)[0] == 404  # not even the node is theirs


def test_opening_is_in_the_audit(serve, node, tmp_path):
    path = tmp_path / "audit.jsonl"
    with opened(serve(Claims(), audit=Audit(file=str(path))), node) as reader:
        reader.until_state("open")

    def records():
        lines = map(json.loads, path.read_text().splitlines())
        return [each for each in lines if each["kind"].startswith("console_")]

    wait_for(lambda: len(records()) == 2, "both records")
    assert [each["kind"] for each in records()] == ["console_opened", "console_closed"]
    assert {(each["node"], each["user_name"], each["may_type"]) for each in records()} == {
        (node, "Ann", True)
    }


def ask(client, node, **headers):
    """Ask for a web socket by hand; return the status."""
    host = client.url.removeprefix("http://")
    good = {
        "Upgrade": "websocket", "Connection": "keep-alive, Upgrade", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }  # fmt: skip
    connection = http.client.HTTPConnection(host, timeout=20)
    with contextlib.closing(connection):
        connection.request("GET", f"/ext/v1/nodes/{node}/console", headers=good | headers)
        return connection.getresponse().status


@pytest.mark.parametrize(
    ("headers", "status"),
    [({}, 101), ({"Sec-WebSocket-Version": "8"}, 400), ({"Sec-WebSocket-Key": "short"}, 400),
     ({"Connection": "close"}, 400), ({"Upgrade": "h2c"}, 200),
     ({"Origin": "http://evil.example"}, 403), ({"Origin": "null"}, 403)],
)  # fmt: skip
def test_a_bad_handshake_and_a_foreign_page_are_refused(serve, node, headers, status):
    claims = Claims()  # with a login, too, as browsers add passwords that they remember
    default = dataclasses.replace(conf().default, auth_strategy="keystone")
    assert ask(serve(claims, default=default), node, **headers) == status


def protocols(document):
    encoded = base64.urlsafe_b64encode(document).decode().rstrip("=")
    return {"Sec-WebSocket-Protocol": f"bloomery.console, bloomery.login.{encoded}"}


BASIC = base64.b64encode(b"ann:correct horse").decode()
LOGINS = {
    "of the header": ({"Authorization": f"Basic {BASIC}"}, 101),
    "of a protocol": (protocols(b'{"Authorization": "Basic %s"}' % BASIC.encode()), 101),
    "none": ({}, 401),
    "a wrong one": (protocols(b'{"Authorization": "Basic YW5uOng="}'), 401),
    "nonsense": (protocols(b"no JSON"), 400),
    "no object": (protocols(b"[]"), 401),
    "no text": (protocols(b'{"Authorization": 5, "X-Other": "x"}'), 401),
    "the header's first": (
        {"Authorization": "Basic YW5uOng="}
        | protocols(b'{"Authorization": "Basic %s"}' % BASIC.encode()), 401,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOGINS)
def test_a_page_logs_in_by_a_protocol(serve, node, tmp_path, name):
    hashed = bcrypt.hashpw(b"correct horse", bcrypt.gensalt(4)).decode()
    (tmp_path / "users").write_text(f"ann:{hashed}\n")
    client = serve(login.HttpBasic(tmp_path / "users"))
    headers, status = LOGINS[name]
    assert ask(client, node, **headers) == status


def test_the_page_of_the_service_itself_may_ask(serve, node):
    client = serve()
    assert ask(client, node, Origin=client.url) == 101
