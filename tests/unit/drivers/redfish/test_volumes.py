"""Which drives a volume is made of, and what is asked of a BMC about it."""

from __future__ import annotations

import pytest

from bloomery import errors
from bloomery.drivers.redfish import volumes
from bloomery.drivers.redfish.volumes import Controller, Drive

GIB = 1 << 30


def controller(*sizes, apply_time=None, raid_types=(), media="ssd"):
    return Controller(
        ident="1", names=("1", "PERC"), collection="/Volumes", raid_types=frozenset(raid_types),
        apply_time=apply_time,
        drives=[
            Drive(path=f"/Drives/{n}", ident=str(n), capacity_bytes=size * GIB, media=media,
                  protocol="sas")
            for n, size in enumerate(sizes)
        ],
    )  # fmt: skip


@pytest.fixture
def plan(monkeypatch):
    """Plan volumes on controllers that are given."""

    def made(*controllers, disks):
        monkeypatch.setattr(volumes, "_controllers", lambda _system: list(controllers))
        return volumes.plan(None, disks)

    return made


def drives(requests):
    return [[path[-1] for path in request["drives"]] for request in requests]


@pytest.mark.parametrize(
    ("level", "size_gb", "count"),
    [
        ("0", 10, 1), ("0", 250, 3), ("1", 100, 2), ("5", 200, 3), ("5", 201, 4), ("6", 200, 4),
        ("1+0", 200, 4), ("1+0", 201, 6), ("5+0", 400, 6), ("5+0", 401, 8), ("6+0", 400, 8),
        ("0", "MAX", 1), ("5", "MAX", 3),
    ],
)  # fmt: skip
def test_as_few_drives_as_hold_the_size(plan, level, size_gb, count):
    [request] = plan(controller(*[100] * 9), disks=[{"raid_level": level, "size_gb": size_gb}])
    assert len(request["drives"]) == count
    assert request["payload"]["RAIDType"] == volumes.LEVELS[level].redfish_name
    size = None if size_gb == "MAX" else size_gb * GIB
    assert request["payload"].get("CapacityBytes") == size


def test_no_drive_is_in_two_volumes_and_sized_ones_come_first(plan):
    disks = [{"raid_level": "0", "size_gb": "MAX"}, {"raid_level": "1", "size_gb": 90}]
    assert drives(plan(controller(100, 100, 200), disks=disks)) == [["0", "1"], ["2"]]
    with pytest.raises(errors.StepFailure, match=r"it has 1:2 \(200 GiB\)"):
        plan(controller(100, 100, 200), disks=[*disks[1:], *disks[1:]])


def test_drives_of_one_kind_make_a_volume(plan):
    mixed = controller(100, 100)
    mixed.drives.append(controller(100, media="hdd").drives[0])
    with pytest.raises(errors.StepFailure):
        plan(mixed, disks=[{"raid_level": "5", "size_gb": 1}])


def test_the_next_controller_is_tried(plan):
    zero_alone = controller(100, 100, raid_types=("RAID0",))
    other = controller(100, 100, apply_time="OnReset")
    [request] = plan(zero_alone, other, disks=[{"raid_level": "1", "size_gb": 1}])
    assert request["payload"]["@Redfish.OperationApplyTime"] == "OnReset"
