"""Patches on a real conductor: what they may not reach, how large they get, what is told."""

from __future__ import annotations

import json
import logging

import pytest

from bloomery.db import records, rows
from bloomery.db.tables import NODES
from bloomery.model.nouns import PORT
from bloomery.model.rules import patches

KEPT = "hunter2-kept"
NEW = "hunter3-new"
LINK = "https://user:hunter4-link@images.test/a.qcow2"


def add(path, value, op="add"):
    return {"op": op, "path": path, "value": value}


def remove(path):
    return {"op": "remove", "path": path}


@pytest.fixture
def node(stage):
    return stage.enrol(
        driver_info={
            "x_password": KEPT,
            "passwords": [KEPT, {"a": KEPT}],
            "users": [{"name": "root", "x_password": KEPT}],
            "plain": {"a": 1},
        },
        instance_info={"image_url": LINK, "x_secret": {"y": KEPT}},
    )


def column(stage, node, name):
    [row] = stage.site.rows(NODES, uuid=node)
    return row[name]


def opened(stage, node):
    """Return driver_info as the driver reads it."""
    return stage.site.runtime.sealer.open(json.loads(column(stage, node, "driver_info")))


# ----------------------------------------------------------------------------------- secrets


@pytest.mark.parametrize(
    "operation",
    [
        add("/driver_info/passwords/-", NEW),
        add("/driver_info/passwords/0", NEW, "replace"),
        add("/driver_info/passwords/1/a", NEW),
        add("/driver_info/x_password/y", NEW),
        add("/driver_info/x_password/token", NEW),
        remove("/driver_info/x_password/token"),
        add("/driver_info/x_password/token", NEW, "replace"),
        remove("/driver_info/users/0/x_password/token"),
        add("/driver_info/users/0/x_password/y", NEW),
        add("/instance_info/x_secret/y", NEW),
        remove("/instance_info/x_secret/y"),
    ],
    ids=lambda operation: f"{operation['op']} {operation['path']}",
)
def test_a_path_into_a_secret_is_refused_and_the_secret_stays(stage, node, operation):
    before = column(stage, node, "driver_info"), column(stage, node, "instance_info")
    answer = stage.api.patch(f"/v1/nodes/{node}", [operation])
    assert answer.status == 400
    assert "is a secret: replace " in answer.said
    assert " as a whole" in answer.said
    assert NEW not in answer.said
    assert (column(stage, node, "driver_info"), column(stage, node, "instance_info")) == before


@pytest.mark.parametrize(
    ("operation", "read"),
    [
        (add("/driver_info/passwords", [NEW]), lambda info: info["passwords"] == [NEW]),
        (add("/driver_info/users/0/x_password", NEW), lambda i: i["users"][0]["x_password"]),
        (add("/driver_info/users/-", {"x_password": NEW}), lambda i: i["users"][1]["x_password"]),
        (add("/driver_info/plain/b", {"l": [{"x_password": NEW}]}), lambda i: i["plain"]["b"]),
        (add("/driver_info", {"l": [[{"x_password": {"y": NEW}}]]}), lambda i: i["l"]),
        (add("/instance_info/l", [{"x_password": NEW}]), lambda info: True),
    ],
    ids=lambda value: value["path"] if isinstance(value, dict) else "",
)
def test_a_secret_is_sealed_wherever_a_patch_puts_it(stage, node, operation, read):
    answer = stage.api.patch(f"/v1/nodes/{node}", [operation])
    assert answer.status == 200, answer.body
    assert NEW not in answer.body.decode()
    stored = column(stage, node, "driver_info") + column(stage, node, "instance_info")
    assert NEW not in stored
    assert "$sealed" in stored
    assert read(opened(stage, node))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/driver_info/x_password", "******"),
        ("/driver_info", {"x_password": "******"}),
        ("/instance_info", {"configdrive": "******"}),
    ],
)
def test_a_mask_that_comes_back_replaces_no_secret(stage, node, path, value):
    before = opened(stage, node)
    answer = stage.api.patch(f"/v1/nodes/{node}", [add(path, value)])
    assert (answer.status, "is the mask" in answer.said) == (400, True)
    assert opened(stage, node) == before
    created = {"driver": "fake-hardware", path.split("/")[1]: {"x_password": "******"}}
    assert stage.api.post("/v1/nodes", created).status == 400


def test_a_secret_can_be_removed_as_a_whole(stage, node):
    answer = stage.api.patch(f"/v1/nodes/{node}", [remove("/driver_info/x_password")])
    assert answer.status == 200
    assert "x_password" not in opened(stage, node)


def test_what_an_older_release_left_in_plain_is_sealed_with_the_next_patch(stage, node):
    info = json.loads(column(stage, node, "driver_info"))
    info["x_password"]["y"] = NEW
    info["ipmi_hex_kg_key"] = NEW
    stage.site.set(node, driver_info=rows.dump(info))
    stage.patch(node, **{"driver_info.other": 1})
    assert NEW not in column(stage, node, "driver_info")
    assert opened(stage, node)["x_password"] == KEPT
    assert opened(stage, node)["ipmi_hex_kg_key"] == NEW


