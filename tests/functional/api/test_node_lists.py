"""Lists of nodes: pages, order, filters, fields."""

from __future__ import annotations

import uuid as uuids
from urllib.parse import parse_qsl, urlsplit

import pytest

from bloomery.conf import Conf
from bloomery.conf.api import Api
from bloomery.model import node as model

DEFAULT = {
    "instance_uuid",
    "maintenance",
    "power_state",
    "provision_state",
    "uuid",
    "name",
    "links",
}


@pytest.fixture
def conf():
    return Conf(api=Api(max_limit=5))


def names(answer):
    assert answer.status == 200, answer.body
    return [node["name"] for node in answer.json["nodes"]]


@pytest.fixture
def five(world):
    for letter in "abcde":
        world.api.node(name=letter)
    return world.api


def test_list_shows_six_fields(five):
    found = five.get("/v1/nodes?limit=1").json["nodes"][0]
    assert set(found) == DEFAULT
    assert set(five.get("/v1/nodes?limit=1", version=4).json["nodes"][0]) == DEFAULT - {"name"}


@pytest.mark.parametrize("path", ["/v1/nodes/detail", "/v1/nodes?detail=true"])
def test_detailed_list_shows_what_a_single_node_shows(five, path):
    one = five.get(path).json["nodes"][0]
    assert one == five.get(f"/v1/nodes/{one['uuid']}").json


def test_fields_show_only_those_and_links(five):
    assert set(five.get("/v1/nodes?fields=driver").json["nodes"][0]) == {"driver", "links"}
    assert set(five.get("/v1/nodes?fields=").json["nodes"][0]) == {"links"}


# ------------------------------------------------------------------------------------- pages


@pytest.mark.parametrize("limit", ["0", "-1", "x", "2.5", "", "1e3", "-" + "9" * 30])
def test_limit_that_is_no_positive_integer_is_refused(five, limit):
    assert five.get(f"/v1/nodes?limit={limit}").status == 400


def test_limit_above_the_largest_is_cut(world, five):
    world.api.node(name="f")
    assert len(names(five.get("/v1/nodes?limit=1000"))) == 5


@pytest.mark.parametrize(("limit", "sizes"), [(2, [2, 2, 1]), (5, [5, 0]), (3, [3, 2])])
def test_next_follows_every_full_page(five, limit, sizes):
    path, seen = f"/v1/nodes?limit={limit}", []
    while path:
        page = five.get(path).json
        seen.append([node["name"] for node in page["nodes"]])
        path = page.get("next", "").removeprefix("http://localhost")
    assert [len(part) for part in seen] == sizes
    assert "".join("".join(part) for part in seen) == "abcde"


@pytest.mark.parametrize(
    ("query", "arguments"),
    [
        (
            "limit=1",
            (
                "sort_key=id&sort_dir=asc&fields=instance_uuid,maintenance,power_state,"
                "provision_state,uuid,name&limit=1&marker={last}"
            ),
        ),
        (
            "limit=1&fields=name,uuid",
            "sort_key=id&sort_dir=asc&fields=name,uuid&limit=1&marker={last}",
        ),
        ("limit=1&detail=true", "sort_key=id&sort_dir=asc&detail=True&limit=1&marker={last}"),
        (
            "limit=1&sort_key=name&sort_dir=desc&associated=false&maintenance=false&fields=uuid",
            "sort_key=name&sort_dir=desc&fields=uuid&limit=1&marker={last}",
        ),
        (
            "limit=1&detail=false&driver=fake-hardware&fields=uuid",
            "sort_key=id&sort_dir=asc&detail=False&fields=uuid&limit=1&marker={last}",
        ),
    ],
)
def test_next_repeats_what_the_reference_repeats(five, query, arguments):
    page = five.get(f"/v1/nodes?{query}").json
    last = five.get(f"/v1/nodes?{query.replace('fields=name,uuid', 'fields=uuid')}").json
    uuid = last["nodes"][-1].get("uuid") or page["nodes"][-1]["uuid"]
    assert page["next"] == "http://localhost/v1/nodes?" + arguments.format(last=uuid)


