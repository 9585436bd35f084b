"""What holds for the plan between any two templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bloomery.model.stacks import StoredResource
from bloomery.orchestration import foresight
from bloomery.orchestration.plan import ExistingStack
from bloomery.orchestration.plan.plans import CLEAN, MAKE, Key, Plan, Verb
from bloomery.orchestration.template.dialect import DeletionPolicy
from tests.unit.orchestration.plan.kit import Template, attr, named, ref, row, rows, thing

NAMES = "abcdefgh"
STATES = ["CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_FAILED", "CHECK_FAILED", "INIT_COMPLETE"]
BRINGS = {Verb.CREATE, Verb.ADOPT, Verb.RECREATE, Verb.REPLACE, Verb.TAKE_BACK}


@st.composite
def templates(draw: st.DrawFn) -> Template:
    """Resources that refer only to those before them in an order of their own."""
    order = draw(st.permutations(NAMES))[: draw(st.integers(0, len(NAMES)))]
    return Template({name: draw(resources(order[:at])) for at, name in enumerate(order)})


def resources(earlier: str) -> st.SearchStrategy[Mapping[str, Any]]:
    values: st.SearchStrategy[Any] = st.integers(0, 1)
    if earlier:
        target = st.sampled_from(earlier)
        values |= target.map(ref) | target.map(attr)
    return st.fixed_dictionaries(
        {"type": st.sampled_from(["Thing", "Stable", "Nought"])},
        optional={
            "properties": st.dictionaries(st.sampled_from(["value", "size"]), values),
            "depends_on": st.lists(st.sampled_from(earlier or NAMES)).map(tuple)
            if earlier
            else st.just(()),
            "deletion_policy": st.sampled_from(DeletionPolicy),
            "external_id": st.sampled_from(["x", "y"]),
        },
    ).map(lambda parts: thing(parts.pop("type")) | parts)


@st.composite
def existing_stacks(draw: st.DrawFn, old: Template) -> ExistingStack | None:
    """Nothing told, or a row or two for some resources of ``old`` and for one of no template."""
    if draw(st.booleans()):
        return None
    names = draw(st.sets(st.sampled_from([*old.definitions, "stray"])))
    kinds = {name: each.type for name, each in old.definitions.items()}
    made = rows(*(rowed(draw, name, kinds.get(name, "Thing")) for name in sorted(names)))
    left = draw(st.sets(st.sampled_from(sorted(names)))) if names else set()
    leftovers = {name: [rowed(draw, name, kinds.get(name, "Thing"), other=9)] for name in left}
    return ExistingStack(records=made, leftovers=leftovers)


def rowed(draw: st.DrawFn, name: str, kind: str, **values: Any) -> StoredResource:
    state = draw(st.sampled_from(STATES))
    return row(name, kind, state, value=draw(st.integers(0, 1)), **values)


@st.composite
def updates(draw: st.DrawFn) -> tuple[Template, Template, ExistingStack | None, bool]:
    old, new = draw(templates()), draw(templates())
    return old, new, draw(existing_stacks(old)), draw(st.booleans())


def planned(old: Template, new: Template, existing: ExistingStack | None, rollback: bool) -> Plan:
    return (
        foresight.rollback(old, new, existing) if rollback else foresight.plan(old, new, existing)
    )


@given(updates())
def test_every_resource_has_exactly_its_actions(
    update: tuple[Template, Template, ExistingStack | None, bool],
) -> None:
    old, new, existing, _ = update
    made = planned(*update)
    order = made.graph.order()  # raises on a cycle
    assert {key.name for key in order if key.phase == MAKE} == set(new.definitions)
    assert all(key in made.graph for key in made.actions)
    here = (
        set(old.definitions)
        if existing is None or existing.records is None
        else set(existing.records)
    )
    ends = {key.name for key in made.actions if key == Key(key.name, CLEAN)}
    replaced = {name for name in new.definitions if made.verb(name) is Verb.REPLACE}
    assert ends == (here - set(new.definitions)) | replaced


@given(updates())
def test_walking_the_plan_gives_the_new_template(
    update: tuple[Template, Template, ExistingStack | None, bool],
) -> None:
    old, new, existing, _ = update
    made = planned(*update)
    if existing is None or existing.records is None:
        standing = [("was", name) for name in old.definitions]
    else:
        left = [each for kept in existing.leftovers.values() for each in kept]
        standing = [(each.uuid, each.name) for each in [*existing.records.values(), *left]]
        never = {each.uuid for each in [*existing.records.values(), *left] if each.action == "INIT"}
        standing = [each for each in standing if each[0] not in never]
    there = set(standing)
    for key, action in made:
        its = ("was" if action.record is None else action.record.uuid, key.name)
        if action.verb in BRINGS - {Verb.TAKE_BACK}:
            there.add(("new", key.name))
        elif action.verb in {Verb.DELETE, Verb.KEEP}:
            there.discard(its)
        else:
            assert its in there  # updated, taken back and left alone is only what is there
    assert sorted(name for _, name in there) == sorted(new.definitions)


@given(updates())
def test_new_ones_wait_for_what_they_need_and_old_ones_for_who_needs_them(
    update: tuple[Template, Template, ExistingStack | None, bool],
) -> None:
    old, new, *_ = update
    made = planned(*update)
    at = {key: index for index, key in enumerate(made.graph.order())}
    for name in new.definitions:
        for required in set(new.required(name)) & set(new.definitions):
            assert at[Key(required, MAKE)] < at[Key(name, MAKE)]
    for key in [key for key in made.actions if key.phase == CLEAN]:
        assert at.get(Key(key.name, MAKE), -1) < at[key]
        users = [user for user in old.definitions if key.name in set(old.required(user))]
        for user in users:
            assert at.get(Key(user, MAKE), -1) < at[key]
            ends = [end for end in made.actions if (end.name, end.phase) == (user, CLEAN)]
            assert all(at[end] < at[key] for end in ends)


@given(templates(), st.booleans())
def test_the_same_template_changes_nothing(same: Template, rowless: bool) -> None:
    existing = None
    if not rowless:
        live = foresight.create(same)
        assert set(live.counts()) <= {Verb.CREATE, Verb.ADOPT}
        existing = ExistingStack(records=None)
    made = foresight.plan(same, same, existing)
    assert made.changes == {}
    assert len(made.actions) == len(same.definitions)


@given(templates())
def test_deletion_reverses_creation(wanted: Template) -> None:
    created = named(foresight.create(wanted).graph)
    deleted = named(foresight.delete(wanted).graph)
    assert set(deleted.edges()) == set(created.reverse().edges())
