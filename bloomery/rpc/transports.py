"""What carries calls to conductors: [DEFAULT]rpc_transport chooses it.

    client = build_client(conf, local={host: manager})        # of whoever calls
    server = build_server(conf, host, manager)                # of a conductor
    server.start()

One process with everything needs no transport (``none``): a call is a call.  Others pack calls
(``wire``), bound how many threads wait for them (``call_limits``), and answer those that come
twice from memory (``dispatch``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from bloomery import errors
from bloomery.conf import Conf, rpc
from bloomery.rpc import contract
from bloomery.rpc.call_limits import CallLimits
from bloomery.rpc.client import InProcess, Transport
from bloomery.rpc.contract import Conductor
from bloomery.rpc.dispatch import Dispatcher
from bloomery.rpc.remote import Cap, Channel, Remote


class Server(Protocol):
    """What lets others call a conductor of this process."""

    @property
    def is_connected(self) -> bool | None:
        """Whether the message broker answers; None: calls need none."""

    def start(self) -> None:
        """Begin to answer; returns at once."""

    def stop(self, within_s: float | None = None, *, returns: bool = False) -> None:
        """Take no more calls, and let those that run end: as long as it takes, or ``within_s``.

        ``returns``: the conductor is started again at once, so that callers had better wait.
        """

    def reload(self) -> None:
        """Read certificates again, if there are any: new connections get what is in them now."""


class NoServer:
    """Nobody calls from outside."""

    is_connected = None

    def start(self) -> None:
        """Nobody to answer."""

    def stop(self, within_s: float | None = None, *, returns: bool = False) -> None:
        """Nobody to wait for."""

    def reload(self) -> None:
        """Nothing was read."""


def needs_oslo(conf: Conf) -> bool:
    """Tell whether oslo.messaging will be imported: threads must be chosen before."""
    return conf.default.rpc_transport == rpc.OSLO


def conductor_name(conf: Conf, host: str) -> str:
    """Return what a conductor of ``host`` is called: with JSON-RPC its name is its address."""
    ours = conf.json_rpc
    if conf.default.rpc_transport != rpc.JSON_RPC or ours.port == rpc.PORT:
        return host
    suffix = f":{ours.port}"
    return host if host.endswith(suffix) else f"{host}{suffix}"


def build_client(
    conf: Conf,
    *,
    local: Mapping[str, Conductor] | None = None,
    config_files: Sequence[str] = (),
    threads: int | None = None,
    is_silent: Callable[[str], bool] = lambda _host: False,
) -> Transport:
    """Return the transport of whoever calls conductors; nothing is connected to yet.

    ``local``: the conductors of this process.  ``config_files``: where oslo.messaging finds options
    of its own.  ``threads``: how many call at most, by default those of the API.
    ``is_silent``: see ``Remote``.  Raises CannotStart.
    """
    if conf.default.rpc_transport == rpc.NONE:
        return InProcess(local or {})
    return Remote(
        _channel(conf, config_files),
        contract.METHODS,
        cap=cap(conf, contract.RELEASES, contract.VERSION),
        limits=CallLimits(threads or conf.serving_threads),
        response_timeout_s=conf.default.rpc_response_timeout,
        local=local,
        is_silent=is_silent,
    )


def build_server(
    conf: Conf, host: str, endpoint: Conductor, *, config_files: Sequence[str] = ()
) -> Server:
    """Return what lets others call ``endpoint``, the conductor ``host``; the address is bound.

    Raises CannotStart.
    """
    transport = conf.default.rpc_transport
    if transport == rpc.NONE:
        return NoServer()
    dispatcher = Dispatcher(endpoint, contract.METHODS, host=host, version=contract.VERSION)
    if transport == rpc.JSON_RPC:
        from bloomery.rpc import json_rpc_server

        return json_rpc_server.JsonRpcServer(dispatcher, conf)
    from bloomery.rpc import oslo_rpc

    return oslo_rpc.OsloServer(dispatcher, conf, config_files)


def cap(conf: Conf, releases: Mapping[str, str], own: str) -> Cap:
    """Return up to which version calls may go.  Raises CannotStart for an unknown release."""
    pin = conf.default.pin_release_version
    if pin is None:
        return Cap(version=own)
    if pin not in releases:
        raise errors.CannotStart(
            reason=f"cannot use [DEFAULT]pin_release_version = {pin}: releases are "
            f"{', '.join(releases)}"
        )
    return Cap(version=releases[pin], release=pin)


def _channel(conf: Conf, config_files: Sequence[str]) -> Channel:
    if conf.default.rpc_transport == rpc.JSON_RPC:
        from bloomery.rpc import json_rpc_client

        return json_rpc_client.JsonRpcChannel(conf)
    from bloomery.rpc import oslo_rpc

    channel: Any = oslo_rpc.OsloChannel(conf, config_files)
    return channel  # type: ignore[no-any-return]
