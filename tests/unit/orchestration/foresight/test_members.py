"""Members of groups, chains and nested templates in the plan of the stack above."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from bloomery import errors
from bloomery.model.stacks import StoredResource
from bloomery.orchestration import foresight
from bloomery.orchestration.foresight import document
from bloomery.orchestration.limits import Limits
from bloomery.orchestration.plan import ExistingStack
from bloomery.orchestration.plan.plans import BATCH, CLEAN, MAKE, Key, Plan, Verb
from bloomery.orchestration.resources.base import Action
from bloomery.orchestration.stack import Stack, validate
from bloomery.orchestration.template.definition import View
from bloomery.orchestration.template.view import PlainResource
from tests.unit.orchestration.plan.kit import shown, told
from tests.unit.orchestration.plan.stacks import resources, stack


def group(
    count: Any, value: Any = "a", policy: str = "{}", kind: str = "OS::Heat::Value", more: str = ""
) -> Stack:
    return resources(
        f"""
  group:
    type: OS::Heat::ResourceGroup
    update_policy: {policy}
    properties:
      count: {count}
      resource_def: {{type: "{kind}", properties: {{value: {value}}}}}
{more}"""
    )


def rolling(count: int, value: str, most: int, floor: int, pause_s: float = 0) -> Stack:
    pace = f"max_batch_size: {most}, min_in_service: {floor}, pause_time: {pause_s}"
    return group(count, value, f"{{rolling_update: {{{pace}}}}}")


def test_a_new_group_begins_with_its_members() -> None:
    assert told(foresight.create(group(2))) == [
        "make group/0: create",
        "make group/1: create",
        "make group: create",
    ]


def test_a_group_that_grows_makes_the_missing_members() -> None:
    made = foresight.plan(group(1), group(3))
    assert told(made) == [
        "make group/0: unchanged",
        "make group/1: create",
        "make group/2: create",
        "make group: update",
    ]


def test_a_group_that_shrinks_loses_the_last_members() -> None:
    made = foresight.plan(group(3), group(1))
    assert sorted(told(made)) == [
        "clean group/1: delete",
        "clean group/2: delete",
        "make group/0: unchanged",
        "make group: update",
    ]
    assert told(made)[-1] == "make group: update"


@pytest.mark.parametrize("count", [1, 0])
def test_a_member_beyond_the_new_count_is_said_to_be_so(count: int) -> None:
    action = foresight.plan(group(3), group(count)).actions[Key("group/2", CLEAN)]
    assert action.reason == f"beyond the new count of {count}"


def test_a_member_that_is_removed_by_name_is_said_to_be_so() -> None:
    def removing(names: str) -> Stack:
        return resources(
            f"""
  group:
    type: OS::Heat::ResourceGroup
    properties:
      count: 2
      removal_policies: [{{resource_list: [{names}]}}]
      resource_def: {{type: OS::Heat::None}}"""
        )

    action = foresight.plan(removing(""), removing("'0'")).actions[Key("group/0", CLEAN)]
    assert action.reason == "named by the removal policies"


def test_a_chain_that_shrinks_says_so() -> None:
    def chain(kinds: str) -> Stack:
        return resources(
            f"  c: {{type: OS::Heat::ResourceChain, properties: {{resources: [{kinds}]}}}}"
        )

    made = foresight.plan(chain("OS::Heat::None, OS::Heat::TestResource"), chain("OS::Heat::None"))
    assert made.actions[Key("c/1", CLEAN)].reason == "beyond the end of the new chain"


def test_an_unchanged_group_is_one_line() -> None:
    assert told(foresight.plan(group(3), group(3))) == ["make group: unchanged"]


def test_members_of_another_type_are_replaced() -> None:
    made = foresight.plan(group(2), group(2, kind="OS::Heat::TestResource"))
    assert made.verb("group/0") is Verb.REPLACE
    assert made.actions[Key("group/1", CLEAN)].verb is Verb.DELETE


def test_a_replaced_group_makes_new_members_and_loses_the_old_ones() -> None:
    other = resources(
        """
  group:
    type: OS::Heat::ResourceGroup
    properties:
      count: 1
      index_var: "#n#"
      resource_def: {type: OS::Heat::Value, properties: {value: a}}
