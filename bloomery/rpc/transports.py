"""The RPC transport that [DEFAULT]rpc_transport selects.

    client = build_client(conf, local={host: manager})        # of callers
    server = build_server(conf, host, manager)                # of a conductor
    server.start()

A process with all services needs no transport (``none``): a call is a function call.  Other
transports pack calls (``wire``), limit the waiting threads (``remote``), and answer repeated
calls from memory (``dispatch``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from bloomery import errors
from bloomery.conf import Conf, default
from bloomery.rpc import contract
from bloomery.rpc.client import InProcess, Transport
from bloomery.rpc.contract import Conductor
from bloomery.rpc.dispatch import Dispatcher
from bloomery.rpc.remote import CallLimits, Cap, Channel, Remote


class Server(Protocol):
    """Accepts calls to a conductor of this process."""

    @property
    def is_connected(self) -> bool | None:
        """Does the message broker answer?  None: there is none."""

    def start(self) -> None:
        """Start to answer; returns at once."""

    def stop(self, within_s: float | None = None, *, returns: bool = False) -> None:
        """Accept no more calls, and let running ones end, within ``within_s`` if set.

        ``returns``: the conductor restarts at once, so that callers should wait.
        """

    def reload(self) -> None:
        """Reload certificates, if any, for new connections."""


class NoServer:
    """No calls from other processes."""

    is_connected = None

    def start(self) -> None: ...

    def stop(self, within_s: float | None = None, *, returns: bool = False) -> None: ...

    def reload(self) -> None: ...


def needs_oslo(conf: Conf) -> bool:
    """Will oslo.messaging be imported?  Then choose its threads first."""
    return conf.default.rpc_transport == default.OSLO


def conductor_name(conf: Conf, host: str) -> str:
    """Return the conductor name of ``host``: with JSON-RPC its address."""
    ours = conf.json_rpc
    if conf.default.rpc_transport != default.JSON_RPC or ours.port == default.RPC_PORT:
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
    """Return the transport of a process that calls conductors; nothing is connected yet.

    ``local``: the conductors of this process.  ``config_files``: where oslo.messaging finds its own
    options.  ``threads``: the calling threads, by default those of the API. ``is_silent``: see
    ``Remote``.  Raises CannotStart.
    """
    if conf.default.rpc_transport == default.NONE:
        return InProcess(local or {})
    if conf.default.rpc_transport == default.JSON_RPC:
        from bloomery.rpc import json_rpc_client

        channel: Channel = json_rpc_client.JsonRpcChannel(conf)
    else:
        from bloomery.rpc import oslo_rpc

        channel = oslo_rpc.OsloChannel(conf, config_files)
    return Remote(
        channel,
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
    """Return the server of ``endpoint``, the conductor ``host``; the address is bound.

    Raises CannotStart.
    """
    transport = conf.default.rpc_transport
    if transport == default.NONE:
        return NoServer()
    dispatcher = Dispatcher(endpoint, contract.METHODS, host=host, version=contract.VERSION)
    if transport == default.JSON_RPC:
        from bloomery.rpc import json_rpc_server

        return json_rpc_server.JsonRpcServer(dispatcher, conf)
    from bloomery.rpc import oslo_rpc

    return oslo_rpc.OsloServer(dispatcher, conf, config_files)


def cap(conf: Conf, releases: Mapping[str, str], own: str) -> Cap:
    """Return the newest version for calls.  Raises CannotStart for an unknown release."""
    pin = conf.default.pin_release_version
    if pin is None:
        return Cap(version=own)
    if pin not in releases:
        raise errors.CannotStart(
            reason=f"cannot use [DEFAULT]pin_release_version = {pin}: releases are "
            f"{', '.join(releases)}"
        )
    return Cap(version=releases[pin], release=pin)
