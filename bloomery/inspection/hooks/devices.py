"""Hooks for disks, PCI devices and the data of hardware-detect."""

from __future__ import annotations

import contextlib
import functools
import json
import logging
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from bloomery import errors
from bloomery.inspection import base
from bloomery.inspection.base import Changes, Hook, Inspection

LOG = logging.getLogger(__name__)
Json = dict[str, Any]
_GIB: Final = 1 << 30
_MOST_DATA: Final = 100_000  # lines of hardware-detect


class RootDevice(Hook):
    """local_gb and plugin_data.root_disk, by the node's root device hints.

    Without hints, the disk that the agent chose.  local_gb is 0 where the inventory lists no disk.
    Rules read local_gb in plugin_data as well.
    """

    def process(self, inspection: Inspection) -> Changes | None:
        hints = inspection.node.properties.get("root_device")
        disk = _hinted(inspection, hints) if hints else inspection.plugin_data.get("root_disk")
        size = base.number(disk, "size") if isinstance(disk, dict) else None
        if disk is None and not base.objects(inspection.inventory, "disks"):
            size = 0
        if size is None:
            return None
        spared_gib = 1 if inspection.conf.disk_partitioning_spacing else 0
        size_gib = max(size // _GIB - spared_gib, 0)
        data = {"root_disk": disk} if isinstance(disk, dict) else {}
        return Changes(properties={"local_gb": size_gib}, plugin_data=data | {"local_gb": size_gib})


def _hinted(inspection: Inspection, hints: Any) -> Json:
    from ironic_lib import utils  # Ironic's own matching; slow to import, and rarely needed

    disks = base.objects(inspection.inventory, "disks")
    try:
        skipped: set[str] = set()
        for each in inspection.node.properties.get("skip_block_devices") or ():
            skipped.update(disk["name"] for disk in utils.find_devices_by_hints(disks, each))
        usable = [disk for disk in disks if disk.get("name") not in skipped]
        disk: Json | None = utils.match_root_device_hints(usable, hints)
    except (TypeError, ValueError, KeyError, AttributeError) as exc:
        raise errors.HardwareInspectionFailure(
            reason="cannot compare the disks with properties/root_device and skip_block_devices: "
            f"{exc}",
        ) from exc
    if disk is None:
        raise errors.HardwareInspectionFailure(
            reason=f"none of {len(usable)} disks is what properties/root_device asks for",
        )
    return disk


class RaidDevice(Hook):
    """The root device of a RAID created between two inspections: the disk that is new."""

    reads_previous: ClassVar[bool] = True

    def process(self, inspection: Inspection) -> Changes | None:
        serials, before = _serials(inspection.inventory), _serials(inspection.previous)
        node = inspection.node
        if not serials or inspection.previous is None or node.properties.get("root_device"):
            return None
        new = [serial for serial in serials if serial not in before]
        if len(new) > 1:
            LOG.warning(
                "node %s: %d disks are new since the last inspection, so none becomes the root "
                "device: set properties/root_device",
                node.uuid, len(new),
            )  # fmt: skip
        return Changes(properties={"root_device": {"serial": new[0]}}) if len(new) == 1 else None


def _serials(inventory: Json | None) -> list[str]:
    disks = base.objects(inventory, "disks")
    return [serial for disk in disks if (serial := base.text(disk, "serial"))]


class PciDevices(Hook):
    """A capability for each alias of [inspector]pci_device_alias: the number of devices."""

    def process(self, inspection: Inspection) -> Changes:
        counts = Counter(_pci_ids(inspection))
        capabilities: dict[str, str | None] = {}
        entries = (
            entry
            for line in inspection.conf.pci_device_alias
            for entry in ([line] if line.lstrip().startswith("{") else line.split(","))
        )
        for vendor, product, alias in map(_alias, entries):
            count = counts[vendor.lower(), product.lower()]
            capabilities[alias] = str(count) if count else None
        return Changes(capabilities=capabilities)


def _alias(entry: str) -> tuple[str, str, str]:
    """Return vendor, product and name of an entry: Ironic's JSON or "vendor:product:name"."""
    is_json = entry.lstrip().startswith("{")
    parts: tuple[Any, ...] = () if is_json else tuple(map(str.strip, entry.split(":", 2)))
    if is_json:
        with contextlib.suppress(ValueError):
            values = json.loads(entry)
            parts = tuple(values.get(name) for name in ("vendor_id", "product_id", "name"))
    if len(parts) != 3 or not all(isinstance(part, str) and part for part in parts):
        raise errors.HardwareInspectionFailure(
            reason='[inspector]pci_device_alias takes {"vendor_id": "1234", "product_id": "5678", '
            f'"name": "pci_dev1"}} or vendor:product:alias, not {entry!r}',
        )
    return parts


def _pci_ids(inspection: Inspection) -> list[tuple[str, str]]:
    return [
        (str(device.get("vendor_id")).lower(), str(device.get("product_id")).lower())
        for device in base.objects(inspection.plugin_data, "pci_devices")
    ]


class Accelerators(Hook):
    """properties.accelerators: the PCI devices that are known accelerators, where any is listed."""

    def process(self, inspection: Inspection) -> Changes | None:
        known = _known_accelerators(inspection.conf.known_accelerators)
        devices = base.objects(inspection.plugin_data, "pci_devices")
        accelerators = [
            known[ids] | {"pci_address": device.get("bus")}
            for ids, device in zip(_pci_ids(inspection), devices, strict=True)
            if ids in known
        ]
        return Changes(properties={"accelerators": accelerators}) if devices else None


_ACCELERATORS: Final = (
    ("10de", "1db4", "GPU", "NVIDIA Tesla V100 PCIe 16GB"),
    ("10de", "1db6", "GPU", "NVIDIA Tesla V100 PCIe 32GB"),
    ("10de", "1eb8", "GPU", "NVIDIA Corporation Tesla T4"),
    ("10de", "20b0", "GPU", "NVIDIA A100 SXM4 40GB"),
    ("10de", "20b5", "GPU", "NVIDIA A100 PCIe 80GB"),
    ("10de", "2331", "GPU", "NVIDIA H100 PCIe 80GB"),
)


@functools.lru_cache(maxsize=4)
def _known_accelerators(path: str | None) -> Mapping[tuple[str, str], Json]:
    """Return the accelerators by vendor and device ID, from a file or built in.

    The file: {pci_devices: [{vendor_id, device_id, type, device_info}, ...]}.
    """
    names = ("vendor_id", "device_id", "type", "device_info")
    listed = [dict(zip(names, row, strict=True)) for row in _ACCELERATORS]
    if path is not None:
        import yaml  # rarely needed

        try:
            listed = base.objects(yaml.safe_load(Path(path).read_bytes()), "pci_devices")
        except (OSError, yaml.YAMLError) as exc:
            raise errors.HardwareInspectionFailure(
                reason=f"cannot read [inspector]known_accelerators = {path}: {exc}",
            ) from exc
    return {
        (str(each.get("vendor_id")).lower(), str(each.get("device_id")).lower()): each
        for each in listed
    }


class ExtraHardware(Hook):
    """plugin_data.extra: the lines of hardware-detect in ``data``, as an object."""

    def process(self, inspection: Inspection) -> Changes | None:
        lines = inspection.plugin_data.get("data")
        if not isinstance(lines, list):
            return None
        extra: Json = {}
        for line in lines[:_MOST_DATA]:
            if isinstance(line, list) and len(line) == 4:
                kind, name, key, value = line
                part = extra.setdefault(str(kind), {}).setdefault(str(name), {})
                if isinstance(value, str) and value.isascii() and len(value) < 19:
                    with contextlib.suppress(ValueError):
                        value = int(value)
                part[str(key)] = value
        return Changes(plugin_data={"extra": extra, "data": None})
