"""A Bloomery of our own, with what the Ironic beside it has enabled."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from unittest import mock

from bloomery.api import versions
from bloomery.cmd.service import Service
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.conf.default import Default
from bloomery.drivers.fake import behaviour
from bloomery.state_dir import StateDir
from tests.conformance.ironic import server
from tests.conformance.ironic.script import NEWEST
from tests.kit.servers.orchestration import QUIET

RANGE: Final = tuple(  # Ironic's, that newer versions of our own be no difference
    zip((name for name, _ in versions.RANGE), (f"1.{versions.MIN}", f"1.{NEWEST}"), strict=True)
)
ENABLED: Final[dict[str, Any]] = {
    f"enabled_{kind}_interfaces": tuple(names.split(","))
    for kind, names in server.INTERFACES.items()
}


@contextlib.contextmanager
def running() -> Iterator[tuple[str, int]]:
    """Yield the address of a fresh service in this process.

    Its fake agents never call, as Ironic's do not: a heartbeat would come between any two requests.
    """
    default = Default(host="localhost", enabled_hardware_types=("fake-hardware",), **ENABLED)
    conf = Conf(default=default, api=Api(port=0), conductor=QUIET)
    with (
        mock.patch.multiple(versions, MAX=NEWEST, RANGE=RANGE),
        mock.patch.object(behaviour, "agent_call", return_value=None),
        tempfile.TemporaryDirectory(prefix="bloomery-") as directory,
    ):
        home = StateDir(Path(directory, "state"))
        home.take()
        service = Service(conf, home)
        service.start()
        try:
            yield service.api.address
        finally:
            service.stop()
            home.leave()
