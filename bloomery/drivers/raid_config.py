"""The schema of a target RAID configuration; a RAID interface may override it.

{"logical_disks": [{"raid_level": "1", "size_gb": 100, "is_root_volume": true}]}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import jsonschema_rs

from bloomery import errors
from bloomery.model.node import Node
from bloomery.model.rules import attributes

_LEVELS: Final = ["JBOD", "0", "1", "2", "5", "6", "1+0", "5+0", "6+0"]
_PHYSICAL_DISKS: Final = {
    "anyOf": [
        {"type": "array", "items": {"type": "string"}},
        {"type": "array", "items": {"type": "object"}, "minItems": 2},
    ],
}

# The properties of a logical disk: schema and description.
_LOGICAL_DISK: Final[Mapping[str, tuple[Mapping[str, Any], str]]] = {
    "raid_level": (
        {"enum": _LEVELS},
        f"RAID level of the disk: {', '.join(_LEVELS)}. Required.",
    ),
    "size_gb": (
        {"anyOf": [{"type": "integer", "minimum": 0}, {"enum": ["MAX"]}]},
        "Size in GiB, 0 or more, or MAX for all the space that is left. Required.",
    ),
    "volume_name": (
        {"type": "string"},
        "Name of the volume; one is made up where it is left out. Optional.",
    ),
    "is_root_volume": (
        {"type": "boolean"},
        "True for the disk that gets the image; at most one is. Optional.",
    ),
    "share_physical_disks": (
        {"type": "boolean"},
        "True if the disk may be made of physical disks that others use, too. Optional.",
    ),
    "disk_type": (
        {"enum": ["hdd", "ssd"]},
        "Kind of the physical disks: hdd or ssd. Optional.",
    ),
    "interface_type": (
        {"enum": ["sata", "scsi", "sas"]},
        "Interface of the physical disks: sata, scsi or sas. Optional.",
    ),
    "number_of_physical_disks": (
        {"type": "integer", "minimum": 1},
        "How many physical disks to use, 1 or more; the least of the level if left out. Optional.",
    ),
    "controller": (
        {"type": "string"},
        "The controller to use, as the interface names it, or software. Optional.",
    ),
    "physical_disks": (
        _PHYSICAL_DISKS,
        "The physical disks, as the interface names them, or hints. Needs controller. Optional.",
    ),
}
PROPERTIES: Final = {name: text for name, (_, text) in _LOGICAL_DISK.items()}
_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "logical_disks": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "properties": {name: schema for name, (schema, _) in _LOGICAL_DISK.items()},
                "required": ["raid_level", "size_gb"],
                "additionalProperties": False,
                "dependentRequired": {"physical_disks": ["controller"]},
            },
        },
    },
    "required": ["logical_disks"],
    "additionalProperties": False,
}
_VALIDATOR: Final = jsonschema_rs.validator_for(_SCHEMA)


def check(config: Mapping[str, Any]) -> None:
    """Raise InvalidParameterValue for an invalid configuration."""
    try:
        _VALIDATOR.validate(config)
    except jsonschema_rs.ValidationError as exc:
        where = "/".join(str(part) for part in exc.instance_path)
        reason = attributes.shortened(attributes.explained(exc))
        raise errors.InvalidParameterValue(
            reason=f"RAID config validation error: {where + ': ' if where else ''}{reason}",
        ) from None
    roots = [disk for disk in config["logical_disks"] if disk.get("is_root_volume")]
    if len(roots) > 1:
        raise errors.InvalidParameterValue(
            reason=f"RAID config validation error: at most one of logical_disks may have "
            f"is_root_volume, not {len(roots)}",
        )


def target_of(node: Node) -> Mapping[str, Any]:
    """Return the configuration that the node asks for.  Raises MissingParameterValue."""
    if not node.target_raid_config:
        raise errors.MissingParameterValue(
            reason=f"node {errors.name_of(node)} has no target_raid_config: PUT states/raid sets "
            "it",
        )
    return node.target_raid_config


def select(config: Mapping[str, Any], *, root: bool, others: bool) -> list[dict[str, Any]]:
    """Return the root volume of a configuration, the other volumes, or both."""
    disks = config.get("logical_disks") or ()
    return [disk for disk in disks if (root if disk.get("is_root_volume") else others)]
