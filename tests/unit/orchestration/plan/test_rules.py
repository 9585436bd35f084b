"""Each row of the table that decides between in place, anew, refused and unchanged."""

from __future__ import annotations

from typing import Any

import pytest

from bloomery.orchestration import foresight
from bloomery.orchestration.plan.plans import CLEAN, MAKE, Key, Verb
from bloomery.orchestration.template.dialect import DeletionPolicy
from tests.unit.orchestration.plan.kit import Template, attr, param, row, rows, template, thing

# Kind, state of the row, properties of old and new, what becomes of it, what is said.
DECISIONS = [
    # FAILED: the kind's say on checks, then on failures
    ("Thing", "CHECK_FAILED", {}, {}, Verb.REPLACE, "CHECK FAILED: the real thing is not as it"),
    ("Stable", "CHECK_FAILED", {}, {}, Verb.UNCHANGED, "CHECK FAILED, but as wanted"),
    ("Thing", "CREATE_FAILED", {}, {}, Verb.REPLACE, "CREATE FAILED: made anew"),
    ("Thing", "UPDATE_FAILED", {}, {"value": 1}, Verb.REPLACE, "UPDATE FAILED: made anew"),
    ("Thing", "UPDATE_IN_PROGRESS", {}, {}, Verb.REPLACE, "UPDATE IN_PROGRESS: made anew"),
    ("Stable", "UPDATE_FAILED", {}, {}, Verb.UNCHANGED, "UPDATE FAILED, but as wanted"),
    ("Stable", "UPDATE_FAILED", {}, {"value": 1}, Verb.UPDATE, ""),
    # nothing real stands behind the row
    ("Thing", "INIT_COMPLETE", {}, {}, Verb.CREATE, "INIT COMPLETE: nothing stands behind it"),
    ("Thing", "DELETE_COMPLETE", {}, {}, Verb.CREATE, "DELETE COMPLETE: nothing stands behind it"),
    ("Thing", "DELETE_FAILED", {}, {}, Verb.REPLACE, "DELETE FAILED: made anew"),
    # the kind's own word
    ("Choosy", "CREATE_COMPLETE", {}, {"value": "too much"}, Verb.REPLACE, "its kind cannot"),
    ("Choosy", "CREATE_COMPLETE", {}, {"value": "some"}, Verb.UPDATE, ""),
    ("Restless", "CREATE_COMPLETE", {}, {}, Verb.REPLACE, "its kind cannot"),
    ("Nought", "CREATE_FAILED", {}, {}, Verb.REPLACE, "CREATE FAILED: made anew"),
    # nothing differs, or nobody cares
    ("Thing", "CREATE_COMPLETE", {"value": 1}, {"value": 1}, Verb.UNCHANGED, ""),
    ("Thing", "UPDATE_COMPLETE", {}, {"size": 1}, Verb.UNCHANGED, ""),
    ("Nought", "CREATE_COMPLETE", {"value": 1}, {"value": 2}, Verb.UNCHANGED, ""),
    # what the schema says
    ("Thing", "CREATE_COMPLETE", {"fixed": "a"}, {"fixed": "b"}, Verb.REFUSE, "fixed is immutable"),
    ("Thing", "CREATE_COMPLETE", {"fixed": "a"}, {"size": 3}, Verb.REFUSE, "fixed is immutable"),
    ("Thing", "CREATE_COMPLETE", {"size": 2}, {"size": 3}, Verb.REPLACE, "size cannot change in"),
    ("Thing", "CREATE_COMPLETE", {"size": 2}, {}, Verb.REPLACE, "size cannot change in place"),
    ("Thing", "CREATE_COMPLETE", {"value": 1}, {"value": 2, "size": 2}, Verb.REPLACE, "size"),
    ("Thing", "CREATE_COMPLETE", {"value": 1}, {"value": 2}, Verb.UPDATE, ""),
    ("Thing", "CREATE_COMPLETE", {"value": 1}, {}, Verb.UPDATE, ""),
]


