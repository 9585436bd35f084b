"""A plan while it is built: what each transform has added and taken away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import NamedTuple

from bloomery.orchestration.plan import build
from bloomery.orchestration.plan.actions import Key
from bloomery.orchestration.plan.builder import PlanBuilder


class Step(NamedTuple):
    """One transform; each line of the builder is a vertex, its action and what it requires."""

    name: str
    says: str
    before: list[str]
    after: list[str]

    @property
    def added(self) -> list[str]:
        return [line for line in self.after if line not in set(self.before)]

    @property
    def taken(self) -> list[str]:
        return [line for line in self.before if line not in set(self.after)]


def steps(builder: PlanBuilder, transforms: Iterable[ModuleType] = build.STEPS) -> Iterator[Step]:
    """Apply each transform and yield the builder before and after it."""
    before = lines(builder)
    for transform in transforms:
        transform.apply(builder)
        after = lines(builder)
        says = (transform.__doc__ or "").partition("\n")[0]
        yield Step(transform.__name__.rpartition(".")[2], says, before, after)
        before = after


def text(builder: PlanBuilder, transforms: Iterable[ModuleType] = build.STEPS) -> str:
    """Return the whole build for people: under each transform what it has changed."""
    told: list[str] = []
    for step in steps(builder, transforms):
        told.append(f"{step.name}: {step.says}")
        told += [f"  - {line}" for line in step.taken]
        told += [f"  + {line}" for line in step.added]
    return "\n".join([*told, ""])


def lines(builder: PlanBuilder) -> list[str]:
    """Return the builder as text: ``make web: update <- make db``."""
    return [_line(builder, key) for key in builder.graph.keys()]  # noqa: SIM118  # asks no order


def _line(builder: PlanBuilder, key: Key) -> str:
    action = builder.actions.get(key)
    verb = f": {action.verb}" if action else ""
    needs = ", ".join(sorted(str(need) for need in builder.graph.requires(key)))
    return f"{key}{verb}{' <- ' if needs else ''}{needs}"
