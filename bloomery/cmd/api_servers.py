"""The HTTP servers of both APIs in a process: bound when they are built, answering once started."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from bloomery import errors
from bloomery.api import app, auth_strategy, scrape, server
from bloomery.api.orchestration import faults
from bloomery.cmd import stacks
from bloomery.cmd.foundation import Foundation
from bloomery.http_server.server import raise_descriptor_limit
from bloomery.metrics import Gauge
from bloomery.operations.context import Services

if TYPE_CHECKING:
    from bloomery.orchestration.service.operations import StackOperations

LOG = logging.getLogger(__name__)


class ApiServers:
    """``api`` is Ironic's, ``orchestration_api`` Heat's."""

    def __init__(
        self,
        base: Foundation,
        services: Services,
        operations: Callable[[], StackOperations],
        gauges: tuple[Gauge, ...],
    ) -> None:
        """Bind the addresses of both APIs.  Raises CannotStart.

        ``operations``: on stacks, called with the first request.
        """
        self._base, conf = base, base.conf
        logins = auth_strategy.logins(conf, base.config_files)
        self._identity_url = auth_strategy.identity_url(logins)
        of_stacks = auth_strategy.for_stacks(conf, logins, base.config_files)
        raise_descriptor_limit()
        self.api = server.make(app.make_app(services, scrape.make(gauges), logins), conf)
        try:
            self.orchestration_api = server.make(
                stacks.late_app(services, operations, of_stacks),
                stacks.orchestration_conf(conf),
                port_option="--orchestration-port",
                fault=faults.unparsed,
            )
        except errors.CannotStart:
            self.api.stop()
            raise

    def start(self) -> None:
        """Let callers in, and tell clients where."""
        self.api.start()
        self.orchestration_api.start()

    def begin_stop(self) -> None:
        """Refuse new requests; returns at once."""
        self.orchestration_api.begin_stop()
        self.api.begin_stop()

    def reload(self) -> None:
        """Read certificates again: new connections get what is in their files now."""
        self.api.reload()
        self.orchestration_api.reload()

    def write_clouds(self) -> None:
        """Tell clients where the API is; they may be told by hand, so a failure is a warning."""
        home = self._base.home
        try:
            home.write_clouds(
                self.api.url, self.orchestration_api.url,
                username=auth_strategy.first_name(self._base.conf), auth_url=self._identity_url,
            )  # fmt: skip
        except errors.CannotStart as exc:
            LOG.warning("serving without a fresh %s: %s", home.clouds, exc)


def signals_url(base: Foundation, url: str) -> str:
    """Return the URL below which resources of stacks are signalled, of an API at ``url``."""
    return f"{base.conf.orchestration.public_endpoint or url}/v1"


def configured_url(base: Foundation) -> str:
    """Return where the orchestration API listens, as far as the configuration says it."""
    ours, api = base.conf.orchestration, base.conf.api
    scheme = "https" if api.enable_ssl_api else "http"
    return f"{scheme}://{ours.host_ip or api.host_ip}:{ours.port}"
