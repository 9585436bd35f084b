"""The property ``hardware`` of an Instance: firmware, BIOS and steps of its active node.

An update services the node with the sections that have changed, and a creation after the
deployment.  ``hardware_due`` in ``data`` names the sections that are not applied yet, and
``hardware_applied`` has the values of the others, None while a service runs or has failed::

    look_after -> run_after -> ran_after -> look_after     hardware
    look_after -> run_after -> ran_after -> check_power    runbook_after

A member of an InstanceGroup is an Instance, so that a roll-out services members in its batches.
``catalogue`` is the digest of the operator's catalogue of firmware: with any other digest its
section orders nothing, because the plan has shown the updates of this catalogue alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from bloomery.conductor.states import State
from bloomery.orchestration.resources import drift, step_run
from bloomery.orchestration.resources.effects import NO_EFFECT, Effect, Impact
from bloomery.orchestration.resources.machines import Json
from bloomery.orchestration.resources.step_run import CATALOGUE
from bloomery.orchestration.resources.stepwise import OnNode

DUE: Final = "hardware_due"  # keys of ``data``
APPLIED: Final = "hardware_applied"
SERVICE_ONLY: Final = "service_only"  # no deployment came before: runbook_after does not run
SECTIONS: Final = (CATALOGUE, "firmware", "bios", "extra_steps", "runbook")


def changed_sections(before: Any, after: Any) -> list[str]:
    """Return the sections that an update runs: all of them where ``triggers`` differ."""
    old, new = _plain(before) or {}, _plain(after) or {}
    runs_all = bool(new.get("triggers")) and new["triggers"] != old.get("triggers")
    return [name for name in SECTIONS if new.get(name) and (runs_all or new[name] != old.get(name))]


def _plain(value: Any) -> Any:
    """Return a value without its empty members: plans see properties without their defaults."""
    if isinstance(value, Mapping):
        members = {name: _plain(each) for name, each in value.items()}
        return {name: each for name, each in members.items() if each not in (None, False, {}, [])}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def due_sections(instance: OnNode, stated: Any, *, is_changed: bool) -> list[str]:
    """Return the sections to run, those that an earlier action has left included.

    ``is_changed``: the update changes ``hardware``.  A section that was applied already, such as
    one that a rollback brings back, does not run again.
    """
    data, names = instance.record.data, set[str]()
    if is_changed:
        before = (instance.record.properties.get("hardware") or {}) | data.get(APPLIED, {})
        names.update(changed_sections(before, stated))
    names.update(data.get(DUE, ()))
    return [name for name in SECTIONS if name in names and (stated or {}).get(name)]


def service_arguments(instance: OnNode) -> Json:
    """Return the arguments of the next service; {}: the due sections have nothing to run."""
    data, stated = instance.record.data, instance.properties["hardware"] or {}
    if not data.get(DUE):
        runbook = None if data.get(SERVICE_ONLY) else instance.properties["runbook_after"]
        return {"runbook": runbook} if runbook else {}
    if "runbook" in data[DUE]:
        return {"runbook": stated["runbook"]}
    values = {name: stated[name] for name in data[DUE]}
    steps: list[Json] = []
    if CATALOGUE in values:
        digest, ident = values.pop(CATALOGUE), instance.node_uuid()
        updates = step_run.catalogue_updates(instance.machines, ident, digest)
        settings = [each["setting"] for each in updates]
        steps += step_run.steps_of("firmware", settings) if settings else []
    steps += [step for name, value in values.items() for step in step_run.steps_of(name, value)]
    no_agent = {"disable_ramdisk": True} if stated.get("disable_ramdisk") else {}
    return {"service_steps": step_run.numbered(steps)} | no_agent if steps else {}


def note_service(instance: OnNode) -> bool:
    """Note that the due sections were applied; return False if runbook_after has run.

    Raises MachineFailed if the BMC shows another version than the catalogue's.
    """
    due, stated = instance.record.data.get(DUE), instance.properties["hardware"] or {}
    if not due:
        return False
    if CATALOGUE in due:
        uuid, digest = instance.node_uuid(), stated[CATALOGUE]
        step_run.refuse_versions(step_run.catalogue_updates(instance.machines, uuid, digest))
    applied = {name: stated.get(name) for name in (*due, "triggers")}
    instance.record.data[APPLIED] = instance.record.data.get(APPLIED, {}) | applied
    del instance.record.data[DUE]
    return True


def effect_of(
    stated: Any, sections: Collection[str], power: Any, updates: Sequence[Json] = ()
) -> Effect:
    """Return the effect of a service with these sections, as far as properties tell it.

    ``updates``: those of ``catalogue``.  Not certain with ``catalogue`` alone and none known: the
    machine may have its versions already.
    """
    if not sections:
        return NO_EFFECT
    firmware = stated.get("firmware") or () if "firmware" in sections else ()
    components = {each["component"] for each in (*updates, *firmware)}
    spares_machine = components == {"bmc"} and {CATALOGUE, "firmware"}.issuperset(sections)
    restarts = "its BMC restarts" if spares_machine else "the machine may restart"
    verbs = ("service", "power off") if power == "off" else ("service",)
    loses_data = step_run.loses_data(stated, sections)
    notes = [step_run.LOSES_DATA] * loses_data
    notes += [step_run.RUNBOOK_UNREAD] * ("runbook" in sections)
    return Effect(
        impact=Impact.SERVICE, verbs=verbs, certain=bool(updates) or [*sections] != [CATALOGUE],
        loses_data=loses_data,
        reason="; ".join([f"service for hardware ({', '.join(sections)}): {restarts}", *notes]),
    )  # fmt: skip


def current_effect(
    instance: OnNode,
    node: Json,
    effect: Effect,
    properties: Mapping[str, Any],
    due: Sequence[str],
) -> Effect:
    """Return the effect of an update that rebuilds nothing on the node as it is."""
    if not due and node["provision_state"] == State.SERVICEFAIL:
        reason, is_refused = "its failed service is ended", bool(node["maintenance"])
        if is_refused:
            reason += "; abort is refused while its node is in maintenance"
        verbs = ("abort", *(each for each in effect.verbs if each.startswith("power ")))
        return Effect(impact=Impact.SERVICE, verbs=verbs, reason=reason, certain=not is_refused)
    stated, power = properties.get("hardware") or {}, properties.get("power")
    if CATALOGUE not in due:
        return effect_of(stated, due, power) if due else effect
    digest, updates, is_listed = instance.machines.list_firmware_updates(node["uuid"])
    if digest != stated[CATALOGUE]:
        other = step_run.other_catalogue(stated[CATALOGUE], digest)
        reason, updates = f"{other}: no firmware by it", []
    elif not is_listed:
        reason = "the catalogue has none of its firmware, as far as that was read"
    else:
        reason = ", ".join(
            f"{each['component']} {each['current_version']} -> {each['catalogue_version']}"
            for each in updates
        ) or "its firmware is as in the catalogue"  # fmt: skip
    sections = [name for name in due if updates or name != CATALOGUE]
    foreseen = effect_of(stated, sections, power, updates)
    whole = f"{foreseen.reason}; {reason}" if foreseen.reason else reason
    return replace(foreseen, certain=True, reason=whole)


def differences(instance: OnNode, stated: Mapping[str, Any]) -> Iterator[drift.Difference]:
    """Yield how the node differs from the sections that were applied, and from the catalogue."""
    due: Sequence[str] = instance.record.data.get(DUE, ())
    uuid = instance.node_uuid()
    if due:
        yield drift.Difference("hardware", f"hardware is not applied: {', '.join(due)}")
    if (settings := (stated.get("bios") or {}).get("settings")) and "bios" not in due:
        yield from step_run.bios_differences(settings, instance.machines.list_bios_settings(uuid))
    if (firmware := stated.get("firmware")) and "firmware" not in due:
        components = instance.machines.list_firmware(uuid)
        yield from step_run.firmware_differences(firmware, components)
    if digest := stated.get(CATALOGUE):
        yield from step_run.catalogue_differences(instance.machines, uuid, digest)
