"""Who serves nodes, and with which drivers."""

from __future__ import annotations

import pytest

from bloomery.api.versions import MAX
from bloomery.db import conductors
from bloomery.model.node import INTERFACES
from tests.kit.servers import peers


def test_conductors_are_listed_with_three_fields(api):
    found = api.get("/v1/conductors").json["conductors"]
    links = [
        {"href": "http://localhost/v1/conductors/host-1", "rel": "self"},
        {"href": "http://localhost/conductors/host-1", "rel": "bookmark"},
    ]
    assert found == [{"hostname": "host-1", "conductor_group": "", "alive": True, "links": links}]


@pytest.mark.parametrize("path", ["/v1/conductors?detail=true", "/v1/conductors/host-1"])
def test_conductor_in_full_names_its_drivers(api, path):
    found = api.get(path).json
    one = found["conductors"][0] if "conductors" in found else found
    assert one["drivers"] == ["fake-hardware", "redfish"]
    assert set(one) == {
        "hostname",
        "conductor_group",
        "alive",
        "drivers",
        "created_at",
        "updated_at",
        "links",
    }


def test_conductor_that_went_away_is_not_alive(world):
    peers.leave(world.site.db, "host-1")
    assert world.api.get("/v1/conductors/host-1").json["alive"] is False


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("?sort_key=alive", 400), ("?sort_key=drivers", 400), ("?sort_key=hostname", 200),
        ("?fields=hostname,links", 200), ("?fields=nonsense", 400),
        ("?detail=1&fields=hostname", 400),
        ("?marker=unknown", 404), ("/unknown", 404), ("?limit=0", 400),
    ],
)  # fmt: skip
def test_conductors_are_checked(api, query, status):
    assert api.get(f"/v1/conductors{query}").status == status


def test_conductors_have_pages_by_host_name(world):
    for host in ("host-0", "host-2"):
        world.site.db.transact(
            lambda conn, host=host: conductors.register(
                conn,
                hostname=host,
                group="g",
                drivers=[],
                interfaces=[],
            ),
        )
    page = world.api.get("/v1/conductors?limit=2&sort_key=hostname").json
    assert [one["hostname"] for one in page["conductors"]] == ["host-0", "host-1"]
    assert page["next"].endswith("fields=hostname,conductor_group,alive&limit=2&marker=host-1")
    rest = world.api.get(page["next"].removeprefix("http://localhost")).json
    assert [one["hostname"] for one in rest["conductors"]] == ["host-2"]


# ----------------------------------------------------------------------------------- drivers


@pytest.mark.parametrize(
    ("version", "keys"),
    [
        (1, {"name", "hosts", "links"}),
        (14, {"name", "hosts", "links", "properties"}),
        (30, {"name", "hosts", "links", "properties", "type"}),
    ],
)
def test_drivers_are_listed(api, version, keys):
    found = api.get("/v1/drivers", version=version).json["drivers"]
    assert [one["name"] for one in found] == ["fake-hardware", "redfish"]
    assert set(found[0]) == keys
    assert found[0]["hosts"] == ["host-1"]


@pytest.mark.parametrize("version", [30, 33, 38, 40, 86])
def test_driver_in_full_names_the_interfaces_that_the_version_knows(api, version):
    later = {"storage": 33, "rescue": 38, "bios": 40, "firmware": 86}
    kinds = {kind for kind in INTERFACES if later.get(kind, 30) <= version}
    for found in (
        api.get("/v1/drivers/fake-hardware", version=version).json,
        api.get("/v1/drivers?detail=true", version=version).json["drivers"][0],
    ):
        assert {f"default_{kind}_interface" for kind in kinds} <= set(found)
        assert {f"enabled_{kind}_interfaces" for kind in kinds} <= set(found)
        assert len(found) == 5 + 2 * len(kinds)
        assert found["enabled_power_interfaces"] == ["fake"]


@pytest.mark.parametrize(
    ("path", "version", "status"),
    [
        ("?type=dynamic", 30, 200), ("?type=dynamic", 29, 406), ("?detail=true", 29, 406),
        ("?type=nonsense", MAX, 400), ("?fields=name", 76, 406), ("?fields=name", 77, 200),
        ("?fields=nonsense", MAX, 400), ("?detail=true&fields=name", MAX, 400),
        ("/unknown", MAX, 404), ("/fake-hardware?fields=name", 77, 200),
        ("/unknown/properties", MAX, 404),
        ("/fake-hardware/nonsense", MAX, 404),
    ],
)  # fmt: skip
def test_drivers_are_checked(api, path, version, status):
    assert api.get(f"/v1/drivers{path}", version=version).status == status


def test_there_are_no_classic_drivers(api):
    assert api.get("/v1/drivers?type=classic").json == {"drivers": []}


def test_driver_fields_show_only_those_and_links(api):
    found = api.get("/v1/drivers/redfish?fields=name,default_boot_interface").json
    assert set(found) == {"name", "default_boot_interface", "links"}


def test_driver_properties_come_from_its_conductor(api):
    assert api.get("/v1/drivers/redfish/properties").json == {"A1": "A1 description. Required."}


@pytest.mark.parametrize(
    ("driver", "sentence"),
    [
        ("ipmi", "is installed, but no conductor has it enabled; name it in"),
        ("magic", "is unknown; drivers that are served: fake-hardware, redfish"),
    ],
)
def test_a_driver_that_is_not_served_is_told_why(api, driver, sentence):
    node = api.node()["uuid"]
    patch = [{"op": "replace", "path": "/driver", "value": driver}]
    for answer, status in (
        (api.post("/v1/nodes", {"driver": driver}), 400),
        (api.patch(f"/v1/nodes/{node}", patch), 400),
        (api.get(f"/v1/drivers/{driver}"), 404),
        (api.get(f"/v1/drivers/{driver}/properties"), 404),
    ):
        assert answer.status == status
        assert repr(driver) in answer.said
        assert sentence in answer.said
