"""RAID volumes by Redfish: the existing ones, and the choice of drives for new ones.

Source: DMTF DSP0268, Storage, Drive, Volume, and DSP0266, @Redfish.OperationApplyTime.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from bloomery import errors
from bloomery.drivers.redfish import reading, tasks

Json = dict[str, Any]

_GIB: Final = 1 << 30
_APPLY: Final = "@Redfish.OperationApplyTime"
ON_RESET: Final = "OnReset"


class Level(NamedTuple):
    """A RAID level: Redfish's name, least drives, step of their number, drives of overhead.

    ``most``: the maximum of drives; ``mirrored``: half of them hold copies.
    """

    redfish_name: str
    least: int
    step: int = 1
    overhead: int = 0
    mirrored: bool = False
    most: int = 1_000

    def capacity(self, count: int, drive_bytes: int) -> int:
        data = count // 2 if self.mirrored else count - self.overhead
        return data * drive_bytes


LEVELS: Final[Mapping[str, Level]] = {
    "0": Level("RAID0", 1),
    "1": Level("RAID1", 2, mirrored=True, most=2),
    "5": Level("RAID5", 3, overhead=1),
    "6": Level("RAID6", 4, overhead=2),
    "1+0": Level("RAID10", 4, step=2, mirrored=True),
    "5+0": Level("RAID50", 6, step=2, overhead=2),
    "6+0": Level("RAID60", 8, step=2, overhead=4),
}
_NAMES: Final = {level.redfish_name: name for name, level in LEVELS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Drive:
    path: str
    ident: str
    capacity_bytes: int
    media: str
    protocol: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    path: str
    controller: str
    name: str | None
    raid_type: str | None
    capacity_bytes: int | None
    drives: frozenset[str]


@dataclass(slots=True, kw_only=True)
class Controller:
    """A Storage: ``raid_types`` that it supports (empty: unknown), ``apply_time`` to request.

    ``taken``: paths of drives in volumes.
    """

    ident: str
    names: tuple[str, ...]
    collection: str
    raid_types: frozenset[str]
    apply_time: str | None
    drives: list[Drive]
    taken: set[str] = field(default_factory=set)


# ------------------------------------------------------------------------- existing volumes


def existing(system: Any) -> list[Volume]:
    """Return the RAID volumes of all controllers."""
    return [volume for storage in _storages(system) for volume in _volumes(storage)]


def _storages(system: Any) -> Iterator[Any]:
    yield from reading.optional(lambda: list(reading.each(system.storage))) or ()


def _volumes(storage: Any) -> Iterator[Volume]:
    collection = reading.optional(lambda: storage.volumes)
    for each in reading.each(collection) if collection is not None else ():
        document = each.json
        raid_type = document.get("RAIDType")
        if raid_type is None and document.get("VolumeType") == "RawDevice":
            continue  # a drive by itself
        links = (document.get("Links") or {}).get("Drives") or ()
        yield Volume(
            path=each.path, controller=str(storage.identity), name=document.get("Name"),
            raid_type=raid_type, capacity_bytes=document.get("CapacityBytes"),
            drives=frozenset(link["@odata.id"] for link in links),
        )  # fmt: skip


def raid_config(system: Any) -> Json:
    """Return the node's ``raid_config``: its volumes in Ironic's form."""
    disks = []
    for volume in existing(system):
        idents = sorted(path.rstrip("/").rpartition("/")[2] for path in volume.drives)
        disk: Json = {"controller": volume.controller, "physical_disks": idents}
        if volume.name:
            disk["volume_name"] = volume.name
        if volume.raid_type in _NAMES:
            disk["raid_level"] = _NAMES[volume.raid_type]
        if volume.capacity_bytes:
            disk["size_gb"] = volume.capacity_bytes // _GIB
        disks.append(disk)
    return {"logical_disks": disks} if disks else {}


def _controllers(system: Any) -> list[Controller]:
    controllers = []
    for storage in _storages(system):
        collection = reading.optional(lambda storage=storage: storage.volumes)
        if collection is None:
            continue
        parts = [each for each in storage.json.get("StorageControllers") or () if each]
        types = {kind for part in parts for kind in part.get("SupportedRAIDTypes") or ()}
        names = [storage.name, *(part.get("Name") for part in parts)]
        controllers.append(
            Controller(
                ident=str(storage.identity),
                names=tuple(str(name) for name in (storage.identity, *names) if name),
                collection=collection.path,
                raid_types=frozenset(types),
                apply_time=apply_time(collection.json),
                drives=[
                    Drive(
                        path=drive.path,
                        ident=str(drive.identity),
                        capacity_bytes=int(drive.json.get("CapacityBytes") or 0),
                        media=str(drive.json.get("MediaType") or "").lower(),
                        protocol=str(drive.json.get("Protocol") or "").lower(),
                    )
                    for drive in reading.drives([storage])
                ],
                taken={path for volume in _volumes(storage) for path in volume.drives},
            )
        )
    return controllers


def apply_time(document: Mapping[str, Any]) -> str | None:
    """Return the apply time to request: Immediate, if it is offered."""
    support = document.get(f"{_APPLY}Support") or {}
    offered = support.get("SupportedValues") or ()
    return next((time for time in ("Immediate", ON_RESET) if time in offered), None)


# ------------------------------------------------------------------------------ new volumes


def check(config: Mapping[str, Any]) -> None:
    """Raise InvalidParameterValue for settings that Ironic's schema allows and Redfish does not."""
    for number, disk in enumerate(config["logical_disks"]):
        where = f"logical_disks/{number}"
        if disk["raid_level"] not in LEVELS:
            raise errors.InvalidParameterValue(
                reason=f"{where}/raid_level: redfish makes {', '.join(LEVELS)}, "
                f"not {disk['raid_level']}",
            )
        if disk.get("share_physical_disks"):
            raise errors.InvalidParameterValue(
                reason=f"{where}/share_physical_disks: redfish makes each volume of whole drives",
            )
        if any(isinstance(each, dict) for each in disk.get("physical_disks") or ()):
            raise errors.InvalidParameterValue(
                reason=f"{where}/physical_disks: redfish takes Ids of drives, not hints",
            )


