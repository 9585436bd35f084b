"""Which node changes the password of which BMC."""

from __future__ import annotations

import pytest

from bloomery.cli import passwords
from bloomery.cli.client import ApiError


def node(name, state="manageable", address="https://bmc-1", user="admin", **more):
    info = {"redfish_address": address, "redfish_username": user, "redfish_password": "******"}
    return {
        "name": name, "uuid": f"uuid of {name}", "provision_state": state, "maintenance": False,
        "driver_info": info, "driver_internal_info": {}, "management_interface": "redfish",
    } | more  # fmt: skip


def ipmi(name, **changes):
    info = {"ipmi_address": "bmc-1", "ipmi_username": "admin", "ipmi_password": "******"} | changes
    return node(name, driver_info=info, management_interface="ipmitool")


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
        ([node("a", driver_info={"ipmi_address": "bmc-1"})], [], {"a": "it has no BMC by Redfish"}),
        ([node("a", user=None)], [], {"a": "it has no BMC by Redfish"}),
        ([ipmi("a"), ipmi("b", ipmi_port=623), ipmi("c", ipmi_port=624)],
         [("a", ["b"]), ("c", [])], {}),
        ([node("a"), ipmi("b")], [("a", []), ("b", [])], {}),
        ([ipmi("a", ipmi_username=None)], [], {"a": "or IPMI with a user and a password"}),
        ([node(None, "enroll")], [], {"uuid of None": "see bloomery node manage"}),
    ],
    ids=str,
)  # fmt: skip
def test_each_login_is_changed_once(nodes, planned, refused):
    rotations, refusals = passwords.plan(nodes)
    assert [(each.name, [o["name"] for o in each.others]) for each in rotations] == planned
    assert set(refusals) == set(refused)
    assert all(text in refusals[name] for name, text in refused.items())


class Service:
    """Answers as ``answers`` says, one for each look at a node; an int is its refusal."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def post(self, _path, body):
        return {"results": [{"node": name, "error": None} for name in body["nodes"]]}

    def get(self, _path):
        answer = self.answers.pop(0)
        if isinstance(answer, int):
            raise ApiError(reason="it stumbles", answer=answer or None)
        return answer


GOING_ON = {"provision_state": "cleaning", "reservation": "host", "last_error": None,
            "driver_internal_info": {}}  # fmt: skip
CHANGED = {"provision_state": "manageable", "reservation": None, "last_error": None,
           "driver_internal_info": {"bmc_other_login": {"role": "former"}}}  # fmt: skip
REFUSED = CHANGED | {"driver_internal_info": {"bmc_other_login": {"role": "new"}}}
NO_ANSWER = 0


@pytest.mark.parametrize(
    ("answers", "limit_s", "error"),
    [
        ([GOING_ON, CHANGED], 60, None),
        ([GOING_ON, NO_ANSWER, NO_ANSWER, GOING_ON, CHANGED], 60, None),
        ([503, CHANGED], 60, None),
        ([REFUSED], 60, "it is in manageable, with the old password"),
        ([NO_ANSWER], -1, "cannot tell whether it was changed: it stumbles"),
        ([403], 60, "cannot tell whether it was changed: it stumbles"),
        ([GOING_ON], -1, "it is in cleaning after -1 s"),
    ],
)
def test_a_service_that_restarts_ends_no_watch(monkeypatch, answers, limit_s, error):
    monkeypatch.setattr(passwords, "_POLL_S", 0)
    (rotation,), _ = passwords.plan([node("a")])
    service = Service(*answers)
    assert passwords._run(service, [rotation], None, limit_s) == {"a": error}
    assert service.answers == []