"""
    )
    assert told(foresight.plan(group(1), other)) == [
        "make group/0: create",
        "make group: replace",
        "clean group/0: delete",
        "clean group: delete",
    ]


def test_the_end_of_a_group_begins_with_its_members() -> None:
    assert told(foresight.delete(group(2))) == [
        "clean group/0: delete",
        "clean group/1: delete",
        "clean group: delete",
    ]


def test_a_kept_group_keeps_its_members() -> None:
    old = resources(
        """
  group:
    type: OS::Heat::ResourceGroup
    deletion_policy: Retain
    properties: {resource_def: {type: OS::Heat::None}}
"""
    )
    assert told(foresight.delete(old)) == ["clean group: keep"]


def test_members_wait_for_what_their_group_requires_and_users_for_them() -> None:
    made = foresight.create(
        group(
            2,
            "{get_attr: [first, value]}",
            more="""
  first: {type: OS::Heat::Value, properties: {value: x}}
  last: {type: OS::Heat::Value, properties: {value: {get_attr: [group, refs]}}}
""",
        )
    )
    assert told(made)[0] == "make first: create"
    assert told(made)[-2:] == ["make group: create", "make last: create"]
    assert made.requires(Key("group/0", MAKE)) == {Key("group", "begin")}


def test_the_end_of_a_group_waits_for_its_users() -> None:
    last = "\n  last: {type: OS::Heat::Value, properties: {value: {get_resource: group}}}\n"
    assert told(foresight.delete(group(1, more=last))) == [
        "clean last: delete",
        "clean group/0: delete",
        "clean group: delete",
    ]


def test_what_members_wait_for_is_told() -> None:
    more = """
  first: {type: OS::Heat::RandomString, properties: {length: %s}}
"""
    value = "{get_resource: first}"
    made = foresight.plan(group(1, value, more=more % 8), group(1, value, more=more % 9))
    assert "group/0  OS::Heat::Value" in shown(made)
    (leaf,) = made.actions[Key("group/0", MAKE)].differences
    assert (leaf.before, leaf.after) == ("(first)", "(known after first is replaced)")


def test_a_value_that_stays_is_no_difference_though_it_is_not_known() -> None:
    more = "\n  first: {type: OS::Heat::Value, properties: {value: x}}\n"
    value = "{get_attr: [first, value]}"
    made = foresight.plan(group(1, value, more=more), group(2, value, more=more))
    assert made.verb("group/0") is Verb.UNCHANGED
    assert made.verb("group/1") is Verb.CREATE


@pytest.mark.parametrize("live", [True, False])
def test_a_count_that_is_not_known_leaves_the_group_as_one(live: bool) -> None:
    more = "\n  n: {type: OS::Heat::Value, properties: {value: 2}}\n"
    one, two = group(1, more=more), group("{get_attr: [n, value]}", more=more)
    records = {
        name: StoredResource(
            name=name,
            type=one.definitions[name].type,
            uuid="00000000-0000-0000-0000-000000000000",
            action=Action.CREATE,
            properties=one.properties(name, one.view),
        )
        for name in one.definitions
    }
    seen = {"n": PlainResource(name="n", id="n", values={"value": 2})} if live else {}
    made = foresight.plan(one, two, ExistingStack(records=records, live=seen))
    assert (Key("group/1", MAKE) in made.actions) is live
    assert made.verb("group") is Verb.UPDATE


def test_members_of_what_may_change_may_change() -> None:
    more = "\n  n: {type: OS::Heat::Value, properties: {value: %s}}\n"
    value = "{get_attr: [n, value]}"
    made = foresight.plan(group(1, value, more=more % 1), group(1, value, more=more % 2))
    assert [made.actions[Key(name, MAKE)].certain for name in ("n", "group", "group/0")] == [
        True,
        False,
        False,
    ]


def test_removed_names_are_skipped() -> None:
    def of(removed: str) -> Stack:
        return resources(
            f"""
  group:
    type: OS::Heat::ResourceGroup
    properties:
      count: 2
      removal_policies: [{{resource_list: [{removed}]}}]
      resource_def: {{type: OS::Heat::Value, properties: {{value: a}}}}
