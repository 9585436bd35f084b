"""What comes before what, and what is taken away at all."""

from __future__ import annotations

import pytest

from bloomery.model.stacks import StoredResource
from bloomery.orchestration import foresight
from bloomery.orchestration.foresight import build
from bloomery.orchestration.graph import Graph
from bloomery.orchestration.plan import ExistingStack, transforms
from bloomery.orchestration.plan.plans import CLEAN, MAKE, Key, Verb
from bloomery.orchestration.template.dialect import DeletionPolicy
from tests.unit.orchestration.plan.kit import (
    Template,
    attr,
    named,
    ref,
    retain,
    row,
    rows,
    template,
    thing,
    told,
)

# a in place, b replaced, c new; b needs a. Rows: a = 2, b = 1, c = 3; u make, c clean.
OLD = template(a=thing(), b=thing(size=1, depends_on=("a",)))
NEW = template(a=thing(value=1), b=thing(size=2, depends_on=("a",)), c=thing())
ROWS = rows(row("a"), row("b"))
NUMBERS = {"a": "2", "b": "1", "c": "3"}


def test_the_graph_is_that_of_the_reference() -> None:
    begun = build.begin(OLD, NEW, ROWS)
    for transform in build.TRANSFORMS:
        if transform is not transforms.drop_noop_vertices:
            transform(begun)
    seen = named(begun.graph, lambda key: NUMBERS[key.name] + {MAKE: "u", CLEAN: "c"}[key.phase])
    assert set(seen.edges()) == {
        ("1u", "2u"),
        ("1c", "1u"),
        ("2c", "2u"),
        ("2c", "1c"),
        ("3u", None),
    }
    assert set(seen.walk().first) == {"2u", "3u"}


def test_the_end_of_what_stays_is_no_vertex() -> None:
    made = foresight.plan(OLD, NEW, ROWS)
    assert set(made.graph.keys()) == {
        Key("a", MAKE),
        Key("b", MAKE),
        Key("b", CLEAN),
        Key("c", MAKE),
    }


def test_new_first_dependants_after_then_the_old_one() -> None:
    old = template(a=thing(size=1), b=thing(value=ref("a")))
    new = template(a=thing(size=2), b=thing(value=ref("a")))
    made = foresight.plan(old, new, rows(row("a"), row("b", value="id-a")))
    assert told(made) == ["make a: replace", "make b: update", "clean a: delete"]


def test_what_is_removed_goes_after_its_users_have_turned_away() -> None:
    old = template(net=thing(), server=thing(value=ref("net")))
    made = foresight.plan(old, template(server=thing(value=1)), rows(row("net"), row("server")))
    assert told(made) == ["make server: update", "clean net: delete"]
    assert Key("server", MAKE) in made.requires(Key("net", CLEAN))


def test_removed_ones_go_in_the_reverse_order_of_their_making() -> None:
    chain = template(a=thing(), b=thing(value=ref("a")), c=thing(value=ref("b")))
    made = foresight.plan(chain, template(d=thing()), rows(*(row(name) for name in "abc")))
    assert [line for line in told(made) if "clean" in line] == [
        "clean c: delete",
        "clean b: delete",
        "clean a: delete",
    ]


def test_ends_wait_for_each_other_across_what_stays() -> None:
    old = template(a=thing(), b=thing(value=ref("a")), c=thing(value=ref("b")))
    new = template(b=thing())
    made = foresight.plan(old, new, rows(row("a"), row("b", value="id-a"), row("c")))
    assert made.requires(Key("a", CLEAN)) == {Key("b", MAKE), Key("c", CLEAN)}


def test_many_ends_that_wait_for_many_are_joined_in_one_vertex() -> None:
    old = template(
        a=thing(),
        b=thing(),
        middle=thing(depends_on=("a", "b")),
        c=thing(depends_on=("middle",)),
        d=thing(depends_on=("middle",)),
    )
    made = foresight.plan(
        old, template(middle=thing()), rows(*(row(each) for each in old.definitions))
    )
    noop = Key("middle", CLEAN)
    assert noop not in made.actions
    assert made.requires(noop) == {Key("middle", MAKE), Key("c", CLEAN), Key("d", CLEAN)}
    assert made.requires(Key("a", CLEAN)) == made.requires(Key("b", CLEAN)) == {noop}


@pytest.mark.parametrize("existing", [None, rows(row("a"), row("b"), row("c"))])
def test_the_same_template_changes_nothing(existing: object) -> None:
    same = template(a=thing(), b=thing(depends_on=("a",)), c=thing(metadata={"x": ref("a")}))
    made = foresight.plan(same, same, existing)
    assert made.changes == {}
    assert told(made) == ["make a: unchanged", "make b: unchanged", "make c: unchanged"]


