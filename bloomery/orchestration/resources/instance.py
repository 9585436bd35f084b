"""OS::Ironic::Instance: an instance on a bare-metal node, from its allocation to its teardown.

The modules ``instance_*`` have the functions of its steps.  ``prepare`` writes the mark of the
resource into ``instance_info``, which ends with the instance.  No verb is ordered twice, see
``stepwise.OnNode``.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from bloomery import errors
from bloomery.conductor.states import Power, State
from bloomery.model.node import INTERFACES
from bloomery.orchestration.properties.presence import Rule
from bloomery.orchestration.properties.schema import Attribute, OnChange, Schema
from bloomery.orchestration.resources import (
    allocation,
    base,
    drains,
    drift,
    instance_fields,
    instance_hardware,
    instance_info,
    instance_network,
    instance_schema,
    machines,
    stepwise,
)
from bloomery.orchestration.resources import instance_placement as placement
from bloomery.orchestration.resources import instance_preparation as preparation
from bloomery.orchestration.resources import instance_system as system
from bloomery.orchestration.resources import instance_teardown as teardown
from bloomery.orchestration.resources.effects import NO_EFFECT, Effect, Impact
from bloomery.orchestration.resources.machine_orders import ANOTHER, REBUILT
from bloomery.orchestration.resources.machines import FindNode, Json
from bloomery.orchestration.resources.stepwise import MARKS, Step

ABORTED: Final = {
    "deployed": frozenset({State.DEPLOYWAIT, State.DEPLOYHOLD}),
    "before": frozenset({State.CLEANWAIT, State.CLEANHOLD}),
}
SKIPPABLE: Final = frozenset({
    "reserve", "await_node", "await_former", "withdraw_former", "prepare", "come_up",
})  # steps of a create or update that a later traversal may skip  # fmt: skip
SERVICED: Final = frozenset({State.ACTIVE, State.SERVICEFAIL})
SUSPEND: Final = {"power_off": Power.OFF, "soft_power_off": Power.SOFT_OFF}

STEPS: Final[Mapping[str, Step]] = MARKS | {
    # placement on a node, see instance_placement
    "reserve": Step("find the node, or ask for one", "prepare await_node await_former",
                    run=placement.reserve),
    "await_former": Step("wait for a preferred node", "withdraw_former prepare",
                         "for a node", run=placement.await_former),
    "withdraw_former": Step("withdraw the request for preferred nodes", "reserve",
                            run=placement.withdraw_former),
    "await_node": Step("wait for the node of the allocation", "prepare", "for a node",
                       run=placement.await_node),
    "prepare": Step("claim the node, and write the mark and instance_info", "before deploy",
                    orders=True, run=system.prepare),
    # runbook_before, see instance_preparation
    "before": Step("choose the next verb for runbook_before", "order_before deploy",
                   "for the runbook before it to end", run=preparation.before),
    "order_before": Step("order manage, clean or provide", "before release", orders=True,
                         run=preparation.order_before),
    # deployment, see instance_system
    "deploy": Step("order active", "deployed end", orders=True, run=system.deploy),
    "deployed": Step("see how the deployment went",
                     "quarantine look_after come_up switch deploy replace_node",
                     "for the node to be active", run=system.deployed),
    "look_after": Step("choose an order ID for hardware or runbook_after", "run_after check_power",
                       "while other steps run on it", run=system.look_after),
    "run_after": Step("order service", "ran_after look_after", orders=True, run=system.run_after),
    "ran_after": Step("see how the service went", "look_after check_power",
                      "for its service to end", run=system.ran_after),
    "end_service": Step("order abort after a failed service", "check_power renew", orders=True,
                        run=system.end_service),
    "check_power": Step("protect the node, and see its power", "come_up switch",
                        run=system.check_power),
    "switch": Step("order the power state", "switched", orders=True, run=system.switch),
    "switched": Step("check the power state", "come_up end", "for the power", run=system.switched),
    "come_up": Step("wait for the first-boot signals", "end", "for the system to come up",
                    run=system.come_up),
    # after a failed deployment, see instance_system
    "replace_node": Step("order deleted on the node that failed", "replaced_node", orders=True,
                         run=system.replace_node),
    "replaced_node": Step("withdraw the allocation of the failed node", "reserve",
                          "for the instance to go",
                          run=system.replaced_node),
    "quarantine": Step("put nodes that failed into maintenance", "look_after",
                       "for a failed node to be clean", run=system.quarantine),
    # update, see instance_system
    "renew": Step("write the changed properties", "drain prepare before rebuild look_after "
                  "end_service switch end", "for the node to be active", run=system.renew),
    "rebuild": Step("order rebuild", "deployed end", orders=True, run=system.rebuild),
    # before the system goes, see drains
    "drain": Step("call the webhook of the drain", "renew release", "to be cleared", orders=True),
    # teardown, see instance_teardown
    "release": Step("check what is deployed on the node",
                    "drain free order_before shut_down undeploy", "for a state that can be left",
                    run=teardown.release),
    "shut_down": Step("order soft power off", "is_shut_down", run=teardown.shut_down),
    "is_shut_down": Step("check the power state", "undeploy", "for the system to shut down",
                         run=teardown.is_shut_down),
    "undeploy": Step("order deleted", "undeployed", orders=True, run=teardown.undeploy),
    "undeployed": Step("see whether the instance is gone", "free cleaned", "for the instance to go",
                       run=teardown.undeployed),
    "cleaned": Step("see whether the node is clean", "free", "for the node to be clean",
                    run=teardown.cleaned),
    "free": Step("withdraw the allocation, if a selector made it", "reserve_again end", orders=True,
                 run=teardown.free),
    "reserve_again": Step("create the kept allocation again", "end", "for the node again",
                          run=teardown.reserve_again),
}  # fmt: skip


class Instance(drains.Drained):
    """An instance on a bare-metal node; the node's UUID is the physical resource ID."""

    properties_schema: ClassVar[Mapping[str, Schema]] = instance_schema.PROPERTIES
    presence_rules: ClassVar[Sequence[Rule]] = instance_schema.RULES
    attributes_schema: ClassVar[Mapping[str, Attribute]] = instance_schema.ATTRIBUTES
    preemptible: ClassVar[bool] = True
    replaces_marked: ClassVar[bool] = True
    repairs_failed: ClassVar[bool] = True
    steps: ClassVar[Mapping[str, Step]] = STEPS
    mark_field: ClassVar[str] = "instance_info"
    phases: ClassVar[Mapping[str, Schema]] = instance_schema.TIMEOUTS

    effect_of_create = staticmethod(instance_info.effect_of_create)
    effect_of_repair = staticmethod(instance_info.effect_of_repair)
    effect_of_delete = staticmethod(instance_info.effect_of_delete)
    deletes_first = staticmethod(instance_info.deletes_first)

    def validate(self) -> None:
        values = self.properties
        if values["replace_order"] == instance_schema.CREATE_FIRST and not values["selector"]:
            for name in ("image_update_policy", "user_data_update_policy"):
                if values[name] == OnChange.REPLACE:
                    raise errors.StackValidationFailed(
                        reason="cannot create the new one first on the machine of the old one: "
                        f"give a selector, or another {name}",
                        path=["replace_order"],
                    )
        chosen = values["custom_deploy"]
        if isinstance(chosen, Mapping) and (unknown := sorted({*chosen} - {*INTERFACES})):
            raise errors.StackValidationFailed(
                reason=f"no interface is called {', '.join(unknown)}: {', '.join(INTERFACES)}",
                path=["custom_deploy"],
            )
        preserves = values["image_update_policy"] == "rebuild_preserve_ephemeral"
        if preserves and values["ephemeral_gb"]:
            raise errors.StackValidationFailed(
                reason="cannot preserve the ephemeral partition: a rebuild makes all partitions "
                "anew; give rebuild, or another policy",
                path=["image_update_policy"],
            )
        if values["wait_for"] == "first_boot" and not values["first_boot"]:
            raise errors.StackValidationFailed(
                reason="cannot wait for a first boot that nobody tells of: give first_boot",
                path=["wait_for"],
            )
        if values["wait_for"] == "none" and values["hardware"]:
            raise errors.StackValidationFailed(
                reason="cannot configure the hardware after a deployment that is not waited for: "
                "leave hardware out, or give another wait_for",
                path=["hardware"],
            )
        network_data = values["network_data"]
        if not isinstance(network_data, Mapping | None) and network_data != instance_network.AUTO:
            raise errors.StackValidationFailed(
                reason="cannot be read: give the map of network_data.json, or auto",
                path=["network_data"],
            )
        for number, each in enumerate(values["networks"] or ()):
            if each.get("port") and each.get("physical_network"):
                raise errors.StackValidationFailed(
                    reason="cannot be in two places: give port, or physical_network",
                    path=["networks", number],
                )

    @classmethod
    def names_same_object(
        cls, record: base.ResourceState, name: str, value: Any, find_node: FindNode
    ) -> bool:
        """Tell whether a new node, allocation or selector still means the current node."""
        if name == "selector" and record.physical_id is not None and isinstance(value, Mapping):
            node, before = find_node(record.physical_id), record.properties.get(name) or {}
            return node is not None and allocation.still_fits(node, before, value)
        places = {"node": record.physical_id, "allocation": record.data.get("instance")}
        if value is not None and value == places.get(name):
            return True
        return super().names_same_object(record, name, value, find_node)

    @classmethod
    def needs_replace(
        cls, before: Mapping[str, Any], after: Mapping[str, Any], prop_diff: Mapping[str, Any]
    ) -> bool:
        return OnChange.REPLACE in instance_info.changes(after, prop_diff)

    @classmethod
    def effect_of_update(
        cls, before: Mapping[str, Any], after: Mapping[str, Any], names: Collection[str]
    ) -> Effect:
        return instance_info.effect_of_update(before, after, names)

    @classmethod
    def needs_replace_failed(cls) -> bool:
        """Return False: the next update repairs it on the same node, see instance_system.renew."""
        return False

    @classmethod
    def reason_to_refuse_now(cls, node: Mapping[str, Any], verbs: Collection[str]) -> str:
        return system.reason_to_refuse(node)

    def handle_create(self) -> Any:
        preparation.check_runbooks(self)
        system.first_attempt(self)
        hardware = self.properties["hardware"]
        self.record.data[instance_hardware.DUE] = instance_hardware.changed_sections(None, hardware)
        self.begin("reserve")

    @classmethod
    def preempted_by(
        cls, before: Mapping[str, Any], after: Mapping[str, Any], names: Collection[str]
    ) -> bool:
        changes = {*instance_info.changes(after, names)}
        return not changes.isdisjoint({OnChange.REBUILD, OnChange.REPLACE})

    def handle_preempt(self) -> None:
        """Abort a deployment that a later traversal made useless; make no further attempt.

        Raises MachineFailed before the first order, and while the system boots.
        """
        super().handle_preempt()
        step = self.record.data.get(stepwise.STEP)
        if self.record.action in system.BOOTING and step in SKIPPABLE:
            raise stepwise.MachineFailed("a later order wants something else")
        self.record.data[system.ABANDONED] = True
        self._abort()

    def handle_create_cancel(self, token: Any) -> None:
        """Abort a step that waits for the agent; other work of the node comes to its end."""
        self._abort()

    handle_update_cancel = handle_create_cancel

    def _abort(self) -> None:
        """Abort a deployment or its preparation if it waits for the agent.  Raises Busy."""
        states = ABORTED.get(str(self.record.data.get(stepwise.STEP)))
        if states is None or self.record.physical_id is None:
            return
        node = self.get_node()
        if node["provision_state"] in states and self.is_ours(node["instance_info"]):
            with contextlib.suppress(errors.InvalidStateRequested):
                self.machines.set_provision_state(node["uuid"], "abort")

    def handle_update(
        self, definition: Any, tmpl_diff: Mapping[str, Any], prop_diff: Mapping[str, Any]
    ) -> Any:
        """Begin an update; ``renew`` replaces if the node is gone, in error, or no longer ours."""
        changes, data = instance_info.changes(self.properties, prop_diff), self.record.data
        system.first_attempt(self)
        data["rebuilds"] = OnChange.REBUILD in changes or bool(data.get(REBUILT))
        data["networks"] = OnChange.ATTACH in changes
        data[instance_hardware.DUE] = instance_hardware.due_sections(
            self, self.properties["hardware"], is_changed=OnChange.RUN in changes
        )
        self.begin("renew")

    def reason_to_replace(self) -> str:
        if self.context.machines is None or self.record.physical_id is None:
            return ""
        try:
            return system.reason_to_replace(self, self.get_node())
        except errors.NotFound:
            return f"node {self.record.physical_id} is gone"

    def current_effect(
        self, effect: Effect, properties: Mapping[str, Any] | None, names: Collection[str]
    ) -> Effect:
        """Return what the state of the node makes certain.

        An instance that has left its node is not deleted; ``renew`` decides about an update.
        """
        try:
            node = self.get_node()
            is_ours = self.is_ours(node["instance_info"])
        except errors.NotFound:
            is_ours = False
        if effect.verbs == ("deleted",) and not is_ours:
            return NO_EFFECT
        if effect.verbs == ("deleted",):
            effect = teardown.effect_of_release(self, effect, node)
        drained = is_ours and node["provision_state"] in drains.DRAINED
        if effect.verbs == ("deleted",) and not drained:
            effect = replace(effect, reason="")  # of its drain
        if is_ours and properties is not None:
            is_ordered = bool(self.record.data.get(REBUILT))
            runs = "hardware" in names
            due = instance_hardware.due_sections(self, properties["hardware"], is_changed=runs)
            if runs and not due and effect.impact is Impact.SERVICE:
                effect = instance_info.effect_of_update({}, properties, {*names} - {"hardware"})
            effect = system.effect_of_renew(
                effect, node, properties, names, sections=due, is_ordered=is_ordered
            )
            if effect.impact is not Impact.REBUILD and node["provision_state"] in SERVICED:
                effect = instance_hardware.current_effect(self, node, effect, properties, due)
            if drained:
                effect = instance_info.with_drain(effect, properties)
        return super().current_effect(effect, properties, names)

    def parse_live_resource_data(
        self, properties: Mapping[str, Any], data: Any
    ) -> Mapping[str, Any]:
        """Return the property ``power`` from the node; no other property is compared."""
        switched = {value: name for name, value in system.POWER.items()}
        return {"power": switched.get(data["power_state"], properties["power"])}

    def get_live_resource_data(self) -> Any:
        return self.get_node()

    def handle_suspend(self) -> Any:
        target = SUSPEND.get(self.properties["suspend_mode"])
        if target is not None and self.record.physical_id is not None:
            self.record.data["target"] = target
            self.begin("switch")

    def handle_resume(self) -> Any:
        if self.properties["suspend_mode"] != "none" and self.record.physical_id is not None:
            self.record.data["target"] = system.POWER[self.properties["power"]]
            self.begin("switch")

    def differences(self, real: Json) -> Iterator[drift.Difference]:
        """Yield differences of the node; if another instance is on it, only this difference."""
        instance = self.record.data.get("instance")
        if not self.is_ours(real["instance_info"]):
            difference = "another instance is on the node"
            if real["instance_uuid"] is None:
                difference = "the instance was taken away from the node"
            elif real["instance_uuid"] == instance:
                difference = f"instance_info/{machines.MARK} does not name this resource any more"
            yield drift.Difference("instance_uuid", difference)
            return
        power = self.record.data.get("target") or system.POWER[self.properties["power"]]
        expected: Json = {
            "instance_uuid": instance, "instance_name": system.host_name(self),
            "provision_state": State.ACTIVE, "maintenance": False, "fault": None,
            "power_state": system.reached(power),
        }  # fmt: skip
        if (protected := self.properties.get("protected")) is not None:
            expected["protected"] = protected
        yield from drift.compare(expected, real)
        info = instance_fields.info_of(self.properties)
        yield from drift.compare({"instance_info": info}, real)
        yield from instance_hardware.differences(self, self.properties.get("hardware") or {})
        if str(real["health"]).lower() == "critical":
            yield drift.Difference("health", "health is critical")

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        data = self.record.data
        if name in ("addresses", "first_address"):
            networks = self.properties["networks"] or []
            addresses = {n["vif"]: [n["fixed_ip"]] for n in networks if n.get("fixed_ip")}
            return addresses if name == "addresses" else next(iter(addresses.values()), [None])[0]
        if name == "attempts":
            return data.get("attempt")
        if name == "allocation_uuid":
            return None if self.properties["node"] else data.get("instance")
        if name in ("deployed_at", "deploy_duration"):
            return data.get(name)
        if name == "first_boot_data":
            handle = system.handle_of_boot(self)
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
            return stepwise.value_or_none(lambda: self.machines.list_steps(node["uuid"], "deploy"))
        if name == "image":
            info = node["instance_info"]
            return info.get("image_source") or info.get("boot_iso")
        return node.get(name.removeprefix("node_") if name.startswith("node_") else name)

    def data_for_replacement(self, *, returns: bool) -> dict[str, Any]:
        if self.record.data.get(ANOTHER) and self.record.physical_id:
            return {placement.AVOIDED: self.record.physical_id}
        former = self.record.data.get(placement.FORMER) if returns else None
        node = former or self.record.physical_id
        return {placement.FORMER: node} if node else {}

    def missing_fields(self, node: Json) -> Json:
        return {} if node["instance_name"] else {"instance_name": system.host_name(self)}

    def handle_delete(self) -> Any:
        self.record.data.pop(teardown.REPLACED, None)
        self.begin("release")

    def handle_prepare_for_replace(self) -> Any:
        self.record.data[teardown.REPLACED] = True
        self.begin("release")