"""
        )

    assert set(told(foresight.plan(of(""), of("'0'")))) == {
        "make group/1: unchanged",
        "make group/2: create",
        "clean group/0: delete",
        "make group: update",
    }


def test_a_chain_is_made_in_its_order() -> None:
    def chain(types: str) -> Stack:
        return resources(
            f"\n  c: {{type: OS::Heat::ResourceChain, properties: {{resources: [{types}]}}}}\n"
        )

    assert told(foresight.create(chain("OS::Heat::None, OS::Heat::None"))) == [
        "make c/0: create",
        "make c/1: create",
        "make c: create",
    ]
    made = foresight.plan(chain("OS::Heat::None"), chain("OS::Heat::None, OS::Heat::None"))
    assert made.requires(Key("c/1", MAKE)) == {Key("c/0", MAKE)}


def test_only_the_first_members_wait_for_what_is_above() -> None:
    made = foresight.create(
        resources(
            """
  a: {type: OS::Heat::None}
  c:
    type: OS::Heat::ResourceChain
    depends_on: a
    properties: {resources: [OS::Heat::None, OS::Heat::None]}
"""
        )
    )
    assert made.requires(Key("c/0", MAKE)) == {Key("c", "begin")}
    assert made.requires(Key("c/1", MAKE)) == {Key("c/0", MAKE)}


def test_members_whose_names_would_be_guesses_are_not_told() -> None:
    more = "\n  n: {type: OS::Heat::Value, properties: {value: '#x#'}}\n"
    made = foresight.create(group(1, more=f"      index_var: {{get_attr: [n, value]}}{more}"))
    assert told(made) == ["make n: create", "make group: create"]


# --------------------------------------------------------------------------- nested templates

ABOVE = """
heat_template_version: 2021-04-16
parameters: {p: {type: string, hidden: %s, default: %s}}
resources:
  n: {type: n.yaml, properties: {x: {get_param: p}}}
"""
BELOW = """
heat_template_version: 2021-04-16
parameters: {x: {type: string}}
resources: {i: {type: OS::Heat::Value, properties: {value: {get_param: x}}}}
"""
DEEPER = """
heat_template_version: 2021-04-16
parameters: {x: {type: string}}
resources: {n: {type: deeper.yaml, properties: {x: {get_param: x}}}}
"""


def nested(value: str, *, hidden: bool = False, deep: bool = False) -> Stack:
    files = {"n.yaml": DEEPER if deep else BELOW, "deeper.yaml": BELOW}
    return stack(ABOVE % (str(hidden).lower(), value), files=files)


def test_a_nested_template_that_changes_changes_its_resource() -> None:
    changed = stack(ABOVE % ("false", "a"), files={"n.yaml": BELOW.replace("i:", "j:", 1)})
    made = foresight.plan(nested("a"), changed)
    assert set(told(made)) == {"make n/j: create", "clean n/i: delete", "make n: update"}
    assert made.actions[Key("n", MAKE)].reason == "its members change"


def test_stacks_below_stacks_are_planned() -> None:
    made = foresight.plan(nested("a", deep=True), nested("b", deep=True))
    assert told(made) == ["make n/n/i: update", "make n/n: update", "make n: update"]
    (leaf,) = made.actions[Key("n/n/i", MAKE)].differences
    assert (leaf.before, leaf.after) == ("a", "b")


@pytest.mark.parametrize("deep", [True, False])
def test_a_secret_stays_one_below(deep: bool) -> None:
    old, new = nested("one", hidden=True, deep=deep), nested("two", hidden=True, deep=deep)
    made = foresight.plan(old, new)
    inner = made.actions[Key("n/n/i" if deep else "n/i", MAKE)]
    assert [(each.before, each.after) for each in inner.differences] == [("******", "******")]
    assert '"one"' not in shown(made)


def test_a_secret_stays_one_in_members() -> None:
    def of(secret: str) -> Stack:
        return stack(
            """
heat_template_version: 2021-04-16
parameters: {p: {type: string, hidden: true}}
resources:
  group:
    type: OS::Heat::ResourceGroup
    properties:
      resource_def: {type: OS::Heat::Value, properties: {value: {get_param: p}}}
""",
            p=secret,
        )

    made = foresight.plan(of("one"), of("two"))
    assert "group/0" in shown(made)
    assert '"one"' not in shown(made)


def test_a_secret_of_members_hides_no_other_property_of_theirs() -> None:
    def of(secret: str, wait: int) -> Stack:
        return stack(
            f"""
heat_template_version: 2021-04-16
parameters: {{p: {{type: string, hidden: true}}}}
resources:
  group:
    type: OS::Heat::ResourceGroup
    properties:
      resource_def:
        type: OS::Heat::TestResource
        properties: {{value: {{get_param: p}}, wait_secs: {wait}}}
