"""The fields of ``instance_info`` that stand for properties of an Instance, there and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bloomery.orchestration.properties.schema import Drift, Type, drift_names
from bloomery.orchestration.resources.instance_schema import PROPERTIES
from bloomery.orchestration.resources.machines import MARK, Json

IMAGE: Final[Mapping[str, str]] = {
    "source": "image_source",
    "checksum": "image_checksum",
    "os_hash_algo": "image_os_hash_algo",
    "os_hash_value": "image_os_hash_value",
    "type": "image_type",
    "disk_format": "image_disk_format",
    "kernel": "kernel",
    "ramdisk": "ramdisk",
    "rootfs_uuid": "image_rootfs_uuid",
    "download_source": "image_download_source",
    "boot_iso": "boot_iso",
}  # key of the property image -> key of instance_info
BOOT: Final = ("boot_mode", "secure_boot")
_TYPES: Final = {Type.INTEGER: int, Type.MAP: Mapping, Type.LIST: list}
NOTED: Final = drift_names(PROPERTIES, Drift.FIELD)  # under the same name in instance_info


def info_of(properties: Mapping[str, Any]) -> Json:
    image = properties.get("image") or {}
    info = {field: image.get(key) for key, field in IMAGE.items()}
    info |= {name: properties.get(name) for name in NOTED}
    capabilities = dict(properties.get("capabilities") or {})
    capabilities |= {
        name: str(value).lower() for name in BOOT if (value := properties.get(name)) is not None
    }
    info["capabilities"] = capabilities
    for kind, interface in (properties.get("custom_deploy") or {}).items():
        info[f"{kind}_interface"] = interface
    return {name: value for name, value in info.items() if value not in (None, "", {}, [])}


def properties_of(info: Mapping[str, Any]) -> tuple[Json, list[str]]:
    """Return the properties that ``info_of`` makes ``info`` of, and the keys without a property."""
    present = {key: value for key, value in info.items() if value not in (None, "", {}, [])}
    properties: Json = {
        name: value for name, value in present.items()
        if name in NOTED and isinstance(value, _TYPES[PROPERTIES[name].type])
    }  # fmt: skip
    fields = {field: key for key, field in IMAGE.items()}
    parts = {
        "image": {fields[key]: value for key, value in present.items() if key in fields},
        "custom_deploy": {
            key.removesuffix("_interface"): value for key, value in present.items()
            if key.endswith("_interface")
        },
    }  # fmt: skip
    if isinstance(capabilities := present.get("capabilities"), Mapping):
        rest = parts["capabilities"] = dict(capabilities)
        if rest.get("boot_mode") in ("bios", "uefi"):
            properties["boot_mode"] = rest.pop("boot_mode")
        if rest.get("secure_boot") in ("true", "false"):
            properties["secure_boot"] = rest.pop("secure_boot") == "true"
    properties |= {name: part for name, part in parts.items() if part}
    return properties, sorted(present.keys() - info_of(properties).keys() - {MARK})
