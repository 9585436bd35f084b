"""A plan in the making: what each transform has added and taken away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import NamedTuple

from bloomery.orchestration.plan import making
from bloomery.orchestration.plan.actions import Key
from bloomery.orchestration.plan.draft import Draft


class Step(NamedTuple):
    """One transform; each line of the draft is a vertex, its action and what it requires."""

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


def steps(begun: Draft, transforms: Iterable[ModuleType] = making.STEPS) -> Iterator[Step]:
    """Apply each transform and yield the draft before and after it."""
    before = lines(begun)
    for transform in transforms:
        transform.apply(begun)
        after = lines(begun)
        says = (transform.__doc__ or "").partition("\n")[0]
        yield Step(transform.__name__.rpartition(".")[2], says, before, after)
        before = after


def text(begun: Draft, transforms: Iterable[ModuleType] = making.STEPS) -> str:
    """Return the whole making for people: under each transform what it has changed."""
    told: list[str] = []
    for step in steps(begun, transforms):
        told.append(f"{step.name}: {step.says}")
        told += [f"  - {line}" for line in step.taken]
        told += [f"  + {line}" for line in step.added]
    return "\n".join([*told, ""])


def lines(begun: Draft) -> list[str]:
    """Return the draft as text: ``make web: update <- make db``."""
    return [_line(begun, key) for key in begun.graph.keys()]  # noqa: SIM118  # asks no order


def _line(begun: Draft, key: Key) -> str:
    action = begun.actions.get(key)
    verb = f": {action.verb}" if action else ""
    needs = ", ".join(sorted(str(need) for need in begun.graph.requires(key)))
    return f"{key}{verb}{' <- ' if needs else ''}{needs}"
