"""Which version a request speaks, and what it is told."""

from __future__ import annotations

import pytest

from bloomery.api.versions import MAX
from tests.fakes.client import NEWEST

LEGACY = "X-OpenStack-Ironic-API-Version"
STANDARD = "OpenStack-API-Version"
SHOWN = "x-openstack-ironic-api-version"
LEAST = "x-openstack-ironic-api-minimum-version"
MOST = "x-openstack-ironic-api-maximum-version"

AGENTS = {"lookup", "heartbeat"}


@pytest.mark.parametrize(
    ("headers", "spoken"),
    [
        ({}, "1.1"),
        ({LEGACY: ""}, "1.1"),
        ({LEGACY: "   "}, "1.1"),
        ({LEGACY: "1.61"}, "1.61"),
        ({LEGACY: " 1.61 "}, "1.61"),
        ({LEGACY: "1.050"}, "1.50"),
        ({LEGACY: "01.5"}, "1.5"),
        ({LEGACY: "1.+5"}, "1.5"),
        ({LEGACY: "latest"}, NEWEST),
        ({LEGACY: "1.50,1.50"}, "1.50"),  # the header twice
        ({LEGACY: "latest, latest"}, NEWEST),
        ({LEGACY: "LATEST"}, NEWEST),
        ({STANDARD: "baremetal 1.61"}, "1.61"),
        ({STANDARD: "baremetal latest"}, NEWEST),
        ({STANDARD: "compute 2.1, baremetal 1.61"}, "1.61"),
        ({STANDARD: "compute 2.1,BareMetal   1.61"}, "1.61"),
        ({STANDARD: "baremetal 1.50,baremetal 1.61"}, "1.61"),
        ({STANDARD: "compute 2.1"}, "1.1"),
        ({STANDARD: "baremetal"}, "1.1"),
        ({STANDARD: "baremetal", LEGACY: "1.7"}, "1.7"),
        ({STANDARD: "baremetal 1.61", LEGACY: "1.7"}, "1.61"),
        ({STANDARD: "baremetal 1.61", LEGACY: "nonsense"}, "1.61"),
    ],
)
def test_version_is_read_from_the_headers(api, headers, spoken):
    answer = api.get("/v1/nodes", version=None, headers=headers)
    assert answer.status == 200
    assert (answer.headers[LEAST], answer.headers[MOST]) == ("1.1", NEWEST)
    assert answer.headers[SHOWN] == spoken
    assert "vary" not in answer.headers


@pytest.mark.parametrize(
    "said", ["1.0", f"1.{MAX + 1}", "2.0", "0.9", "1.-1", "-1.5", "1.99999", "1.50,1.60"]
)
@pytest.mark.parametrize("path", ["/v1/nodes", "/v1", "/v1/nonsense"])
def test_version_out_of_range_is_told_the_range_whatever_the_path(api, said, path):
    answer = api.get(path, version=said)
    assert (answer.status, answer.form) == (406, "second")
    assert (answer.headers[LEAST], answer.headers[MOST]) == ("1.1", NEWEST)
    assert SHOWN not in answer.headers


@pytest.mark.parametrize("said", ["1", "1.", ".5", "1.1.1", "1,50", "abc", "1.x", "1.1_0"])
def test_version_that_is_no_pair_of_numbers_gets_no_version_headers(api, said):
    answer = api.get("/v1/nodes", version=said)
    assert (answer.status, answer.form) == (406, "second")
    assert not {LEAST, MOST, SHOWN} & set(answer.headers)


def test_bad_version_at_the_root_gets_the_first_form(api):
    answer = api.get("/", version="1.200")
    assert (answer.status, answer.form) == (406, "first")


def test_answers_made_while_routing_carry_no_version(api):
    answer = api.get("/v1/nonsense")
    assert answer.status == 404
    assert not {LEAST, MOST, SHOWN} & set(answer.headers)


def test_errors_of_handlers_carry_the_version(api):
    answer = api.get("/v1/nodes/unknown", version=50)
    assert (answer.status, answer.headers[SHOWN]) == (404, "1.50")


def test_path_without_v1_works_as_bookmarks_need(api):
    uuid = api.node()["uuid"]
    assert api.get(f"/nodes/{uuid}").json["uuid"] == uuid


@pytest.mark.parametrize("path", ["/v1/nodes/", "/v1/nodes//", "/v1/", "//"])
def test_trailing_slashes_are_fine(api, path):
    assert api.get(path).status == 200


def test_json_suffix_is_cut_for_old_clients_that_name_a_version(api):
    uuid = api.node()["uuid"]
    assert api.get(f"/v1/nodes/{uuid}.json", version=90).status == 200
    assert api.get(f"/v1/nodes/{uuid}.json", version=91).status == 404
    assert api.get("/v1/nodes.json", version=90).status == 200


def test_name_that_ends_in_json_is_found_by_old_clients_too(api):
    api.node(name="web.json")
    assert api.get("/v1/nodes/web.json", version=90).json["name"] == "web.json"
    assert api.get("/v1/nodes/web.json", version=91).json["name"] == "web.json"


