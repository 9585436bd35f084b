"""Which node changes the password of which BMC."""

from __future__ import annotations

import pytest

from bloomery.cli import passwords


def node(name, state="manageable", address="https://bmc-1", user="admin", **more):
    info = {"redfish_address": address, "redfish_username": user, "redfish_password": "******"}
    return {
        "name": name, "uuid": f"uuid of {name}", "provision_state": state, "maintenance": False,
        "driver_info": info, "driver_internal_info": {},
    } | more  # fmt: skip


@pytest.mark.parametrize(
    ("nodes", "planned", "refused"),
    [
        ([], [], {}),
        ([node("a")], [("a", [])], {}),
        ([node("a", address="bmc-1"), node("b", address="https://BMC-1:443/")],
         [("a", ["b"])], {}),
        ([node("a"), node("b", user="audit")], [("a", []), ("b", [])], {}),
        ([node("a"), node("b", address="https://bmc-2")], [("a", []), ("b", [])], {}),
        ([node("a", "available"), node("b")], [("b", ["a"])], {}),
        ([node("a", "manageable"), node("b", "active", "bmc-2"), node("c", address="bmc-3")],
         [("b", []), ("a", []), ("c", [])], {}),
        ([node("a", "available")], [], {"a": "it is in available"}),
        ([node("a", maintenance=True)], [], {"a": "it is in maintenance"}),
        ([node("a", driver_info={"ipmi_address": "bmc-1"})], [], {"a": "it has no Redfish BMC"}),
        ([node("a", user=None)], [], {"a": "it has no Redfish BMC"}),
        ([node(None, "enroll")], [], {"uuid of None": "see bloomery node manage"}),
    ],
    ids=str,
)  # fmt: skip
def test_each_login_is_changed_once(nodes, planned, refused):
    rotations, refusals = passwords.plan(nodes)
    assert [(each.name, [o["name"] for o in each.others]) for each in rotations] == planned
    assert set(refusals) == set(refused)
    assert all(text in refusals[name] for name, text in refused.items())
