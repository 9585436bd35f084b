"""All payloads, by noun: name, version, fields.

Names, versions and fields are Ironic's.  A new field raises the minor version, and no field is ever
removed; a test holds the fingerprints.  Kinds are those of ``base``, and two more: ``steps`` are
reduced to a step's attributes and masked, ``redacted`` is never sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

Kinds: TypeAlias = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """One class on the wire.  ``facts`` are fields of the event, not of its object."""

    name: str
    version: str
    fields: Kinds
    facts: frozenset[str] = frozenset()


def _kinds(**names: str) -> dict[str, str]:
    """Return field -> kind from kind="field field ..."."""
    return {field: kind for kind, fields in names.items() for field in fields.split()}


def _payload(name: str, version: str, fields: Kinds, facts: str = "") -> Payload:
    fact_names = frozenset(facts.split())
    return Payload(
        name=name,
        version=version,
        fields=_STAMPS | fields | dict.fromkeys(facts.split(), "text"),
        facts=fact_names,
    )


_STAMPS: Final = _kinds(ident="uuid", time="created_at updated_at")
_INTERFACES: Final = (
    "bios_interface boot_interface console_interface deploy_interface inspect_interface "
    "management_interface network_interface power_interface raid_interface rescue_interface "
    "storage_interface vendor_interface"
)
_NODE: Final = _kinds(
    text="conductor_group description driver boot_mode instance_uuid last_error "
    "maintenance_reason fault name owner lessee power_state protected_reason provision_state "
    f"resource_class retired_reason target_power_state target_provision_state {_INTERFACES}",
    bool="console_enabled disable_power_off secure_boot maintenance protected retired",
    time="inspection_finished_at inspection_started_at provision_updated_at",
    object="clean_step deploy_step extra properties",
    texts="traits",
)

BY_NOUN: Final[Mapping[str, tuple[Payload, ...]]] = {
    "node": (
        _payload("NodePayload", "1.17", _NODE),
        _payload(
            "NodeCRUDPayload",
            "1.15",
            _NODE | _kinds(text="chassis_uuid", object="instance_info driver_info"),
        ),
        _payload("NodeSetPowerStatePayload", "1.17", _NODE, facts="to_power"),
        _payload("NodeCorrectedPowerStatePayload", "1.17", _NODE, facts="from_power"),
        _payload(
            "NodeSetProvisionStatePayload",
            "1.18",
            _NODE | _kinds(object="instance_info driver_internal_info"),
            facts="event previous_provision_state previous_target_provision_state",
        ),
    ),
    "port": (
        _payload(
            "PortCRUDPayload",
            "1.8",
            _kinds(
                text="address node_uuid portgroup_uuid physical_network name description vendor "
                "category",
                bool="pxe_enabled is_smartnic available_for_dynamic_portgroup",
                object="extra local_link_connection",
            ),
        ),
    ),
    "portgroup": (
        _payload(
            "PortgroupCRUDPayload",
            "1.3",
            _kinds(
                text="address category mode name node_uuid physical_network",
                bool="standalone_ports_supported dynamic_portgroup",
                object="extra properties",
            ),
        ),
    ),
    "chassis": (_payload("ChassisCRUDPayload", "1.0", _kinds(text="description", object="extra")),),
    "allocation": (
        _payload(
            "AllocationCRUDPayload",
            "1.1",
            _kinds(
                text="name node_uuid state last_error owner resource_class",
                texts="traits candidate_nodes",
                object="extra",
            ),
        ),
    ),
    "volumeconnector": (
        _payload(
            "VolumeConnectorCRUDPayload",
            "1.0",
            _kinds(text="type connector_id node_uuid", object="extra"),
        ),
    ),
    "volumetarget": (
        _payload(
            "VolumeTargetCRUDPayload",
            "1.0",
            _kinds(
                int="boot_index",
                text="node_uuid volume_id volume_type",
                object="extra",
                redacted="properties",
            ),
        ),
    ),
    "deploytemplate": (
        _payload(
            "DeployTemplateCRUDPayload",
            "1.0",
            _kinds(text="name", object="extra", steps="steps"),
        ),
    ),
    "runbook": (
        _payload(
            "RunbookCRUDPayload",
            "1.1",
            _kinds(
                text="description name owner",
                bool="disable_ramdisk public",
                object="extra",
                steps="steps",
                texts="traits",
            ),
        ),
    ),
    "inspectionrule": (
        _payload(
            "InspectionRuleCRUDPayload",
            "1.0",
            _kinds(
                text="description phase scope",
                int="priority",
                bool="sensitive",
                objects="actions conditions",
            ),
        ),
    ),
}
PAYLOADS: Final = {each.name: each for group in BY_NOUN.values() for each in group}
