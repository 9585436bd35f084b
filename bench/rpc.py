"""What a call to a conductor in another process costs, against bare echoes over the same wire.

JSON-RPC against cheroot that sends back what it got, by the same kept-alive urllib3; oslo.messaging
against a bare server and client of its own with the same queues, and kombu alone beside it.  Each
server is a process; the broker is the one that BLOOMERY_TEST_RABBITMQ names, or the usual one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import urllib3
from cheroot import wsgi

from bench import harness
from bench.harness import Line
from bloomery.cmd import threads
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.default import Default, JsonRpc
from bloomery.db import rows
from bloomery.model.request import Request
from bloomery.rpc import transports
from tools.servers import free_port

CALLS = 300
BROKER = os.environ.get("BLOOMERY_TEST_RABBITMQ", "rabbit://guest:guest@127.0.0.1:5672/")
ARGUMENTS: dict[str, Any] = {"id": "a" * 36, "note": "x" * 400}
REQUEST = Request(request_id=f"req-{uuid.uuid4()}", user="u" * 32, project="p" * 32)
QUEUES: list[str] = []  # that this run declares
Call = Callable[[], Any]


def measure() -> Sequence[Line]:
    json_rpc = Line(what="a call by JSON-RPC", unit="ms", at_most=2, ratio=True, connections=1,
                    synchronous=None, note="floor: cheroot echo")  # fmt: skip
    oslo = Line(what="a call by oslo.messaging", unit="ms", at_most=1.2, ratio=True, connections=1,
                synchronous=None, note="floor: bare oslo.messaging echo")  # fmt: skip
    oslo_echo = Line(what="a bare oslo.messaging echo", unit="ms", ratio=True, connections=1,
                     synchronous=None, note="floor: kombu echo")  # fmt: skip
    with contextlib.ExitStack() as until_done:
        until_done.callback(_delete_queues)
        calls = [until_done.enter_context(kind()) for kind in (_json_rpc, _cheroot, _oslo,
                                                               _oslo_echo, _kombu)]  # fmt: skip
        for _ in harness.rounds():
            ours, bare, by_oslo, bare_oslo, kombu = map(_timed, calls)
            json_rpc.add(ours, bare)
            oslo.add(by_oslo, bare_oslo)
            oslo_echo.add(bare_oslo, kombu)
    return [json_rpc, oslo, oslo_echo]


def _timed(call: Call) -> float:
    """Return wall time of a call, in ms."""
    call()
    began = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - began) / CALLS * 1000


# ----------------------------------------------------------------------------------- our calls


class Endpoint:
    """A conductor that sends back what it gets."""

    def vif_attach(self, _request: Request, node_uuid: str, vif_info: Any) -> Any:
        return vif_info


def _conf(transport: str, port: int = 8089) -> Conf:
    default = Default(rpc_transport=transport, transport_url=BROKER, executor_thread_pool_size=8)
    json_rpc = JsonRpc(host_ip="127.0.0.1", port=port)
    return Conf(default=default, json_rpc=json_rpc, api=dataclasses.replace(Api(), threads=16))


@contextlib.contextmanager
def _ours(transport: str, host: str, port: int) -> Iterator[Call]:
    client = transports.build_client(_conf(transport, port))
    with _server(transport, host, str(port)):
        conductor: Any = client.proxy(host)
        yield lambda: conductor.vif_attach(REQUEST, "a node", ARGUMENTS)
    client.close()


@contextlib.contextmanager
def _server(*arguments: str) -> Iterator[None]:
    with harness.Process(sys.executable, "-m", "bench.rpc", "serve", *arguments) as process:
        process.line()
        yield


def _json_rpc() -> Any:
    port = free_port()
    return _ours("json-rpc", f"127.0.0.1:{port}", port)


def _oslo() -> Any:
    threads.use_threads()
    return _ours("oslo", _new_name("bloomery.conductor_manager.{}"), 8089)


# ------------------------------------------------------------------------------------- floors


@contextlib.contextmanager
def _cheroot() -> Iterator[Call]:
    port = free_port()
    body = rows.dump_document({"context": dataclasses.asdict(REQUEST), "vif": ARGUMENTS}).encode()
    pool = urllib3.HTTPConnectionPool("127.0.0.1", port)
    headers = {"Content-Type": "application/json"}
    with _server("cheroot", "", str(port)):
        yield lambda: pool.urlopen("POST", "/", body=body, headers=headers).data
    pool.close()


@contextlib.contextmanager
def _oslo_echo() -> Iterator[Call]:
    import oslo_messaging

    topic = _new_name("{}", "{}.echo")
    transport = _oslo_transport()
    client = oslo_messaging.get_rpc_client(transport, _target(topic)).prepare(server="echo")
    with _server("oslo-echo", topic, ""):
        yield lambda: client.call(dataclasses.asdict(REQUEST), "echo", vif=ARGUMENTS)
    transport.cleanup()


@contextlib.contextmanager
def _kombu() -> Iterator[Call]:
    import kombu

    name = _new_name("{}")
    connection = kombu.Connection(BROKER.replace("rabbit://", "amqp://"))
    replies = kombu.Queue(f"{name}-replies", exclusive=True)
    got: list[Any] = []
    producer, consumer = connection.Producer(), connection.Consumer([replies], no_ack=True)
    consumer.register_callback(lambda body, _message: got.append(body))
    consumer.consume()
    body = {"context": dataclasses.asdict(REQUEST), "vif": ARGUMENTS}

    def call() -> Any:
        producer.publish(body, routing_key=name, reply_to=replies.name)
        while not got:
            connection.drain_events(timeout=30)
        return got.pop()

    with _server("kombu", name, ""):
        yield call
    connection.close()


def _delete_queues() -> None:
    """Queues that lose nothing outlive the processes that were ended."""
    import kombu

    with kombu.Connection(BROKER.replace("rabbit://", "amqp://")) as connection:
        for name in QUEUES:
            connection.default_channel.queue_delete(name)


def _new_name(*queues: str) -> str:
    """Return a name that nobody else has; ``queues`` say which queues it leads to."""
    name = f"bench-{uuid.uuid4().hex}"
    QUEUES.extend(queue.format(name) for queue in queues)
    return name


def _oslo_transport() -> Any:
    import oslo_messaging

    from bloomery.rpc import oslo_rpc

    return oslo_messaging.get_rpc_transport(oslo_rpc.options_of(()), BROKER)


def _target(topic: str, **more: Any) -> Any:
    import oslo_messaging

    return oslo_messaging.Target(exchange="bench", topic=topic, **more)


# ------------------------------------------------------------------------------ in the children


def _serve(kind: str, name: str, port: str) -> None:
    threads.use_threads()
    if kind == "cheroot":
        server = wsgi.Server(("127.0.0.1", int(port)), _echo, numthreads=8)
        server.prepare()
        _ready(server.serve)
    elif kind == "oslo-echo":
        _serve_oslo(name)
    elif kind == "kombu":
        _serve_kombu(name)
    else:
        endpoint: Any = Endpoint()
        transports.build_server(_conf(kind, int(port)), name, endpoint).start()
        _ready(threading.Event().wait)


def _ready(serve: Callable[[], Any]) -> None:
    print("ready", flush=True)
    serve()


def _echo(environ: dict[str, Any], start: Any) -> list[bytes]:
    body = environ["wsgi.input"].read()
    length = ("Content-Length", str(len(body)))
    start("200 OK", [("Content-Type", "application/json"), length])
    return [body]


def _serve_oslo(topic: str) -> None:
    import oslo_messaging

    class Echo:
        def echo(self, _context: Any, vif: Any) -> Any:
            return vif

    oslo_messaging.get_rpc_server(
        _oslo_transport(), _target(topic, server="echo"), [Echo()]
    ).start()
    _ready(threading.Event().wait)


def _serve_kombu(name: str) -> None:
    import kombu

    connection = kombu.Connection(BROKER.replace("rabbit://", "amqp://"))
    producer = connection.Producer()

    def answer(body: Any, message: Any) -> None:
        message.ack()
        producer.publish(body, routing_key=message.properties["reply_to"])

    queue = kombu.Queue(name, durable=True, queue_arguments={"x-queue-type": "quorum"})
    with connection.Consumer([queue], callbacks=[answer]):
        print("ready", flush=True)
        while True:
            connection.drain_events()


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        _serve(*sys.argv[2:])
    else:
        harness.main(measure)