""",
            p=secret,
        )

    text = shown(foresight.plan(of("one", 1), of("two", 2)))
    assert "one" not in text
    assert text.count("(parameter p is hidden)") == 1
    assert text.count("(its group is given a secret)") == 1
    assert "resource_def.properties.wait_secs: 1 -> 2" in text
    assert "  wait_secs: 1 -> 2" in text


def test_a_secret_property_of_machines_is_hidden_in_their_group_as_well() -> None:
    def of(number: int) -> Stack:
        return stack(
            f"""
heat_template_version: 2021-04-16
resources:
  group:
    type: OS::Ironic::InstanceGroup
    properties:
      count: 1
      member:
        selector: {{resource_class: bm}}
        image: {{boot_iso: "http://{number}.iso"}}
        user_data: "#cloud-config {number}"
      member_overrides:
        yaql: {{expression: $.data, data: {{"0": {{user_data: "#!override {number}"}}}}}}
""",
        )

    text = shown(foresight.plan(of(1), of(2)))
    assert "cloud-config" not in text
    assert "override 1" not in text
    assert text.count("(user_data is a secret)") == 3  # twice of the group, and of the machine
    assert "member.image.boot_iso: http://1.iso -> http://2.iso" in text


def test_the_drain_of_a_group_hides_nothing_else_of_its_members() -> None:
    def of(number: int) -> Stack:
        return stack(
            f"""
heat_template_version: 2021-04-16
resources:
  group:
    type: OS::Ironic::InstanceGroup
    properties:
      count: 1
      drain: {{url: "http://lb/{number}", secret: whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY{number}}}
      member:
        selector: {{resource_class: bm}}
        image: {{boot_iso: "http://{number}.iso"}}
""",
        )

    text = shown(foresight.plan(of(1), of(2)))
    assert "whsec" not in text
    assert "its drain comes first, and pauses after 600 s" in text
    assert text.count("image.boot_iso: http://1.iso -> http://2.iso") == 2
    assert text.count("drain: ****** -> ****** (drain is a secret)") == 2


def test_a_stack_below_that_cannot_be_made_sense_of_stays_one_vertex() -> None:
    def of(length: int) -> Stack:
        below = BELOW.replace("string", "number").replace("OS::Heat::Value", "OS::Heat::Delay")
        return stack(
            f"""
heat_template_version: 2021-04-16
resources:
  a: {{type: OS::Heat::RandomString, properties: {{length: {length}}}}}
  n: {{type: n.yaml, properties: {{x: {{get_attr: [a, value]}}}}}}