def test_unchanged_ones_still_pass_the_order_on() -> None:
    chain = {"a": thing(), "b": thing(depends_on=("a",)), "c": thing(depends_on=("b",))}
    new = Template(chain | {"a": thing(value=1), "c": thing(value=1, depends_on=("b",))})
    made = foresight.plan(Template(chain), new, rows(*(row(name) for name in chain)))
    assert told(made) == ["make a: update", "make b: unchanged", "make c: update"]


def test_deletion_mirrors_creation() -> None:
    wanted = template(a=thing(), b=thing(value=ref("a")), c=thing(depends_on=("a",)), d=thing())
    created = named(foresight.create(wanted).graph)
    deleted = named(foresight.delete(wanted).graph)
    assert set(deleted.edges()) == set(created.reverse().edges())
    assert {action.verb for _, action in foresight.create(wanted)} == {Verb.CREATE}
    assert {action.verb for _, action in foresight.delete(wanted)} == {Verb.DELETE}


def test_a_dependency_on_what_is_switched_off_is_none() -> None:
    made = foresight.create(template(a=thing(depends_on=("off",))))
    assert made.graph.order() == [Key("a", MAKE)]


def test_what_another_owns_is_adopted_and_waits_for_nothing() -> None:
    made = foresight.create(template(a=thing(external_id=ref("b")), b=thing()))
    assert made.verb("a") is Verb.ADOPT
    assert set(made.graph.edges()) == {(Key("a", MAKE), None), (Key("b", MAKE), None)}


# ------------------------------------------------------------------------------- what is kept


def test_a_condition_turned_false_deletes_unless_retained() -> None:
    old = template(a=thing(), b=retain(), c=thing(external_id="x"))
    made = foresight.plan(old, template(), rows(*(row(name) for name in "abc")))
    assert {key.name: (each.verb, each.reason) for key, each in made} == {
        "a": (Verb.DELETE, "no longer in the template"),
        "b": (Verb.KEEP, "no longer in the template; deletion policy Retain"),
        "c": (Verb.KEEP, "no longer in the template; external_id: it is another's"),
    }


def test_the_old_policy_decides_what_becomes_of_the_old_one() -> None:
    old, new = template(a=retain(size=1), b=thing()), template(a=thing(size=2), b=thing())
    _, end = foresight.plan(old, new, rows(row("a"), row("b"))).actions_of("a")
    assert (end.verb, end.reason) == (Verb.KEEP, "replaced; deletion policy Retain")


def test_a_snapshot_comes_before_the_end() -> None:
    old = template(a=thing(deletion_policy=DeletionPolicy.SNAPSHOT), b=thing())
    (end,) = foresight.plan(old, template(b=thing()), rows(row("a"), row("b"))).actions_of("a")
    assert end.verb is Verb.DELETE
    assert end.reason == "no longer in the template; deletion policy Snapshot: a snapshot first"


def test_what_was_never_made_only_loses_its_row() -> None:
    made = foresight.delete(template(a=thing(), b=thing()), rows(row("a", state="INIT_COMPLETE")))
    assert [(str(key), each.reason) for key, each in made] == [
        ("clean a", "nothing stands behind it: only its row goes")
    ]


def test_a_row_that_no_template_knows_is_deleted() -> None:
    (action,) = foresight.plan(template(), template(b=thing()), rows(row("a"))).actions_of("a")
    assert (action.verb, action.type, action.definition) == (Verb.DELETE, "Thing", None)


def test_a_doubtful_replacement_ends_the_old_one_only_if_it_comes_to_that() -> None:
    old = template(a=thing(), b=thing(size=ref("a")))
    new = template(a=thing(size=2), b=thing(size=ref("a")))
    made = foresight.plan(old, new, rows(row("a"), row("b")))
    assert [each.certain for each in made.actions_of("b")] == [True, True]
    new = template(a=thing(value=2), b=thing(size=attr("a")))
    made = foresight.plan(old, new, rows(row("a"), row("b")))
    assert [each.reason for each in made.actions_of("b")] == [
        "size cannot change in place",
        "replaced",
    ]


# --------------------------------------------------------------- leftovers, and the way back


def test_what_a_failed_update_left_over_goes() -> None:
    same = template(a=thing(), b=thing(depends_on=("a",)))
    old = row("a", value="older")
    made = foresight.plan(
        same, same, ExistingStack(records=rows(row("a"), row("b")), leftovers={"a": [old]})
    )
    assert told(made) == ["make a: unchanged", "make b: unchanged", "clean a: delete"]
    assert made.actions_of("a")[1].reason == "left over from an earlier update"
    assert made.actions_of("a")[1].record is old