@pytest.mark.parametrize("where", ["extra", "driver_info", "instance_info"])
@pytest.mark.parametrize("forged", [{"$sealed": "x"}, [{"a": {"$sealed": "x", "token": "y"}}]])
def test_what_looks_sealed_is_taken_from_nobody(stage, node, where, forged):
    enrolment = {"driver": "fake-hardware", where: {"k": forged}}
    assert stage.api.post("/v1/nodes", enrolment).status == 400
    assert stage.api.patch(f"/v1/nodes/{node}", [add(f"/{where}/k", forged)]).status == 400
    port = {"address": "52:54:00:00:00:01", "node_uuid": node}
    answer = stage.api.post("/v1/ports", port | {"extra": {"k": forged}})
    assert answer.status == 400
    assert "$sealed" in answer.said


# ------------------------------------------------------------------------------ what is told


@pytest.mark.parametrize(
    "operation",
    [
        add("/instance_info/gone/deeper", 1),
        add("/instance_info/gone", 1, "replace"),
        remove("/instance_info/gone"),
        add("/driver_info/gone/deeper", 1),
        add("/driver_info/users/x", 1),
        add("/driver_info/users/9", 1),
        remove("/driver_info/users/9/x_password"),
        add("/driver_info", NEW),
        add("/instance_info", [NEW]),
    ],
    ids=lambda operation: f"{operation['op']} {operation['path']}",
)
def test_an_error_shows_no_value(stage, node, operation, caplog):
    caplog.set_level(logging.DEBUG)
    answer = stage.api.patch(f"/v1/nodes/{node}", [operation])
    assert answer.status == 400
    told = answer.body.decode() + caplog.text
    for secret in ("hunter", "gAAA", "images.test"):
        assert secret not in told
    assert operation["path"].split("/")[1] in answer.said


# -------------------------------------------------------------------------------- its limits


def test_the_largest_patch_is_taken_and_one_operation_more_is_not(stage, node):
    most = [add(f"/extra/k{n}", n) for n in range(patches.MOST_OPERATIONS)]
    answer = stage.api.patch(f"/v1/nodes/{node}", most)
    assert answer.status == 200
    assert len(answer.json["extra"]) == len(most)
    answer = stage.api.patch(f"/v1/nodes/{node}", [*most, add("/extra/more", 1)])
    assert answer.status == 400
    assert f"at most {patches.MOST_OPERATIONS} operations" in answer.said


def nest(depth, inner=1):
    for _ in range(depth):
        inner = {"a": inner}
    return inner


def test_a_patch_nests_no_deeper_than_a_body_could(stage, node):
    most = stage.site.runtime.conf.api.max_json_body_depth
    inside = most - 5  # the node, extra, and three more below
    assert stage.api.patch(f"/v1/nodes/{node}", [add("/extra/a", nest(inside - 1))]).status == 200
    bottom = "/extra" + "/a" * inside
    answer = stage.api.patch(f"/v1/nodes/{node}", [add(bottom, nest(5))])
    assert answer.status == 400
    assert f"extra would nest deeper than {most} levels" in answer.said
    answer = stage.api.patch(f"/v1/nodes/{node}", [add(bottom, nest(4))])
    assert answer.status == 200
    copied = {"driver": "fake-hardware", "extra": answer.json["extra"]}
    assert stage.api.post("/v1/nodes", copied).status == 201


def test_a_patch_makes_nothing_larger_than_a_body_could_be(stage, node):
    half = "x" * 600_000
    assert stage.api.patch(f"/v1/nodes/{node}", [add("/extra/a", half)]).status == 200
    answer = stage.api.patch(f"/v1/nodes/{node}", [add("/extra/b", half)])
    assert answer.status == 400
    assert "extra would be larger than 1024 KiB" in answer.said


def test_a_port_is_bounded_alike(stage, node):
    port = stage.api.post("/v1/ports", {"address": "52:54:00:00:00:01", "node_uuid": node}).json
    path = f"/v1/ports/{port['uuid']}"
    most = [add(f"/extra/k{n}", n) for n in range(patches.MOST_OPERATIONS)]
    assert stage.api.patch(path, most).status == 200
    assert stage.api.patch(path, [*most, add("/extra/more", 1)]).status == 400
    deep = [add("/extra" + "/a" * n, {}) for n in range(1, 40)]
    answer = stage.api.patch(path, deep)
    assert answer.status == 400
    assert "extra would nest deeper than" in answer.said


@pytest.mark.parametrize("snapshots", [False, True])
def test_old_rows_that_nest_too_deep_can_be_read_and_mended(make_stage, snapshots):
    stage = make_stage(snapshots=snapshots)
    node = stage.enrol(name="old")
    port = stage.api.post("/v1/ports", {"address": "52:54:00:00:00:01", "node_uuid": node}).json
    deep = rows.dump(nest(251, {"x_password": KEPT}))
    stage.site.set(node, extra=deep, driver_info=deep, instance_info=deep)
    stage.site.db.transact(lambda conn: records.update(conn, PORT, port["uuid"], {"extra": deep}))
    for path in (
        "/v1/nodes/detail", "/v1/nodes/old", "/v1/nodes?fields=driver_info,extra",
        "/v1/ports/detail", f"/v1/ports/{port['uuid']}",
    ):  # fmt: skip
        answer = stage.api.get(path)
        assert answer.status == 200, path
    assert stage.api.patch("/v1/nodes/old", [add("/description", "still here")]).status == 200
    assert stage.api.put("/v1/nodes/old/maintenance", {"reason": "deep"}).status == 202
    cure = [remove(f"/{name}") for name in ("extra", "driver_info", "instance_info")]
    assert stage.api.patch("/v1/nodes/old", cure).json["extra"] == {}
    assert stage.api.patch(f"/v1/ports/{port['uuid']}", [remove("/extra")]).status == 200
