"""Config drives are images that cloud-init can read."""

from __future__ import annotations

import base64
import gzip
import io
import json
import random
from typing import Any

import pycdlib
import pytest

from bloomery import errors
from bloomery.conductor import configdrive
from bloomery.model.node import Node

NODE = Node(uuid="66666666-6666-4666-8666-666666666666", driver="fake-hardware", name="web-1")
WHOLE = {
    "meta_data": {"hostname": "web", "name": "mine"},
    "network_data": {"links": [], "networks": [], "services": []},
    "user_data": "#cloud-config\nä: 1\n",
    "vendor_data": {"cloud": "ours"},
}


def files(image: str, facade: str = "rr_path") -> dict[str, bytes]:
    """Return {path: content} of an image, as one of the ways to read it has it."""
    iso = pycdlib.PyCdlib()
    iso.open_fp(io.BytesIO(gzip.decompress(base64.b64decode(image, validate=True))))
    contents = {}
    for folder, _, names in iso.walk(**{facade: "/"}):
        for name in names:
            path, file = f"{folder}/{name}", io.BytesIO()
            iso.get_file_from_iso_fp(file, **{facade: path})
            contents[path] = file.getvalue()
    assert iso.pvd.volume_identifier.decode().strip() == "config-2"
    iso.close()
    return contents


@pytest.mark.parametrize("facade", ["rr_path", "joliet_path"])
def test_both_versions_hold_all_files(facade: str):
    contents = files(configdrive.image_of(NODE, WHOLE), facade)
    for version in ("2012-08-10", "latest"):
        folder = f"/openstack/{version}"
        meta_data = json.loads(contents.pop(f"{folder}/meta_data.json"))
        assert meta_data == {"uuid": NODE.uuid, "name": "mine", "hostname": "web"}
        assert json.loads(contents.pop(f"{folder}/network_data.json")) == WHOLE["network_data"]
        assert contents.pop(f"{folder}/user_data").decode() == WHOLE["user_data"]
        assert json.loads(contents.pop(f"{folder}/vendor_data2.json")) == WHOLE["vendor_data"]
    assert contents == {}


def test_both_versions_share_their_files():
    noise = random.Random(1).randbytes(1 << 19).hex()
    image = configdrive.image_of(NODE, {"user_data": noise})
    assert len(noise) < len(gzip.decompress(base64.b64decode(image))) < 1.5 * len(noise)


@pytest.mark.parametrize(
    "document", [{"meta_data": {}}, {"user_data": None}, {"user_data": "", "network_data": {}}]
)
def test_what_is_left_out_has_no_file_but_the_name_of_the_node(document: dict[str, Any]):
    contents = files(configdrive.image_of(NODE, document))
    assert [path.rpartition("/")[2] for path in contents] == ["meta_data.json"] * 2
    assert json.loads(contents["/openstack/latest/meta_data.json"]) == {
        "uuid": NODE.uuid, "name": "web-1",
    }  # fmt: skip


@pytest.mark.parametrize("user_data", [{"a": [1]}, [1, "two"]])
def test_user_data_that_are_no_text_are_json(user_data: Any):
    contents = files(configdrive.image_of(NODE, {"user_data": user_data}))
    assert json.loads(contents["/openstack/latest/user_data"]) == user_data


@pytest.mark.parametrize("large", ["A" * (87 << 20), {"user_data": "x" * (65 << 20)}])
def test_what_is_larger_than_its_partition_is_refused(large: Any):
    with pytest.raises(errors.InvalidParameterValue, match="configdrive takes at most 64 MiB"):
        configdrive.check_size(NODE, large)


@pytest.mark.parametrize("small", [None, "", {}, "QUJD", "http://images/x", {"user_data": "x"}])
def test_what_fits_into_its_partition_is_taken(small: Any):
    configdrive.check_size(NODE, small)
