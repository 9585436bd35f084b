"""Decide the action on an existing resource: the first rule with a decision wins.

``RULES`` asks in this order: never created, external_id, type, failed, decision of the kind,
unchanged, immutable, not updatable, and only then an update in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

from bloomery import errors
from bloomery.model.stacks import MARKED_UNHEALTHY, Action
from bloomery.orchestration.plan import changes, tree_diff
from bloomery.orchestration.plan.builder import PlanBuilder
from bloomery.orchestration.plan.changes import Change
from bloomery.orchestration.plan.plans import Unknown, Verb
from bloomery.orchestration.properties.schema import Schema
from bloomery.orchestration.resources.base import Resource, ResourceState, Status
from bloomery.orchestration.resources.nested import NestedStack
from bloomery.orchestration.stack import Stack
from bloomery.orchestration.stack.template_side import TemplateSide
from bloomery.orchestration.template.entries import ResourceDefinition
from bloomery.orchestration.template.registry import FILES


class Decision(NamedTuple):
    verb: Verb
    reason: str = ""
    certain: bool = True


@dataclass
class Candidate:
    """An existing resource, from its row or the old template; its change is computed on demand."""

    builder: PlanBuilder
    name: str

    @property
    def record(self) -> ResourceState | None:
        return self.builder.records[self.name]

    @property
    def old(self) -> ResourceDefinition | None:
        return self.builder.old.definitions.get(self.name)

    @property
    def new(self) -> ResourceDefinition:
        return self.builder.new.definitions[self.name]

    @cached_property
    def kind(self) -> type[Resource]:
        return self.builder.new.kind(self.name)

    @property
    def old_type(self) -> str:
        if self.record is not None:
            return self.record.type
        return self.old.type if self.old else self.new.type

    @cached_property
    def same_kind(self) -> bool:
        """Whether an update can turn the old kind into the new one, whatever the type names."""
        if self.old is None or self.old_type != self.old.type:  # of a template before the old
            is_nested = self.old_type.endswith(FILES) and issubclass(self.kind, NestedStack)
            return is_nested or self.old_type == self.new.type
        old, new = self.builder.old.kind(self.name), self.kind
        if issubclass(old, NestedStack) and issubclass(new, NestedStack):
            return True
        return (old.__module__, old.__qualname__) == (new.__module__, new.__qualname__)

    @cached_property
    def change(self) -> Change:
        return changes.compare(self.builder, self.name)

    @property
    def computed_change(self) -> Change | None:
        """The change, if a rule has computed it."""
        return self.__dict__.get("change")

    def keys(self, matches: Callable[[Schema], bool]) -> list[str]:
        """Return the changed properties whose schema ``matches``."""
        schema = self.kind.properties_schema
        return [key for key in self.change.properties if key in schema and matches(schema[key])]

    def is_certain(self, keys: Iterable[str]) -> bool:
        return any(self.change.properties[key].certain for key in keys)


EXTERNAL: Final = "external_id: left alone"

# ------------------------------------------------------------------------------------- the rules


def no_physical_resource(candidate: Candidate) -> Decision | None:
    record = candidate.record
    if (
        record is not None
        and record.action is Action.DELETE
        and record.status is Status.IN_PROGRESS
    ):
        return Decision(Verb.CREATE, "the old one is being deleted; if that fails, it is updated")
    if record is not None and record.has_no_object:
        return Decision(Verb.CREATE, f"{record.action} {record.status}: nothing stands behind it")
    return None


def external(candidate: Candidate) -> Decision | None:
    old, new = candidate.old, candidate.new
    if old is None:
        return Decision(Verb.UNCHANGED, EXTERNAL) if new.external_id is not None else None
    if old.external_id is None and new.external_id is None:
        return None
    if old.external_id is None:
        return Decision(Verb.REFUSE, "external_id cannot be added to a resource that exists")
    if new.external_id is None:
        return Decision(Verb.REFUSE, "external_id cannot be taken from a resource that exists")
    if not tree_diff.same(candidate.builder, old.external_id, new.external_id):
        return Decision(Verb.REFUSE, "external_id cannot change while the resource exists")
    return Decision(Verb.UNCHANGED, EXTERNAL)


def other_type(candidate: Candidate) -> Decision | None:
    if candidate.same_kind:
        return None
    if candidate.old_type != candidate.new.type:
        return Decision(Verb.REPLACE, f"type {candidate.old_type} -> {candidate.new.type}")
    return Decision(Verb.REPLACE, f"{candidate.new.type} now stands for another kind")


def failed(candidate: Candidate) -> Decision | None:
    record = candidate.record
    if record is None or record.status is Status.COMPLETE:
        return None
    state = f"{record.action} {record.status}"
    if candidate.kind.replaces_marked and record.data.get(MARKED_UNHEALTHY):
        return Decision(Verb.REPLACE, f"marked unhealthy: {record.reason}")
    if candidate.kind.always_replace_on_check_failed and _failed_its_check(record):
        child = candidate.builder.existing.child(record)
        members = child.records.values() if child is not None and child.records else ()
        if not any(map(_failed_its_check, members)):  # else only those members are replaced
            return Decision(Verb.REPLACE, f"{state}: the real thing is not as it should be")
    if candidate.kind.repairs_failed and record.physical_id is None:
        return Decision(Verb.REPLACE, f"{state}: nothing was made")
    if candidate.kind.needs_replace_failed():
        return Decision(Verb.REPLACE, f"{state}: made anew")
    return None


def _failed_its_check(record: ResourceState) -> bool:
    return record.action is Action.CHECK and record.status is Status.FAILED


def ignored_properties(candidate: Candidate) -> Decision | None:
    return Decision(Verb.UNCHANGED) if candidate.kind.ignores_properties else None


def replaced_by_kind(candidate: Candidate) -> Decision | None:
    change = candidate.change
    latest = {
        key: change.before.get(key) if isinstance(each.after, Unknown) else each.after
        for key, each in change.properties.items()
    }
    resolved = {
        key: each.after
        for key, each in change.properties.items()
        if not isinstance(each.after, Unknown)
    }
    if candidate.kind.needs_replace(change.before, {**change.after, **latest}, resolved):
        return Decision(Verb.REPLACE, "its kind cannot make this change in place")
    return None


def same(candidate: Candidate) -> Decision | None:
    if candidate.change.properties or candidate.change.template:
        return None
    record = candidate.record
    if record is None or record.status is Status.COMPLETE:
        return Decision(Verb.UNCHANGED)
    if candidate.kind.repairs_failed:
        return Decision(Verb.UPDATE, f"{record.action} {record.status}: looked at again")
    return Decision(Verb.UNCHANGED, f"{record.action} {record.status}, but as wanted")


def immutable(candidate: Candidate) -> Decision | None:
    if keys := candidate.keys(lambda schema: schema.immutable):
        names = f"{' and '.join(sorted(keys))} {'is' if len(keys) == 1 else 'are'}"
        return Decision(Verb.REFUSE, f"{names} immutable", candidate.is_certain(keys))
    return None


def not_updatable(candidate: Candidate) -> Decision | None:
    if keys := candidate.keys(lambda schema: not schema.update_allowed):
        reason = f"{' and '.join(sorted(keys))} cannot change in place"
        return Decision(Verb.REPLACE, reason, candidate.is_certain(keys))
    return None


def in_place(candidate: Candidate) -> Decision:
    change = candidate.change
    parts = [*change.properties.values(), *change.template.values()]
    return Decision(Verb.UPDATE, certain=any(each.certain for each in parts))


RULES: Final[tuple[Callable[[Candidate], Decision | None], ...]] = (
    no_physical_resource,
    external,
    other_type,
    failed,
    ignored_properties,
    replaced_by_kind,
    same,
    immutable,
    not_updatable,
    in_place,
)
GONE: Final = Decision(Verb.REPLACE, "the real thing is gone")
RESTRICTED: Final[Mapping[Verb, str]] = {Verb.UPDATE: "update", Verb.REPLACE: "replace"}


def judge(candidate: Candidate) -> Decision:
    """Return the decision of the first rule that has one."""
    return next(answer for rule in RULES if (answer := rule(candidate)) is not None)


def compare_live(candidate: Candidate, resource: Resource) -> Decision | None:
    """Put the live state of the physical resource into the candidate's row, for ``converge``.

    Return a decision only if the physical resource is gone or must be replaced.  As in Heat, a
    live state that cannot be read does not fail the update: the stored state counts.
    """
    record, sides = resource.record, (candidate.old, candidate.new)
    is_external = any(each is not None and each.external_id is not None for each in sides)
    if record.has_no_object or is_external or not candidate.same_kind:
        return None
    try:
        if reason := resource.reason_to_replace():
            return Decision(Verb.REPLACE, reason)
        values = dict(resource.get_live_state(record.properties))
    except errors.EntityNotFound:
        return GONE
    except Exception:  # noqa: BLE001  # kinds are plug-ins
        return None
    declared = {key: value for key, value in values.items() if key in resource.properties_schema}
    if declared:
        properties = {**record.properties, **declared}
        candidate.builder.records[candidate.name] = record.with_properties(properties)
    return None


def taken_back(candidate: Candidate, decision: Decision) -> Decision:
    """Adapt the decision for a replaced resource that becomes current again, with its old ID."""
    if candidate.name not in candidate.builder.taken_back:
        return decision
    if decision.verb is Verb.UNCHANGED:
        return Decision(Verb.TAKE_BACK, "the old one still stands")
    if decision.verb is Verb.UPDATE:
        return decision._replace(reason="the old one still stands and is taken back")
    return decision


def restricted(candidate: Candidate, decision: Decision) -> Decision:
    """Return ``decision``, or a refusal if the environment restricts its action."""
    action = RESTRICTED.get(decision.verb)
    if action is None or action not in candidate.builder.new.restricted(candidate.name):
        return decision
    why = f" ({decision.reason})" if decision.reason else ""
    return Decision(Verb.REFUSE, f"the environment restricts {action}{why}", decision.certain)


def files_of(side: TemplateSide) -> Mapping[str, Any]:
    """Return the files of a template, which include those of its child stacks."""
    return side.definition.template.files if isinstance(side, Stack) else {}
