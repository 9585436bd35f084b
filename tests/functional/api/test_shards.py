"""Shards: how many nodes are in each."""

from __future__ import annotations


def test_nodes_are_counted_by_shard_the_fullest_first(world):
    for shard in ("east", "west", "west", None):
        world.node(shard=shard)
    expected = [("west", 2), ("None", 1), ("east", 1)]
    counts = [(each["name"], each["count"]) for each in world.api.get("/v1/shards").json["shards"]]
    assert counts == expected


def test_a_shard_is_no_resource_of_its_own(world):
    world.node(shard="east")
    below = world.api.get("/v1/shards/east")
    assert (below.status, below.form) == (404, "second")
    assert world.api.post("/v1/shards", {}).status == 405


def test_older_clients_see_no_shards(api):
    answer = api.get("/v1/shards", version=81)
    assert (answer.status, answer.form) == (404, "first")
    assert "shards" not in api.get("/v1", version=81).json
    assert api.get("/v1/shards", version=82).json == {"shards": []}