@pytest.mark.parametrize(("kind", "state", "before", "after", "verb", "reason"), DECISIONS)
def test_the_first_rule_that_answers_decides(
    kind: str, state: str, before: dict[str, Any], after: dict[str, Any], verb: Verb, reason: str
) -> None:
    made = foresight.plan(
        template(a=thing(kind, **before)),
        template(a=thing(kind, **after)),
        rows(row("a", kind, state, **before)),
    )
    action = made.actions[Key("a", MAKE)]
    assert (action.verb, action.certain) == (verb, True)
    assert action.reason.startswith(reason)
    assert bool(action.reason) == bool(reason)
    assert (Key("a", CLEAN) in made.actions) == (verb is Verb.REPLACE)


@pytest.mark.parametrize(("kind", "state", "before", "after", "verb", "reason"), DECISIONS[17:])
def test_without_rows_the_old_template_is_what_exists(
    kind: str, state: str, before: dict[str, Any], after: dict[str, Any], verb: Verb, reason: str
) -> None:
    made = foresight.plan(template(a=thing(kind, **before)), template(a=thing(kind, **after)))
    assert made.verb("a") is verb


def test_the_row_tells_what_is_there_not_the_old_template() -> None:
    wanted = template(a=thing(value=1))
    assert foresight.plan(wanted, wanted, rows(row("a", value=2))).verb("a") is Verb.UPDATE


def test_a_row_without_a_default_has_it() -> None:
    there = row("a")
    there.properties = {"value": 1}
    made = foresight.plan(template(), template(a=thing(value=1)), rows(there))
    assert made.verb("a") is Verb.UNCHANGED


@pytest.mark.parametrize(
    ("before", "after", "parts", "verb"),
    [
        ({"metadata": {"a": 1}}, {"metadata": {"a": 2}}, ("metadata",), Verb.UPDATE),
        ({}, {"update_policy": {"a": 2}}, ("update_policy",), Verb.UPDATE),
        (
            {},
            {"deletion_policy": DeletionPolicy.RETAIN},
            ("deletion_policy",),
            Verb.UPDATE,
        ),
        ({"metadata": {"a": 1}}, {"metadata": {"a": 1}}, (), Verb.UNCHANGED),
        ({}, {"description": "other"}, (), Verb.UNCHANGED),
        ({}, {"depends_on": ("b",)}, ("depends_on",), Verb.UPDATE),
        ({"depends_on": ("b",)}, {"depends_on": ("b",)}, (), Verb.UNCHANGED),
    ],
)
def test_other_parts_of_a_definition_count_as_the_contract_says(
    before: dict[str, Any], after: dict[str, Any], parts: tuple[str, ...], verb: Verb
) -> None:
    made = foresight.plan(
        template(a=thing(**before), b=thing()),
        template(a=thing(**after), b=thing()),
        rows(row("a"), row("b")),
    )
    action = made.actions[Key("a", MAKE)]
    assert (action.verb, tuple({leaf.path[0] for leaf in action.differences})) == (verb, parts)


@pytest.mark.parametrize(
    ("old", "new", "verb", "reason"),
    [
        ("1", "1", Verb.UNCHANGED, "external_id: left alone"),
        ("1", "2", Verb.REFUSE, "external_id cannot change while the resource exists"),
        (None, "1", Verb.REFUSE, "external_id cannot be added to a resource that exists"),
        ("1", None, Verb.REFUSE, "external_id cannot be taken from a resource that exists"),
    ],
)
def test_what_is_another_s_is_left_alone(
    old: str | None, new: str | None, verb: Verb, reason: str
) -> None:
    made = foresight.plan(
        template(a=thing(external_id=old)),
        template(a=thing(external_id=new, value="not looked at")),
        rows(row("a")),
    )
    action = made.actions[Key("a", MAKE)]
    assert (action.verb, action.reason) == (verb, reason)


def test_what_is_another_s_is_left_alone_though_the_old_template_does_not_know_it() -> None:
    made = foresight.plan(template(), template(a=thing(external_id="1", value=1)), rows(row("a")))
    assert made.verb("a") is Verb.UNCHANGED


def test_another_type_is_a_replacement() -> None:
    made = foresight.plan(template(a=thing()), template(a=thing("Stable")), rows(row("a")))
    action, end = made.actions_of("a")
    assert (action.verb, action.reason) == (Verb.REPLACE, "type Thing -> Stable")
    assert (end.verb, end.type, end.reason) == (Verb.DELETE, "Thing", "replaced")


