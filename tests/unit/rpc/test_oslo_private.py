"""Private parts of oslo.messaging that ``rpc`` and ``notifications`` use."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from bloomery.cmd import threads

LOOKED_AT: Final = "18.3.1"
LOCK: Final = Path(__file__).parents[3] / "requirements.lock"
SENTENCE: Final = (
    f"bloomery/rpc/oslo_rpc.py and bloomery/notifications/oslo_transport.py use private parts of "
    f"oslo.messaging as they were in {LOOKED_AT}: read these files beside the new release, mend "
    "the parts that are named here, and set LOOKED_AT"
)


def sets(function: Callable[..., Any], name: str, *, value: str = "") -> bool:
    """Does the function set this attribute of its object, to this expression?"""
    return re.search(rf"\bself\.{name} = {value}", inspect.getsource(function)) is not None


def takes(function: Callable[..., Any], *names: str) -> bool:
    return tuple(inspect.signature(function).parameters)[: len(names)] == names


def parts() -> dict[str, Callable[[], bool]]:
    """Return whether each part is as it is needed."""
    threads.use_threads()  # before oslo.messaging is imported
    from oslo_messaging import notify, server, transport
    from oslo_messaging._drivers import amqpdriver, base, impl_rabbit
    from oslo_messaging._metrics import client as metrics
    from oslo_messaging._tracing import client as tracing
    from oslo_messaging.rpc import server as rpc_server
    from stevedore import named

    return {
        "Transport._driver": lambda: sets(transport.Transport.__init__, "_driver", value="driver"),
        "NotificationTransport(driver)": lambda: takes(transport.NotificationTransport, "driver"),
        "NotificationTransport._send_notification": lambda: takes(
            transport.NotificationTransport._send_notification, "self", "target", "ctxt", "message"
        ),
        "Notifier._driver_mgr": lambda: (
            sets(notify.Notifier.__init__, "_driver_mgr", value="named.NamedExtensionManager")
            and callable(named.NamedExtensionManager.names)
            and callable(named.NamedExtensionManager.__iter__)
        ),
        "Notifier.retry": lambda: sets(notify.Notifier.__init__, "retry"),
        "MessageHandlingServer.listener": lambda: (
            sets(server.MessageHandlingServer.__init__, "listener", value="None")
            and sets(base.PollStyleListenerAdapter.__init__, "_poll_style_listener")
        ),
        "MessageHandlingServer._work_executor": lambda: sets(
            server.MessageHandlingServer.start, "_work_executor"
        ),
        "RPCServer._process_incoming": lambda: takes(
            rpc_server.RPCServer._process_incoming, "self", "incoming"
        ),
        "AMQPListener.conn": lambda: sets(amqpdriver.AMQPListener.__init__, "conn"),
        "AMQPListener.incoming": lambda: sets(
            amqpdriver.AMQPListener.__init__, "incoming", value=r"\[\]"
        ),
        "RabbitDriver._get_connection": lambda: (
            "retry" in inspect.signature(impl_rabbit.RabbitDriver._get_connection).parameters
        ),
        "RabbitDriver._get_reply_q": lambda: takes(impl_rabbit.RabbitDriver._get_reply_q, "self"),
        "RabbitDriver._waiter": lambda: (
            sets(amqpdriver.AMQPDriverBase.__init__, "_waiter", value="None")
            and sets(amqpdriver.ReplyWaiter.__init__, "conn")
        ),
        "Connection._consumers": lambda: sets(
            impl_rabbit.Connection.__init__, "_consumers", value=r"\{\}"
        ),
        "Connection._connection_lock": lambda: sets(
            impl_rabbit.Connection.__init__, "_connection_lock", value=r"ConnectionLock\(\)"
        ),
        "Connection.channel": lambda: sets(impl_rabbit.Connection.__init__, "channel"),
        "Connection.connection": lambda: sets(
            impl_rabbit.Connection.__init__, "connection", value=r"kombu\.connection\.Connection"
        ),
        "Consumer.type": lambda: sets(impl_rabbit.Consumer.__init__, "type", value="type"),
        "Consumer.cancel": lambda: takes(impl_rabbit.Consumer.cancel, "self", "tag"),
        "impl_rabbit.rabbit_opts": lambda: bool(impl_rabbit.rabbit_opts),
        "_metrics.client.oslo_messaging_metrics": lambda: bool(metrics.oslo_messaging_metrics),
        "_tracing.client.oslo_messaging_tracing": lambda: bool(tracing.oslo_messaging_tracing),
    }


def test_the_private_parts_of_oslo_messaging_are_those_that_were_looked_at():
    try:
        table = parts()
    except ImportError as exc:
        pytest.fail(f"{SENTENCE}; {exc}")
    lost = []
    for name, is_as_needed in table.items():
        try:
            lost += [] if is_as_needed() else [name]
        except (AttributeError, TypeError, OSError):
            lost.append(name)
    locked = re.search(r"^oslo-messaging==(\S+)", LOCK.read_text(), re.MULTILINE)
    if lost or locked is None or locked[1] != LOOKED_AT:
        pytest.fail(f"{SENTENCE}; gone or changed: {', '.join(lost) or 'none'}")
