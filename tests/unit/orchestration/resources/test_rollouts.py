"""Who changes next in a roll-out: arithmetic of members and pace."""

from __future__ import annotations

import itertools
import random

import pytest

from bloomery.orchestration import simulation
from bloomery.orchestration.resources import batches, rollouts
from bloomery.orchestration.resources.rollouts import Member, Pace, RolloutOrder
from tests.kit.stacks.simulations import stack


def members(text: str) -> list[Member]:
    """Members by letter: o old, n new; capital: not ready."""
    return [
        Member(name=str(number), is_current=letter in "nN", is_ready=letter.islower(),
               since=str(9 - number))
        for number, letter in enumerate(text)
    ]  # fmt: skip


def pace(**fields) -> Pace:
    return Pace(create_batch_size=10, **fields)


@pytest.mark.parametrize(
    ("text", "fields", "batch"),
    [
        ("oooo", {}, ["3"]),
        ("oooo", {"order": RolloutOrder.INDEX_ASC}, ["0"]),
        ("oooo", {"order": RolloutOrder.OLDEST}, ["3"]),
        ("oooo", {"batch_size": 3}, ["3"]),
        ("oooo", {"batch_size": 3, "max_unavailable": 2}, ["3", "2"]),
        ("oooN", {}, []),
        ("oOoN", {}, ["1"]),
        ("oOoo", {"batch_size": 2}, ["1"]),
        ("Oooo", {"order": RolloutOrder.UNHEALTHY_FIRST}, ["0"]),
        ("oooo", {"max_unavailable": 0, "max_surge": 1}, []),
        ("oooon", {"max_unavailable": 0, "max_surge": 1}, ["3"]),
        ("nnnn", {}, []),
    ],
)
def test_a_batch_takes_no_more_down_than_may_be(text, fields, batch) -> None:
    assert rollouts.next_batch(members(text), pace(**fields), 4, is_canary=False) == batch


def test_the_canary_has_a_size_of_its_own() -> None:
    speed = pace(batch_size=4, max_unavailable=4, canary=2)
    assert len(rollouts.next_batch(members("oooo"), speed, 4, is_canary=True)) == 2
    assert len(rollouts.next_batch(members("oooo"), speed, 4, is_canary=False)) == 4


def told(speed: Pace, text: str, **more) -> list[str]:
    """What is to be expected, in short: who changes, who leaves, and the wait behind."""
    names = [str(number) for number in range(len(text))]
    steps = rollouts.rollout_steps(members(text), speed, **{"names": names} | more)
    return [f"{''.join(step.changed)}-{''.join(step.deleted)} {step.wait_s:g}" for step in steps]


@pytest.mark.parametrize(
    ("text", "fields", "more", "steps"),
    [
        ("ooo", {"pause_s": 5}, {}, ["2- 5", "1- 5", "0- 0"]),
        ("ono", {"settle_s": 9}, {}, ["2- 9", "0- 9"]),
        ("oNo", {}, {}, []),
        ("oOo", {"batch_size": 2}, {}, ["1- 0", "2- 0", "0- 0"]),
        ("oooo", {"batch_size": 3, "max_unavailable": 3, "canary": 1, "soak_s": 60}, {},
         ["3- 60", "210- 0"]),
        ("oo", {"max_unavailable": 0, "max_surge": 1}, {"surge_names": ["0", "1", "2"]},
         ["2- 0", "1- 0", "0- 0", "-2 0"]),
        ("", {"pause_s": 5}, {"names": ["0", "1", "2"]}, ["01- 5", "2- 0"]),
        ("nn", {}, {"names": ["0"], "leaving": ["7"]}, ["-71 0"]),
    ],
)  # fmt: skip
def test_batches_are_told_before_they_begin(text, fields, more, steps) -> None:
    size = 10 if text else 2
    assert told(Pace(create_batch_size=size, **fields), text, **more) == steps


def test_who_waits_for_a_signal_is_told() -> None:
    speed = pace(canary=1, requires_signal=True)
    names = ["0", "1"]
    first, second = rollouts.rollout_steps(members("oo"), speed, names=names)
    assert (first.is_canary, first.waits_for_signal) == (True, True)
    assert (second.is_canary, second.waits_for_signal) == (False, False)


@pytest.mark.parametrize(
    ("value", "count", "up", "number"),
    [("25%", 10, False, 2), ("25%", 10, True, 3), ("3", 10, False, 3), (2, 10, True, 2)],
)
def test_shares_of_a_group(value, count, up, number) -> None:
    assert rollouts.share(value, count, up=up) == number


def test_any_group_comes_to_its_end_and_never_has_too_many_down() -> None:
    draw = random.Random(4)
    for count, order in itertools.product(range(1, 9), RolloutOrder):
        speed = pace(
            batch_size=draw.randint(1, 4), max_unavailable=draw.randint(1, 4), order=order,
            canary=draw.randint(0, 2),
        )  # fmt: skip
        old = {str(number) for number in range(count)}
        while old:
            group = [
                Member(name=str(n), is_current=str(n) not in old, is_ready=True)
                for n in range(count)
            ]
            batch = rollouts.next_batch(group, speed, count, is_canary=len(old) == count)
            assert 0 < len(batch) <= speed.max_unavailable
            assert old.issuperset(batch)
            old -= set(batch)


def test_the_last_ones_leave_first() -> None:
    assert batches.surplus(["0", "1", "2", "10"], ["0", "1"], most=1) == ["10"]
    assert batches.surplus(["0", "1"], ["0", "1"], most=5) == []


@pytest.mark.parametrize(
    ("properties", "policy", "text"),
    [
        ('member_overrides: {"0": x}', "{}", "cannot override properties with 'x': give a map"),
        ("min_ready: 120%", "{}", "3 members are to be ready, and there are 2; lower min_ready"),
        ("min_ready: 3", "{}", "3 members are to be ready, and there are 2; lower min_ready"),
        ("name: x", "{}", "Unknown Property name"),
        ("index_var: '%i%'", "{rolling_update: {max_unavailable: 0, max_surge: 0%}}", "both 0"),
        ("index_var: '%i%'", "{rolling_update: {window: {days: [caturday]}}}", "caturday"),
        ("index_var: '%i%'", "{rolling_update: {window: {begin: '25:00'}}}", "25:00"),
        ("index_var: '%i%'", "{rolling_update: {window: {time_zone: Mars/Olympus}}}", "time zone"),
        ("index_var: '%i%'", "{rolling_update: {window: {cron: x, length: 60}}}", "cron"),
        ("index_var: '%i%'", "{rolling_update: {window: {cron: 0 0 30 2 *, length: 60}}}", "opens"),
    ],
)
def test_a_group_that_cannot_be_is_refused(properties, policy, text) -> None:
    member = "{selector: {resource_class: bm}, image: {source: http://images/a}}"
    group = f"""
resources:
  w:
    type: OS::Ironic::InstanceGroup
    update_policy: {policy}
    properties:
      count: 2
      member: {member}
      {properties}
"""
    result = simulation.run(stack(group))
    assert result.status is None
    assert text in result.error.message