def test_next_repeats_true_filters(world, five):
    for letter in "ab":
        uuid = five.get(f"/v1/nodes/{letter}").json["uuid"]
        world.set(uuid, instance_uuid=str(uuids.uuid4()), maintenance=True, retired=True)
    url = five.get("/v1/nodes?limit=1&retired=1&associated=1&maintenance=1&fields=uuid").json[
        "next"
    ]
    told = [name for name, _ in parse_qsl(urlsplit(url).query)]
    assert told == [
        "sort_key",
        "sort_dir",
        "associated",
        "maintenance",
        "retired",
        "fields",
        "limit",
        "marker",
    ]


def test_next_of_the_detailed_path_stays_there(five):
    page = five.get("/v1/nodes/detail?limit=1").json
    uuid = page["nodes"][0]["uuid"]
    assert page["next"] == (
        f"http://localhost/v1/nodes/detail?sort_key=id&sort_dir=asc&limit=1&marker={uuid}"
    )


def test_marker_must_be_a_known_uuid(five):
    assert five.get("/v1/nodes?marker=a").status == 400
    assert five.get(f"/v1/nodes?marker={uuids.uuid4()}").status == 404


# ------------------------------------------------------------------------------------- order


def test_lists_are_sorted_by_any_plain_column(world, five):
    assert names(five.get("/v1/nodes?sort_key=name&sort_dir=desc")) == list("edcba")
    assert names(five.get("/v1/nodes?sort_key=&sort_dir=asc")) == list("abcde")
    assert names(five.get("/v1/nodes?sort_key=power_state")) == list("abcde")


@pytest.mark.parametrize(
    "key",
    [
        "properties", "driver_info", "extra", "instance_info", "driver_internal_info", "clean_step",
        "deploy_step", "service_step", "raid_config", "target_raid_config", "traits",
        "network_data", "chassis_uuid", "allocation_uuid", "conductor", "links", "nonsense",
        "lock_generation", "reserved_for",
    ],
)  # fmt: skip
def test_lists_are_not_sorted_by_what_is_no_plain_column(five, key):
    assert five.get(f"/v1/nodes?sort_key={key}").status == 400


@pytest.mark.parametrize(
    "field",
    [
        f
        for f in model.FIELDS.values()
        if f.can_sort and f.since > 1 and f.name != "allocation_uuid"
    ],
    ids=lambda f: f.name,
)  # fmt: skip
def test_newer_sort_key_is_refused(five, field):
    assert five.get(f"/v1/nodes?sort_key={field.name}", version=field.since - 1).status == 406
    assert five.get(f"/v1/nodes?sort_key={field.name}", version=field.since).status == 200


@pytest.mark.parametrize("direction", ["DESC", "up", "", "Asc"])
def test_sort_dir_is_asc_or_desc(five, direction):
    assert five.get(f"/v1/nodes?sort_dir={direction}").status == 400


@pytest.mark.parametrize("key", ["name", "description", "id"])
@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_pages_meet_every_node_once_also_with_nulls(world, five, key, direction):
    for letter, text in (("b", "x"), ("d", "x"), ("a", "y")):
        world.set(five.get(f"/v1/nodes/{letter}").json["uuid"], description=text)
    seen, marker = [], ""
    while True:
        page = five.get(f"/v1/nodes?limit=1&sort_key={key}&sort_dir={direction}{marker}").json
        if not page["nodes"]:
            break
        seen.append(page["nodes"][0]["name"])
        marker = f"&marker={page['nodes'][0]['uuid']}"
    assert sorted(seen) == list("abcde")


