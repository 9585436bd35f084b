"""An endpoint and a caller with a real transport between them, in one process.

    with link("json-rpc", endpoint) as conductor:
        conductor.vif_list(Request.new(), "a node")

Transports are named as [DEFAULT]rpc_transport names them.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import uuid
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import kombu
import pytest

from bloomery import errors
from bloomery.cmd import threads
from bloomery.conf import Conf
from bloomery.conf.default import Default, JsonRpc
from bloomery.rpc import transports
from bloomery.rpc.client import InProcess, Transport
from bloomery.rpc.contract import METHODS
from bloomery.rpc.transports import Server
from tools.servers import free_port

BROKER = "BLOOMERY_TEST_RABBITMQ"
TRANSPORT = "BLOOMERY_TEST_TRANSPORT"


class Endpoint:
    """Answers every method: ``calls`` notes what came, ``answer`` makes the result or raises."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any, dict[str, Any]]] = []
        self.answer: Any = None
        self.forget()

    def forget(self) -> None:
        self.calls.clear()
        self.answer = lambda _method, **_arguments: None

    def __getattr__(self, name: str) -> Any:
        def method(request: Any, *args: Any, **arguments: Any) -> Any:
            named = METHODS[name].arguments(args, arguments)
            self.calls.append((name, request, named))
            return self.answer(name, **named)

        return method


@dataclass(frozen=True, kw_only=True)
class Link:
    conf: Conf
    host: str
    endpoint: Any
    client: Transport
    server: Server

    @property
    def conductor(self) -> Any:
        return self.client.proxy(self.host)


def broker_url() -> str:
    """Return the URL of the broker; the test is skipped where there is none."""
    if not (url := os.environ.get(BROKER)):
        pytest.skip(f"{BROKER} names no broker")
    return url


def conf_of(transport: str, **default: Any) -> Conf:
    """Return a configuration for one transport; ``json_rpc``: options of that group."""
    json_rpc = {"host_ip": "127.0.0.1", "port": free_port()} | default.pop("json_rpc", {})
    if transport == "oslo":
        threads.use_threads()
        default = {"transport_url": broker_url()} | default
    default = {"executor_thread_pool_size": 8} | default
    return Conf(default=Default(rpc_transport=transport, **default), json_rpc=JsonRpc(**json_rpc))


def name_of(conf: Conf) -> str:
    """Return a name for a conductor that nobody else has: with JSON-RPC its address."""
    if conf.default.rpc_transport == "json-rpc":
        return transports.conductor_name(conf, "127.0.0.1")
    return f"host-{uuid.uuid4().hex}"


class Between:
    """A wire to a server on loopback, which listens on ``port`` once it is ``up``.

    ``cuts``: so many pieces that come from the server are lost, each with its connection.
    """

    def __init__(self, to_port: int, *, is_up: bool = True) -> None:
        self.cuts = 0
        self.port = free_port()
        self._to = to_port
        self._listener: socket.socket | None = None
        self._sockets: set[socket.socket] = set()
        if is_up:
            self.up()

    def up(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._run, args=(self._listener,), daemon=True).start()

    def down(self) -> None:
        """Refuse connections, and break those that there are."""
        if self._listener is not None:
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        for each in list(self._sockets):
            _end(each)

    def _run(self, listener: socket.socket) -> None:
        while True:
            try:
                caller, _ = listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._to))
            self._sockets |= {caller, server}
            for source, sink in ((caller, server), (server, caller)):
                arguments = (source, sink, sink is caller)
                threading.Thread(target=self._carry, args=arguments, daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket, is_reply: bool) -> None:
        with source, contextlib.suppress(OSError):
            while data := source.recv(65536):
                if is_reply and self.cuts:
                    self.cuts -= 1
                    break
                sink.sendall(data)
        _end(sink)
        self._sockets.discard(source)


def _end(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def link(
    transport: str, endpoint: Any, *, is_left_at_once: bool = False, **default: Any
) -> Iterator[Link]:
    """``is_left_at_once``: nobody waits until the server has ended, which takes oslo a second."""
    conf = conf_of(transport, **default)
    host = name_of(conf)
    server = transports.build_server(conf, host, endpoint)
    local = {host: endpoint} if transport == "none" else {}
    client = transports.build_client(conf, local=local)
    server.start()
    try:
        yield Link(conf=conf, host=host, endpoint=endpoint, client=client, server=server)
    finally:
        client.close()
        ending = _ending.submit(_stop, server, host if transport == "oslo" else None)
        if not is_left_at_once:
            ending.result()


def _stop(server: Server, queue_host: str | None) -> None:
    server.stop(5)
    if queue_host is not None:
        forget_queue(queue_host)


_ending: Final = ThreadPoolExecutor(16, thread_name_prefix="rpc-end")  # this process waits for it


class Renamed:
    """Conductors that are known by another name to those who call them."""

    def __init__(self, transport: Transport, names: Mapping[str, str]) -> None:
        self._transport, self._names = transport, names

    def proxy(self, host: str) -> Any:
        if host not in self._names:
            raise errors.ConductorUnreached(host=host, reason="it is not in this process")
        return self._transport.proxy(self._names[host])

    @property
    def is_connected(self) -> bool | None:
        return self._transport.is_connected

    def missing(self) -> list[str]:
        return self._transport.missing()

    def close(self) -> None:
        self._transport.close()


def carried(conductors: Mapping[str, Any], until_done: contextlib.ExitStack) -> Transport:
    """Return a transport to conductors of this process: the one that the environment names.

    ``BLOOMERY_TEST_TRANSPORT`` is a value of [DEFAULT]rpc_transport; unset: a call is a call.
    """
    transport = os.environ.get(TRANSPORT, "none")
    if transport == "none":
        return InProcess(conductors)
    links = {
        host: until_done.enter_context(
            link(transport, conductor, is_left_at_once=True, executor_thread_pool_size=64)
        )
        for host, conductor in conductors.items()
    }
    first = next(iter(links.values()))
    return Renamed(first.client, {host: made.host for host, made in links.items()})


def queue_of(host: str) -> str:
    return f"bloomery.conductor_manager.{host}"


def forget_queue(host: str, broker: str | None = None) -> None:
    """Delete the queue of a conductor that will not come back: it outlives its process."""
    with kombu.Connection(amqp_url(broker)) as connection:
        connection.default_channel.queue_delete(queue_of(host))


def amqp_url(broker: str | None = None) -> str:
    """Return the URL of this broker, or of that of the environment, as kombu wants it."""
    return (broker or broker_url()).replace("rabbit://", "amqp://")
