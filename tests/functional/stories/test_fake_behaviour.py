"""What a fake machine is told to do is looked at when it is written."""

from __future__ import annotations

import pytest

ODD = {"wait": {"deploy.deploy": "soon"}}


def test_a_behaviour_that_nobody_could_follow_is_not_enrolled(stage):
    values = {"driver": "fake-hardware", "driver_info": {"fake": ODD}}
    answer = stage.api.post("/v1/nodes", values)
    assert answer.status == 400
    assert "driver_info/fake/wait takes a map of names to numbers" in answer.said


@pytest.mark.parametrize(
    ("path", "value"),
    [("/driver_info", {"fake": ODD}), ("/driver_info/fake", ODD), ("/driver_info/fake/wait", [])],
)
def test_nor_does_a_patch_bring_it(stage, path, value):
    node = stage.enrol({"wait": {"deploy.deploy": 1}})
    answer = stage.api.patch(
        f"/v1/nodes/{node}", [{"op": "add", "path": path, "value": value}],
    )  # fmt: skip
    assert answer.status == 400
    assert "driver_info/fake/wait" in answer.said
    assert stage.show(node)["driver_info"] == {"fake": {"wait": {"deploy.deploy": 1}}}


def test_other_keys_are_other_drivers_business(stage):
    info = {"fake": {"wait": {"deploy": 1}}, "redfish_address": 7}
    assert stage.api.node(driver_info=info)["driver_info"] == info