# ----------------------------------------------------------------------------------- filters


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("driver=redfish", "b"),
        ("driver=nothing", ""),
        ("maintenance=true", "a"),
        ("maintenance=false", "bcde"),
        ("associated=true", "c"),
        ("retired=1", "e"),
        ("provision_state=active", "c"),
        ("resource_class=large", "d"),
        ("fault=power%20failure", "a"),
        ("conductor_group=", "abcde"),
        ("conductor_group=east", ""),
        ("conductor=host-1", "abcde"),
        ("conductor=host-2", ""),
        ("owner=me", "a"),
        ("lessee=me", "b"),
        ("project=me", "ab"),
        ("description_contains=FAN", "d"),
        ("description_contains=f_n", "d"),
        ("shard=x,y", "ab"),
        ("shard=", ""),
        ("sharded=true", "ab"),
        ("instance_name=db", "e"),
        ("parent_node=a", ""),
        (f"instance_uuid={uuids.UUID(int=1)}", ""),
        ("maintenance=true&owner=nobody", ""),
    ],
)
def test_filters_choose(world, five, query, found):
    for letter, values in {
        "a": {"maintenance": True, "fault": "power failure", "owner": "me", "shard": "x"},
        "b": {"driver": "redfish", "lessee": "me", "shard": "y"},
        "c": {"instance_uuid": str(uuids.uuid4()), "provision_state": "active"},
        "d": {"resource_class": "large", "description": "new fan"},
        "e": {"retired": True, "instance_name": "db"},
    }.items():
        world.set(five.get(f"/v1/nodes/{letter}").json["uuid"], **values)
    assert "".join(names(five.get(f"/v1/nodes?{query}"))) == found


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("name=a", 400), ("uuid=a", 400), ("fault=none", 400), ("fault=", 400),
        ("provision_state=deleted", 400), ("provision_state=None", 400),
        ("provision_state=active,error", 400), ("instance_uuid=x", 400),
        ("chassis_uuid=x", 400), (f"chassis_uuid={uuids.UUID(int=2)}", 404),
        ("detail=true&fields=uuid", 400), ("detail=true&fields=", 400),
        ("detail=false&fields=uuid", 200),
    ],
)  # fmt: skip
def test_filters_are_checked(five, query, status):
    assert five.get(f"/v1/nodes?{query}").status == status


@pytest.mark.parametrize(
    ("query", "since", "below"),
    [
        ("provision_state=active", 9, 406), ("driver=x", 16, 406), ("resource_class=x", 21, 406),
        ("fault=power%20failure", 42, 406), ("conductor_group=x", 46, 406),
        ("conductor=x", 49, 406),
        ("owner=x", 50, 406), ("lessee=x", 65, 406), ("shard=x", 82, 406), ("sharded=1", 82, 406),
        ("include_children=1", 83, 406), ("parent_node=x", 83, 406), ("instance_name=x", 104, 406),
        ("detail=true", 43, 400), ("fields=uuid", 8, 406), ("sort_key=name", 5, 406),
        ("description_contains=x", 2, 200), ("retired=1", 2, 200), ("project=x", 2, 200),
    ],
)  # fmt: skip
def test_newer_filters_are_refused(five, query, since, below):
    answer = five.get(f"/v1/nodes?{query}", version=since - 1)
    assert answer.status == below
    if below != 200:
        assert f"1.{since}" in answer.said
    assert five.get(f"/v1/nodes?{query}", version=since).status == 200


def test_detail_path_asks_for_children_in_every_version(five):
    assert five.get("/v1/nodes/detail?include_children=1", version=82).status == 200
    assert five.get("/v1/nodes/detail?parent_node=a", version=82).status == 200


def test_an_order_by_a_newer_field_is_refused_as_newer_first(five):
    assert five.get("/v1/nodes?sort_key=network_data", version=65).status == 406
    assert five.get("/v1/nodes?sort_key=network_data", version=66).status == 400


def test_detail_path_takes_no_fields(five):
    assert five.get("/v1/nodes/detail?fields=uuid").status == 400
    assert five.get("/v1/nodes/detail?detail=true").status == 400


def test_children_are_left_out_unless_asked_for(world, five):
    rack = five.get("/v1/nodes/a").json["uuid"]
    world.set(five.get("/v1/nodes/b").json["uuid"], parent_node=rack)
    assert names(five.get("/v1/nodes")) == list("acde")
    assert names(five.get("/v1/nodes?include_children=true")) == list("abcde")
    assert names(five.get(f"/v1/nodes?parent_node={rack}")) == ["b"]
    assert names(five.get("/v1/nodes?parent_node=a")) == ["b"]
    assert names(five.get("/v1/nodes?parent_node=a&include_children=false")) == ["b"]
    both = names(five.get("/v1/nodes?parent_node=a&include_children=true"))
    assert both == list("abcde"), "include_children lists all nodes, as in Ironic"
