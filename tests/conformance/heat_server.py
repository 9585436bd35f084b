"""Run the published Heat as clients meet it: its REST API and its engine, in this process.

    python heat_server.py DATABASE_URL STATE_DIR

Runs in an environment of its own (``make heat``), with the package openstack-heat and nothing of
ours.  Convergence is on, the message bus stays in the process, and no identity service is asked:
``Identity`` takes user and project from headers and from the path.  Prints the port when it serves.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from socketserver import ThreadingMixIn
from wsgiref import simple_server

warnings.simplefilter("ignore")

from oslo_service import backend  # noqa: E402

backend.init_backend(backend.BackendType.THREADING)

from heat.common import config, context, messaging  # noqa: E402
from heat.db import api as database  # noqa: E402
from heat.db import models  # noqa: E402
from heat.engine import service as engine  # noqa: E402
from heat.rpc import api as rpc_api  # noqa: E402
from oslo_config import cfg  # noqa: E402
from oslo_log import log  # noqa: E402

PASTE = """
[composite:heat-api]
paste.composite_factory = heat.api:pipeline_factory
default = request_id faultwrap identity versionnegotiation context apiv1app

[app:apiv1app]
paste.app_factory = heat.common.wsgi:app_factory
heat.app_factory = heat.api.openstack.v1:API

[filter:versionnegotiation]
paste.filter_factory = heat.common.wsgi:filter_factory
heat.filter_factory = heat.api.openstack:version_negotiation_filter

[filter:faultwrap]
paste.filter_factory = heat.common.wsgi:filter_factory
heat.filter_factory = heat.api.openstack:faultwrap_filter

[filter:context]
paste.filter_factory = heat.common.context:ContextMiddleware_filter_factory

[filter:request_id]
paste.filter_factory = oslo_middleware.request_id:RequestId.factory

[filter:identity]
paste.filter_factory = heat_server:identity_factory
"""
SETTINGS = {
    "convergence_engine": True,
    "deferred_auth_method": "password",
    "enable_stack_abandon": True,
    "enable_stack_adopt": True,
    "error_wait_time": 0,
    "max_stacks_per_tenant": -1,
    "auth_encryption_key": "0123456789abcdef" * 2,
    "hidden_stack_tags": ["data-processing-cluster"],
}
ROLES = ("member", "reader")


def identity_factory(_global_conf, **_local_conf):
    return Identity


class Identity:
    """Make everyone a member of the project that the path names."""

    def __init__(self, app):
        self.app = app

    def __call__(self, environ, start_response):
        project = [*environ["PATH_INFO"].split("/"), "", ""][2]
        environ |= {
            "HTTP_X_IDENTITY_STATUS": "Confirmed",
            "HTTP_X_AUTH_TOKEN": "token",
            "HTTP_X_AUTH_USER": "tenant",
            "HTTP_X_AUTH_KEY": "secret",
            "HTTP_X_USER_ID": "tenant",
            "HTTP_X_USER_NAME": "tenant",
            "HTTP_X_USER_DOMAIN_ID": "default",
            "HTTP_X_PROJECT_ID": project,
            "HTTP_X_PROJECT_NAME": project,
            "HTTP_X_PROJECT_DOMAIN_ID": "default",
            "HTTP_X_ROLES": ",".join(ROLES),
            "HTTP_X_AUTH_URL": "http://127.0.0.1:5/v3",
        }
        return self.app(environ, start_response)


def load_identity(stored):
    """Stand in for the identity service, which is asked for the roles of stored credentials."""
    stored._keystone_loaded = True
    stored.roles = list(ROLES)
    stored.user_domain_id = stored.project_domain_id = "default"


class Server(ThreadingMixIn, simple_server.WSGIServer):
    daemon_threads = True
    request_queue_size = 64


class Handler(simple_server.WSGIRequestHandler):
    def log_message(self, *_):
        pass


def main(url, state_dir):
    sys.modules["heat_server"] = sys.modules["__main__"]  # for the paste file
    paste = Path(state_dir, "api-paste.ini")
    paste.write_text(PASTE, encoding="utf-8")
    log.register_options(cfg.CONF)
    cfg.CONF(["--log-file", str(Path(state_dir, "heat.log"))], project="heat", prog="heat-api",
             default_config_files=[])  # fmt: skip
    for name, value in SETTINGS.items():
        cfg.CONF.set_override(name, value)
    cfg.CONF.set_override("connection", url, group="database")
    cfg.CONF.set_override("api_paste_config", str(paste), group="paste_deploy")
    log.setup(cfg.CONF, "heat")
    messaging.setup("fake://")
    context.StoredContext._load_keystone_data = load_identity
    models.BASE.metadata.create_all(database.get_engine())
    engine.EngineService("localhost", rpc_api.ENGINE_TOPIC).start()
    app = config.load_paste_app()
    server = simple_server.make_server("127.0.0.1", 0, app, Server, Handler)
    sys.stdout.write(f"{server.server_port}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
