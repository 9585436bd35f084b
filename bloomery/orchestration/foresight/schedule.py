"""The schedule of a plan: its steps in order, machines at once, and durations.

    schedule = schedule_of(plan, lambda key, action: Times(median_s=600, p95_s=900, runs=40))
    schedule.steps[0].verb      # "rebuild"
    schedule.at_once            # 3
    schedule.times              # of all steps; None: the duration of a step is not known
    schedule.begins_at          # of steps that wait for a window; None: nothing waits for one

Steps of one stage may run at the same time.  The stage of a step is one more than the highest stage
of the steps that it waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from bloomery.orchestration.plan.plans import MAKE, Action, Key, Plan, Verb
from bloomery.orchestration.resources.states import Status
from bloomery.orchestration.template.functions.base import Function
from bloomery.orchestration.template.functions.references import GetParam

VERBS: Final[Mapping[Verb, str]] = {
    Verb.CREATE: "create",
    Verb.RECREATE: "create",
    Verb.ADOPT: "adopt",
    Verb.REPLACE: "replace",
    Verb.REFUSE: "refuse",
    Verb.TAKE_BACK: "take back",
    Verb.DELETE: "delete",
    Verb.KEEP: "keep",
    Verb.WAIT: "wait",
}  # of an update: the impact of its effect
MACHINE_NAMING: Final = ("node", "instance", "allocation")  # properties that name a machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """The median and 95th percentile of the durations of earlier runs, in seconds."""

    median_s: float
    p95_s: float
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An action in the schedule; ``times`` None: it uses no machine, or no duration is known.

    ``works_at``: the resource that has the machine; the step's own resource if it names no other.
    ``node``: UUID or name of the node, where the template has it.  ``opens_at``: the beginning of
    the window that the step is expected to wait for, None where it waits for none.
    """

    key: Key
    works_at: Key
    node: str | None
    action: Action
    stage: int
    times: Times | None
    opens_at: datetime | None = None

    @property
    def verb(self) -> str:
        return VERBS.get(self.action.forecast) or str(self.action.effect.impact)

    @property
    def is_certain(self) -> bool:
        return self.action.certain and self.action.effect.certain


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """``at_once``: the most machines that are in work at the same time.

    ``begins_at``, ``ends_at``: of a plan with windows, by the median; None: it is not known.
    """

    steps: Sequence[Step]
    at_once: int
    times: Times | None
    begins_at: datetime | None = None
    ends_at: datetime | None = None


TimesOf = Callable[[Key, Action], Times | None]


def schedule_of(plan: Plan, times_of: TimesOf, now: float | None = None) -> Schedule:
    """Return the schedule of a plan that begins at ``now``, None where windows do not count."""
    stages: dict[Key, int] = {}
    ends: dict[Key, tuple[float, float]] = {}  # by the median and by the 95th percentile
    spans: list[tuple[float, float, int]] = []  # of work at machines
    steps, knows_all = list[Step](), True
    beginnings = list[datetime]()  # of steps with a window, in its time zone
    for key in plan.graph.order():
        needs, action = plan.requires(key), plan.actions.get(key)
        stage = max((stages[need] for need in needs), default=0)
        median_s = max((ends[need][0] for need in needs), default=0.0)
        p95_s = max((ends[need][1] for need in needs), default=0.0)
        if action is not None and not _does_nothing(action):
            stage += 1
            times, opens_at = times_of(key, action) if action.effect.verbs else None, None
            if now is not None and action.window is not None and (knows_all or not beginnings):
                waits_s = action.window.wait_s(now + median_s)
                median_s += waits_s
                p95_s += action.window.wait_s(now + p95_s)
                beginnings.append(datetime.fromtimestamp(now + median_s, action.window.zone))
                opens_at = beginnings[-1] if waits_s else None
            began_s = median_s
            median_s += times.median_s if times else action.pause_s
            p95_s += times.p95_s if times else action.pause_s
            place = _works_at(plan, key)
            node = plan.actions[place].effect.node
            step = Step(
                key=key, works_at=place, node=node, action=action, stage=stage, times=times,
                opens_at=opens_at,
            )  # fmt: skip
            steps.append(step)
            if action.effect.verbs:
                spans.append((began_s, median_s, stage))
                knows_all = knows_all and times is not None
        stages[key], ends[key] = stage, (median_s, p95_s)
    if not knows_all:
        spans = [(stage, stage + 1, stage) for _, _, stage in spans]
    moments = [(begin, 1) for begin, _, _ in spans] + [(end, -1) for _, end, _ in spans]
    at_once = working = 0
    for _, change in sorted(moments):  # an end comes before a beginning of the same moment
        working += change
        at_once = max(at_once, working)
    runs, whole = [step.times.runs for step in steps if step.times is not None], None
    begins_at, ends_at = min(beginnings, default=None), None
    if knows_all and runs:
        medians, lates = zip(*ends.values(), strict=True)
        whole = Times(median_s=round(max(medians), 3), p95_s=round(max(lates), 3), runs=min(runs))
        if now is not None and begins_at is not None:
            ends_at = datetime.fromtimestamp(now + whole.median_s, begins_at.tzinfo)
    return Schedule(steps=steps, at_once=at_once, times=whole, begins_at=begins_at, ends_at=ends_at)


def _does_nothing(action: Action) -> bool:
    """Return whether nothing happens, or only the row of a failed creation is deleted."""
    record = action.record
    if action.verb is Verb.DELETE and record is not None:
        return record.has_no_object or (
            record.physical_id is None and record.status is Status.FAILED
        )
    return action.verb is Verb.UNCHANGED


def _works_at(plan: Plan, key: Key) -> Key:
    """Follow the names of a node, an instance or an allocation to the resource that names none."""
    parent_path, _, _ = key.name.rpartition("/")
    passed = {key}
    while True:
        action = plan.actions.get(key)
        tree = action.definition.properties if action and action.definition else None
        calls = [tree.get(name) for name in MACHINE_NAMING] if isinstance(tree, Mapping) else []
        names = (each.args for each in calls if isinstance(each, Function)
                 and not isinstance(each, GetParam))  # fmt: skip
        name = next((name for name in names if isinstance(name, str)), None)
        following = Key(f"{parent_path}/{name}" if parent_path else str(name), MAKE)
        if name is None or following not in plan.actions or following in passed:
            return key
        passed.add(following)
        key = following
