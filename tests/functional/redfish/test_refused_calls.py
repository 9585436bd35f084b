"""A BMC's no is never the service's fault: each call of the API at each status of a BMC."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from bloomery.conf.drivers import BmcOptions
from bloomery.drivers import registry
from bloomery.drivers.bmc import gateway
from bloomery.lab.rack import Machine, Rack
from tests.functional.redfish import conftest
from tests.functional.redfish.conftest import manageable
from tests.kit.servers.site import Site
from tests.kit.servers.stories import Stage

STATUSES = (400, 401, 403, 404, 405, 409, 410, 412, 423, 429, 500, 501, 503)
VENDOR = "vendor_passthru?method="
CALLS: dict[str, tuple[str, str, Any]] = {
    "get boot device": ("GET", "management/boot_device", None),
    "set boot device": ("PUT", "management/boot_device", {"boot_device": "pxe"}),
    "keep boot device": (
        "PUT", "management/boot_device", {"boot_device": "disk", "persistent": True},
    ),
    "supported boot devices": ("GET", "management/boot_device/supported", None),
    "NMI": ("PUT", "management/inject_nmi", {}),
    "list indicators": ("GET", "management/indicators", None),
    "get indicator": ("GET", "management/indicators/LIGHT", None),
    "set indicator": ("PUT", "management/indicators/LIGHT", {"state": "on"}),
    "list virtual media": ("GET", "vmedia", None),
    "attach virtual media": (
        "POST", "vmedia", {"device_type": "cdrom", "image_url": "http://images.test/a.iso"},
    ),
    "detach virtual media": ("DELETE", "vmedia", None),
    "subscriptions": ("GET", f"{VENDOR}get_all_subscriptions", None),
    "subscription": ("GET", f"{VENDOR}get_subscription", {"id": "1"}),
    "subscribe": (
        "POST", f"{VENDOR}create_subscription", {"Destination": "https://events.test/"},
    ),
    "unsubscribe": ("DELETE", f"{VENDOR}delete_subscription", {"id": "1"}),
    "check": ("GET", "bmc", None),
}  # fmt: skip


CONF = dataclasses.replace(conftest.conf(), bmc=BmcOptions(breaker_failures=10_000))


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    with Rack(1, power_s=0.01) as rack:
        yield rack.machines[0]


@pytest.fixture(scope="module")
def stage(tmp_path_factory) -> Iterator[Stage]:
    site = Site(tmp_path_factory.mktemp("site") / "site.sqlite", registry=registry.load(CONF))
    yield Stage(site)
    site.close()


@pytest.fixture(scope="module")
def node(stage, machine) -> str:
    return manageable(stage, machine)


@pytest.mark.sampled
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_no_refusal_of_a_bmc_is_a_fault_of_the_service(stage, machine, node, call) -> None:
    method, path, body = call
    [light, *_] = stage.api.get(f"/v1/nodes/{node}/management/indicators").json["indicators"]
    path = path.replace("LIGHT", light["name"])
    url = f"/ext/v1/nodes/{node}/bmc" if path == "bmc" else f"/v1/nodes/{node}/{path}"
    met = {}
    for asked, status in itertools.product(("PATCH|POST|DELETE", ".*"), STATUSES):
        machine.bmc.faults.clear()
        for bmc in gateway.of(CONF).bmcs():
            bmc._logins.clear()  # a refused password pauses nothing here
        machine.bmc.faults.add(
            kind="status", status=status, method=asked, path="^(?!.*Sessions)", times=-1
        )
        answer = stage.api.ask(method, url, body)
        met[asked, status] = answer.status, answer.body
        assert machine.bmc.faults.shown()[0]["hits"] or asked != ".*", "the BMC was not asked"
    machine.bmc.faults.clear()
    odd = {
        key: told for key, told in met.items()
        if told[0] >= 500 and (told[0] == 500 or key[1] < 500)
    }  # fmt: skip
    assert odd == {}
