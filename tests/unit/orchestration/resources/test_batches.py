"""The arithmetic of rolling batches, and what one batch does to the members."""

from __future__ import annotations

import itertools

import pytest

from bloomery import errors
from bloomery.orchestration.resources import batches, groups
from bloomery.orchestration.resources.resource_group import after_batch

# target, current, most at a time, floor: (size after the batch, members that change in it)
VECTORS = [
    ((3, 3, 1, 0), [(3, 1), (3, 1), (3, 1)]),
    ((3, 3, 1, 3), [(4, 1), (4, 1), (4, 1), (4, 1), (3, 0)]),
    ((5, 3, 2, 0), [(5, 2), (5, 2), (5, 1)]),
    ((2, 5, 2, 0), [(2, 2)]),
    ((4, 4, 2, 3), [(5, 2), (5, 2), (4, 1)]),
    ((10, 0, 4, 0), [(4, 4), (8, 4), (10, 2)]),
    ((3, 3, 5, 2), [(5, 3), (4, 2), (3, 0)]),
    ((0, 3, 1, 0), [(0, 0)]),
    ((0, 0, 1, 0), []),
]


@pytest.mark.parametrize(("asked", "steps"), VECTORS)
def test_batches_go_in_the_steps_of_the_table(asked, steps):
    target, current, most, floor = asked
    found = batches.resize_steps(target=target, current=current, most=most, floor=floor)
    assert list(found) == steps


SMALL = list(itertools.product(range(6), range(6), range(1, 4), range(4)))


def test_every_small_group_ends_at_its_target_with_all_members_new():
    for target, current, most, floor in SMALL:
        steps = list(batches.resize_steps(target=target, current=current, most=most, floor=floor))
        members = {name: {"type": "old"} for name in groups.names(current)}
        for step in steps:
            wanted = groups.names(step.size)
            before = members
            members = after_batch(members, step, wanted, target, lambda _: {"type": "new"})
            changed = [n for n in members if members[n] != before.get(n)]
            assert len(changed) <= most
            if step != steps[-1]:
                left_alone = [n for n in members if members[n] == before.get(n)]
                assert len(left_alone) >= min(floor, target, current) - most
        assert members == {key: {"type": "new"} for key in groups.names(target)}, (target, current)


@pytest.mark.parametrize("skip", [{"0"}, {"1"}, {"0", "1"}, {"0", "1", "2"}, {"7"}])
def test_a_group_with_removed_names_ends_at_its_target_too(skip):
    for most, floor in itertools.product(range(1, 4), range(4)):
        members = {name: {"type": "old"} for name in groups.names(3)}
        current = len(members.keys() - skip)
        for step in batches.resize_steps(target=3, current=current, most=most, floor=floor):
            wanted = groups.names(step.size, skip)
            before = members
            members = after_batch(members, step, wanted, 3, lambda _: {"type": "new"})
            assert sum(members[name] != before.get(name) for name in members) <= most
        assert members == {key: {"type": "new"} for key in groups.names(3, skip)}, (most, floor)


def test_members_change_from_the_highest_index_down_after_the_removed_ones():
    """As Heat did it: count 3, floor 3, one at a time, member 1 removed and value changed."""
    members = {name: {"value": f"a{name}"} for name in "012"}
    seen = []
    for step in batches.resize_steps(target=3, current=2, most=1, floor=3):
        wanted = groups.names(step.size, {"1"})
        members = after_batch(members, step, wanted, 3, lambda name: {"value": f"b{name}"})
        seen.append(" ".join(member["value"] for member in members.values()))
    assert seen == ["a0 a2 b3", "a0 a2 b3 b4", "a0 b2 b3 b4", "b0 b2 b3 b4", "b0 b2 b3"]


@pytest.mark.parametrize(
    ("count", "pause_s", "timeout_s", "each_s"),
    [(1, 100, 60, 60), (3, 10, 100, 120), (3, 10, 80, 60), (4, 0, 3600, 3600), (0, 9, 90, 120)],
)
def test_each_update_gets_what_the_pauses_leave_in_whole_minutes(count, pause_s, timeout_s, each_s):
    assert batches.time_of_each(count, pause_s=pause_s, timeout_s=timeout_s) == each_s


def test_pauses_that_fill_the_whole_time_of_the_stack_are_refused():
    with pytest.raises(errors.StackValidationFailed, match="raise max_batch_size"):
        batches.time_of_each(3, pause_s=30, timeout_s=60)