def test_another_name_of_the_same_kind_is_an_update_in_place() -> None:
    made = foresight.plan(template(a=thing("Alias")), template(a=thing()), rows(row("a", "Alias")))
    (action,) = made.actions_of("a")
    assert action.verb is Verb.UPDATE
    (leaf,) = action.differences
    assert (leaf.where, leaf.before, leaf.after) == ("type", "Alias", "Thing")


def test_a_row_that_the_old_template_never_reached_is_judged_by_its_own_type() -> None:
    old, there = template(a=thing("Stable")), rows(row("a"))
    assert foresight.plan(old, template(a=thing()), there).verb("a") is Verb.UNCHANGED
    assert foresight.plan(old, template(a=thing("Stable")), there).verb("a") is Verb.REPLACE


def test_another_kind_behind_the_same_type_is_a_replacement() -> None:
    old, new = template(a=thing("Alias")), template(a=thing("Alias"))
    new.kinds = {"Alias": new.kinds["Stable"]}
    action = foresight.plan(old, new, rows(row("a", "Alias"))).actions[Key("a", MAKE)]
    assert (action.verb, action.reason) == (Verb.REPLACE, "Alias now stands for another kind")


@pytest.mark.parametrize(
    ("restricted", "after", "verb", "reason"),
    [
        ({"update"}, {"value": 2}, Verb.REFUSE, "the environment restricts update"),
        ({"replace"}, {"value": 2}, Verb.UPDATE, ""),
        ({"update"}, {"size": 2}, Verb.REPLACE, "size cannot change in place"),
        (
            {"replace"},
            {"size": 2},
            Verb.REFUSE,
            "the environment restricts replace (size cannot change in place)",
        ),
        ({"update", "replace"}, {}, Verb.UNCHANGED, ""),
    ],
)
def test_the_environment_restricts_actions(
    restricted: set[str], after: dict[str, Any], verb: Verb, reason: str
) -> None:
    new = Template({"a": thing(**after)}, restrictions={"a": restricted})
    action = foresight.plan(template(a=thing()), new, rows(row("a"))).actions[Key("a", MAKE)]
    assert (action.verb, action.reason) == (verb, reason)


def test_a_restricted_replacement_by_type_is_refused_and_nothing_is_deleted() -> None:
    new = Template({"a": thing("Stable")}, restrictions={"a": {"replace"}})
    made = foresight.plan(template(a=thing()), new, rows(row("a")))
    assert list(made.refused) == [Key("a", MAKE)]
    assert Key("a", CLEAN) not in made.actions


def test_a_kind_that_always_wants_to_be_called_is_unchanged_and_called() -> None:
    wanted = template(a=thing("Busy"), b=thing())
    made = foresight.plan(wanted, wanted, rows(row("a", "Busy"), row("b")))
    assert [made.actions[Key(name, MAKE)].called for name in "ab"] == [True, False]
    assert made.verb("a") is Verb.UNCHANGED


def test_a_changed_parameter_changes_what_asks_for_it() -> None:
    wanted = {"a": thing(value=param("p")), "b": thing(value=param("q"))}
    old = Template(wanted, parameters={"p": 1, "q": 1})
    new = Template(wanted, parameters={"p": 2, "q": 1})
    made = foresight.plan(old, new, rows(row("a", value=1), row("b", value=1)))
    assert (made.verb("a"), made.verb("b")) == (Verb.UPDATE, Verb.UNCHANGED)
    assert made.actions[Key("a", MAKE)].properties == {
        "value": 2,
        "other": None,
        "size": 1,
        "fixed": None,
    }


def test_what_is_not_known_yet_is_asked_of_the_kind_as_if_it_stayed() -> None:
    old = template(b=thing(), a=thing("Choosy", value="too much"))
    new = template(b=thing(value=1), a=thing("Choosy", value=attr("b")))
    made = foresight.plan(old, new, rows(row("b"), row("a", "Choosy", value="too much")))
    assert made.verb("a") is Verb.UPDATE
