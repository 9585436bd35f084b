"""What becomes of a resource that exists: the first rule that answers.

The table is the one of the engine's contract: what failed, what was never made, what the kind says,
what is the same, what may not change, and only then an update in place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

from bloomery.orchestration.plan import changes, inner, trees
from bloomery.orchestration.plan.actions import Verb
from bloomery.orchestration.plan.changes import Change
from bloomery.orchestration.plan.differences import Unknown
from bloomery.orchestration.plan.draft import Draft, gone
from bloomery.orchestration.properties.schema import Schema
from bloomery.orchestration.resources.base import Action as Doing
from bloomery.orchestration.resources.base import Record, Resource, Status
from bloomery.orchestration.resources.nested import NestedStack
from bloomery.orchestration.template.definitions import ResourceDefinition


class Ruling(NamedTuple):
    verb: Verb
    reason: str = ""
    certain: bool = True


@dataclass
class Case:
    """One resource that exists, or is said to; its change is found out only if a rule asks."""

    draft: Draft
    name: str

    @property
    def record(self) -> Record | None:
        return self.draft.records[self.name]

    @property
    def old(self) -> ResourceDefinition | None:
        return self.draft.old.definitions.get(self.name)

    @property
    def new(self) -> ResourceDefinition:
        return self.draft.new.definitions[self.name]

    @cached_property
    def kind(self) -> type[Resource]:
        return self.draft.new.kind(self.name)

    @property
    def old_type(self) -> str:
        if self.record is not None:
            return self.record.type
        return self.old.type if self.old else self.new.type

    @cached_property
    def same_kind(self) -> bool:
        """Whether what exists can be changed into what is wanted; type names are only names."""
        if self.old is None or self.old_type != self.old.type:  # made for a template before the old
            return self.old_type == self.new.type
        return _alike(self.draft.old.kind(self.name), self.kind)

    @cached_property
    def change(self) -> Change:
        return changes.of(self.draft, self.name)

    @property
    def looked_at(self) -> Change | None:
        """The change, if a rule has asked for it."""
        return self.__dict__.get("change")

    def keys(self, wanted: Callable[[Schema], bool]) -> list[str]:
        """Return the changed properties whose schema is as wanted."""
        schema = self.kind.properties_schema
        return [key for key in self.change.properties if key in schema and wanted(schema[key])]

    def sure(self, keys: Iterable[str]) -> bool:
        return any(self.change.properties[key].certain for key in keys)


LEFT_ALONE: Final = "external_id: left alone"

# ------------------------------------------------------------------------------------- the rules


def never_made(case: Case) -> Ruling | None:
    if case.record is not None and gone(case.record):
        return Ruling(
            Verb.CREATE, f"{case.record.action} {case.record.status}: nothing stands behind it"
        )
    return None


def external(case: Case) -> Ruling | None:
    old, new = case.old, case.new
    if old is None:
        return Ruling(Verb.UNCHANGED, LEFT_ALONE) if new.external_id is not None else None
    if old.external_id is None and new.external_id is None:
        return None
    if old.external_id is None:
        return Ruling(Verb.REFUSE, "external_id cannot be added to a resource that exists")
    if new.external_id is None:
        return Ruling(Verb.REFUSE, "external_id cannot be taken from a resource that exists")
    if not trees.same(case.draft, old.external_id, new.external_id):
        return Ruling(Verb.REFUSE, "external_id cannot change while the resource exists")
    return Ruling(Verb.UNCHANGED, LEFT_ALONE)


def other_type(case: Case) -> Ruling | None:
    if case.same_kind:
        return None
    if case.old_type != case.new.type:
        return Ruling(Verb.REPLACE, f"type {case.old_type} -> {case.new.type}")
    return Ruling(Verb.REPLACE, f"{case.new.type} now stands for another kind")


def failed(case: Case) -> Ruling | None:
    record = case.record
    if record is None or record.status is Status.COMPLETE:
        return None
    state = f"{record.action} {record.status}"
    checked = record.action is Doing.CHECK and record.status is Status.FAILED
    if checked and case.kind.always_replace_on_check_failed:
        return Ruling(Verb.REPLACE, f"{state}: the real thing is not as it should be")
    if case.kind.needs_replace_failed():
        return Ruling(Verb.REPLACE, f"{state}: made anew")
    return None


def indifferent(case: Case) -> Ruling | None:
    return Ruling(Verb.UNCHANGED) if case.kind.ignores_properties else None


def kind_says(case: Case) -> Ruling | None:
    change = case.change
    known = {
        key: change.before.get(key) if isinstance(one.after, Unknown) else one.after
        for key, one in change.properties.items()
    }
    told = {key: known[key] for key, one in change.properties.items() if _known(one.after)}
    if case.kind.needs_replace(change.before, {**change.after, **known}, told):
        return Ruling(Verb.REPLACE, "its kind cannot make this change in place")
    return None


def same(case: Case) -> Ruling | None:
    if case.change.properties or case.change.template:
        return None
    record = case.record
    if record is not None and record.status is not Status.COMPLETE:
        return Ruling(Verb.UNCHANGED, f"{record.action} {record.status}, but as wanted")
    return Ruling(Verb.UNCHANGED)


def immutable(case: Case) -> Ruling | None:
    if keys := case.keys(lambda schema: schema.immutable):
        return Ruling(Verb.REFUSE, f"{_told(keys)} immutable", case.sure(keys))
    return None


def not_updatable(case: Case) -> Ruling | None:
    if keys := case.keys(lambda schema: not schema.update_allowed):
        return Ruling(Verb.REPLACE, f"{_names(keys)} cannot change in place", case.sure(keys))
    return None


def in_place(case: Case) -> Ruling:
    parts = [*case.change.properties.values(), *case.change.template.values()]
    return Ruling(Verb.UPDATE, certain=any(one.certain for one in parts))


RULES: Final[tuple[Callable[[Case], Ruling | None], ...]] = (
    never_made,
    external,
    other_type,
    failed,
    indifferent,
    kind_says,
    same,
    immutable,
    not_updatable,
    in_place,
)
STAYS: Final = frozenset({Verb.UPDATE, Verb.UNCHANGED})
RESTRICTED: Final[Mapping[Verb, str]] = {Verb.UPDATE: "update", Verb.REPLACE: "replace"}


def ruling(case: Case) -> Ruling:
    """Return what the first rule says that answers, unless the environment forbids it."""
    found = next(said for rule in RULES if (said := rule(case)) is not None)
    if case.name in case.draft.taken_back:
        found = _taken_back(found)
    if found.verb in STAYS and inner.is_composite(case.draft.new, case.name):
        found = _with_members(case, found)
    word = RESTRICTED.get(found.verb)
    if word is not None and word in case.draft.new.restricted(case.name):
        why = f" ({found.reason})" if found.reason else ""
        return Ruling(Verb.REFUSE, f"the environment restricts {word}{why}", found.certain)
    return found


# -------------------------------------------------------------------------------- small helpers


def _with_members(case: Case, found: Ruling) -> Ruling:
    """Look below a resource that stands for a stack: it changes when its members do."""
    inside = inner.updated(case.draft, case.name, case.change)
    case.draft.inside[case.name] = inside
    if found.verb is Verb.UPDATE or inside is None or not inside.plan.changes:
        return found
    certain = any(each.certain for each in inside.plan.changes.values())
    return Ruling(Verb.UPDATE, "its members change", certain)


def _taken_back(found: Ruling) -> Ruling:
    """Tell of an old one that a replacement left standing; who refers to it gets its id again."""
    if found.verb is Verb.UNCHANGED:
        return Ruling(Verb.TAKE_BACK, "the old one still stands")
    if found.verb is Verb.UPDATE:
        return found._replace(reason="the old one still stands and is taken back")
    return found


def _alike(old: type[Resource], new: type[Resource]) -> bool:
    """Whether one kind can be changed into the other, as any template into any other."""
    if issubclass(old, NestedStack) and issubclass(new, NestedStack):
        return True
    return (old.__module__, old.__qualname__) == (new.__module__, new.__qualname__)


def _known(value: Any) -> bool:
    return not isinstance(value, Unknown)


def _names(keys: list[str]) -> str:
    return " and ".join(sorted(keys))


def _told(keys: list[str]) -> str:
    return f"{_names(keys)} {'is' if len(keys) == 1 else 'are'}"
