"""Stages, machines at once, and how long a plan takes."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from bloomery.orchestration.foresight.document import document, of_templates
from bloomery.orchestration.foresight.schedule import Times, schedule_of
from bloomery.orchestration.graph import Graph
from bloomery.orchestration.plan.plans import MAKE, Action, Key, Plan, Verb
from bloomery.orchestration.resources.effects import Effect, Impact
from bloomery.orchestration.resources.windows import Window
from bloomery.orchestration.template.entries import ResourceDefinition
from tests.unit.orchestration.plan.kit import ref, row

REBUILD = Effect(impact=Impact.REBUILD, verbs=("rebuild",), loses_data=True)
TIMES = Times(median_s=600, p95_s=900, runs=40)


def plan_of(*edges: tuple[str, str | None], **actions: Action) -> Plan:
    graph = Graph((Key(a, MAKE), b and Key(b, MAKE)) for a, b in edges)
    return Plan(graph=graph, actions={Key(name, MAKE): each for name, each in actions.items()})


def action(verb: Verb = Verb.UPDATE, effect: Effect = REBUILD, **more) -> Action:
    return Action(verb=verb, type="T", effect=effect, **more)


def test_what_waits_for_nothing_is_done_at_once():
    plan = plan_of(("a", None), ("b", None), ("c", "a"), ("c", "b"), a=action(), b=action(),
                   c=action())  # fmt: skip
    schedule = schedule_of(plan, lambda key, action: TIMES)
    assert {step.key.name: step.stage for step in schedule.steps} == {"a": 1, "b": 1, "c": 2}
    assert (schedule.at_once, schedule.times) == (2, Times(median_s=1200, p95_s=1800, runs=40))


def test_an_end_and_a_beginning_of_the_same_moment_do_not_overlap():
    plan = plan_of(("a", None), ("b", "a"), a=action(), b=action())
    assert schedule_of(plan, lambda key, action: TIMES).at_once == 1


def test_what_nobody_knows_is_not_guessed():
    plan = plan_of(("a", None), ("b", None), ("c", "b"), a=action(), b=action(), c=action())
    known = {"a": TIMES, "b": TIMES}
    schedule = schedule_of(plan, lambda key, action: known.get(key.name))
    assert (schedule.times, schedule.at_once) == (None, 2)  # by stages


def test_pauses_count_and_no_op_vertices_and_what_stays_do_not():
    wait = Action(verb=Verb.WAIT, type="T", pause_s=30)
    edges = [("stays", None), ("join", "stays"), ("a", "join"), ("pause", "a"), ("b", "pause")]
    stays = action(Verb.UNCHANGED)
    plan = plan_of(*edges, stays=stays, a=action(), pause=wait, b=action())
    schedule = schedule_of(plan, lambda key, action: TIMES)
    assert [step.key.name for step in schedule.steps] == ["a", "pause", "b"]
    assert schedule.times == Times(median_s=1230, p95_s=1830, runs=40)


@pytest.mark.parametrize(
    ("now", "times", "begins", "ends", "opens"),
    [
        # each takes 10 min, and the window is open for 15 min
        ("20:00", TIMES, "05T22:00", "05T22:20", ["Sat 2026-12-05 22:00", None]),
        ("22:01", TIMES, "05T22:01", "05T22:21", [None, None]),
        ("22:06", TIMES, "05T22:06", "06T22:10", [None, "Sun 2026-12-06 22:00"]),
        ("20:00", None, "05T22:00", None, ["Sat 2026-12-05 22:00", None]),
    ],
)
def test_what_waits_for_a_window_says_when_it_begins_and_ends(now, times, begins, ends, opens):
    window = Window.of({"begin": "22:00", "end": "22:15", "time_zone": "Europe/Berlin"})
    plan = plan_of(("a", None), ("b", "a"), a=action(window=window), b=action(window=window))
    at_s = datetime.fromisoformat(f"2026-12-05T{now}+01:00").timestamp()
    laid_out = schedule_of(plan, lambda key, action: times, at_s)
    told = document(plan, laid_out, {}, {}, {})
    assert told["begins_at"] == f"2026-12-{begins}+01:00"
    assert told["ends_at"] == (ends and f"2026-12-{ends}+01:00")
    assert [step["reason"] for step in told["steps"]] == [
        f"waits for its window, from {each} CET" if each else "" for each in opens
    ]


def test_what_has_no_window_says_no_time_and_templates_alone_have_none():
    window = Window.of({"begin": "22:00"})
    for each, now in ((action(), 0.0), (action(window=window), None)):
        told = document(plan := plan_of(("a", None), a=each),
                        schedule_of(plan, lambda key, action: TIMES, now), {}, {}, {})  # fmt: skip
        assert (told["begins_at"], told["ends_at"]) == (None, None)


def test_a_step_says_what_it_does_and_what_is_lost():
    plan = plan_of(("a", None), a=action(reason="image"))
    laid_out = schedule_of(plan, lambda key, action: TIMES)
    told = document(plan, laid_out, {Key("a", MAKE): "node-1"}, {}, {})
    [step] = told["steps"]
    assert (step["action"], step["machine"], step["verbs"]) == ("rebuild", "node-1", ["rebuild"])
    assert step["takes"] == {"median_s": 600, "p95_s": 900, "runs": 40}
    assert (told["summary"], told["loses_data"]) == ({"rebuild": 1}, ["a"])


def test_a_step_is_certain_where_action_and_effect_are():
    doubted = replace(REBUILD, certain=False)
    for each, certain in (
        (action(), True), (action(certain=False), False), (action(effect=doubted), False)
    ):  # fmt: skip
        [step] = schedule_of(plan_of(("a", None), a=each), lambda key, action: None).steps
        assert step.is_certain is certain


def test_who_works_at_the_machine_of_another_counts_no_machine():
    setup = Effect(verbs=("clean",))
    plan = plan_of(
        ("node", None), ("settings", "node"), ("web", "settings"), ("else", None),
        node=named(), settings=named(setup, node=ref("node")),
        web=named(instance=ref("settings")), **{"else": named(setup)},
    )  # fmt: skip
    summed = of_templates(plan)
    assert (summed["machines"], summed["machines_at_once"]) == (2, 2)


def test_machines_that_are_there_are_told_apart_by_their_nodes():
    plan = plan_of(("a", None), ("b", None), a=named(), b=named())
    schedule = schedule_of(plan, lambda key, action: None)
    both = dict.fromkeys([Key("a", MAKE), Key("b", MAKE)], "node-1")
    assert (
        document(plan, schedule, both, {}, {})["machines"]
        == document(plan, schedule, both, {}, {})["machines_at_once"]
        == 1
    )
    assert of_templates(plan)["machines"] == 2


@pytest.mark.parametrize(
    ("state", "physical_id", "steps"),
    [
        ("CREATE_FAILED", None, []),
        ("CREATE_FAILED", "node-1", ["web"]),
        ("CREATE_COMPLETE", None, ["web"]),  # many kinds have no id
        ("INIT_COMPLETE", None, []),
    ],
)
def test_what_was_never_made_is_not_deleted(state, physical_id, steps):
    record = row("web", state=state)
    record.physical_id = physical_id
    plan = plan_of(("web", None), web=Action(verb=Verb.DELETE, type="T", record=record))
    schedule = schedule_of(plan, lambda key, action: None)
    assert [step.key.name for step in schedule.steps] == steps
    assert of_templates(plan)["summary"] == ({"delete": 1} if steps else {})


def test_a_member_works_at_the_machine_of_its_own_stack():
    plan = plan_of(
        ("pool/node", None), ("pool/web", "pool/node"), ("node", None),
        **{"pool/node": named(), "pool/web": named(node=ref("node")), "node": named()},
    )  # fmt: skip
    assert of_templates(plan)["machines"] == 2


def named(effect: Effect = REBUILD, **properties) -> Action:
    definition = ResourceDefinition(name="x", type="T", properties=properties)
    return action(Verb.CREATE, effect, definition=definition)
