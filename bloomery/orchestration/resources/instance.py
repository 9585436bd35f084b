"""OS::Ironic::Instance: a system on a machine, from the reservation to the last shutdown.

    reserve -> await_node -> prepare -> deploy -> deployed -> check_power [-> switch -> switched]
    prepare -> before <-> order_before -> deploy    with a runbook before, instance_preparation
    deployed -> look_after -> run_after -> ran_after -> check_power     with a runbook
    deployed -> replace_node -> replaced_node -> reserve    on another node, see instance_retry
    renew -> rebuild -> deployed                            an update that writes the disk anew
    release -> undeploy -> undeployed [-> cleaned] -> free  the end

``prepare`` writes the mark of the resource into ``instance_info``, where it goes with the instance.
No verb is ordered twice: see ``stepwise.OnNode``.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from bloomery import errors
from bloomery.conductor.states import Power, State
from bloomery.orchestration.properties.schema import Attribute, OnChange, Schema
from bloomery.orchestration.resources import (
    allocation,
    base,
    drift,
    instance_info,
    instance_network,
    instance_placement,
    instance_preparation,
    instance_retry,
    instance_schema,
    machines,
    stepwise,
)
from bloomery.orchestration.resources.effects import NO_EFFECT, Effect
from bloomery.orchestration.resources.machines import FindNode, Json
from bloomery.outcome import Outcome

ON_ITS_WAY: Final = frozenset({State.DEPLOYING, State.DEPLOYWAIT, State.DEPLOYHOLD})
ABORTED: Final = {
    "deployed": frozenset({State.DEPLOYWAIT, State.DEPLOYHOLD}),
    "before": frozenset({State.CLEANWAIT, State.CLEANHOLD}),
}
PREPARED: Final = instance_preparation.CLEANABLE | {State.AVAILABLE}  # nothing is on it yet
GIVEN_UP: Final = frozenset({
    "reserve", "await_node", "await_former", "withdraw_former", "prepare", "come_up",
})  # steps of a creation or update that need not be gone through for a later order  # fmt: skip
BOOTING: Final = frozenset({base.Action.CREATE, base.Action.UPDATE})
POWER: Final = {"on": Power.ON, "off": Power.OFF}
SUSPEND: Final = {"power_off": Power.OFF, "soft_power_off": Power.SOFT_OFF}


class Instance(instance_placement.Placement, instance_retry.Retry):
    """``physical_id``: the node, once it is known which.  ``data`` has the rest."""

    properties_schema: ClassVar[Mapping[str, Schema]] = instance_schema.PROPERTIES
    attributes_schema: ClassVar[Mapping[str, Attribute]] = instance_schema.ATTRIBUTES
    preemptible: ClassVar[bool] = True
    repairs_failed: ClassVar[bool] = True
    ordering_steps: ClassVar[frozenset[str]] = frozenset(
        {
            "prepare",
            "order_before",
            "deploy",
            "rebuild",
            "run_after",
            "switch",
            "undeploy",
            "free",
            "replace_node",
        }
    )

    def validate(self) -> None:
        places = [name for name in instance_schema.PLACES if self.properties[name]]
        if len(places) != 1:
            raise errors.StackValidationFailed(
                reason="cannot tell where it runs: give exactly one of "
                f"{', '.join(instance_schema.PLACES)}"
            )
        image = self.properties["image"] or {}
        if not (image.get("source") or image.get("boot_iso") or self.properties["custom_deploy"]):
            raise errors.StackValidationFailed(
                reason="cannot deploy nothing: give image.source, image.boot_iso or custom_deploy",
                path=["image"],
            )
        self._check_replacement()
        self._check_boot()
        parts = [name for name in instance_schema.DRIVE[1:] if self.properties[name]]
        if self.properties["configdrive"] and parts:
            raise errors.StackValidationFailed(
                reason=f"cannot have a whole config drive and its parts: leave {parts[0]} out",
                path=["configdrive"],
            )
        if self.properties["users"] and self.properties["user_data"]:
            raise errors.StackValidationFailed(
                reason="cannot have users beside user_data: make them there", path=["users"]
            )

    def _check_boot(self) -> None:
        """Refuse what a first boot cannot be waited for with, and network data of no form."""
        if self.properties["wait_for"] == "first_boot" and not self.properties["first_boot"]:
            raise errors.StackValidationFailed(
                reason="cannot wait for a first boot that nobody tells of: give first_boot",
                path=["wait_for"],
            )
        network_data = self.properties["network_data"]
        if not isinstance(network_data, Mapping | None) and network_data != instance_network.AUTO:
            raise errors.StackValidationFailed(
                reason="cannot be read: give the map of network_data.json, or auto",
                path=["network_data"],
            )

        for number, each in enumerate(self.properties["networks"] or ()):
            if each.get("port") and each.get("physical_network"):
                raise errors.StackValidationFailed(
                    reason="cannot be in two places: give port, or physical_network",
                    path=["networks", number],
                )

    def _check_replacement(self) -> None:
        """Refuse an order of replacement that no machine can follow."""
        values = self.properties
        if values["replace_order"] != instance_schema.CREATE_FIRST or values["selector"]:
            return
        for name in ("image_update_policy", "user_data_update_policy"):
            if values[name] == OnChange.REPLACE:
                raise errors.StackValidationFailed(
                    reason="cannot create the new one first on the machine of the old one: give a "
                    f"selector, or another {name}",
                    path=["replace_order"],
                )

    @classmethod
    def is_same_thing(cls, record: base.Record, name: str, value: Any, find_node: FindNode) -> bool:
        """Another name of its node or allocation is no other place; nor is what still fits it."""
        if name == "selector" and record.physical_id is not None and isinstance(value, Mapping):
            node, before = find_node(record.physical_id), record.properties.get(name) or {}
            return node is not None and allocation.still_fits(node, before, value)
        places = {"node": record.physical_id, "allocation": record.data.get("instance")}
        if value is not None and value == places.get(name):
            return True
        return super().is_same_thing(record, name, value, find_node)

    @classmethod
    def needs_replace(
        cls, before: Mapping[str, Any], after: Mapping[str, Any], prop_diff: Mapping[str, Any]
    ) -> bool:
        return OnChange.REPLACE in instance_info.changes(after, prop_diff)

    @classmethod
    def effect_of_create(cls, properties: Mapping[str, Any]) -> Effect:
        return instance_info.effect_of_create(properties)

    @classmethod
    def effect_of_update(
        cls, before: Mapping[str, Any], after: Mapping[str, Any], names: Collection[str]
    ) -> Effect:
        return instance_info.effect_of_update(after, names)

    @classmethod
    def effect_of_repair(cls, properties: Mapping[str, Any]) -> Effect:
        return instance_info.effect_of_repair(properties)

    @classmethod
    def effect_of_delete(cls, properties: Mapping[str, Any]) -> Effect:
        return instance_info.effect_of_delete(properties)

    @classmethod
    def needs_replace_failed(cls) -> bool:
        """What failed on a node that is still ours is put right there; see ``step_renew``."""
        return False

    # --------------------------------------------------------------------------------- create

    def handle_create(self) -> Any:
        self.check_runbooks()
        self.first_attempt()
        self.begin("reserve")

    def step_prepare(self) -> str | None:
        """Claim the node, and write on it what it is to run."""
        node = self.get_node()
        self._check_usable(node)
        self._placed_networks(node["uuid"])
        self.note_move(node)
        info = instance_info.info_of(self.properties) | {machines.MARK: self.mark()}
        patch = [_add(f"/instance_info/{key}", value) for key, value in info.items()]
        patch.append(_add("/instance_name", self._host_name()))
        if node["instance_uuid"] is None:
            patch.append(_add("/instance_uuid", self.record.data["instance"]))
        self.machines.update_node(node["uuid"], patch)
        self._attach(node["uuid"])
        self.arm()
        self.record.data.pop(instance_preparation.BEFORE, None)
        return "before" if self.properties["runbook_before"] else "deploy"

    def _check_usable(self, node: Json) -> None:
        """Raise MachineRefused for a node that is not free for this very resource."""
        name = node["name"] or node["uuid"]
        thing = f"node {name}"
        self.check_unmarked(node["instance_info"], thing)
        if node["instance_uuid"] not in (None, self.record.data["instance"]):
            raise stepwise.MachineRefused(f"cannot use {thing}: another instance has it")
        if node["provision_state"] != State.AVAILABLE:
            raise stepwise.MachineRefused(
                f"cannot use {thing}: it is {node['provision_state']}, not available"
            )
        in_maintenance = ("in maintenance", f"; baremetal node maintenance unset {name} ends that")
        flags = {"maintenance": in_maintenance, "retired": ("retired", ""),
                 "protected": ("protected", "")}  # fmt: skip
        for flag, (state, way_out) in flags.items():
            if node[flag]:
                reason = node.get(f"{flag}_reason")
                because = f" ({reason})" if reason else ""
                raise stepwise.MachineRefused(
                    f"cannot use {thing}: it is {state}{because}{way_out}"
                )

    def step_deploy(self) -> str | None:
        return self._order_system("active")

    def step_deployed(self) -> str | None:
        """Wait until the node is active; a failure is told, or tried again."""
        node = self.get_node()
        state = node["provision_state"]
        if state in ON_ITS_WAY:
            self.wait_for(
                node["uuid"],
                instance_schema.timeout_s(self.properties, "deploy"),
                "for the node to be active",
            )
        if state == State.ACTIVE:
            data = self.record.data
            data["deployed_at"] = node["provision_updated_at"]
            self.note_hardware()
            data["deploy_duration"] = round(self.context.utc() - data["ordered_at"], 3)
            if data.get(instance_retry.FAILED):
                return "quarantine"
            return "look_after" if self.properties["runbook_after"] else self._after_deploy(node)
        if state not in (State.DEPLOYFAIL, State.ERROR):
            raise stepwise.MachineFailed(f"node {node['uuid']} is {state}, and was to be deployed")
        return self.after_failure(node)

    def step_look_after(self) -> str | None:
        """Run the runbook that comes after a deployment, where there is one."""
        if not self.properties["runbook_after"]:
            return "check_power"
        self.note_move(self.get_node())
        self.number_order()
        return "run_after"

    def step_run_after(self) -> str | None:
        """Order the runbook; where another has moved the node since the look, look again."""
        runbook = self.properties["runbook_after"]
        return "ran_after" if self.order_numbered("service", runbook=runbook) else "look_after"

    def step_ran_after(self) -> str | None:
        timeout_s = instance_schema.timeout_s(self.properties, "service")
        error = self.wait_for_flow(timeout_s, "for its runbook to end")
        if error is not None:
            raise stepwise.MachineFailed(error)
        return "check_power"

    def step_check_power(self) -> str | None:
        return self._after_deploy(self.get_node())

    def _after_deploy(self, node: Json) -> str | None:
        """Protect the node where that is wanted, and see whether it is to be switched."""
        self._protect(node)
        target = self.record.data["target"] = POWER[self.properties["power"]]
        return "come_up" if node["power_state"] == target else "switch"

    def _protect(self, node: Json) -> None:
        """Write the flag of the node, unless nothing is said of it."""
        protected = self.properties["protected"]
        if protected is not None and bool(node["protected"]) is not protected:
            self.machines.update_node(node["uuid"], [_add("/protected", protected)])

    @classmethod
    def preempted_by(
        cls, before: Mapping[str, Any], after: Mapping[str, Any], names: Collection[str]
    ) -> bool:
        changes = {*instance_info.changes(after, names)}
        return not changes.isdisjoint({OnChange.REBUILD, OnChange.REPLACE})

    def handle_preempt(self) -> None:
        """Deploy no further what a later order does not want; the next action goes on from there.

        Raises MachineFailed where nothing was ordered yet, or the system would only come up.
        """
        step = self.record.data.get(stepwise.STEP)
        if self.record.action in BOOTING and step in GIVEN_UP:
            raise stepwise.MachineFailed("a later order wants something else")
        self.record.data[instance_retry.GIVEN_UP] = True
        self._abort()

    def handle_create_cancel(self, token: Any) -> None:
        """Stop what waits for an agent; whatever else the node does comes to its end."""
        self._abort()

    def handle_update_cancel(self, token: Any) -> None:
        self._abort()

    def _abort(self) -> None:
        """Stop a deployment, or its preparation, that waits for an agent.  Raises Busy."""
        states = ABORTED.get(str(self.record.data.get(stepwise.STEP)))
        if states is None or self.record.physical_id is None:
            return
        node = self.get_node()
        if node["provision_state"] in states and self.is_ours(node["instance_info"]):
            with contextlib.suppress(errors.InvalidStateRequested):
                self.machines.set_provision_state(node["uuid"], "abort")

    # --------------------------------------------------------------------------------- update

    def handle_update(
        self, definition: Any, tmpl_diff: Mapping[str, Any], prop_diff: Mapping[str, Any]
    ) -> Any:
        """Raise UpdateReplace where the node is gone, in error, or has become another's."""
        changes, data = instance_info.changes(self.properties, prop_diff), self.record.data
        self.first_attempt()
        data["rebuilds"] = OnChange.REBUILD in changes
        data["networks"] = OnChange.ATTACH in changes
        self.begin("renew")

    def step_renew(self) -> str | None:
        """Write what has changed, and find out whether the disk is to be written anew."""
        try:
            node = self.get_node()
        except errors.NotFound as exc:
            raise base.UpdateReplace from exc
        state, data = node["provision_state"], self.record.data
        if self._reason_to_replace(node):
            raise base.UpdateReplace
        if state in ON_ITS_WAY:
            self.wait_for(
                node["uuid"],
                instance_schema.timeout_s(self.properties, "deploy"),
                "for the node to be active",
            )
        self.note_move(node)
        self.machines.update_node(node["uuid"], self._changes())
        if data.get("networks"):
            self._attach(node["uuid"])
        if state in PREPARED:
            return self._resume_preparation(node)
        if data.get("rebuilds") or state == State.DEPLOYFAIL:
            self._check_unprotected(node)
            self.arm()
            return "rebuild"
        self._protect(node)
        data["target"] = POWER[self.properties["power"]]
        return None if node["power_state"] == data["target"] else "switch"

    def _reason_to_replace(self, node: Json) -> str:
        is_ours = self.is_ours(node["instance_info"])
        return instance_info.reason_to_replace(node, is_ours=is_ours)

    def reason_to_replace(self) -> str:
        if self.context.machines is None or self.record.physical_id is None:
            return ""
        try:
            return self._reason_to_replace(self.get_node())
        except errors.NotFound:
            return f"node {self.record.physical_id} is gone"

    def effect_now(
        self, effect: Effect, properties: Mapping[str, Any] | None, names: Collection[str]
    ) -> Effect:
        """What was taken away from its node already is not undeployed."""
        try:
            is_ours = self.is_ours(self.get_node()["instance_info"])
        except errors.NotFound:
            is_ours = False
        if effect.verbs == ("deleted",) and not is_ours:
            return NO_EFFECT
        return super().effect_now(effect, properties, names)

    def parse_live_resource_data(
        self, properties: Mapping[str, Any], data: Any
    ) -> Mapping[str, Any]:
        """Return how the machine is switched; what is written on its disks is not compared."""
        switched = {value: name for name, value in POWER.items()}
        return {"power": switched.get(data["power_state"], properties["power"])}

    def get_live_resource_data(self) -> Any:
        return self.get_node()

    def _resume_preparation(self, node: Json) -> str:
        """Go on with a node that was claimed, and on which nothing was deployed yet."""
        self.record.data.pop(instance_preparation.BEFORE, None)
        return "prepare" if node["provision_state"] == State.AVAILABLE else "before"

    def _check_unprotected(self, node: Json) -> None:
        """Clear the flag of a node that is to be written anew, if the template says so."""
        if not node["protected"]:
            return
        if self.properties["protected"] is not False:
            raise stepwise.MachineRefused(
                f"cannot rebuild node {node['uuid']}: it is protected; set protected to false"
            )
        self._protect(node)

    def _changes(self) -> list[Json]:
        """Return the patch from what is stored to what is to be; the mark stays."""
        before = instance_info.info_of(self.record.properties)
        after = instance_info.info_of(self.properties)
        patch = [_add(f"/instance_info/{key}", value) for key, value in after.items()]
        patch += [_remove(f"/instance_info/{key}") for key in before if key not in after]
        return [*patch, _add("/instance_name", self._host_name())]

    def step_rebuild(self) -> str | None:
        return self._order_system("rebuild")

    # ------------------------------------------------------------------------- suspend, resume

    def handle_suspend(self) -> Any:
        target = SUSPEND.get(self.properties["suspend_mode"])
        if target is not None and self.record.physical_id is not None:
            self.record.data["target"] = target
            self.begin("switch")

    def check_suspend_complete(self, token: Any) -> Outcome:
        return self.advance()

    def handle_resume(self) -> Any:
        if self.properties["suspend_mode"] != "none" and self.record.physical_id is not None:
            self.record.data["target"] = POWER[self.properties["power"]]
            self.begin("switch")

    def check_resume_complete(self, token: Any) -> Outcome:
        return self.advance()

    def step_switch(self) -> str | None:
        """Ask for the power that is wanted; asked twice, it comes to the same."""
        node, target = self.get_node(), self.record.data["target"]
        if node["power_state"] != _reached(target):
            self.machines.set_power_state(node["uuid"], target)
        return "switched"

    def step_switched(self) -> str | None:
        node, target = self.get_node(), self.record.data["target"]
        if node["power_state"] != _reached(target):
            if node["target_power_state"] is None and node["last_error"]:
                raise stepwise.MachineFailed(str(node["last_error"]))
            self.wait_for(
                node["uuid"], instance_schema.timeout_s(self.properties, "power"), f"for {target}"
            )
        return "come_up" if self.record.action in BOOTING else None

    def step_mark(self) -> str | None:
        self.put_mark("instance_info")
        return None

    def step_unmark(self) -> str | None:
        self.unmark("instance_info")
        return None

    # -------------------------------------------------------------------------- how it really is

    def differences(self, real: Json) -> Iterator[drift.Difference]:
        """Yield where the node differs; of a node that another instance has, that alone."""
        instance = self.record.data.get("instance")
        if not self.is_ours(real["instance_info"]):
            thing = "another instance is on the node"
            if real["instance_uuid"] is None:
                thing = "the instance was taken away from the node"
            elif real["instance_uuid"] == instance:
                thing = f"instance_info/{machines.MARK} does not name this resource any more"
            yield drift.Difference("instance_uuid", thing)
            return
        power = self.record.data.get("target") or POWER[self.properties["power"]]
        expected: Json = {
            "instance_uuid": instance, "instance_name": self._host_name(),
            "provision_state": State.ACTIVE, "maintenance": False, "fault": None,
            "power_state": _reached(power),
        }  # fmt: skip
        if (protected := self.properties.get("protected")) is not None:
            expected["protected"] = protected
        yield from drift.compare(expected, real)
        info = instance_info.info_of(self.properties)
        yield from drift.compare({"instance_info": info}, real)
        if str(real["health"]).lower() == "critical":
            yield drift.Difference("health", "health is critical")

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        data = self.record.data
        if name in ("addresses", "first_address"):
            return self._addresses(name)
        if name == "attempts":
            return data.get("attempt")
        if name == "allocation_uuid":
            return None if self.properties["node"] else data.get("instance")
        if name in ("deployed_at", "deploy_duration"):
            return data.get(name)
        if name == "first_boot_data":
            handle = self.handle_of_boot()
            return handle and json.dumps(handle.payload())
        try:
            node = self.get_node()
        except errors.NotFound:
            return None
        if name == "mac_addresses":
            return [port["address"] for port in self.machines.list_ports(node["uuid"])[0]]
        if name == "console_url":
            return self.console_url()
        if name == "steps":
            return stepwise.if_told(lambda: self.machines.list_steps(node["uuid"], "deploy"))
        if name == "image":
            info = node["instance_info"]
            return info.get("image_source") or info.get("boot_iso")
        return node.get(name.removeprefix("node_") if name.startswith("node_") else name)

    def _addresses(self, name: str) -> Any:
        networks = self.properties["networks"] or []
        addresses_of = {
            each["vif"]: [each["fixed_ip"]] for each in networks if each.get("fixed_ip")
        }
        if name == "addresses":
            return addresses_of
        return next((addresses[0] for addresses in addresses_of.values()), None)

    # -------------------------------------------------------------------------- own business

    def _order_system(self, verb: str) -> str | None:
        """Order a verb that writes the system, with its config drive; return the next step."""
        drive = instance_info.config_drive(self._with_network_data(), self._host_name())
        if handle := self.handle_of_boot():
            drive = handle.with_token(drive)
        steps = self.steps_of_hardware()
        steps += self.properties["deploy_steps"] or []
        self.order(verb, configdrive=drive, deploy_steps=steps or None)
        self.record.data["ordered_at"] = self.context.utc()
        return None if self.properties["wait_for"] == "none" else "deployed"

    def _with_network_data(self) -> Mapping[str, Any]:
        if self.properties["network_data"] != instance_network.AUTO:
            return self.properties
        ports, portgroups = self.machines.list_ports(self.node_uuid())
        networks = self._placed_networks(self.node_uuid())
        made = instance_network.network_data(ports, portgroups, networks)
        return {**self.properties, "network_data": made}

    def _attach(self, uuid: str) -> None:
        """Attach the interfaces that are wanted, and no others of this resource."""
        networks = self._placed_networks(uuid)
        self._detach(uuid, keep=[each["vif"] for each in networks])
        present = self.machines.list_vifs(uuid) if networks else []
        for each in networks:
            if each["vif"] not in present:
                vif = {"id": each["vif"], "port_uuid": each.get("port")}
                self.machines.attach_vif(uuid, {k: v for k, v in vif.items() if v})

    def _placed_networks(self, uuid: str) -> Sequence[Mapping[str, Any]]:
        """Return the networks, each on the port that it asks for.  Raises MachineRefused."""
        networks = self.properties["networks"] or []
        if not any(each.get("physical_network") for each in networks):
            return networks
        try:
            return instance_network.placed(networks, self.machines.list_ports(uuid)[0])
        except ValueError as exc:
            raise stepwise.MachineRefused(str(exc)) from exc

    def _host_name(self) -> str:
        return self.properties["name"] or self.physical_resource_name()


def _reached(target: str) -> str:
    """The power state that a target leads to."""
    return Power.OFF if target in (Power.OFF, Power.SOFT_OFF) else Power.ON


def _add(path: str, value: Any) -> Json:
    return {"op": "add", "path": path, "value": value}


def _remove(path: str) -> Json:
    return {"op": "remove", "path": path}
