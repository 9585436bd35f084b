"""OS::Ironic::RunbookExecution and OS::Ironic::HardwareConfiguration: steps that run on a node.

Both clean a manageable node, or service an active node: they order the verb once and wait for its
end.  With ``apply_when: deploy`` a HardwareConfiguration leaves its steps to the next deployment of
an Instance in the same stack.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from bloomery import errors
from bloomery.conductor.states import State
from bloomery.orchestration.properties import constraints
from bloomery.orchestration.properties.presence import ExactlyOne, Rule
from bloomery.orchestration.properties.schema import (
    Attribute,
    Drift,
    OnChange,
    Plans,
    Schema,
    Type,
    updatable,
)
from bloomery.orchestration.resources import drift, instance_schema, stepwise
from bloomery.orchestration.resources.effects import NO_EFFECT, Effect, Impact
from bloomery.orchestration.resources.machines import Json, Machines
from bloomery.orchestration.resources.states import Action
from bloomery.orchestration.resources.stepwise import MARKS, Step
from bloomery.outcome import DONE, Outcome

CLEAN, SERVICE, DEPLOY = "clean", "service", "deploy"
FIRST_PRIORITY: Final = 190  # of deploy steps; the step that writes the image has 100
MOST_DEPLOY_STEPS: Final = 80
CATALOGUE: Final = "catalogue"  # the first section of a HardwareConfiguration
SECTIONS: Final = ("firmware", "bios", "raid", "extra_steps")  # the others, and those of a Node
RESTING_STATES: Final = {
    CLEAN: State.MANAGEABLE,
    SERVICE: State.ACTIVE,
}  # the node's state before and after
RUNNING_STATES: Final = {
    CLEAN: frozenset({State.CLEANING, State.CLEANWAIT, State.CLEANHOLD}),
    SERVICE: frozenset({State.SERVICING, State.SERVICEWAIT, State.SERVICEHOLD}),
}
RESETS: Final = {"bios": ("bios", "factory_reset"), "raid": ("raid", "delete_configuration")}
LOSES_DATA: Final = "what is on its disks is lost"
RUNBOOK_UNREAD: Final = "the plan does not tell whether its runbook erases disks"
_ERASING: Final = ("erase_devices", "burnin_disk")  # names of steps begin so
RESET: Final = "resets"  # the delete resets the applied sections
DEPLOYED_SECTIONS: Final = "taken"  # sections whose steps a deployment runs
AVAILABLE_FOR_CLEAN: Final = (State.AVAILABLE, CLEAN)  # an available node refuses manual cleaning
NEVER_CLEANED: Final = frozenset({State.AVAILABLE, State.ACTIVE, State.RESCUE})  # manually
WAITS: Final = frozenset({State.CLEANWAIT, State.SERVICEWAIT})

LATER, RUN, UNSEEN, OWN = OnChange.LATER, OnChange.RUN, Drift.NONE, Drift.OWN
STEPS: Final = updatable(
    Type.LIST, RUN, UNSEEN, "The steps to run, in order.",
    schema=Schema(Type.MAP, schema=instance_schema.USER_STEP),
)  # fmt: skip
ATTRIBUTES: Final[Mapping[str, Attribute]] = {
    "started_at": Attribute("The time when the last run was ordered.", Type.STRING),
    "finished_at": Attribute("The time when the last run ended.", Type.STRING),
    "duration": Attribute("The duration of the last run, in seconds.", Type.NUMBER),
    "result": Attribute("The result of the last run: success, or the error.", Type.STRING),
}
RUN_STEPS: Final = MARKS | {
    "look": Step(
        "check the node, and choose an order ID", "manage run",
        "while other steps run on it",
    ),
    "manage": Step("order manage after a cleaning that was stopped", "look", orders=True),
    "run": Step("order clean or service, with the steps", "ran look", orders=True),
    "ran": Step("see how the steps went", "end", "for the steps to end"),
}  # fmt: skip


class StepRun(stepwise.OnNode):
    """The base class of kinds that run steps; a subclass defines ``arguments`` and ``mode``."""

    attributes_schema: ClassVar[Mapping[str, Attribute]] = ATTRIBUTES
    way_down: ClassVar[str] = "; let its OS::Ironic::Node have target_state: manageable"
    steps: ClassVar[Mapping[str, Step]] = RUN_STEPS
    preemptible: ClassVar[bool] = True

    @classmethod
    def reason_to_refuse_at(cls, state: str, verbs: Collection[str]) -> str:
        """Return why a node in this state refuses manual cleaning; empty: it does not."""
        if state not in NEVER_CLEANED or next(iter(verbs), None) != CLEAN:
            return ""
        way_down = cls.way_down if state == State.AVAILABLE else ""
        return f"its node is {state}, and {CLEAN} needs it {RESTING_STATES[CLEAN]}{way_down}"

    @classmethod
    def reason_to_refuse_now(cls, node: Mapping[str, Any], verbs: Collection[str]) -> str:
        verb, state = next(iter(verbs)), node["provision_state"]
        if state == RESTING_STATES[verb]:
            return stepwise.reason_to_refuse(node, verbs)
        if state in RUNNING_STATES[verb]:
            return ""  # it waits for their end
        is_above = (state, verb) == AVAILABLE_FOR_CLEAN
        way_down = cls.way_down if is_above else ""
        return f"its node is {state}, and {verb} needs it {RESTING_STATES[verb]}{way_down}"

    def mode(self) -> str:
        raise NotImplementedError

    def arguments(self) -> Json:
        """Return the arguments of the verb; {}: there is nothing to run."""
        raise NotImplementedError

    def node_ident(self) -> str:
        return str(self.properties["node"])

    def start(self) -> None:
        if self.arguments():
            self.begin("look")

    def step_look(self) -> stepwise.Following:
        node, mode = self.machines.get_node(self.node_ident()), self.mode()
        self.resource_id_set(node["uuid"])
        if node["provision_state"] in RUNNING_STATES[mode]:
            return self.wait_in("", f"while it is {node['provision_state']}")
        has_failed = node["provision_state"] == State.CLEANFAIL and not node["maintenance"]
        if mode == CLEAN and has_failed and self.machines.has_aborted_cleaning(node["uuid"]):
            self.note_move(node)
            return "manage"
        if node["provision_state"] != RESTING_STATES[mode]:
            raise stepwise.MachineRefused(
                f"cannot run steps on node {node['name'] or node['uuid']}: it is "
                f"{node['provision_state']}, and {mode} needs it {RESTING_STATES[mode]}"
                + (self.way_down if (node["provision_state"], mode) == AVAILABLE_FOR_CLEAN else "")
            )
        self.note_move(node)
        self.number_order()
        self.record.data["started_at"] = self.context.utc()
        self.record.data.pop("finished_at", None)
        return "run"

    def step_manage(self) -> str | None:
        self.order("manage")
        return "look"

    def step_run(self) -> str | None:
        return "ran" if self.order_numbered(self.mode(), **self.arguments()) else "look"

    def step_ran(self) -> stepwise.Following:
        error, data = self.wait_for_flow("", "for the steps to end"), self.record.data
        if isinstance(error, stepwise.UNFINISHED):
            return error
        data["finished_at"] = self.context.utc()
        data["result"] = error or "success"
        if error is not None:
            raise stepwise.MachineFailed(error)
        return None

    def handle_preempt(self) -> None:
        """Abort steps that wait for the agent; a running step comes to its end.  Raises Busy."""
        if self.record.data.get(stepwise.STEP) == "ran":
            node = self.get_node()
            if node["provision_state"] in WAITS:
                self.machines.set_provision_state(node["uuid"], "abort")

    def timeout_s(self, phase: str = "") -> float:
        """Return the property ``timeout``, for each phase."""
        return float(self.properties["timeout"])

    def differences(self, real: Json) -> Iterator[drift.Difference]:
        if (result := self.record.data.get("result")) not in (None, "success"):
            yield drift.Difference("result", f"the last run of the steps failed: {result}")

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        data = self.record.data
        began, ended = data.get("started_at"), data.get("finished_at")
        if name == "duration":
            return None if began is None or ended is None else round(ended - began, 3)
        if name in ("started_at", "finished_at"):
            at = data.get(name)
            return None if at is None else datetime.fromtimestamp(at, UTC).isoformat()
        return data.get(name)


def numbered(user_steps: Sequence[Mapping[str, Any]]) -> list[Json]:
    return [
        {
            "interface": each["interface"],
            "step": each["step"],
            "args": each.get("args") or {},
            "order": number if each.get("order") is None else each["order"],
        }
        for number, each in enumerate(user_steps, 1)
    ]


class RunbookExecution(StepRun):
    """A run of steps or a runbook on a node, in the actions of ``run_on``."""

    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "node": Schema(
            Type.STRING, "UUID or name of the node.", drift=UNSEEN, plans=Plans.NODE
        ),
        "instance": Schema(
            Type.STRING, "The OS::Ironic::Instance on the node, instead of node.", drift=UNSEEN,
            plans=Plans.NODE
        ),
        "runbook": updatable(
            Type.STRING, RUN, UNSEEN, "UUID or name of the runbook.", plans=Plans.MACHINE
        ),
        "steps": replace(STEPS, plans=Plans.MACHINE),
        "mode": updatable(
            Type.STRING, RUN, UNSEEN, "service: for an active node; clean: for a manageable node.",
            default=SERVICE, plans=Plans.VERBS,
            constraints=[constraints.AllowedValues([SERVICE, CLEAN])],
        ),
        "triggers": updatable(Type.MAP, RUN, UNSEEN, "Any values; a change runs the steps."),
        "run_on": updatable(
            Type.LIST, RUN, UNSEEN, "The actions in which steps run.", default=["CREATE", "UPDATE"],
            plans=Plans.VERBS, schema=Schema(
                Type.STRING, constraints=[
                    constraints.AllowedValues(["CREATE", "UPDATE", "SUSPEND", "RESUME", "DELETE"])
                ],
            ),
        ),
        "timeout": updatable(
            Type.NUMBER, RUN, UNSEEN, "The timeout of the steps, in seconds.", default=7200,
            constraints=[constraints.Range(min=1)],
        ),
    }  # fmt: skip

    presence_rules: ClassVar[Sequence[Rule]] = (
        ExactlyOne("runbook", "steps", reason="cannot tell what to run"),
        ExactlyOne("node", "instance", reason="cannot tell where to run"),
    )

    @classmethod
    def effect_of_create(cls, properties: Mapping[str, Any]) -> Effect:
        return _effect_of_run(properties, Action.CREATE)

    @classmethod
    def effect_of_update(
        cls, before: Mapping[str, Any], after: Mapping[str, Any], names: Collection[str]
    ) -> Effect:
        return _effect_of_run(after, Action.UPDATE)

    @classmethod
    def effect_of_delete(cls, properties: Mapping[str, Any]) -> Effect:
        return _effect_of_run(properties, Action.DELETE)

    def mode(self) -> str:
        return str(self.properties["mode"])

    def node_ident(self) -> str:
        return str(self.properties["node"] or self.properties["instance"])

    def arguments(self) -> Json:
        if runbook := self.properties["runbook"]:
            return {"runbook": runbook}
        return {f"{self.mode()}_steps": numbered(self.properties["steps"])}

    def _start_on(self, action: Action) -> None:
        if runs_on(self.properties, action):
            self.start()

    def handle_create(self) -> Any:
        self._start_on(Action.CREATE)

    def handle_update(
        self, definition: Any, tmpl_diff: Mapping[str, Any], prop_diff: Mapping[str, Any]
    ) -> Any:
        self._start_on(Action.UPDATE)

    def handle_suspend(self) -> Any:
        self._start_on(Action.SUSPEND)

    def handle_resume(self) -> Any:
        self._start_on(Action.RESUME)

    def handle_delete(self) -> Any:
        if self.record.physical_id is not None:
            self._start_on(Action.DELETE)


class HardwareConfiguration(StepRun):
    """Firmware, BIOS, RAID and further steps in one cleaning, or one service, of a node."""

    steps: ClassVar[Mapping[str, Step]] = RUN_STEPS | {
        "await_deployment": Step("leave the steps to the next deployment")
    }
    way_down: ClassVar[str] = StepRun.way_down + ", or this as its hardware_configuration"

    properties_schema: ClassVar[Mapping[str, Schema]] = {
        "node": Schema(
            Type.STRING, "UUID or name of the node.", required=True, drift=UNSEEN, plans=Plans.NODE
        ),
        "catalogue": updatable(
            Type.STRING, RUN, OWN, "The digest of the catalogue of firmware whose versions the "
            "machine is to have.", plans=Plans.VERBS,
        ),
        "firmware": updatable(
            Type.LIST, RUN, OWN, "The firmware updates, in order.", plans=Plans.VERBS,
            schema=Schema(Type.MAP, schema=instance_schema.FIRMWARE),
        ),
        "bios": updatable(
            Type.MAP, RUN, OWN, "The BIOS configuration.", plans=Plans.VERBS,
            schema=instance_schema.BIOS,
        ),
        "raid": updatable(
            Type.MAP, RUN, OWN, "The RAID configuration; data on the disks is lost.",
            plans=Plans.VERBS, schema={
                "logical_disks": Schema(
                    Type.LIST, "The logical disks, as in target_raid_config.", required=True
                ),
                "delete_existing": Schema(
                    Type.BOOLEAN, "Delete existing logical disks.", default=True
                ),
            },
        ),
        "extra_steps": replace(STEPS, plans=Plans.VERBS),
        "apply_when": updatable(
            Type.STRING, RUN, UNSEEN,
            "manageable: clean a manageable node; service: service an active node; deploy: with "
            "the next deployment by an Instance of this stack.",
            default="manageable", plans=Plans.VERBS,
            constraints=[constraints.AllowedValues(["manageable", SERVICE, DEPLOY])],
        ),
        "on_delete": updatable(
            Type.STRING, LATER, UNSEEN,
            "reset: restore BIOS defaults and delete logical disks, if they were applied.",
            default="keep", plans=Plans.VERBS,
            constraints=[constraints.AllowedValues(["keep", "reset"])],
        ),
        "allow_destructive": updatable(
            Type.BOOLEAN, LATER, UNSEEN, "Whether changes of RAID are allowed.", default=False
        ),
        "timeout": updatable(
            Type.NUMBER, LATER, UNSEEN, "The timeout of the steps, in seconds.", default=10800,
            constraints=[constraints.Range(min=1)],
        ),
    }  # fmt: skip
    attributes_schema: ClassVar[Mapping[str, Attribute]] = {
        **ATTRIBUTES,
        "applied": Attribute("The last applied configuration, by section.", Type.MAP),
        "pending": Attribute(
            "The sections that are not applied yet, and wait for a deployment.", Type.LIST,
        ),
        "drift": Attribute(
            "The differences from the applied configuration, as sentences.", Type.LIST
        ),
    }  # fmt: skip

    def validate(self) -> None:
        is_deployed = self.properties["apply_when"] == DEPLOY
        user_steps = self._steps(SECTIONS) if is_deployed else []
        names = [f"{each['interface']}.{each['step']}" for each in user_steps]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise errors.StackValidationFailed(
                reason=f"cannot run {twice} twice: a deployment runs each step once; give it "
                "once, or another apply_when",
                path=["extra_steps"],
            )
        if len(names) > MOST_DEPLOY_STEPS:
            raise errors.StackValidationFailed(
                reason=f"cannot run {len(names)} steps in a deployment: {MOST_DEPLOY_STEPS} at most"
            )
        if is_deployed and self.properties[CATALOGUE]:
            raise errors.StackValidationFailed(
                reason="cannot leave the catalogue of firmware to a deployment: give another "
                "apply_when, or hardware of the Instance",
                path=[CATALOGUE],
            )
        if self.properties["raid"] and not self.properties["allow_destructive"]:
            raise errors.StackValidationFailed(
                reason="cannot change RAID, which destroys data: set allow_destructive to true",
                path=["raid"],
            )

    def _steps(self, sections: Iterable[str]) -> list[Json]:
        steps: list[Json] = []
        for name in sections:
            if name == CATALOGUE:
                uuid = self.machines.get_node(self.node_ident())["uuid"]
                updates = catalogue_updates(self.machines, uuid, self.properties[name])
                settings = [each["setting"] for each in updates]
                steps += steps_of("firmware", settings) if settings else []
            elif self.properties[name]:
                steps += steps_of(name, self.properties[name])
        return steps

    @classmethod
    def effect_of_create(cls, properties: Mapping[str, Any]) -> Effect:
        return _effect_of_sections(properties, changed_sections({}, properties))

    @classmethod
    def effect_of_delete(cls, properties: Mapping[str, Any]) -> Effect:
        sections = [name for name in RESETS if properties.get(name)]
        if properties["on_delete"] != "reset" or not sections:
            return NO_EFFECT
        mode = _mode_of(properties)
        return Effect(
            impact=Impact.SERVICE, verbs=(mode,), loses_data="raid" in sections, certain=False,
            reason=f"{', '.join(sections)} of the machine: reset ({mode}), if it was applied",
        )  # fmt: skip

    @classmethod
    def effect_of_update(
        cls, before: Mapping[str, Any], after: Mapping[str, Any], names: Collection[str]
    ) -> Effect:
        """Return an effect that is not certain for a new section: it may be applied already."""
        if before["apply_when"] == DEPLOY != after["apply_when"]:  # pending sections now apply
            effect = _effect_of_sections(after, changed_sections({}, after))
            return replace(effect, certain=not effect.verbs)
        sections = [each for each in changed_sections(before, after) if each in names]
        effect = _effect_of_sections(after, sections)
        is_certain = effect.certain and all(before.get(each) for each in sections)
        return replace(effect, certain=is_certain)

    def mode(self) -> str:
        return _mode_of(self.properties)

    def arguments(self) -> Json:
        """Return the steps of the pending sections; for a delete, the steps that reset them."""
        if self.record.data.get(RESET):
            applied = self.record.data.get("applied") or {}
            user_steps = [_step(*RESETS[name]) for name in RESETS if applied.get(name)]
        else:
            user_steps = self._steps(self.pending())
        return {f"{self.mode()}_steps": numbered(user_steps)} if user_steps else {}

    def pending(self) -> list[str]:
        return changed_sections(self.record.data.get("applied") or {}, self.properties)

    def handle_create(self) -> Any:
        self.record.data.pop(RESET, None)
        if self.properties["apply_when"] == DEPLOY:
            self.begin("await_deployment")
            return
        self.start()
        if self.pending() == [CATALOGUE] and stepwise.STEP not in self.record.data:
            self._note_applied(self.properties)  # the machine has its versions
            self.begin("await_deployment")

    def handle_update(
        self, definition: Any, tmpl_diff: Mapping[str, Any], prop_diff: Mapping[str, Any]
    ) -> Any:
        self.handle_create()

    def _note_applied(self, stated: Mapping[str, Any]) -> None:
        self.record.data["applied"] = {name: stated.get(name) for name in (CATALOGUE, *SECTIONS)}

    def step_await_deployment(self) -> str | None:
        """Set the node as physical resource ID, so that its Instance finds this resource."""
        self.resource_id_set(self.machines.get_node(self.node_ident())["uuid"])
        return None

    def step_ran(self) -> stepwise.Following:
        following = super().step_ran()
        if isinstance(following, stepwise.UNFINISHED):
            return following
        stated = {} if self.record.data.get(RESET) else self.properties
        if CATALOGUE in self.pending() and stated:
            refuse_versions(catalogue_updates(self.machines, self.node_uuid(), stated[CATALOGUE]))
        self._note_applied(stated)
        return following

    def handle_delete(self) -> Any:
        """Begin to reset BIOS and RAID with ``on_delete: reset``; otherwise they stay."""
        if self.properties["on_delete"] == "reset" and self.record.physical_id is not None:
            self.record.data[RESET] = True
            self.start()

    def check_delete_complete(self, token: Any) -> Outcome:
        try:
            return self.advance()
        except errors.NodeNotFound:
            return DONE

    def steps_for_deployment(self) -> list[Json]:
        """Return the steps for the next deployment, and note their sections."""
        sections = self.pending() if self.properties["apply_when"] == DEPLOY else []
        if sections:
            self.record.data[DEPLOYED_SECTIONS] = {name: self.properties[name] for name in sections}
        return [
            each | {"args": each.get("args") or {}, "priority": FIRST_PRIORITY - number}
            for number, each in enumerate(self._steps(sections))
        ]

    def note_deployment(self) -> None:
        data = self.record.data
        if sections := data.pop(DEPLOYED_SECTIONS, None):
            data["applied"] = (data.get("applied") or {}) | sections

    def differences(self, real: Json) -> Iterator[drift.Difference]:
        yield from super().differences(real)
        applied = self.record.data.get("applied") or {}
        if settings := (applied.get("bios") or {}).get("settings"):
            yield from bios_differences(settings, self.machines.list_bios_settings(real["uuid"]))
        if digest := applied.get(CATALOGUE):
            yield from catalogue_differences(self.machines, real["uuid"], digest)
        if firmware := applied.get("firmware"):
            yield from firmware_differences(firmware, self.machines.list_firmware(real["uuid"]))
        if raid := applied.get("raid"):
            present = (real["raid_config"] or {}).get("logical_disks") or []
            yield from raid_differences(raid["logical_disks"], present)

    def resolve_attribute(self, name: str, path: Sequence[Any] = ()) -> Any:
        if name == "pending":
            return self.pending() if self.properties["apply_when"] == DEPLOY else []
        if name == "drift":
            return stepwise.value_or_none(
                lambda: [each.sentence for each in self.find_differences()]
            )
        return super().resolve_attribute(name, path)


def runs_on(properties: Mapping[str, Any], action: Action) -> bool:
    return action in (properties["run_on"] or ())


def _effect_of_run(properties: Mapping[str, Any], action: Action) -> Effect:
    if not runs_on(properties, action):
        return NO_EFFECT
    mode, loses_data = properties["mode"], loses_data_by(properties.get("steps"))
    notes = [LOSES_DATA] * loses_data + [RUNBOOK_UNREAD] * bool(properties.get("runbook"))
    reason = "; ".join([f"steps run on the machine ({mode})", *notes])
    return Effect(impact=Impact.SERVICE, verbs=(mode,), loses_data=loses_data, reason=reason)


def loses_data_by(user_steps: Any) -> bool:
    """Tell whether steps change volumes or erase disks, as far as their names tell."""
    return isinstance(user_steps, Sequence) and any(
        isinstance(each, Mapping)
        and (each.get("interface") == "raid" or str(each.get("step")).startswith(_ERASING))
        for each in user_steps
    )


def loses_data(stated: Mapping[str, Any], sections: Collection[str]) -> bool:
    """Tell whether these sections change volumes or erase disks."""
    by_steps = "extra_steps" in sections and loses_data_by(stated.get("extra_steps"))
    return "raid" in sections or by_steps


def changed_sections(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    sections = (CATALOGUE, *SECTIONS)
    return [each for each in sections if after.get(each) and after[each] != before.get(each)]


def _mode_of(properties: Mapping[str, Any]) -> str:
    return SERVICE if properties["apply_when"] == SERVICE else CLEAN


def _effect_of_sections(properties: Mapping[str, Any], sections: Sequence[str]) -> Effect:
    if not sections:
        return NO_EFFECT
    loses, mode = loses_data(properties, sections), _mode_of(properties)
    if properties["apply_when"] == DEPLOY:
        then = f", and {LOSES_DATA} then" if loses else ""
        return Effect(
            reason=f"{', '.join(sections)}: with the next deployment of the machine{then}"
        )
    reason = f"{', '.join(sections)} of the machine: configured ({mode})"
    if loses:
        reason += f"; {LOSES_DATA}"
    return Effect(
        impact=Impact.SERVICE, verbs=(mode,), loses_data=loses, reason=reason,
        certain=[*sections] != [CATALOGUE],  # the machine may have its versions
    )  # fmt: skip


def steps_of(section: str, stated: Any) -> list[Json]:
    if section == "firmware":
        settings = [{k: v for k, v in each.items() if v is not None} for each in stated]
        return [_step("firmware", "update", settings=settings)]
    if section == "bios":
        reset = [_step("bios", "factory_reset")] if stated.get("factory_reset") else []
        settings = [{"name": n, "value": v} for n, v in (stated.get("settings") or {}).items()]
        apply = [_step("bios", "apply_configuration", settings=settings)] if settings else []
        return [*reset, *apply]
    if section == "raid":
        raid = {"logical_disks": stated["logical_disks"]}
        existing = bool(stated.get("delete_existing", True))
        return [_step("raid", "apply_configuration", raid_config=raid, delete_existing=existing)]
    in_order = sorted(numbered(stated), key=lambda each: int(each["order"]))
    return [{k: v for k, v in each.items() if k != "order"} for each in in_order]


def catalogue_updates(machines: Machines, uuid: str, digest: str) -> list[Json]:
    """Return the updates that the catalogue of this digest has for the node."""
    stored, updates, _ = machines.list_firmware_updates(uuid)
    return updates if stored == digest else []


def refuse_versions(updates: Iterable[Json]) -> None:
    """Raise MachineFailed if updates are left after the steps: the BMC shows other versions."""
    for each in updates:
        raise stepwise.MachineFailed(
            f"the steps have ended, and {each['component']} is {each['current_version']}, not "
            f"{each['catalogue_version']} as in the catalogue of firmware"
        )


def other_catalogue(digest: str, stored: str | None) -> str:
    return f"the template names catalogue {digest!r}, and the service has {stored or 'none'}"


def catalogue_differences(machines: Machines, uuid: str, digest: str) -> Iterator[drift.Difference]:
    stored, updates, _ = machines.list_firmware_updates(uuid)
    other = "" if stored == digest else f"; {other_catalogue(digest, stored)}"
    for each in updates:
        field = f"firmware/{each['component']}/current_version"
        yield drift.Difference(
            field, f"{field} is {each['current_version']!r} and is to be "
            f"{each['catalogue_version']!r} by the catalogue of firmware{other}",
        )  # fmt: skip


def bios_differences(
    settings: Mapping[str, Any], bios: Mapping[str, str | None]
) -> Iterator[drift.Difference]:
    expected = {name: str(value) for name, value in settings.items()}
    for name, text in expected.items():
        if bios.get(name) in ("True", "False") and text.lower() == str(bios[name]).lower():
            expected[name] = str(bios[name])  # nodes report True, and templates quote true
    yield from drift.compare(expected, bios, "bios/")


def firmware_differences(
    flashed: Sequence[Mapping[str, Any]], components: Sequence[Mapping[str, Any]]
) -> Iterator[drift.Difference]:
    """Yield components whose version is not the stated one, else not the last flashed one.

    The URL of a firmware does not tell its version.  The node's row has it after the flashing.
    """
    present = {component["component"]: component for component in components}
    for name, stated in {each["component"]: each.get("version") for each in flashed}.items():
        component = present.get(name)
        version = None if component is None else stated or component["last_version_flashed"]
        if component is not None and version is not None:
            yield from drift.compare({"current_version": version}, component, f"firmware/{name}/")


def raid_differences(
    expected: Sequence[Mapping[str, Any]], present: Sequence[Mapping[str, Any]]
) -> Iterator[drift.Difference]:
    """Yield logical disks that the machine lacks, and disks that are not expected.

    Only fields that the driver reports are compared.  MAX stands for any value.
    """
    rest = list(present)
    for number, disk in enumerate(expected):
        stated = {name: value for name, value in disk.items() if value != "MAX"}
        for each in rest:
            named = {name: value for name, value in stated.items() if name in each}
            if not any(drift.compare(named, each)):
                rest.remove(each)
                break
        else:
            yield drift.missing(f"raid_config/logical_disks/{number}", f"the logical disk {disk}")
    for disk in rest:
        fields = {name: disk.get(name) for name in ("volume_name", "raid_level", "size_gb")}
        yield drift.Difference("raid_config/logical_disks", f"a logical disk too many: {fields}")


def _step(interface: str, step: str, **args: Any) -> Json:
    return {"interface": interface, "step": step, "args": args}
