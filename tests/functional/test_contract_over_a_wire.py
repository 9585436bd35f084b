"""The RPC contract can be carried by a wire: arguments, results and errors are JSON.

The transport here is a plain call that packs and unpacks everything on the way; a machine's life
and its refusals look the same through it.
"""

from __future__ import annotations

import dataclasses
import string
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from bloomery import errors
from bloomery.cli.client import ApiError, Client
from bloomery.cmd import service
from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.model.request import Request
from bloomery.rpc.contract import METHODS
from bloomery.state_dir import StateDir
from tests.kit.waiting import wait_for

NODE = "/v1/nodes/web-1"
FAILURES = [
    found
    for found in vars(errors).values()
    if isinstance(found, type) and issubclass(found, errors.Failure)
]


def carried(value: Any) -> Any:
    return orjson.loads(orjson.dumps(value))


class Wire:
    """Stands between callers and a conductor, as a broker would."""

    def __init__(self, conductors: Mapping[str, Any]) -> None:
        self._conductors = conductors

    def proxy(self, host: str) -> Face:
        return Face(self._conductors[host])


class Face:
    def __init__(self, conductor: Any) -> None:
        self._conductor = conductor

    def __getattr__(self, name: str) -> Callable[..., Any]:
        assert name in METHODS, f"{name} is not in the contract"

        def call(request: Request, *args: Any, **more: Any) -> Any:
            asked = Request(**carried(dataclasses.asdict(request)))
            try:
                said = getattr(self._conductor, name)(asked, *carried(args), **carried(more))
            except errors.Failure as exc:
                raise errors.revive(*carried(exc.packed())) from None
            return carried(said)

        return call


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.setattr(service, "InProcess", Wire)
    with StateDir(tmp_path) as home, service.Service(Conf(api=Api(port=0)), home) as running:
        yield Client(running.url)


def _rests_in(api: Client, state: str) -> bool:
    node = api.get(NODE)
    return node["provision_state"] == state and node["reservation"] is None


def test_a_life_over_a_wire(api: Client) -> None:
    api.post("/v1/nodes", {"name": "web-1", "driver": "fake-hardware", "extra": {"a": [1, None]}})
    for verb, state in (("manage", "manageable"), ("provide", "available"), ("active", "active")):
        api.put(f"{NODE}/states/provision", {"target": verb})
        wait_for(lambda state=state: _rests_in(api, state), f"the node to be {state}")
    api.patch(NODE, [{"op": "add", "path": "/extra/b", "value": {"c": 1.5}}])
    api.put(f"{NODE}/states/power", {"target": "power on"})
    wait_for(lambda: api.get(NODE)["power_state"] == "power on", "power")
    assert api.get(f"{NODE}/validate")["power"] == {"result": True}
    assert api.get(f"{NODE}/management/boot_device")["boot_device"] == "pxe"
    assert api.get("/v1/drivers/fake-hardware/properties")
    assert api.get("/ext/v1/nodes/web-1/why")["contact"] == {"agent": None, "bmc": None}


def test_a_refusal_over_a_wire_keeps_its_status_and_sentence(api: Client) -> None:
    api.post("/v1/nodes", {"name": "web-1", "driver": "fake-hardware"})
    with pytest.raises(ApiError, match="409 A node with name web-1 already exists"):
        api.post("/v1/nodes", {"name": "web-1", "driver": "fake-hardware"})
    with pytest.raises(ApiError, match=r"400 .*pxe only"):
        api.put(f"{NODE}/management/boot_device", {"boot_device": "disk"})


@pytest.mark.parametrize("failure", FAILURES, ids=lambda f: f.__name__)
def test_every_error_comes_back_as_itself(failure: type[errors.Failure]) -> None:
    named = [name for _, name, _, _ in string.Formatter().parse(failure.text) if name]
    facts: dict[str, Any] = {name.partition("!")[0]: "x" for name in named}
    if issubclass(failure, errors.Misplaced):  # it works out by itself what its text names
        facts = {"reason": "x", "path": ["resources", 0], "error": "x"}
    error = failure(**facts)
    again = errors.revive(*carried(error.packed()))
    assert (type(again), str(again), again.status) == (failure, str(error), error.status)
