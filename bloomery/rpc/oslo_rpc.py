"""RPC to conductors over a message broker, by oslo.messaging with threads.

Each conductor has a queue, ``bloomery.conductor_manager.HOST``, in an exchange separate from
notifications, so that either may be durable without the other.  oslo.messaging cannot rebuild our
errors; replies carry them packed (``wire``).

The process must choose threads for oslo.service before this import (``cmd.threads``).
"""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import oslo_messaging
from amqp import exceptions as amqp
from kombu import exceptions as kombu_exceptions
from oslo_config import cfg
from oslo_messaging import exceptions
from oslo_messaging._drivers import amqpdriver, impl_rabbit
from oslo_messaging._metrics import client as metrics
from oslo_messaging._tracing import client as tracing
from oslo_messaging.rpc import client as oslo_client

from bloomery import errors
from bloomery.conf import Conf
from bloomery.rpc import wire
from bloomery.rpc.dispatch import Dispatcher

LOG = logging.getLogger(__name__)

EXCHANGE: Final = "bloomery"
TOPIC: Final = "bloomery.conductor_manager"
CONNECT_S: Final = 4.0  # a caller's wait for the broker
_RECONNECT_S: Final = 1.0  # a caller's wait for a broker that was there before
_LOOK_S: Final = 0.05
_LISTEN_S: Final = 5.0  # a start's wait for the broker
_SEND_RETRIES: Final = 1  # with a new connection, where the broker closed the old one
_RABBIT: Final = "oslo_messaging_rabbit"
_RESERVED: Final = frozenset({"target", "oslo_rpc_server_ping"})  # oslo.messaging looks them up
BROKER_AWAY: Final = "the message broker does not answer"
_NOT_CONNECTED: Final = (kombu_exceptions.OperationalError, OSError)
_BROKER_FAULTS: Final = (exceptions.MessagingException, amqp.AMQPError, *_NOT_CONNECTED)


class OsloServer:
    """Listen to the queue of one conductor, from ``start`` until ``stop``."""

    def __init__(self, dispatcher: Dispatcher, conf: Conf, config_files: Sequence[str]) -> None:
        """Raises CannotStart for an unusable URL; the broker may be down."""
        self._transport = _transport(conf, config_files)
        self._threads = conf.default.executor_thread_pool_size
        self._server = oslo_messaging.get_rpc_server(
            self._transport,
            oslo_messaging.Target(exchange=EXCHANGE, topic=TOPIC, server=dispatcher.host),
            [_Endpoint(dispatcher)],
        )
        self._queue = f"{TOPIC}.{dispatcher.host}"
        self._starting = threading.Thread(target=self._listen, name="oslo-rpc", daemon=True)
        self._listens = threading.Event()

    @property
    def is_connected(self) -> bool:
        """Does the broker deliver calls, as far as the connection knows?"""
        return self._listens.is_set() and _is_connected(self._listener)

    def start(self) -> None:
        """Start to answer; the connection to an absent broker is retried in the background."""
        self._starting.start()
        if not self._listens.wait(_LISTEN_S):
            LOG.warning("%s: calls are answered as soon as it does", BROKER_AWAY)

    def stop(self, within_s: float | None = None, *, returns: bool = False) -> None:
        """Accept no more calls, and let running ones end, within ``within_s`` if set.

        The queue is deleted, so that callers fail at once; where the conductor ``returns`` soon it
        stays, and calls wait in it.
        """
        if not self._listens.is_set():
            return
        self._listens.clear()
        ending = threading.Thread(
            target=self._end, args=(returns,), name="oslo-rpc-end", daemon=True
        )
        ending.start()
        ending.join(within_s)

    def reload(self) -> None:
        """oslo.messaging reads certificates with each connection."""

    def _listen(self) -> None:
        self._server.start(override_pool_size=self._threads)
        self._listens.set()

    def _end(self, returns: bool) -> None:
        self._server.stop()
        self._server._work_executor.shutdown(wait=True)  # noqa: SLF001  those acknowledge, too
        # oslo.messaging deletes the fanout queue with the connection.  The broker would cancel its
        # consumer, and each stop would log a warning.
        if (listener := self._listener) is not None:
            for consumer, tag in listener.conn._consumers.items():  # noqa: SLF001
                if consumer.type == "fanout":
                    with contextlib.suppress(*_BROKER_FAULTS):
                        consumer.cancel(tag)
        self._server.wait()
        # oslo.messaging acknowledges a call on arrival, and drops the calls between the last poll
        # of the queue and the end of the connection: their callers would wait for the time-out.
        while listener is not None and listener.incoming:
            self._server._process_incoming([listener.incoming.pop(0)])  # noqa: SLF001
        if not returns:
            self._delete_queue()
        self._transport.cleanup()

    @property
    def _listener(self) -> Any:
        """Return the listener of RabbitMQ, or None for another broker."""
        # oslo.messaging has no public name
        listener = self._server.listener._poll_style_listener  # noqa: SLF001
        return listener if isinstance(listener, amqpdriver.AMQPListener) else None

    def _delete_queue(self) -> None:
        """Delete the queue; an absent broker keeps it, and callers wait for the time-out.

        The connection's lock is held: its heartbeat thread sets the socket's time-out to 1 ms.
        """
        driver = self._transport._driver  # noqa: SLF001  oslo.messaging has no public name
        if not isinstance(driver, impl_rabbit.RabbitDriver):
            return
        try:
            with (
                driver._get_connection(retry=0) as connection,  # noqa: SLF001
                connection._connection_lock,  # noqa: SLF001
            ):
                connection.channel.queue_delete(self._queue)
        except _BROKER_FAULTS as exc:
            LOG.warning("cannot delete queue %s while stopping: %s", self._queue, exc)


