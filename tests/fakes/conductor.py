"""A conductor that obeys at once: it writes rows directly and drives no hardware.

It keeps the promises of ``rpc.contract.Conductor`` as far as the API can see them: locks, states,
errors; verbs end in the stable state that they aim for.  ``calls`` holds what was asked.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jsonpatch
import orjson

from bloomery import errors
from bloomery.conductor import states
from bloomery.db import nodes, records, rows
from bloomery.db.engine import Database
from bloomery.model import node as node_model
from bloomery.model import nouns
from bloomery.model.noun import checked

NODE_DEFAULTS = {
    "driver_info": {}, "driver_internal_info": {}, "properties": {}, "instance_info": {},
    "extra": {}, "network_data": {}, "clean_step": {}, "deploy_step": {}, "service_step": {},
    "raid_config": {}, "target_raid_config": {}, "conductor_group": "", "protected": False,
    "retired": False, "disable_power_off": False, "maintenance": False, "console_enabled": False,
    "lock_generation": 0,
}  # fmt: skip
INTERFACES = {
    f"{kind}_interface": "fake" if kind not in ("network", "storage", "rescue") else "noop"
    for kind in node_model.INTERFACES
}
BOOT_DEVICES = ["pxe", "disk"]


class FakeConductor:
    """One conductor of one site."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.calls: list[tuple[Any, ...]] = []
        self.vifs: dict[str, list[dict[str, Any]]] = {}
        self.boot_devices: dict[str, dict[str, Any]] = {}

    def _update(self, uuid: str, **values: Any) -> None:
        encoded = rows.encode(values, node_model.OBJECTS)
        self._db.transact(lambda conn: nodes.update(conn, uuid, encoded))

    def _node(self, uuid: str) -> Any:
        with self._db.read() as conn:
            return nodes.get(conn, uuid)

    def _free(self, uuid: str) -> Any:
        node = self._node(uuid)
        if node.reservation is not None:
            raise errors.NodeLocked(node=uuid, holder=node.reservation, action="a test")
        return node

    # ------------------------------------------------------------------ nodes

    def create_node(self, request: Any, values: Any) -> None:
        self.calls.append(("create_node", values))
        for name, value in values.items():
            if name.endswith("_interface") and value not in ("fake", "noop"):
                raise errors.InterfaceNotFoundInEntrypoint(
                    kind=name,
                    name=value,
                    node="",
                    enabled="fake, noop",
                )
        whole = dict.fromkeys(node_model.COLUMNS) | NODE_DEFAULTS | INTERFACES | values
        for name in ("id", "updated_at"):
            del whole[name]
        whole["created_at"] = rows.now()
        encoded = rows.encode(whole, node_model.OBJECTS)
        self._db.transact(lambda conn: nodes.insert(conn, encoded))

    def update_node(self, request: Any, node_uuid: str, patch: Any, reset_interfaces: bool) -> None:
        self.calls.append(("update_node", node_uuid, patch, reset_interfaces))
        node = self._free(node_uuid)
        before = {name: getattr(node, name) for name in node_model.PATCHABLE}
        after = _patched(before, patch, NODE_DEFAULTS | INTERFACES)
        if after["instance_uuid"] and before["instance_uuid"] not in (None, after["instance_uuid"]):
            raise errors.NodeAssociated(node=node_uuid, instance=before["instance_uuid"])
        if after["protected"] and node.provision_state not in ("active", "rescue"):
            raise errors.InvalidState(reason="protected only in active or rescue")
        changed = {name: value for name, value in after.items() if value != before[name]}
        if changed:
            self._update(node_uuid, **changed)

    def destroy_node(self, request: Any, node_uuid: str) -> None:
        self.calls.append(("destroy_node", node_uuid))
        node = self._free(node_uuid)
        if node.protected:
            raise errors.NodeProtected(action="delete", node=node_uuid)
        if not node.maintenance:
            if node.instance_uuid:
                raise errors.NodeAssociated(node=node_uuid, instance=node.instance_uuid)
            if node.provision_state not in {*states.DELETE_ALLOWED_STATES, "available"}:
                raise errors.InvalidState(reason=f"cannot delete in {node.provision_state}")
        self._db.transact(lambda conn: nodes.delete(conn, node_uuid))

    def forget_node(self, request: Any, node_uuid: str, force: bool) -> None:
        self.calls.append(("forget_node", node_uuid, force))
        self._db.transact(lambda conn: nodes.delete(conn, node_uuid))

    def set_maintenance(self, request: Any, node_uuid: str, maintenance: bool, reason: Any) -> None:
        self.calls.append(("set_maintenance", node_uuid, maintenance, reason))
        self._free(node_uuid)
        values = {"maintenance": maintenance, "maintenance_reason": reason}
        self._update(node_uuid, **values if maintenance else values | {"fault": None})

    def add_node_traits(self, request: Any, node_uuid: str, traits: Any, replace: bool) -> None:
        node = self._free(node_uuid)
        wanted = set(traits) | (set() if replace else set(node.traits))
        if len(wanted) > 50:
            raise errors.InvalidParameterValue(reason="a node has at most 50 traits")

        def work(conn: Any) -> None:
            if replace:
                nodes.remove_traits(conn, node_uuid, None)
            nodes.add_traits(conn, node_uuid, traits)

        self._db.transact(work)

    def remove_node_traits(self, request: Any, node_uuid: str, traits: Any) -> None:
        self._free(node_uuid)
        gone = self._db.transact(lambda conn: nodes.remove_traits(conn, node_uuid, traits))
        if traits is not None and not gone:
            raise errors.NodeTraitNotFound(node=node_uuid, trait=traits[0])

    def validate_driver_interfaces(self, request: Any, node_uuid: str) -> Any:
        kinds = [kind for kind in node_model.INTERFACES if kind != "vendor"]
        return {kind: {"result": True} for kind in kinds}

    def list_steps(self, request: Any, node_uuid: str, phase: str) -> Any:
        return [{"interface": "deploy", "step": f"{phase}_disks", "priority": 0, "abortable": True,
                 "argsinfo": {}, "keeps_disks": False}]  # fmt: skip

    # ------------------------------------------------------------------ verbs

    def _move(self, uuid: str, event: str, *, action: str) -> None:
        node = self._free(uuid)
        if not states.allows(node.provision_state, event):
            raise errors.InvalidStateRequested(
                action=action,
                node=uuid,
                state=node.provision_state,
            )
        machine = states.at(node.provision_state)
        machine.process_event(event)
        aim = machine.target_state or machine.current_state
        self._update(uuid, provision_state=aim, target_provision_state=None)

    def do_provisioning_action(
        self, request: Any, node_uuid: str, verb: str, arguments: dict[str, Any]
    ) -> None:
        self.calls.append(("do_provisioning_action", node_uuid, verb, arguments))
        event = states.VERBS[verb]
        if event in ("rebuild", "delete") and self._node(node_uuid).protected:
            action = "undeploy" if event == "delete" else event
            raise errors.NodeProtected(action=action, node=node_uuid)
        if event in ("clean", "service", "inspect"):
            self._free(node_uuid)
        else:
            self._move(node_uuid, event, action=event)

    # ------------------------------------------------------------------ power and management

    def change_node_power_state(
        self,
        request: Any,
        node_uuid: str,
        new_state: str,
        timeout_s: Any,
    ) -> None:
        self.calls.append(("change_node_power_state", node_uuid, new_state, timeout_s))
        self._free(node_uuid)
        self._update(
            node_uuid,
            power_state="power on" if new_state in states.ENDS_ON else "power off",
        )

    def change_node_boot_mode(self, request: Any, node_uuid: str, new_mode: str) -> None:
        self._free(node_uuid)
        self._update(node_uuid, boot_mode=new_mode)

    def change_node_secure_boot(self, request: Any, node_uuid: str, on: bool) -> None:
        self._free(node_uuid)
        self._update(node_uuid, secure_boot=on)

    def set_boot_device(self, request: Any, node_uuid: str, device: str, persistent: bool) -> None:
        self._free(node_uuid)
        if device not in BOOT_DEVICES:
            raise errors.InvalidParameterValue(reason=f"boot device {device}: pxe or disk")
        self.boot_devices[node_uuid] = {"boot_device": device, "persistent": persistent}

    def get_boot_device(self, request: Any, node_uuid: str) -> Any:
        nothing = {"boot_device": None, "persistent": None}
        return self.boot_devices.get(node_uuid, nothing)

    def get_supported_boot_devices(self, request: Any, node_uuid: str) -> list[str]:
        return BOOT_DEVICES

    def set_console_mode(self, request: Any, node_uuid: str, enabled: bool) -> None:
        self.calls.append(("set_console_mode", node_uuid, enabled))
        self._free(node_uuid)
        self._update(node_uuid, console_enabled=enabled)

    def get_console_information(self, request: Any, node_uuid: str) -> Any:
        return {"type": "fake", "url": ""} if self._node(node_uuid).console_enabled else None

    # ------------------------------------------------------------------ hardware

    def set_target_raid_config(self, request: Any, node_uuid: str, target_raid_config: Any) -> None:
        self._free(node_uuid)
        self._update(node_uuid, target_raid_config=target_raid_config)

    def get_raid_logical_disk_properties(self, request: Any, driver: str) -> Any:
        return {"raid_level": "RAID level. Required."}

    def inject_nmi(self, request: Any, node_uuid: str) -> None:
        self.calls.append(("inject_nmi", node_uuid))
        self._free(node_uuid)

    def get_supported_indicators(self, request: Any, node_uuid: str, component: Any) -> Any:
        return {"system": {"led": {"readonly": False, "states": ["on", "off"]}}}

    def get_indicator_state(
        self, request: Any, node_uuid: str, component: str, indicator: str
    ) -> str:
        return "on"

    def set_indicator_state(
        self, request: Any, node_uuid: str, component: str, indicator: str, state: str
    ) -> None:
        self.calls.append(("set_indicator_state", node_uuid, component, indicator, state))
        self._free(node_uuid)

    def attach_virtual_media(
        self, request: Any, node_uuid: str, device_type: str, image_url: str,
        image_download_source: Any,
    ) -> None:  # fmt: skip
        call = node_uuid, device_type, image_url, image_download_source
        self.calls.append(("attach_virtual_media", *call))
        self._free(node_uuid)

    def detach_virtual_media(self, request: Any, node_uuid: str, device_types: Any) -> None:
        self.calls.append(("detach_virtual_media", node_uuid, device_types))
        self._free(node_uuid)

    def get_virtual_media(self, request: Any, node_uuid: str) -> Any:
        return [{"media_types": ["cdrom"], "inserted": False, "image": ""}]

    def vendor_passthru(
        self, request: Any, node_uuid: str, driver_method: str, http_method: str, info: Any
    ) -> Any:
        self.calls.append(("vendor_passthru", node_uuid, driver_method, http_method, info))
        return {"return": True, "async": False, "attach": False}

    def driver_vendor_passthru(
        self, request: Any, driver: str, driver_method: str, http_method: str, info: Any
    ) -> Any:
        self.calls.append(("driver_vendor_passthru", driver, driver_method, http_method, info))
        return {"return": True, "async": False, "attach": False}

    def get_node_vendor_passthru_methods(self, request: Any, node_uuid: str) -> Any:
        return {}

    def get_driver_vendor_passthru_methods(self, request: Any, driver: str) -> Any:
        return {}

    # ------------------------------------------------------------------ network

    def vif_attach(self, request: Any, node_uuid: str, vif_info: Any) -> None:
        self.vifs.setdefault(node_uuid, []).append({"id": vif_info["id"]})

    def vif_detach(self, request: Any, node_uuid: str, vif_id: str) -> None:
        left = [one for one in self.vifs.get(node_uuid, []) if one["id"] != vif_id]
        self.vifs[node_uuid] = left

    def vif_list(self, request: Any, node_uuid: str) -> list[Any]:
        return self.vifs.get(node_uuid, [])

    def create_record(self, request: Any, noun: str, values: Any) -> None:
        kind = nouns.BY_NAME[noun]
        record = kind.value(**values)
        if noun == "portgroup" and record.mode is None:
            record.mode = "active-backup"
        self._db.transact(lambda conn: records.insert(conn, kind, record))

    def create_allocation(self, request: Any, values: Any, node_uuid: Any) -> None:
        """An allocation waits for its node, until the end of the test; one of a node has it."""
        self.calls.append(("create_allocation", values, node_uuid))
        record = nouns.ALLOCATION.value(**values)
        if node_uuid is not None:
            record.node_uuid, record.state = node_uuid, "active"
        self._db.transact(lambda conn: records.insert(conn, nouns.ALLOCATION, record))

    def destroy_allocation(self, request: Any, uuid: str) -> None:
        self.destroy_record(request, "allocation", uuid)

    def update_record(self, request: Any, noun: str, uuid: str, patch: Any) -> None:
        kind, record = self._record(noun, uuid)
        before = {name: getattr(record, name) for name in kind.patchable - kind.pinned}
        defaults = {f.name: f.default for f in dataclasses.fields(kind.value)}
        empty = {n: [] if kind.fields[n].kind == "list" else {} for n in kind.objects}
        after = _patched(before, patch, defaults | empty)
        changed = {name: value for name, value in after.items() if value != before[name]}
        for name in changed.keys() & kind.rules.keys():
            checked(kind, name, changed[name])
        if changed:
            self._db.transact(lambda conn: records.update(conn, kind, uuid, changed))

    def destroy_record(self, request: Any, noun: str, uuid: str) -> None:
        kind, _ = self._record(noun, uuid)
        self._db.transact(lambda conn: records.delete(conn, kind, uuid))

    def _record(self, noun: str, uuid: str) -> tuple[Any, Any]:
        kind = nouns.BY_NAME[noun]
        with self._db.read() as conn:
            record = records.get(conn, kind, uuid)
        if kind.of_node:
            self._free(record.node_uuid)
        return kind, record

    # ------------------------------------------------------------------ agents and BMCs

    def get_node_with_token(self, request: Any, node_uuid: str, caller: str | None = None) -> Any:
        self.calls.append(("get_node_with_token", node_uuid))
        return {"uuid": node_uuid, "agent_token": "a-token"}

    def continue_inspection(
        self, request: Any, node_uuid: str, inventory: Any, plugin_data: Any
    ) -> None:
        self.calls.append(("continue_inspection", node_uuid, inventory, plugin_data))

    def heartbeat(
        self,
        request: Any,
        node_uuid: str,
        callback_url: str,
        agent_version: Any,
        agent_token: Any,
        agent_verify_ca: Any,
        agent_status: Any,
        agent_status_message: Any,
    ) -> None:
        self.calls.append(("heartbeat", node_uuid, callback_url))

    def describe_work(self, request: Any, node_uuid: str) -> Any:
        return {"bmc": None, "no_worker_since": None}

    def list_bmcs(self, request: Any) -> Any:
        return []

    def examine_bmc(self, request: Any, node_uuid: str) -> Any:
        return {
            "protocol": "redfish", "address": "https://bmc.test", "usable": False,
            "error": "Connection refused", "driver_info": {}, "checks": [],
        }  # fmt: skip

    def get_sensors(self, request: Any, node_uuid: str) -> Any:
        return {
            "interval_s": 600, "is_read": False, "reason": "sensors are not read",
            "kept_since": None, "sensors": [],
        }  # fmt: skip

    def read_bmc_log(self, request: Any, node_uuid: str) -> Any:
        return {"name": None, "total": None, "clock_difference_s": None, "entries": []}

    # ------------------------------------------------------------------ drivers

    def get_driver_properties(self, request: Any, driver: str) -> Any:
        return {"A1": "A1 description. Required."}


def _patched(before: Any, patch: Any, defaults: Any) -> Any:
    """Apply a JSON patch; a removed attribute falls back to its default."""
    try:
        after = jsonpatch.apply_patch(orjson.loads(orjson.dumps(before)), patch)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as exc:
        raise errors.PatchError(patch=patch, reason=str(exc)) from exc
    filled = {name: after.get(name) for name in before}
    return {name: defaults.get(name) if value is None else value for name, value in filled.items()}
