"""Power, boot mode, secure boot, boot device."""

from __future__ import annotations

import pytest

from bloomery.api.versions import MAX


@pytest.fixture
def node(world):
    return world.node(power_state="power on")


def power(world, node, version=MAX, **body):
    return world.api.put(f"/v1/nodes/{node}/states/power", body, version=version)


@pytest.mark.parametrize(
    "target", ["power on", "power off", "rebooting", "soft rebooting", "soft power off"]
)
def test_power_is_asked_for(world, node, target):
    answer = power(world, node, target=target, timeout=30)
    assert (answer.status, answer.body) == (202, b"")
    assert answer.headers["location"] == f"http://localhost/v1/nodes/{node}/states"
    assert world.conductor.calls[-1] == ("change_node_power_state", node, target, 30)


@pytest.mark.parametrize(
    ("body", "version", "status"),
    [
        ({"target": "POWER ON"}, MAX, 400),
        ({"target": "nonsense"}, MAX, 400),
        ({"target": None}, MAX, 400),
        ({"target": ""}, MAX, 400),
        ({"target": 5}, MAX, 400),
        ({"target": ["power on"]}, MAX, 400),
        ({}, MAX, 400),
        ({"target": "power on", "nonsense": 1}, MAX, 400),
        ({"target": "soft power off"}, 26, 406),
        ({"target": "soft power off"}, 27, 202),
        ({"target": "power on", "timeout": 5}, 26, 406),
        ({"target": "power on", "timeout": 0}, MAX, 400),
        ({"target": "power on", "timeout": -5}, MAX, 400),
        ({"target": "power on", "timeout": "x"}, MAX, 400),
        ({"target": "power on", "timeout": None}, 26, 202),
        ({"target": "power on"}, 1, 202),
    ],
    ids=str,
)
def test_power_arguments_are_checked(world, node, body, version, status):
    assert power(world, node, version, **body).status == status


@pytest.mark.parametrize("body", [{"target": "power on"}, {"target": None}])
def test_an_argument_of_query_and_body_has_come_twice(world, node, body):
    path = f"/v1/nodes/{node}/states/power"
    answer = world.api.put(f"{path}?target=power%20on", body)
    assert (answer.status, "Expected string for target" in answer.said) == (400, True)
    assert world.api.put(f"{path}?timeout=30", {"target": "power on"}).status == 202


def test_unknown_target_is_told_the_power_state(world, node):
    assert '"power on"' in power(world, node, target="nonsense").said


@pytest.mark.parametrize("state", ["cleaning", "clean wait"])
def test_power_is_left_alone_while_cleaning(world, node, state):
    world.set(node, provision_state=state)
    assert power(world, node, target="power on").status == 400


@pytest.mark.parametrize(
    ("target", "status"),
    [("power off", 409), ("soft power off", 409), ("rebooting", 202), ("power on", 202)],
)
def test_node_that_must_stay_on_is_not_powered_off(world, node, target, status):
    world.set(node, disable_power_off=True)
    assert power(world, node, target=target).status == status


def test_locked_node_is_a_conflict(world, node):
    world.set(node, reservation="somebody")
    assert power(world, node, target="power on").status == 409


@pytest.mark.parametrize(
    ("what", "target", "status"),
    [
        ("boot_mode", "uefi", 202), ("boot_mode", "bios", 202), ("boot_mode", "UEFI", 400),
        ("boot_mode", None, 400), ("boot_mode", 5, 400), ("boot_mode", ["bios"], 400),
        ("secure_boot", True, 202), ("secure_boot", "false", 202), ("secure_boot", "maybe", 400),
        ("secure_boot", None, 400), ("secure_boot", [], 400),
    ],
)  # fmt: skip
def test_boot_mode_and_secure_boot_are_asked_for(world, node, what, target, status):
    answer = world.api.put(f"/v1/nodes/{node}/states/{what}", {"target": target})
    assert answer.status == status
    if status == 202:
        assert answer.headers["location"] == f"http://localhost/v1/nodes/{node}/states"


@pytest.mark.parametrize("what", ["boot_mode", "secure_boot"])
def test_boot_mode_waits_for_a_stable_state(world, node, what):
    world.set(node, provision_state="deploying")
    target = "uefi" if what == "boot_mode" else True
    answer = world.api.put(f"/v1/nodes/{node}/states/{what}", {"target": target})
    assert answer.status == 409


@pytest.mark.parametrize(
    ("version", "keys"),
    [
        (1, 7),
        (12, 9),
        (75, 11),
    ],
)
def test_states_show_what_the_version_knows(world, node, version, keys):
    found = world.api.get(f"/v1/nodes/{node}/states", version=version).json
    assert len(found) == keys
    assert found["power_state"] == "power on"
    assert "links" not in found


def test_boot_device_is_set_and_read(world, node):
    path = f"/v1/nodes/{node}/management/boot_device"
    assert world.api.get(path).json == {"boot_device": None, "persistent": None}
    answer = world.api.put(path, {"boot_device": "pxe", "persistent": "yes"})
    assert (answer.status, answer.body) == (204, b"")
    assert world.api.get(path).json == {"boot_device": "pxe", "persistent": True}
    assert world.api.get(f"{path}/supported").json == {"supported_boot_devices": ["pxe", "disk"]}
    assert world.api.put(f"{path}?boot_device=disk").status == 204


def test_boot_device_of_a_node_in_a_flow_is_read_and_not_set(world, node):
    path = f"/v1/nodes/{node}/management/boot_device"
    world.set(node, reservation="somebody", provision_state="deploying")
    assert world.api.get(path).json == {"boot_device": None, "persistent": None}
    answer = world.api.put(path, {"boot_device": "pxe"})
    assert (answer.status, b"somebody" in answer.body) == (409, True)


@pytest.mark.parametrize(
    "body", [{}, {"boot_device": 5}, {"boot_device": "tape"}, {"boot_device": "pxe", "x": 1}]
)
def test_boot_device_is_checked(world, node, body):
    assert world.api.put(f"/v1/nodes/{node}/management/boot_device", body).status == 400
