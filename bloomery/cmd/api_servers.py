"""The HTTP servers of both APIs: bound when built, serving once started."""

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
from bloomery.web import pages

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
        stacks_app = stacks.late_app(services, operations, of_stacks)
        raise_descriptor_limit()
        self.api = server.make(
            app.make_app(services, scrape.make(gauges), logins, pages.serve, stacks_app), conf
        )
        try:
            self.orchestration_api = server.make(
                stacks_app,
                stacks.orchestration_conf(conf),
                port_option="--orchestration-port",
                fault=faults.unparsed,
            )
        except errors.CannotStart:
            self.api.stop()
            raise

    def start(self) -> None:
        """Serve both APIs."""
        self.api.start()
        self.orchestration_api.start()

    def begin_stop(self) -> None:
        """Refuse new requests; returns at once."""
        self.orchestration_api.begin_stop()
        self.api.begin_stop()

    def reload(self) -> None:
        """Read certificates again, for new connections."""
        self.api.reload()
        self.orchestration_api.reload()

    def write_clouds(self) -> None:
        """Write clouds.yaml for clients; a failure is only a warning."""
        home = self._base.home
        try:
            home.write_clouds(
                self.api.url, self.orchestration_api.url,
                username=auth_strategy.first_name(self._base.conf), auth_url=self._identity_url,
            )  # fmt: skip
        except errors.CannotStart as exc:
            LOG.warning("cannot write %s for clients: %s", home.clouds, exc)


def signals_url(base: Foundation, url: str) -> str:
    """Return the base URL of stack signals, for an API at ``url``."""
    return f"{base.conf.orchestration.public_endpoint or url}/v1"


def configured_url(base: Foundation) -> str:
    """Return the URL of the orchestration API as configured."""
    ours, api = base.conf.orchestration, base.conf.api
    scheme = "https" if api.enable_ssl_api else "http"
    return f"{scheme}://{ours.host_ip or api.host_ip}:{ours.port}"
