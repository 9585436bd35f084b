"""Whether somebody without a login is heard where everybody may ask, and nowhere else.

with door_probes.open_doors(tmp_path) as doors:         # a client of each kind of login
    door_probes.only_the_public_is_heard(doors)

What is public is read from the rules of the endpoints, not from the paths that the API lets pass.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from bloomery import conf
from bloomery.api import app, auth_strategy, routes
from bloomery.api.declare import Endpoint
from bloomery.conf import Conf
from bloomery.http_server import login
from tests.functional import conftest as functional
from tests.kit.clients import documented
from tests.kit.servers.identity import Identity

ENDPOINTS: Final = tuple((each.method, each.path, each) for each in routes.ENDPOINTS)
PUBLIC: Final = "public"
# Asked by agents, which have no login.
OF_AGENTS: Final = (
    "baremetal:driver:ipa_lookup", "baremetal:node:ipa_heartbeat",
    "baremetal:driver:ipa_continue_inspection",
)  # fmt: skip
NODE_IN_BODY: Final = "/v1/heartbeat"  # Ironic leaves the door open for a node in the path alone
CHALLENGES: Final = {"password": "Basic realm=", "token": "Keystone uri="}
WITH_SUFFIX: Final = "1.90"  # the last version in which a path may end in .json

Doors = Mapping[str, documented.Client]


@contextlib.contextmanager
def open_doors(path: Path) -> Iterator[Doors]:
    """Yield clients, without a login, of services that want a password or a token."""
    services, _ = functional.build(path, Conf())
    logins = path / "htpasswd"
    logins.write_text("")
    with contextlib.closing(services.db), Identity() as identity:
        file = identity.write_options(path / "bloomery.conf")
        yield {
            "password": documented.Client(app.make_app(services, logins=login.HttpBasic(logins))),
            "token": documented.Client(
                app.make_app(services, logins=auth_strategy.logins(conf.load([file]), [file]))
            ),
        }


def heard(doors: Doors, method: str, path: str, endpoint: Endpoint, body: Any = None) -> None:
    """Fail unless each spelling of an endpoint is open or shut as its rule says."""
    where = re.sub(r"\{\w+\}", "x", path)
    is_of_agents = endpoint.rule in OF_AGENTS and path != NODE_IN_BODY
    for kind, client in doors.items():
        plain = client.ask(method, where, body)
        suffixed = client.ask(method, f"{where}.json", body, version=WITH_SUFFIX)
        for answer, is_open in (
            (plain, is_of_agents or endpoint.rule == PUBLIC),
            (suffixed, is_of_agents),
        ):
            assert (answer.status != 401) == is_open, (kind, method, where, answer.status)
            if not is_open:
                assert answer.headers["www-authenticate"].startswith(CHALLENGES[kind])


STRANGER: Final = "stranger.example"
OWN: Final = "localhost:6385"


@contextlib.contextmanager
def open_to_all(path: Path) -> Iterator[documented.Client]:
    """Yield a client of a service that asks for no login."""
    services, _ = functional.build(path, Conf())
    with contextlib.closing(services.db):
        yield documented.Client(app.make_app(services))


def strangers_are_not_served(client: documented.Client) -> None:
    """Fail if a page of a stranger, or a name of theirs that leads here, changes or reads."""
    node = {"driver": "fake-hardware"}
    foreign, rebound = {"Origin": f"http://{STRANGER}", "Host": OWN}, {"Host": STRANGER}
    assert client.post("/v1/nodes", node, headers=foreign).status == 403
    assert client.get("/v1/nodes", headers=foreign).status == 403
    assert client.get("/v1/nodes", headers=rebound).status == 421
    same = rebound | {"Origin": f"http://{STRANGER}"}
    assert client.post("/v1/nodes", node, headers=same).status == 421
    assert client.post("/v1/nodes", node, content_type="text/plain").status == 415
    assert client.get("/v1/nodes").json["nodes"] == []
    own = {"Origin": f"http://{OWN}", "Host": OWN}
    assert client.post("/v1/nodes", node, headers=own).status == 201


def only_the_public_is_heard(doors: Doors) -> None:
    for method, path, endpoint in ENDPOINTS:
        heard(doors, method, path, endpoint)