def plan(system: Any, disks: Sequence[Json]) -> list[Json]:
    """Return the requests for ``disks``: {"collection", "payload", "drives"}, "MAX" disks last.

    Raises StepFailure where the free drives do not suffice.
    """
    controllers = _controllers(system)
    ordered = sorted(disks, key=lambda disk: disk["size_gb"] == "MAX")
    return [_request(controllers, disk) for disk in ordered]


def _request(controllers: Sequence[Controller], disk: Json) -> Json:
    """Return the request for a disk, and take its drives: alike ones, the smallest that hold it."""
    level, names = LEVELS[disk["raid_level"]], disk.get("physical_disks")
    for controller in controllers:
        makes = not controller.raid_types or level.redfish_name in controller.raid_types
        if disk.get("controller") not in (None, *controller.names) or not makes:
            continue
        kinds: dict[tuple[str, str], list[Drive]] = {}
        for drive in sorted(controller.drives, key=lambda drive: drive.capacity_bytes):
            fits = (
                drive.path not in controller.taken
                and (not names or drive.ident in names or drive.path in names)
                and disk.get("disk_type") in (None, drive.media)
                and disk.get("interface_type") in (None, drive.protocol)
            )
            if fits:
                kinds.setdefault((drive.media, drive.protocol), []).append(drive)
        for drives in kinds.values():
            paths = [drive.path for drive in _take(level, disk, drives)]
            if not paths:
                continue
            controller.taken.update(paths)
            links = [{"@odata.id": path} for path in paths]
            payload: Json = {"RAIDType": level.redfish_name, "Links": {"Drives": links}}
            if disk.get("volume_name"):
                payload["Name"] = disk["volume_name"]
            if disk["size_gb"] != "MAX" and disk["size_gb"]:
                payload["CapacityBytes"] = disk["size_gb"] * _GIB
            if controller.apply_time:
                payload[_APPLY] = controller.apply_time
            return {"collection": controller.collection, "payload": payload, "drives": paths}
    free = [
        f"{controller.ident}:{drive.ident} ({drive.capacity_bytes // _GIB} GiB)"
        for controller in controllers
        for drive in controller.drives
        if drive.path not in controller.taken
    ]
    raise errors.StepFailure(
        reason=f"no controller has free drives for a volume of RAID level {disk['raid_level']} and "
        f"size_gb {disk['size_gb']}: it has {', '.join(free[:20]) or 'none'}",
    )


def _take(level: Level, disk: Json, drives: Sequence[Drive]) -> list[Drive]:
    """Return the fewest drives that hold the size, the smallest of those, or [] where none do."""
    named = disk.get("number_of_physical_disks") or len(disk.get("physical_disks") or ()) or None
    size = 0 if disk["size_gb"] == "MAX" else disk["size_gb"] * _GIB
    for count in range(level.least, min(level.most, len(drives)) + 1, level.step):
        for at in range(len(drives) - count + 1) if named in (None, count) else ():
            if level.capacity(count, drives[at].capacity_bytes) >= size:
                return list(drives[at : at + count])
    return []


# ------------------------------------------------------------------------------------ requests


def create(system: Any, request: Json) -> tuple[str | None, str | None]:
    """Order a volume, unless one on the same drives exists; return the apply time and the task.

    None is the task of a volume that exists.  So an order with an unknown result may be repeated.
    """
    when: str | None = request["payload"].get(_APPLY)
    if any(volume.drives == set(request["drives"]) for volume in existing(system)):
        return when, None
    connection = system.root._conn  # noqa: SLF001
    return when, tasks.monitor(connection.post(request["collection"], data=request["payload"]))


def delete(system: Any, path: str) -> tuple[str | None, str | None]:
    """Delete a volume, if it exists; return the apply time and the path of the task."""
    import sushy

    connection = system.root._conn  # noqa: SLF001
    collection = reading.optional(reading.fetch, system, path.rpartition("/")[0]) or {}
    when = apply_time(collection)
    try:
        return when, tasks.monitor(connection.delete(path, data={_APPLY: when} if when else None))
    except sushy.exceptions.ResourceNotFoundError:
        return when, None
