"""Both APIs as WSGI applications, for gunicorn, uWSGI and other servers.

    export BLOOMERY_CONFIG_FILE=/etc/bloomery/bloomery.conf
    gunicorn --workers 2 --threads 8 --bind 127.0.0.1:6385 bloomery.cmd.wsgi:application

``application`` is Ironic's API, with Heat's below /ext/v1/orchestration; ``orchestration`` is
Heat's alone.  BLOOMERY_CONFIG_FILE names files, separated by colons; BLOOMERY_STATE_DIR a folder.
Such a server gives each waiting request a thread, and cannot stream events.  Load the module in
each worker, after the fork: it starts threads.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from bloomery.cmd import process
from bloomery.cmd.api import ApiBackend
from bloomery.http_server.wsgi import Wsgi, with_security_headers
from bloomery.state_dir import StateDir, default_path

CONFIG_FILES: Final = "BLOOMERY_CONFIG_FILE"
STATE_DIR: Final = "BLOOMERY_STATE_DIR"


def make_applications() -> tuple[Wsgi, Wsgi]:
    """Build and start what the APIs need; return both.  Raises CannotStart."""
    config_files = [name for name in os.environ.get(CONFIG_FILES, "").split(":") if name]
    settings = process.begin(config_files, verbose=False)
    home = StateDir(Path(os.environ.get(STATE_DIR) or default_path()), role="api")
    home.create()
    backend = ApiBackend(settings, home, config_files)
    backend.start()
    apps = backend.apps
    return with_security_headers(apps.api), with_security_headers(apps.stacks)


application, orchestration = make_applications()
