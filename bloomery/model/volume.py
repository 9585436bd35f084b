"""Volumes of a node, and how it reaches them: rows as mappings, their objects decoded."""

from __future__ import annotations

from typing import Any, TypedDict


class VolumeConnector(TypedDict):
    """How a machine logs in to storage; one row of the API's /v1/volume/connectors."""

    uuid: str
    node_uuid: str
    type: str  # iqn, ip, mac, wwnn, wwpn, port, portgroup
    connector_id: str  # such as iqn.2017-07.org.example:web-1
    extra: dict[str, Any]


class VolumeTarget(TypedDict):
    """A volume of a machine; one row of the API's /v1/volume/targets."""

    uuid: str
    node_uuid: str
    volume_type: str  # iscsi, fibre_channel
    volume_id: str  # as the storage knows it
    boot_index: int  # 0: the machine boots from it; unique on a node
    properties: dict[str, Any]  # such as target_iqn, target_portal, target_lun; may hold secrets
    extra: dict[str, Any]