""",
            files={"n.yaml": below.replace("value: {", "min_wait: {")},
        )

    made = foresight.plan(of(8), of(9))
    assert told(made) == ["make a: replace", "make n: update", "clean a: delete"]
    assert not made.actions[Key("n", MAKE)].certain


@pytest.mark.parametrize(
    ("count", "groups", "told_of"), [(2, 2, 2), (3, 2, 2), (3, 3, 2), (4, 1, 0)]
)
def test_no_more_members_are_looked_at_than_a_stack_may_have(
    count: int, groups: int, told_of: int
) -> None:
    body = "\n".join(
        f"  g{each}: {{type: OS::Heat::ResourceGroup,"
        f" properties: {{count: {count}, resource_def: {{type: OS::Heat::None}}}}}}"
        for each in range(groups)
    )
    many = resources(body, limits=Limits(resources=3), sound=False)
    assert len(foresight.create(many).actions) == groups + told_of * count


# ------------------------------------------------------------------------------------- batches

# target, current, batch, floor: (size, members that take the new definition) of each batch
VECTORS = [
    ((3, 3, 1, 0), [(3, 1), (3, 1), (3, 1)]),
    ((3, 3, 1, 3), [(4, 1), (4, 1), (4, 1), (4, 1), (3, 0)]),
    ((5, 3, 2, 0), [(5, 2), (5, 2), (5, 1)]),
    ((2, 5, 2, 0), [(2, 2)]),
    ((4, 4, 2, 3), [(5, 2), (5, 2), (4, 1)]),
    ((3, 3, 5, 2), [(5, 3), (4, 2), (3, 0)]),
]


@pytest.mark.parametrize(("numbers", "steps"), VECTORS)
def test_a_rolling_update_goes_batch_by_batch(
    numbers: tuple[int, int, int, int], steps: list[tuple[int, int]]
) -> None:
    target, current, most, floor = numbers
    made = foresight.plan(rolling(current, "a", most, floor), rolling(target, "b", most, floor))
    assert walked(made, current) == steps
    assert sum(action.verb is Verb.WAIT for _, action in made) == len(steps) - 1
    made.graph.order()


@pytest.mark.parametrize(
    ("target", "most", "steps"), [(10, 4, [(4, 4), (8, 4), (10, 2)]), (3, 5, [(3, 3)])]
)
def test_a_group_is_made_batch_by_batch(
    target: int, most: int, steps: list[tuple[int, int]]
) -> None:
    made = foresight.create(group(target, policy=f"{{batch_create: {{max_batch_size: {most}}}}}"))
    assert walked(made, 0) == steps


def test_a_group_of_nobody_has_no_batches() -> None:
    made = foresight.plan(rolling(3, "a", 1, 0), rolling(0, "b", 1, 0))
    assert walked(made, 3) == [(0, 0)]


def walked(made: Plan, current: int) -> list[tuple[int, int]]:
    """How many members there are after each batch, and how many of them it has changed."""
    size, changed, steps = current, 0, []
    for key, action in sorted(made, key=lambda each: _depth(made, each[0])):
        if key.phase == BATCH or key == Key("group", MAKE):
            steps.append((size, changed))
            changed = 0
        elif key.phase == CLEAN:
            size -= 1
        else:
            size += action.verb is Verb.CREATE
            changed += action.verb in {Verb.CREATE, Verb.UPDATE}
    return steps


def _depth(made: Plan, key: Key) -> tuple[int, bool]:
    """How many batches stand before a vertex; the end of a batch comes after its members."""
    seen, todo, batches = set[Key](), [key], 0
    while todo:
        for need in made.requires(todo.pop()):
            if need not in seen:
                seen.add(need)
                todo.append(need)
                batches += need.phase == BATCH
    return batches, "/" not in key.name


def test_who_stands_in_comes_and_goes() -> None:
    made = foresight.plan(rolling(1, "a", 1, 1), rolling(1, "b", 1, 1))
    assert shown(made) == (
        "~  group    OS::Heat::ResourceGroup  update in place\n"
        "     resource_def.properties.value: a -> b\n"
        "+  group/1  OS::Heat::Value          create           stands in while others change\n"
        "-  group/1  OS::Heat::Value          delete           stands in while others change\n"
        ":  group    OS::Heat::ResourceGroup  wait             for batch 1 of 3\n"
        "~  group/0  OS::Heat::Value          update in place\n"
        "     value: a -> b\n"
        ":  group    OS::Heat::ResourceGroup  wait             for batch 2 of 3\n\n"
        "signs: + made or adopted, ~ changed in place, - deleted, : waits\n"
        "1 to create, 2 to update in place, 1 to delete."
    )


def test_members_and_batches_are_not_the_business_of_the_stack_above() -> None:
    more = "\n  n: {type: OS::Heat::Value, properties: {value: %s}}\n"
    value, pace = "{get_attr: [n, value]}", "{rolling_update: {max_batch_size: 1}}"
    made = foresight.plan(
        group(2, value, pace, more=more % 1), group(2, value, pace, more=more % 2)
    )
    assert any(key.phase == BATCH for key in made.actions)
    assert set(made.own().edges()) == {(Key("group", MAKE), Key("n", MAKE))}


def test_pauses_are_told_to_who_walks() -> None:
    made = foresight.plan(rolling(2, "a", 1, 0, 30), rolling(2, "b", 1, 0, 30))
    (wait,) = [action for _, action in made if action.verb is Verb.WAIT]
    assert (wait.pause_s, wait.reason) == (30, "30 s after batch 1 of 2")
    entries = document.of_templates(made)["steps"]
    assert [each["pause_s"] for each in entries if each["action"] == "wait"] == [30]


def test_pauses_that_do_not_fit_are_refused() -> None:
    old, new = rolling(3, "a", 1, 0, 1800), rolling(3, "b", 1, 0, 1800)
    with pytest.raises(errors.StackValidationFailed, match="in 3 batches") as told_why:
        foresight.plan(old, new)
    assert told_why.value.path == ("resources", "group")


def test_only_a_changed_definition_goes_batch_by_batch() -> None:
    made = foresight.plan(rolling(2, "a", 1, 0), rolling(4, "a", 1, 0))
    assert not [key for key in made.graph.order() if key.phase == BATCH]


def test_replaced_members_lose_their_old_one_in_the_same_batch() -> None:
    old, new = (
        rolling(2, "a", 1, 0),
        group(2, "a", "{rolling_update: {max_batch_size: 1}}", "OS::Heat::TestResource"),
    )
    made = foresight.plan(old, new)
    assert Key("group/1", CLEAN) in made.requires(Key("group", BATCH, "1"))
    lines = [line for line in told(made) if "group/" in line]
    assert lines == [
        "make group/1: replace",
        "clean group/1: delete",
        "make group/0: replace",
        "clean group/0: delete",
    ]


COMPOSED = {
    "a group": "type: OS::Heat::ResourceGroup, properties: {count: 2, resource_def: {type: V}}",
    "a chain": "type: OS::Heat::ResourceChain, properties: {resources: [V, V]}",
}


@pytest.mark.parametrize("body", COMPOSED.values(), ids=COMPOSED)
@pytest.mark.parametrize(
    ("more", "action"), [("external_id: x, ", Action.ADOPT), ("", Action.CREATE)]
)
def test_what_never_had_values_of_its_own_is_planned_all_the_same(body, more, action):
    """One that was taken over, or whose creation failed before its values were known."""
    both = [
        resources(f"  a: {{{more}{body.replace('V', f'OS::Heat::{kind}')}}}\n") for kind in KINDS
    ]
    record = StoredResource(
        name="a", type=both[0].definitions["a"].type, uuid="0" * 32, action=action
    )
    for old, new in itertools.product(both, both):
        found = foresight.plan(old, new, {"a": record})
        assert found.actions
        assert not more or {key.name for key, _ in found} == {"a"}
    assert foresight.delete(both[0], {"a": record}).actions


KINDS = ("None", "TestResource")


# --------------------------------------------------------------------------- how often it is asked

COUNTED = """
heat_template_version: 2021-04-16
parameters: {n: {type: number}}
resources:
  group:
    type: OS::Heat::ResourceGroup
    properties: {count: {get_param: n}, resource_def: {type: OS::Heat::None}}
