"""Bind the HTTP server of an API, and check its exposure."""

from __future__ import annotations

from typing import Any

from bloomery import errors
from bloomery.conf import Conf
from bloomery.http_server import server, tls
from bloomery.http_server.connections import Limits
from bloomery.http_server.server import Server
from bloomery.http_server.wsgi import Wsgi


def make(
    app: Wsgi,
    conf: Conf,
    limits: Limits | None = None,
    *,
    port_option: str = "--port",
    shares_port: bool = False,
    **more: Any,
) -> Server:
    """Bind the address; ``port_option`` names the option of the port.  Raises CannotStart.

    ``more``: further arguments of ``Server``.
    """
    settings = make_settings(conf, port_option, shares_port=shares_port)
    return Server(app, settings, limits, has_probes=True, **more)


def make_settings(conf: Conf, port_option: str, *, shares_port: bool = False) -> server.Settings:
    """Return the settings of an API's server.  Raises CannotStart for an open door."""
    is_open = conf.default.auth_strategy == "noauth" and not conf.api.insecure_listen
    if is_open and not server.is_loopback(conf.api.host_ip):
        raise errors.CannotStart(
            reason=f"cannot listen on {conf.api.host_ip}: auth_strategy is noauth, so that "
            "everybody would be an operator; set [DEFAULT]auth_strategy = http_basic, or "
            "[api]insecure_listen = true if the network is yours alone",
        )
    encryption = tls.Settings(
        group="api", switch="enable_ssl_api", cert_file=conf.api.cert_file,
        key_file=conf.api.key_file, ssl=conf.ssl, asks_clients=True,
        minimum_version=conf.api.tls_minimum_version,
    ) if conf.api.enable_ssl_api else None  # fmt: skip
    return server.Settings(
        host=conf.api.host_ip, port=conf.api.port, threads=conf.serving_threads,
        advice=f"choose another --host or {port_option}", tls=encryption,
        shares_port=shares_port,
    )  # fmt: skip