def test_what_is_under_way_for_an_earlier_order_is_warned_of() -> None:
    names = [f"r{number}" for number in range(7)]
    same = template(**{name: thing() for name in names})
    records = rows(*map(row, names))
    made = foresight.plan(same, same, ExistingStack(records=records, under_way=names[:2]))
    [warning] = made.warnings
    assert warning.startswith("under way for an earlier order: r0, r1; the plan of that order ")
    [many] = foresight.plan(same, same, ExistingStack(records=records, under_way=names)).warnings
    assert "r3, r4 and 2 more;" in many
    assert foresight.plan(same, same, ExistingStack(records=records)).warnings == ()


def test_the_old_one_takes_its_place_again_while_the_new_one_is_broken() -> None:
    broken, old = row("a", state="CREATE_FAILED", size=2), row("a", size=1)
    existing = ExistingStack(records=rows(broken), leftovers={"a": [old]})
    made = foresight.plan(template(a=thing(size=2)), template(a=thing(size=1)), existing)
    taken, end = made.actions_of("a")
    assert (taken.verb, taken.record) == (Verb.TAKE_BACK, old)
    assert (end.verb, end.record) == (Verb.DELETE, broken)
    assert end.reason == "left over from an earlier update"


def test_of_several_old_ones_the_youngest_is_taken_back() -> None:
    olds = [row("a", value=number) for number in (1, 2)]
    existing = ExistingStack(records=rows(row("a", state="INIT_COMPLETE")), leftovers={"a": olds})
    made = foresight.plan(template(a=thing()), template(a=thing(value=2)), existing)
    taken, *ends = made.actions_of("a")
    assert (taken.verb, taken.record) == (Verb.TAKE_BACK, olds[1])
    assert [(end.record.action, end.reason) for end in ends] == [
        ("INIT", "nothing stands behind it: only its row goes"),
        ("CREATE", "left over from an earlier update"),
    ]


@pytest.mark.parametrize(
    ("current", "old", "wanted", "kept"),
    [
        (row("a", size=2), row("a", size=1), 1, "old"),
        (row("a", size=2), row("a", size=1), 2, "current"),
        (row("a", size=2), row("a", size=1), 3, "current"),
        (row("a", size=2, state="CREATE_FAILED"), row("a", size=1), 2, "old"),
        (row("a", size=2), row("a", size=1, state="DELETE_FAILED"), 1, "current"),
    ],
    ids=["the old template", "the new one again", "a third one", "a broken new one", "a lost old"],
)
def test_of_two_rows_the_one_that_equals_the_new_template_is_kept(
    current: StoredResource, old: StoredResource, wanted: int, kept: str
) -> None:
    existing = ExistingStack(records=rows(current), leftovers={"a": [old]})
    plan = foresight.plan(template(a=thing(size=2)), template(a=thing(size=wanted)), existing)
    row_kept, other = (old, current) if kept == "old" else (current, old)
    assert plan.actions[Key("a", MAKE)].record is row_kept
    assert plan.actions[Key("a", CLEAN, other.uuid)].record is other


@pytest.mark.parametrize("is_current", [True, False], ids=["of a former template", "left over"])
def test_a_row_that_the_old_template_lacks_ends_as_its_own_template_says(is_current: bool) -> None:
    own, old = template(a=retain()), template(b=thing())
    record = row("a")
    existing = ExistingStack(
        records=rows(row("b"), *[record] * is_current),
        leftovers={} if is_current else {"a": [record]},
        side=lambda _record: own,
    )
    (end,) = foresight.plan(old, old, existing).actions_of("a")
    assert (end.verb, end.record) == (Verb.KEEP, record)


def test_a_broken_leftover_is_not_taken_back() -> None:
    broken, old = row("a", state="CREATE_FAILED"), row("a", state="DELETE_FAILED", value=1)
    existing = ExistingStack(records=rows(broken), leftovers={"a": [old]})
    made = foresight.plan(template(a=thing()), template(a=thing()), existing)
    assert [each.verb for each in made.actions_of("a")] == [Verb.REPLACE, Verb.DELETE, Verb.DELETE]


def test_a_leftover_of_what_is_no_more_wanted_goes_with_the_rest() -> None:
    existing = ExistingStack(
        records=rows(row("a", state="CREATE_FAILED")), leftovers={"a": [row("a", value=1)]}
    )
    made = foresight.plan(template(a=thing()), template(), existing)
    assert told(made) == ["clean a: delete", "clean a: delete"]


