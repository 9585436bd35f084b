"""A machine's life, and what is refused in it, with each transport between API and conductor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.kit.servers import rpc
from tests.kit.servers.stories import Stage


@pytest.fixture(params=["none", "json-rpc", "oslo"])
def stage(request: Any, make_site: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setenv(rpc.TRANSPORT, request.param)
    return Stage(make_site())


def test_a_machine_is_taken_to_active_and_changed(stage):
    node = stage.enrol(name="web-1", extra={"ü": [1, None]})
    for verb, state in (("manage", "manageable"), ("provide", "available"), ("active", "active")):
        stage.ask(node, verb)
        stage.site.wait_for_state(node, state)
    assert stage.patch(node, **{"extra.b": {"c": 1.5}})["extra"] == {
        "ü": [1, None],
        "b": {"c": 1.5},
    }
    assert stage.power(node, "power on")["power_state"] == "power on"
    assert stage.api.get(f"/v1/nodes/{node}/validate").json["power"] == {"result": True}
    device = stage.api.get(f"/v1/nodes/{node}/management/boot_device").json
    assert device["boot_device"] == "pxe"
    assert stage.api.get("/v1/drivers/fake-hardware/properties").json
    assert stage.api.get(f"/ext/v1/nodes/{node}/why").json["contact"] == {
        "agent": None,
        "bmc": None,
    }


def test_a_refusal_keeps_its_status_and_sentence(stage):
    stage.enrol(name="web-1")
    twin = stage.api.post("/v1/nodes", {"name": "web-1", "driver": "fake-hardware"})
    assert (twin.status, twin.fault["faultstring"]) == (
        409, "A node with name web-1 already exists.",
    )  # fmt: skip
    path = "/v1/nodes/web-1/management/boot_device"
    refused = stage.api.put(path, {"boot_device": "disk"})
    assert refused.status == 400
    assert "pxe only" in refused.fault["faultstring"]
    busy = stage.site.acquire(stage.show("web-1")["uuid"], purpose="a test")
    with busy:
        locked = stage.api.put("/v1/nodes/web-1/maintenance", {}, headers={"Prefer": "wait=0"})
    assert locked.status == 409
    assert "locked" in locked.fault["faultstring"]
