"""The config drive of an Instance, and the effects of changes of its properties.

Plans and updates share these pure functions of properties.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final

from bloomery.orchestration.properties.schema import OnChange, changes_of
from bloomery.orchestration.resources import instance_hardware, instance_schema, step_run
from bloomery.orchestration.resources.effects import NO_EFFECT, Effect, Impact, Need
from bloomery.orchestration.resources.machines import Json

DRAINED: Final = frozenset({"rebuild", "service", "power off", "deleted"})  # verbs after a drain
PINNED: Final = ("allocation", "node")  # each names a single node
PROPERTIES: Final = instance_schema.PROPERTIES
_RAMDISK: Final = {"deploy": "ramdisk"}


def writes_disk(properties: Mapping[str, Any]) -> bool:
    """Tell whether a deployment writes a disk; False only if nothing but an ISO is booted.

    Deploy steps, those of traits as well, may write disks.
    """
    image = properties.get("image")
    boots_iso = isinstance(image, Mapping) and image.get("boot_iso") and not image.get("source")
    others = any(properties.get(name) for name in ("traits", "deploy_steps"))
    return not boots_iso or others or properties.get("custom_deploy") not in (None, {}, _RAMDISK)


def changes(after: Mapping[str, Any], names: Collection[str]) -> Collection[OnChange]:
    return changes_of(PROPERTIES, after, names)


def deletes_first(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Tell whether the old instance is torn down before its replacement is created.

    It always is if both are on the same node or allocation.
    """
    if any(after.get(place) and after.get(place) == before.get(place) for place in PINNED):
        return True
    default = instance_schema.DELETE_FIRST if after.get("node") else instance_schema.CREATE_FIRST
    return (after.get("replace_order") or default) == instance_schema.DELETE_FIRST


def effect_of_create(properties: Mapping[str, Any]) -> Effect:
    before = ("manage", "clean", "provide") if properties.get("runbook_before") else ()
    sections = instance_hardware.changed_sections(None, properties.get("hardware"))
    verbs = (*before, "active", *_after_writing(properties, sections))
    needs = Need.of(properties.get("selector"))
    return Effect(verbs=verbs, resource_class=_class_of(properties), needs=needs)


def effect_of_repair(
    properties: Mapping[str, Any], sections: Collection[str] | None = None
) -> Effect:
    """Return the effect of an update after a failed deployment; an active node stays as it is.

    ``sections``: of hardware, that are due; None: not known, all of them.
    """
    if sections is None:
        sections = instance_hardware.changed_sections(None, properties.get("hardware"))
    writes = writes_disk(properties)
    return Effect(
        impact=Impact.REBUILD, verbs=("rebuild", *_after_writing(properties, sections)),
        loses_data=writes or _erases(properties, sections), certain=False,
        resource_class=_class_of(properties),
        reason=f"it {'is written' if writes else 'boots its ISO'} anew if it is not active",
    )  # fmt: skip


def effect_of_delete(properties: Mapping[str, Any]) -> Effect:
    effect = Effect(verbs=("deleted",), loses_data=True, resource_class=_class_of(properties))
    return with_drain(effect, properties)


def with_drain(effect: Effect, properties: Mapping[str, Any]) -> Effect:
    """Return an effect whose reason names the drain before it, if there is one."""
    drain = properties.get("drain")
    if not isinstance(drain, Mapping) or not DRAINED.intersection(effect.verbs):
        return effect  # the property may not be known yet
    end = "goes on" if drain.get("on_timeout") == instance_schema.CONTINUE else "pauses"
    timeout_s = drain.get("timeout") or instance_schema.DRAIN["timeout"].default
    text = f"its drain comes first, and {end} after {timeout_s} s"
    reasons = [part for part in effect.reason.split("; ") if part not in ("", text)]
    return replace(effect, reason="; ".join([*reasons, text]))


def _class_of(properties: Mapping[str, Any]) -> str | None:
    selector = properties.get("selector")
    name = selector.get("resource_class") if isinstance(selector, Mapping) else None
    return name if isinstance(name, str) else None


def effect_of_update(
    before: Mapping[str, Any], after: Mapping[str, Any], names: Collection[str]
) -> Effect:
    done, sections = changes(after, names), list[str]()
    if OnChange.RUN in done:
        stated = after.get("hardware")
        sections = instance_hardware.changed_sections(before.get("hardware"), stated)
    if OnChange.REBUILD in done:
        writes, erases = writes_disk(after), _erases(after, sections)
        reason = "the machine is written anew: what is on its root disk is lost"
        if not writes:
            end = f"; {step_run.LOSES_DATA}" if erases else ": no disk is written"
            reason = f"the machine boots its ISO anew{end}"
        effect = Effect(
            impact=Impact.REBUILD, verbs=("rebuild", *_after_writing(after, sections)),
            loses_data=writes or erases, resource_class=_class_of(after), reason=reason,
        )  # fmt: skip
        return with_drain(effect, after)
    if sections:
        effect = instance_hardware.effect_of(after["hardware"], sections, after.get("power"))
        return with_drain(replace(effect, resource_class=_class_of(after)), after)
    if OnChange.POWER in done:
        verbs = (f"power {after['power']}",) if after["power"] in ("on", "off") else ()
        effect = Effect(
            impact=Impact.SERVICE, verbs=verbs, certain=bool(verbs),
            resource_class=_class_of(after), reason="the machine is switched",
        )  # fmt: skip
        return with_drain(effect, after)
    return NO_EFFECT


def _erases(properties: Mapping[str, Any], sections: Collection[str]) -> bool:
    return step_run.loses_data(properties.get("hardware") or {}, sections)


def _after_writing(properties: Mapping[str, Any], sections: Collection[str]) -> tuple[str, ...]:
    """Return the verbs after a deployment, which leaves the node powered on.

    ``sections``: of ``hardware``, that run then.
    """
    serviced = ("service",) * (bool(sections) + bool(properties.get("runbook_after")))
    return (*serviced, "power off") if properties.get("power") == "off" else serviced


def config_drive(properties: Mapping[str, Any], host_name: str) -> Any:
    """Return the config drive: the text ``configdrive``, or a map of its parts, or None."""
    if properties.get("configdrive"):
        return properties["configdrive"]
    keys = properties.get("ssh_keys") or []
    parts = {name: properties.get(name) for name in ("user_data", "meta_data", "network_data")}
    users = properties.get("users") or []
    if not (keys or users or any(parts.values())):
        return None
    meta_data = {"hostname": host_name, "name": host_name} | (parts["meta_data"] or {})
    if keys:
        meta_data["public_keys"] = {str(number): key for number, key in enumerate(keys)}
    drive: Json = {"meta_data": meta_data}
    if parts["network_data"]:
        drive["network_data"] = parts["network_data"]
    if users:
        drive["user_data"] = cloud_config(users)
    elif parts["user_data"]:
        drive["user_data"] = parts["user_data"]
    return drive


def cloud_config(users: list[Mapping[str, Any]]) -> str:
    documents = [
        {
            "name": user["name"],
            "ssh_authorized_keys": list(user.get("ssh_keys") or []),
            "lock_passwd": not user.get("password_hash"),
        }
        | ({"passwd": user["password_hash"]} if user.get("password_hash") else {})
        | ({"sudo": user["sudo"]} if user.get("sudo") else {})
        for user in users
    ]
    return f"#cloud-config\n{json.dumps({'users': ['default', *documents]})}"