class _Endpoint:
    """The endpoint for oslo.messaging: public methods go to the dispatcher."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    def __getattr__(self, name: str) -> Callable[..., wire.Reply]:
        if name.startswith("_") or name in _RESERVED:
            raise AttributeError(name)
        return functools.partial(self._answer, name)

    def _answer(self, method: str, context: Mapping[str, Any], **message: Any) -> wire.Reply:
        return self._dispatcher.dispatch({**message, "method": method, "context": context})


class OsloChannel:
    """Safe to use from any thread; connects at the first call."""

    def __init__(self, conf: Conf, config_files: Sequence[str]) -> None:
        """Raises CannotStart for an unusable URL."""
        self._transport = _transport(conf, config_files)
        self._client = oslo_messaging.get_rpc_client(
            self._transport,
            oslo_messaging.Target(exchange=EXCHANGE, topic=TOPIC),
            retry=_SEND_RETRIES,
            transport_options=oslo_messaging.TransportOptions(at_least_once=True),
        )
        self._mutex = threading.Lock()
        self._connecting: threading.Thread | None = None
        self._can_hear = threading.Event()

    def call(self, host: str, message: dict[str, Any], timeout_s: float) -> Mapping[str, Any]:
        if not self._hear_replies():
            raise errors.ConductorUnreached(host=host, reason=BROKER_AWAY)
        method, context = message["method"], message["context"]
        facts = {name: message[name] for name in ("version", "call_id", "host", "arguments")}
        try:
            reply: Mapping[str, Any] = self._client.prepare(server=host, timeout=timeout_s).call(
                context, method, **facts
            )
        except exceptions.MessageUndeliverable as exc:
            raise errors.ConductorUnreached(host=host, reason="it has no queue") from exc
        except _NOT_CONNECTED as exc:
            raise errors.ConductorUnreached(host=host, reason=BROKER_AWAY) from exc
        except exceptions.MessagingTimeout as exc:
            reason = f"no answer within {timeout_s:g} s"
            raise errors.ConductorSilent(host=host, method=method, reason=reason) from exc
        except exceptions.MessagingException as exc:
            reason = "the message broker went away"
            raise errors.ConductorSilent(host=host, method=method, reason=reason) from exc
        except oslo_client.RemoteError as exc:
            reason = f"its answer is {exc.exc_type}"
            raise errors.ConductorSilent(host=host, method=method, reason=reason) from exc
        return reply

    @property
    def is_connected(self) -> bool:
        """Does the broker deliver replies, as far as the connection knows?"""
        driver = self._transport._driver  # noqa: SLF001  oslo.messaging has no public name
        return self._can_hear.is_set() and _is_connected(getattr(driver, "_waiter", None))

    def missing(self) -> list[str]:
        return [] if self._hear_replies() else [BROKER_AWAY]

    def close(self) -> None:
        if self._can_hear.is_set():
            self._transport.cleanup()

    def _hear_replies(self) -> bool:
        """Declare the queue of replies, in a thread that waits for the broker.

        oslo.messaging would let all callers wait without a limit, and send calls whose replies
        cannot arrive.
        """
        if self._can_hear.is_set():
            give_up_at = time.monotonic() + _RECONNECT_S
            while not self.is_connected:
                if time.monotonic() >= give_up_at:
                    return False
                time.sleep(_LOOK_S)
            return True
        with self._mutex:
            is_first = self._connecting is None
            if self._connecting is None:
                self._connecting = threading.Thread(
                    target=self._connect, name="oslo-replies", daemon=True
                )
                self._connecting.start()
        return self._can_hear.wait(CONNECT_S if is_first else 0.0) or self._can_hear.wait(0.5)

    def _connect(self) -> None:
        driver = self._transport._driver  # noqa: SLF001  oslo.messaging has no public name
        if isinstance(driver, impl_rabbit.RabbitDriver):
            driver._get_reply_q()  # noqa: SLF001
        self._can_hear.set()


def _is_connected(reader: Any) -> bool:
    """Is a consumer of RabbitMQ connected?  Unknown for other brokers."""
    return reader is None or bool(reader.conn.connection.connection.connected)


def _transport(conf: Conf, config_files: Sequence[str]) -> Any:
    """Return a transport with options of its own.  Raises CannotStart."""
    source = options_of(config_files)
    try:
        return oslo_messaging.get_rpc_transport(
            source, conf.default.transport_url, allowed_remote_exmods=[]
        )
    except (exceptions.MessagingException, oslo_messaging.DriverLoadFailure, ValueError) as exc:
        raise errors.CannotStart(
            reason="cannot use [DEFAULT]transport_url: it must be such as "
            "rabbit://user:password@host:5672/"
        ) from exc


def options_of(config_files: Sequence[str]) -> cfg.ConfigOpts:
    """Return oslo.messaging's options from the files, with durable defaults.

    oslo.messaging registers the groups of its metrics and tracing with the global options only.
    Raises CannotStart.
    """
    source = cfg.ConfigOpts()
    source(args=[], project="bloomery", default_config_files=list(config_files))
    source.register_opts(metrics.oslo_messaging_metrics, group="oslo_messaging_metrics")
    source.register_opts(tracing.oslo_messaging_tracing, group="oslo_messaging_tracing")
    source.register_opts(impl_rabbit.rabbit_opts, group=_RABBIT)
    source.set_default("rabbit_quorum_queue", True, group=_RABBIT)
    # Replies to callers that are gone must not keep threads: they would be retried.
    source.set_default("kombu_missing_consumer_retry_timeout", 5, group=_RABBIT)
    if source.oslo_messaging_rabbit.use_queue_manager:
        raise errors.CannotStart(
            reason="cannot use [oslo_messaging_rabbit]use_queue_manager: processes of one machine "
            "would get each other's answers; leave it out, queues of answers go by themselves"
        )
    return source
