from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bloomery.cmd import threads
from bloomery.conf import Conf
from bloomery.conf.default import Default
from bloomery.conf.notifications import OsloMessagingNotifications
from bloomery.events.relay import Relay, make_relay
from tests.kit.servers import site as kit
from tests.kit.servers.site import Site
from tests.kit.waiting import wait_for

threads.use_threads()  # before anything here imports oslo.messaging


class Listener:
    """A conductor with a relay to oslo.messaging's ``test`` driver, and what that one got."""

    def __init__(self, site: Site, relay: Relay, conf: Conf, told: list[Any]) -> None:
        self.site, self.relay, self.conf, self._told = site, relay, conf, told

    def messages(self) -> list[dict[str, Any]]:
        """Everything that happened until now, in order."""
        events = [row["id"] for row in self.site.rows(kit.EVENTS)]
        end = events[-1] if events else 0
        wait_for(lambda: self.relay.sink_workers[0]._passed >= end, "the relay to come to the end")
        return [message for _, message, _, _ in self._told]

    def types(self, *begin: str) -> list[str]:
        """The event types, without what all have in common; those that begin so."""
        short = [m["event_type"].removeprefix("baremetal.") for m in self.messages()]
        return [one for one in short if one.startswith(begin or ("",))]

    def data(self, event_type: str) -> list[dict[str, Any]]:
        return [
            message["payload"]["ironic_object.data"]
            for message in self.messages()
            if message["event_type"] == f"baremetal.{event_type}"
        ]

    def forget(self) -> None:
        self.messages()
        self._told.clear()


def configured(level: str) -> Conf:
    return Conf(
        default=Default(host="bm-cond-1", notification_level=level),
        oslo_messaging_notifications=OsloMessagingNotifications(driver=("test",)),
    )


@pytest.fixture
def listen(make_site: Callable[..., Site], tmp_path: Path) -> Iterator[Callable[..., Listener]]:
    """Make a conductor that somebody listens to."""
    from oslo_messaging.notify import _impl_test

    _impl_test.reset()
    relays: list[Relay] = []

    def make(level: str = "info", **more: Any) -> Listener:
        db = kit.database(tmp_path / "listened.sqlite")
        conf = configured(level)
        relay = make_relay(conf, db)
        relay.start()
        relays.append(relay)
        site = make_site(
            db=db, host="bm-cond-1", on_events_written=relay.wake, snapshots=True, **more
        )
        return Listener(site, relay, conf, _impl_test.NOTIFICATIONS)

    yield make
    for relay in relays:
        relay.stop()
    _impl_test.reset()


@pytest.fixture
def listener(listen: Callable[..., Listener]) -> Listener:
    return listen()