# -------------------------------------------------------------------------------- documents


def test_root_names_one_version(api):
    found = api.get("/").json
    version = {
        "id": "v1",
        "links": [{"href": "http://localhost/v1/", "rel": "self"}],
        "status": "CURRENT",
        "min_version": "1.1",
        "version": "1.115",
    }
    assert found["default_version"] == version
    assert found["versions"] == [version]
    assert set(found) == {"name", "description", "default_version", "versions"}


@pytest.mark.parametrize(
    ("version", "collections"),
    [
        (1, {"nodes", "ports", "chassis", "drivers"}),
        (31, {"nodes", "ports", "portgroups", "chassis", "drivers"} | AGENTS),
        (
            49,
            {"nodes", "ports", "portgroups", "chassis", "drivers", "conductors", "volume"} | AGENTS,
        ),
    ],
)
def test_version_document_names_the_collections_that_the_version_knows(api, version, collections):
    found = api.get("/v1", version=version).json
    assert set(found) == {"id", "links", "media_types", "version"} | collections
    assert found["nodes"] == [
        {"href": "http://localhost/v1/nodes/", "rel": "self"},
        {"href": "http://localhost/nodes/", "rel": "bookmark"},
    ]
    assert found["media_types"]["base"] == "application/json"


def test_links_follow_the_address_that_the_caller_used(api):
    uuid = api.node()["uuid"]
    answer = api.get(f"/v1/nodes/{uuid}", headers={"Host": "bmc.localhost:6385"})
    assert answer.json["links"][0]["href"] == f"http://bmc.localhost:6385/v1/nodes/{uuid}"


# ----------------------------------------------------------- what old versions do not see


@pytest.mark.parametrize(
    ("method", "path", "since", "status", "form"),
    [
        ("GET", "/v1/conductors", 49, 404, "first"),
        ("GET", "/v1/nodes/{node}/vifs", 28, 404, "second"),
        ("GET", "/v1/nodes/{node}/bios", 40, 404, "second"),
        ("GET", "/v1/nodes/{node}/history", 78, 404, "second"),
        ("GET", "/v1/nodes/{node}/inventory", 81, 404, "second"),
        ("GET", "/v1/nodes/{node}/children", 83, 404, "second"),
        ("GET", "/v1/nodes/{node}/firmware", 86, 404, "second"),
        ("GET", "/v1/nodes/{node}/traits", 37, 406, "first"),
        ("PUT", "/v1/nodes/{node}/traits", 37, 405, "second"),
        ("DELETE", "/v1/nodes/{node}/traits", 37, 404, "second"),
        ("PUT", "/v1/nodes/{node}/states/raid", 12, 406, "first"),
        ("PUT", "/v1/nodes/{node}/management/inject_nmi", 29, 404, "first"),
        ("POST", "/v1/nodes/{node}/vmedia", 89, 404, "second"),
        ("DELETE", "/v1/nodes/{node}/vmedia", 89, 404, "second"),
        ("GET", "/v1/nodes/{node}/vmedia", 93, 404, "first"),
        ("GET", "/v1/drivers/fake-hardware/raid/logical_disk_properties", 12, 406, "first"),
        ("PUT", "/v1/nodes/{node}/states/boot_mode", 76, 404, "first"),
        ("PUT", "/v1/nodes/{node}/states/secure_boot", 76, 404, "first"),
    ],
)
def test_newer_resource_is_hidden_in_its_own_way(world, method, path, since, status, form):
    path = path.format(node=world.node())
    answer = world.api.ask(method, path, {}, version=since - 1)
    assert (answer.status, answer.form) == (status, form)
    assert (SHOWN in answer.headers) == (form == "first")
    assert SHOWN in world.api.ask(method, path, {}, version=since).headers


def test_old_clients_see_old_names_of_states(world):
    uuid = world.node(provision_state="available")
    assert world.api.get(f"/v1/nodes/{uuid}", version=1).json["provision_state"] is None
    assert world.api.get(f"/v1/nodes/{uuid}/states", version=1).json["provision_state"] is None
    assert world.api.get(f"/v1/nodes/{uuid}", version=2).json["provision_state"] == "available"
    world.set(uuid, provision_state="inspect wait")
    assert world.api.get(f"/v1/nodes/{uuid}", version=38).json["provision_state"] == "inspecting"
    assert world.api.get(f"/v1/nodes/{uuid}", version=39).json["provision_state"] == "inspect wait"


def test_nodes_begin_in_enroll_since_1_11(api):
    assert api.node(version=11)["provision_state"] == "enroll"
    assert api.node(version=10)["provision_state"] == "available"


def test_names_are_idents_since_1_5(api):
    api.node(name="web-1")
    assert api.get("/v1/nodes/web-1", version=4).status == 404
    assert api.get("/v1/nodes/web-1", version=5).status == 200