def test_the_way_back_undoes_each_thing_that_was_done() -> None:
    previous = template(
        updated=thing(value=1),
        replaced=thing(size=1),
        removed=thing(),
        waiting=thing(),
        failed=thing(),
    )
    going = template(
        updated=thing(value=2),
        replaced=thing(size=2),
        added=thing(),
        added_and_kept=retain(),
        waiting=thing(value=1),
        failed=thing(value=1),
    )
    standing = row("replaced", size=1)
    existing = ExistingStack(
        records=rows(
            row("updated", value=2, state="UPDATE_COMPLETE"),
            row("replaced", size=2),
            row("added"),
            row("added_and_kept"),
            row("waiting"),
            row("failed", value=1, state="UPDATE_FAILED"),
        ),
        leftovers={"replaced": [standing]},
    )
    made = foresight.rollback(going, previous, existing)
    assert {str(key): (str(each.verb), each.reason) for key, each in made} == {
        "make updated": ("update", ""),
        "make replaced": ("take_back", "the old one still stands"),
        f"clean replaced {existing.records['replaced'].uuid}": (
            "delete",
            "made by the update that is rolled back",
        ),
        "make removed": ("recreate", "it is gone"),
        "make waiting": ("unchanged", ""),
        "make failed": ("replace", "UPDATE FAILED: made anew"),
        "clean failed": ("delete", "replaced"),
        "clean added": ("delete", "made by the update that is rolled back"),
        "clean added_and_kept": (
            "keep",
            "made by the update that is rolled back; deletion policy Retain",
        ),
    }


def test_what_is_taken_back_may_be_updated_too() -> None:
    existing = ExistingStack(
        records=rows(row("a", size=2)), leftovers={"a": [row("a", size=1, value="drifted")]}
    )
    made = foresight.rollback(template(a=thing(size=2)), template(a=thing(size=1)), existing)
    taken, _ = made.actions_of("a")
    assert (taken.verb, taken.reason) == (
        Verb.UPDATE,
        "the old one still stands and is taken back",
    )


def test_who_uses_what_is_taken_back_and_updated_may_see_another_id() -> None:
    before = {"a": thing(size=1), "b": thing(value=ref("a"))}
    after = before | {"a": thing(size=2)}
    existing = ExistingStack(
        records=rows(row("a", size=2), row("b", value="new")),
        leftovers={"a": [row("a", size=1, value="drifted")]},
    )
    made = foresight.rollback(Template(after), Template(before), existing)
    assert (made.verb("a"), made.verb("b")) == (Verb.UPDATE, Verb.UPDATE)


def test_what_is_taken_back_but_does_not_fit_is_replaced() -> None:
    existing = ExistingStack(records=rows(row("a", size=2)), leftovers={"a": [row("a", size=3)]})
    made = foresight.rollback(template(a=thing(size=2)), template(a=thing(size=1)), existing)
    assert made.verb("a") is Verb.REPLACE


def test_users_of_what_is_taken_back_turn_to_it_before_its_replacement_goes() -> None:
    before = {"a": thing(size=1), "b": thing(value=ref("a"))}
    after = before | {"a": thing(size=2)}
    existing = ExistingStack(
        records=rows(row("a", size=2), row("b", value="new")), leftovers={"a": [row("a")]}
    )
    made = foresight.rollback(Template(after), Template(before), existing)
    assert told(made) == ["make a: take_back", "make b: update", "clean a: delete"]
    assert not made.actions[Key("b", MAKE)].certain


def test_the_way_back_from_a_creation_is_the_end() -> None:
    going = template(a=thing(), b=thing(value=ref("a")), c=thing(depends_on=("b",)))
    existing = rows(row("a"), row("b", state="CREATE_FAILED"), row("c", state="INIT_COMPLETE"))
    made = foresight.rollback(going, None, existing)
    assert told(made) == ["clean c: delete", "clean b: delete", "clean a: delete"]


# --------------------------------------------------------------------------- how it was made


def test_each_transform_tells_what_it_adds_and_takes() -> None:
    steps = {step.name: step for step in build.explain(build.begin(OLD, NEW, ROWS))}
    assert list(steps) == [each.__name__ for each in build.TRANSFORMS]
    assert steps["add_resources"].added == ["make a: create", "make b: create", "make c: create"]
    assert steps["order_creation"].removed == ["make b: create"]
    assert steps["order_creation"].added == ["make b: create <- make a"]
    assert steps["compare"].added == ["make a: update", "make b: replace <- make a"]
    assert steps["order_deletion"].added == [
        "clean b: delete <- make b",
        "clean a <- clean b, make a",
    ]
    assert steps["drop_noop_vertices"].removed == ["clean a <- clean b, make a"]


def test_the_making_is_told_as_text() -> None:
    said = build.explanation(build.begin(OLD, NEW, ROWS))
    assert "drop_noop_vertices: Take away the no-op vertices that nothing waits for" in said
    assert "\n  - clean a <- clean b, make a\n" in said


def test_a_plan_is_a_graph_of_keys() -> None:
    assert isinstance(foresight.create(NEW).graph, Graph)
    assert foresight.create(NEW).counts() == {Verb.CREATE: 3}