"""


def test_a_count_is_resolved_once_for_each_template(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    parameter = View.parameter

    def counted(view: View, name: str) -> Any:
        asked.append(name)
        return parameter(view, name)

    monkeypatch.setattr(View, "parameter", counted)

    def times(work: Callable[[], object]) -> int:
        asked.clear()
        work()
        return asked.count("n")

    old, new = (stack(COUNTED, sound=False, n=number) for number in (2, 3))
    assert times(lambda: validate(old)) == times(lambda: validate(new)) == 1
    assert times(lambda: foresight.create(old)) == times(lambda: foresight.delete(old)) == 1
    assert times(lambda: foresight.plan(old, new)) == times(lambda: foresight.plan(old, old)) == 2


def test_members_that_wait_for_a_value_that_stays_are_planned_from_rows_too() -> None:
    made = resources(
        """
  a: {type: OS::Heat::Value, properties: {value: 1}}
  group:
    type: OS::Heat::ResourceGroup
    properties:
      resource_def: {type: OS::Heat::Value, properties: {value: {get_attr: [a, value]}}}
"""
    )
    values = {
        "a": {"value": 1, "type": None},
        "group": {
            "count": 1,
            "index_var": "%index%",
            "resource_def": {"type": "OS::Heat::Value", "properties": {"value": 1}},
            "removal_policies": [],
            "removal_policies_mode": "append",
        },
    }
    rows = {
        name: StoredResource(
            name=name,
            type=made.definitions[name].type,
            uuid="0" * 32,
            action=Action.CREATE,
            properties=properties,
        )
        for name, properties in values.items()
    }
    assert foresight.plan(made, made, rows).changes == {}


def machines(count: int, image: str) -> Stack:
    member = f"{{selector: {{resource_class: bm}}, image: {{source: {image}}}}}"
    return resources(f"""
  web:
    type: OS::Ironic::InstanceGroup
    properties: {{count: {count}, member: {member}}}
""")


def test_a_group_of_machines_is_done_when_the_last_batch_has_settled() -> None:
    made = foresight.plan(machines(2, "a"), machines(2, "b"))
    assert [made.actions[Key("web", BATCH, number)].pause_s for number in "12"] == [60, 60]
    assert Key("web", BATCH, "2") in made.requires(Key("web", MAKE))
    assert Key("web", BATCH, "1") not in foresight.plan(machines(2, "a"), machines(4, "a")).actions


def test_a_group_of_machines_that_shrinks_says_which_count_is_passed() -> None:
    made = foresight.plan(machines(3, "a"), machines(2, "a"))
    assert made.actions[Key("web/2", CLEAN)].reason == "beyond the new count of 2"
