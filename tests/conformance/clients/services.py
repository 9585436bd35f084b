"""Bloomery and the published Ironic as the suites meet them: fake hardware, logins of Keystone."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.conformance.ironic import server as ironic_server
from tests.kit.servers.identity import SYSTEM, Identity
from tests.kit.servers.served import Served

PROJECT: Final = "rack"
ACCOUNTS: Final = (  # user, where, role: each is one that tempest asks for
    ("root", SYSTEM, "admin"), ("auditor", SYSTEM, "reader"), ("boss", PROJECT, "admin"),
    ("manager", PROJECT, "manager"), ("ann", PROJECT, "member"), ("bob", PROJECT, "reader"),
    ("other-boss", "other", "admin"), ("carl", "other", "member"),
)  # fmt: skip


@contextlib.contextmanager
def identity() -> Iterator[Identity]:
    with Identity() as service:
        for account in ACCOUNTS:
            service.grant(*account)
        yield service


@contextlib.contextmanager
def bloomery(identity: Identity) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="bloomery-") as folder:
        state = Path(folder, "state")
        groups = {
            "DEFAULT": {
                "auth_strategy": "keystone",
                "enabled_hardware_types": "fake-hardware",
                **{f"enabled_{kind}_interfaces": n for kind, n in ironic_server.INTERFACES.items()},
            },
            "keystone_authtoken": identity.options(),
            # the suites attach images of servers that do not exist
            "conductor": {"automated_clean": "true", "preflight_timeout": "0"},
        }
        with Served(state, **groups) as served:
            served.wait_until_it_answers()
            assert served.url
            yield served.url


@contextlib.contextmanager
def ironic(identity: Identity, binaries: Path) -> Iterator[str]:
    with ironic_server.running(binaries, keystone=identity.options()) as (host, port):
        yield f"http://{host}:{port}"
