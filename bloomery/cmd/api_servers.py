"""The HTTP servers of both APIs: bound when built, serving once started."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bloomery import audit, errors
from bloomery.api import app, auth, auth_strategy, scrape, server
from bloomery.api.orchestration import replies
from bloomery.cmd import stacks
from bloomery.cmd.foundation import Foundation
from bloomery.conf import Conf
from bloomery.db import settings
from bloomery.http_server.server import raise_descriptor_limit, require_free
from bloomery.http_server.wsgi import Wsgi
from bloomery.metrics import AnyGauge
from bloomery.operations.context import Services
from bloomery.web import pages

if TYPE_CHECKING:
    from bloomery.orchestration.operations import StackOperations

LOG = logging.getLogger(__name__)

ORCHESTRATION_PORT: Final = "--orchestration-port"


@dataclass(frozen=True, slots=True, kw_only=True)
class Apps:
    """The WSGI applications of both APIs: ``api`` is Ironic's, ``stacks`` Heat's."""

    api: Wsgi
    stacks: Wsgi
    identity_url: str | None


def make_apps(
    base: Foundation,
    services: Services,
    operations: Callable[[], StackOperations],
    gauges: tuple[AnyGauge, ...],
) -> Apps:
    """Build both applications; ``operations``: on stacks, called with the first request.

    Keeps the hash of the first audit record in the database, unless it is known.

    Raises CannotStart for options that cannot be used.
    """
    logins = auth_strategy.logins(base.conf, base.config_files)
    of_stacks = auth_strategy.for_stacks(base.conf, logins, base.config_files)
    stacks_app = stacks.late_app(services, operations, of_stacks)
    api = app.make_app(services, scrape.make(gauges), logins, pages.serve, stacks_app)
    # The hash of the first audit record: the file alone cannot show that its beginning was cut off,
    # or that all of it was made anew.
    file, name = base.conf.audit.file, settings.audit_anchor(str(base.conf.default.host))
    anchor = audit.Trail(Path(file)).first_hash() if file else None
    if anchor is not None:
        with base.db.read() as conn:
            is_known = settings.find(conn, name) is not None
        if not is_known:
            base.db.transact(lambda conn: settings.settle(conn, name, anchor))
    return Apps(
        api=api,
        stacks=stacks_app,
        identity_url=auth_strategy.identity_url(logins),
    )


class ApiServers:
    """``api`` is Ironic's, ``orchestration_api`` Heat's."""

    def __init__(self, base: Foundation, apps: Apps, *, shares_ports: bool = False) -> None:
        """Bind the addresses of both APIs.  Raises CannotStart."""
        self._base, self._identity_url = base, apps.identity_url
        raise_descriptor_limit()
        self.api = server.make(
            apps.api, base.conf, shares_port=shares_ports, agent_calls=auth.AGENT_CALLS
        )
        try:
            self.orchestration_api = server.make(
                apps.stacks,
                stacks.orchestration_conf(base.conf),
                port_option=ORCHESTRATION_PORT,
                shares_port=shares_ports,
                fault=replies.unparsed,
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


def require_free_ports(conf: Conf) -> None:
    """Raise CannotStart if another process listens at an address of the APIs."""
    require_free(server.make_settings(conf, "--port"))
    require_free(server.make_settings(stacks.orchestration_conf(conf), ORCHESTRATION_PORT))


def signals_url(base: Foundation, url: str) -> str:
    """Return the base URL of stack signals, for an API at ``url``."""
    return f"{base.conf.orchestration.public_endpoint or url}/v1"


def configured_urls(conf: Conf) -> tuple[str, str]:
    """Return the URLs of the API and of the orchestration API, as configured."""
    scheme = "https" if conf.api.enable_ssl_api else "http"
    stacks_host = conf.orchestration.host_ip or conf.api.host_ip
    return (
        f"{scheme}://{conf.api.host_ip}:{conf.api.port}",
        f"{scheme}://{stacks_host}:{conf.orchestration.port}",
    )
