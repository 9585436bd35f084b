"""OS::Ironic::Node: a node of the bare-metal service, from enrolment to deletion."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from bloomery import errors
from bloomery.conductor.states import UNSTABLE_STATES, Power, State
from bloomery.orchestration.properties.schema import Attribute, Schema
from bloomery.orchestration.resources import (
    base,
    drift,
    machines,
    node_effects,
    node_schema,
    step_run,
    stepwise,
)  # fmt: skip
from bloomery.orchestration.resources.effects import NO_EFFECT, Effect
from bloomery.orchestration.resources.machines import FindNode, Json
from bloomery.orchestration.resources.node_effects import (
    CONFIGURATION,
    FAILED,
    HARDWARE,
    MOVING,
    boot_settings,
    inspects_anew,
    next_verb,
    target_of,
)  # fmt: skip
from bloomery.orchestration.resources.stepwise import MARKS, Step

ABORTED: Final = frozenset({State.INSPECTWAIT, State.CLEANWAIT, State.CLEANHOLD})
PHASES: Final = {"manage": "verify", "inspect": "inspect", "provide": "clean"}
APPLIED: Final = "applied"  # the hardware_configuration of the last cleaning
IN_USE: Final = frozenset({State.ACTIVE, State.RESCUE})  # nodes here may be protected
SETTABLE: Final = frozenset({State.MANAGEABLE, State.AVAILABLE})  # boot settings may change here
SETTING_S: Final = 1.0  # between two polls of a boot mode that is being set
OWNERSHIP: Final = ("owner", "parent_node")
STEPS: Final = MARKS | {
    "enroll": Step("enrol the node", "add_ports"),
    "add_ports": Step("set owner, ports, traits and maintenance", "steer"),
    "steer": Step(
        "choose the next verb towards target_state", "set_boot order end",
        "for what was ordered",
    ),
    "set_boot": Step("set boot mode, secure boot or power", "boot_set steer", orders=True),
    "boot_set": Step("check the setting", "steer", "for its setting"),
    "order": Step(
        "order manage, inspect, clean or provide", "steer patch leave", orders=True
    ),
    "patch": Step("write the changed properties", "order steer", "for what was ordered"),
    "leave": Step(
        "bring the node to a state for deletion", "order remove end",
        "for a state that can be left",
    ),
    "remove": Step("delete the node", orders=True),
}  # fmt: skip


class Node(stepwise.OnNode):
    """A bare-metal node with its ports, enrolled, inspected and cleaned up to target_state."""

    properties_schema: ClassVar[Mapping[str, Schema]] = node_schema.PROPERTIES
    attributes_schema: ClassVar[Mapping[str, Attribute]] = node_schema.ATTRIBUTES
    preemptible: ClassVar[bool] = True
    repairs_failed: ClassVar[bool] = True
    steps: ClassVar[Mapping[str, Step]] = STEPS
    mark_field: ClassVar[str] = "extra"
    phases: ClassVar[Mapping[str, Schema]] = node_schema.TIMEOUTS

    effect_of_update = staticmethod(node_effects.effect_of_update)

    @classmethod
    def effect_of_create(cls, properties: Mapping[str, Any]) -> Effect:
        effect = node_effects.effect_of_create(properties)
        driver, resource_class = _text(properties["driver"]), _text(properties["resource_class"])
        name = _text(properties["name"])
        return replace(effect, driver=driver, resource_class=resource_class, node=name)

    def current_effect(
        self, effect: Effect, properties: Mapping[str, Any] | None, names: Collection[str]
    ) -> Effect:
        """Ignore the node's maintenance if the template has set it: an update may end it."""
        if self.record.physical_id is None:
            return effect
        if properties is None:
            return node_effects.current_effect_of_delete(self.get_node(), self.properties)
        effect = node_effects.current_effect(self.get_node(), self.record.data, properties, names)
        is_ours = (self.record.properties.get("maintenance") or {}).get("enabled")
        return effect if is_ours else super().current_effect(effect, properties, names)

    @classmethod
    def effect_of_delete(cls, properties: Mapping[str, Any]) -> Effect:
        goes = properties["on_delete"] != "keep" and target_of(properties) == "available"
        return Effect(verbs=("manage",)) if goes else NO_EFFECT

    @classmethod
    def needs_replace_failed(cls) -> bool:
        return False

    @classmethod
    def state_of_node(cls, properties: Mapping[str, Any]) -> str | None:
        return target_of(properties)

    @classmethod
    def reason_to_refuse_new(cls, properties: Mapping[str, Any], find_node: FindNode) -> str:
        """Return why the enrolment would fail: a node with this name exists; else empty."""
        name = _text(properties["name"])
        node = find_node(name) if name else None
        if node is None:
            return ""
        mark = (node["extra"] or {}).get(machines.MARK)
        holder = f", made by resource {mark.get('resource')}" if isinstance(mark, Mapping) else ""
        return (
            f"cannot enrol node {name}: one of that name is there ({node['uuid']}{holder}); give "
            "another name, or keep the name of the resource that has it"
        )

    # --------------------------------------------------------------------------------- create

    def handle_create(self) -> Any:
        self.resource_id_set(self.derived_id("node"))
        self.begin("enroll")

    def step_enroll(self) -> str | None:
        uuid = self.node_uuid()
        fields = {name: value for name, value in self._fields().items() if value is not None}
        for name in OWNERSHIP:  # policies may forbid them on create; step_add_ports patches them
            fields.pop(name, None)
        try:
            self.machines.create_node(fields | {"uuid": uuid})
        except errors.Conflict:
            if not self._is_there(uuid):
                raise
        return "add_ports"

    def _is_there(self, uuid: str) -> bool:
        try:
            return self.is_ours(self.machines.get_node(uuid)["extra"])
        except errors.NotFound:
            return False

    def step_add_ports(self) -> str | None:
        fields = self._fields()
        for name in OWNERSHIP:
            node = self.get_node()
            if fields[name] is not None and node[name] != fields[name]:
                self.machines.update_node(node["uuid"], stepwise.patch_of({name: fields[name]}))
        self._change_ports(before=())
        if self.properties["traits"]:
            self.machines.set_traits(self.node_uuid(), self.properties["traits"])
        self._change_maintenance({})
        return "steer"

    def step_steer(self) -> stepwise.Following:
        """Wait until the node rests; then note the next verb towards its target, if any.

        An allocated node is neither inspected nor configured.
        """
        node, data = self.get_node(), self.record.data
        state, ordered = node["provision_state"], data.get("ordered")
        if state in MOVING:
            return self.wait_for(
                node["uuid"], self._timeout_s(ordered), f"for {ordered}: it is {state}"
            )
        data.pop("ordered", None)
        began = data.pop("began", None)
        if ordered is not None and began is not None:
            timings = data.setdefault("timings", {})
            timings[PHASES.get(ordered, "clean")] = round(self.context.utc() - began, 3)
        if ordered is not None and (
            state in FAILED or (ordered, state) == ("manage", State.ENROLL)
        ):
            raise stepwise.MachineFailed(str(node["last_error"]))
        if ordered == "clean":
            data[APPLIED] = dict(self.properties[CONFIGURATION] or {})
        if self._next_setting(node) is not None:
            return "set_boot"
        target, sections = target_of(self.properties), self._unapplied()
        _refuse(node_effects.configuration_refusal(node, target, sections))
        inspects = self.properties["inspect"] != "none" and not data.get("inspected")
        is_free = node_effects.is_free(node)
        verb = next_verb(
            state, target, inspects=inspects and is_free, configures=bool(sections) and is_free
        )
        return None if verb is None else self._to_order(node, verb, then="steer")

    def _unapplied(self) -> Sequence[str]:
        return node_effects.unapplied(self.record.data.get(APPLIED) or {}, self.properties)

    # --------------------------------------------------------------------- boot settings and power

    def _next_setting(self, node: Json) -> str | None:
        if node["provision_state"] not in SETTABLE or not node_effects.is_free(node):
            return None
        return next(iter(self._settings(node)), None)

    def _settings(self, node: Json) -> Json:
        """Return the pending settings of the machine: value by field.

        A driver that cannot read the power (``fake-hardware``) knows it only after it was set.
        Without a power state no allocation takes the node.
        """
        settings = boot_settings(node, self.properties)
        is_unknown = node["power_state"] is None and not self.properties["disable_power_off"]
        if is_unknown and target_of(self.properties) == State.AVAILABLE:
            settings["power_state"] = Power.OFF
        return settings

    def step_set_boot(self) -> str | None:
        node = self.get_node()
        field = self._next_setting(node)
        if field is None:
            return "steer"
        value = self._settings(node)[field]
        if field == "power_state":
            self.machines.set_power_state(node["uuid"], value)
        else:
            self.machines.set_boot(node["uuid"], field, value)
        self.record.data["setting"] = field
        return "boot_set"

    def step_boot_set(self) -> stepwise.Following:
        node, field = self.get_node(), str(self.record.data["setting"])
        if field not in self._settings(node):
            return "steer"
        if node["reservation"] is not None:
            timeout_s = self._timeout_s("manage")
            return self.wait_for(node["uuid"], timeout_s, f"for its {field}", every_s=SETTING_S)
        raise stepwise.MachineFailed(str(node["last_error"]))

    def _to_order(self, node: Json, verb: str, then: str) -> str:
        self.note_move(node)
        self.record.data |= {"verb": verb, "then": then}
        return "order"

    def step_order(self) -> str | None:
        data = self.record.data
        arguments: Json = {}
        if data["verb"] == "clean":
            stated, sections = self.properties[CONFIGURATION], self._unapplied()
            steps = [each for name in sections for each in step_run.steps_of(name, stated[name])]
            arguments = {"clean_steps": step_run.numbered(steps)}
        self.order(data["verb"], **arguments)
        data["ordered"], data["began"] = data["verb"], self.context.utc()
        if data["verb"] == "inspect":
            data["inspected"] = True
        return str(data["then"])

    @classmethod
    def preempted_by(
        cls, before: Mapping[str, Any], after: Mapping[str, Any], names: Collection[str]
    ) -> bool:
        """Tell whether driver, BMC or interfaces change: the running action is then useless."""
        return not HARDWARE.isdisjoint(names)

    def handle_preempt(self) -> None:
        if self.record.physical_id is None or not self._is_there(self.record.physical_id):
            return
        if self.get_node()["provision_state"] in ABORTED:
            with contextlib.suppress(errors.InvalidStateRequested):
                self.machines.set_provision_state(self.node_uuid(), "abort")

    # --------------------------------------------------------------------------------- update

    def handle_update(
        self, definition: Any, tmpl_diff: Mapping[str, Any], prop_diff: Mapping[str, Any]
    ) -> Any:
        if inspects_anew(self.properties, prop_diff):
            self.record.data["inspected"] = False
        self.record.data["changed"] = sorted(prop_diff)
        self.record.data.pop("ordered", None)
        self.begin("patch")

    def step_patch(self) -> stepwise.Following:
        try:
            node = self.get_node()
        except errors.NotFound as exc:
            raise base.UpdateReplace from exc
        self.check_unmarked(node["extra"], f"node {node['uuid']}")
        _refuse(
            node_effects.destruction_refusal(node["uuid"], self.properties, self._unapplied())
            or node_effects.boot_refusal(node, self.properties, self.record.data.get("changed", ()))
        )
        if (ordered := self.record.data.get("ordered")) and node[
            "provision_state"
        ] in UNSTABLE_STATES:
            return self.wait_for(node["uuid"], self._timeout_s(ordered), f"for {ordered}")
        is_unused = node["provision_state"] == State.AVAILABLE and node["instance_uuid"] is None
        if is_unused and self.properties["retired"] and not node["retired"]:
            return self._to_order(node, "manage", then="patch")
        names = set(self.record.data.get("changed", ()))
        before, after = self._fields(self.record.properties), self._fields()
        changes = {n: value for n, value in after.items() if value != before[n] or n in names}
        changes |= self._protection(node, before=self.record.properties)
        if changes:
            self.machines.update_node(node["uuid"], stepwise.patch_of(changes))
        if "ports" in names:
            self._change_ports(before=self.record.properties.get("ports") or ())
        if "traits" in names:
            self.machines.set_traits(node["uuid"], self.properties["traits"] or [])
        self._change_maintenance(self.record.properties.get("maintenance") or {})
        self.record.data.pop("changed", None)
        return "steer"

    def _protection(self, node: Json, before: Mapping[str, Any]) -> Json:
        if node["provision_state"] not in IN_USE:
            return {}
        protection = {name: self.properties[name] for name in node_schema.PROTECTION}
        return {
            name: value for name, value in protection.items()
            if value != node[name] and (value is not None or before.get(name) is not None)
        }  # fmt: skip

    def _fields(self, properties: Mapping[str, Any] | None = None) -> Json:
        values = self.properties if properties is None else properties
        fields = {name: values.get(name) for name in node_schema.PLAIN}
        fields = {name: None if value in ("", {}) else value for name, value in fields.items()}
        fields["extra"] = {**(values.get("extra") or {}), machines.MARK: self.mark()}
        fields["name"] = fields["name"] or self.physical_resource_name()
        fields["conductor_group"] = fields["conductor_group"] and fields["conductor_group"].lower()
        chosen = values.get("interfaces") or {}
        return fields | {f"{kind}_interface": chosen.get(kind) for kind in node_schema.INTERFACES}

    def _change_ports(self, before: Sequence[Mapping[str, Any]]) -> None:
        old = {each["address"].lower(): each for each in before}
        new = {each["address"].lower(): each for each in self.properties["ports"] or ()}
        for address, port in new.items():
            if old.get(address) == port:
                continue
            uuid = self._port_id(address)
            values = {name: port.get(name) for name in node_schema.PORT_FIELDS}
            values = {name: v for name, v in values.items() if v is not None} | {"address": address}
            values["extra"] = {**(port.get("extra") or {}), machines.MARK: self.mark()}
            if self.machines.find(machines.PORT, uuid) is None:
                ids = {"uuid": uuid, "node_uuid": self.node_uuid()}
                self.machines.create(machines.PORT, values | ids)
            else:
                self.machines.update(machines.PORT, uuid, stepwise.patch_of(values))
        for address in old.keys() - new.keys():
            uuid = self._port_id(address)
            if self.machines.find(machines.PORT, uuid) is not None:
                self.machines.delete(machines.PORT, uuid)

    def _port_id(self, address: str) -> str:
        return self.derived_id(f"port-{address}")

    def _change_maintenance(self, before: Mapping[str, Any]) -> None:
        maintenance = self.properties["maintenance"] or {}
        if dict(maintenance) != dict(before):
            on = bool(maintenance.get("enabled"))
            reason = (maintenance.get("reason") or None) if on else None
            self.machines.set_maintenance(self.node_uuid(), on, reason)

    # --------------------------------------------------------------------------------- delete

    def handle_delete(self) -> Any:
        self.record.data.pop("ordered", None)
        self.begin("leave")

    def step_leave(self) -> stepwise.Following:
        if self.record.physical_id is None or not self._is_there(self.record.physical_id):
            return None
        node, end = self.get_node(), self.properties["on_delete"]
        if node_effects.stays(node, end):
            patch: list[Json] = [{"op": "remove", "path": f"/extra/{machines.MARK}"}]
            if end == "retire":
                patch.append({"op": "add", "path": "/retired", "value": True})
            self.machines.update_node(node["uuid"], patch)
            return None
        _refuse(node_effects.deletion_refusal(node))
        state = node["provision_state"]
        if state in MOVING:
            return self.wait_for(node["uuid"], self._timeout_s("provide"), f"while it is {state}")
        if state in node_effects.REMOVABLE:
            return "remove"
        return self._to_order(node, "manage", then="leave")

    def step_remove(self) -> str | None:
        with contextlib.suppress(errors.NodeNotFound):
            self.machines.delete_node(self.node_uuid())
        return None

    # ---------------------------------------------------------------------------------- live state

    def differences(self, real: Json) -> Iterator[drift.Difference]:
        """Yield differences of fields, ports and state, without additions of the inspection."""
        fields = self._fields()
        expected = {name: value for name, value in fields.items() if value is not None}
        driver_info = expected.pop("driver_info", {})
        expected["extra"] = self.properties["extra"] or {}
        yield from self.mark_differences(real)
        if (parent := expected.get("parent_node")) not in (None, real["parent_node"]):
            expected["parent_node"] = self.machines.get_node(str(parent))["uuid"]
        yield from drift.compare(expected, real)
        if real["driver_info"] is not None:  # None: the owner of the stack may not read it
            yield from drift.compare({"driver_info": driver_info}, real, secret=True)
        maintenance = self.properties["maintenance"] or {}
        facts: Json = {"fault": None, "maintenance": bool(maintenance.get("enabled"))}
        if maintenance.get("enabled") and maintenance.get("reason"):
            facts["maintenance_reason"] = maintenance["reason"]
        if self.properties["traits"] is not None:
            facts["traits"] = sorted(self.properties["traits"])
        if node_effects.is_free(real):  # an instance may have other boot settings
            facts |= boot_settings(real, self.properties)
        yield from drift.compare(facts | self._protection(real, before={}), real)
        yield from self._port_differences()
        state, target = real["provision_state"], target_of(self.properties)
        if next_verb(state, target, inspects=False) is not None:
            yield from drift.compare({"provision_state": target}, real)

    def get_live_resource_data(self) -> Any:
        try:
            return self.get_node()
        except errors.NodeNotFound as exc:
            raise errors.EntityNotFound(entity="Node", name=self.record.physical_id) from exc

    def parse_live_resource_data(
        self, properties: Mapping[str, Any], data: Any
    ) -> Mapping[str, Any]:
        live = {
            name: data[name] for name in node_schema.CONVERGED if properties.get(name) is not None
        }
        if {*(properties.get("traits") or data["traits"])} != {*data["traits"]}:
            live["traits"] = data["traits"]
        return live

    def _port_differences(self) -> Iterator[drift.Difference]:
        for port in self.properties["ports"] or ():
            address = port["address"].lower()
            real = self.machines.find(machines.PORT, self._port_id(address))
            if real is None:
                yield drift.missing(f"ports/{address}", f"port {address}")
                continue
            fields = {name: value for name, value in port.items() if value is not None}
            expected = fields | {"address": address, "node_uuid": self.node_uuid()}
            yield from drift.compare(expected, real, f"ports/{address}/")

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        if name == "timings":
            return self.record.data.get("timings") or {}
        try:
            if name == "ports":
                return [port["address"] for port in self.machines.list_ports(self.node_uuid())[0]]
            if name == "inventory":
                return stepwise.value_or_none(lambda: self.machines.get_inventory(self.node_uuid()))
            if name == "console_url":
                return self.console_url()
            return self.get_node().get(name)
        except errors.NotFound:
            return None

    def _timeout_s(self, verb: str | None) -> float:
        return self.timeout_s(PHASES.get(verb or "", "clean"))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _refuse(reason: str) -> None:
    if reason:
        raise stepwise.MachineRefused(reason)
