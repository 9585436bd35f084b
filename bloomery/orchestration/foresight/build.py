"""Construction of the plan of a preview: the transforms of a traversal and further ones.

    plan(old, new, existing)      an update from one template to another
    create(new)                   a new stack
    delete(old, existing)         the deletion of a stack
    rollback(failed, previous, existing)   the rollback of a failed update

``explain`` shows step by step what each transform adds and removes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

from bloomery.orchestration.foresight import capacity, effects, foreseen, members
from bloomery.orchestration.plan import transforms, tree_diff
from bloomery.orchestration.plan.builder import ExistingStack, PlanBuilder, Transform
from bloomery.orchestration.plan.plans import Plan
from bloomery.orchestration.resources.base import ResourceState
from bloomery.orchestration.stack.template_side import NOTHING, TemplateSide

Existing: TypeAlias = ExistingStack | Mapping[str, ResourceState] | None
TRANSFORMS: Final[tuple[Transform, ...]] = (
    *(
        foreseen.compare if each is transforms.expect_changes else each
        for each in transforms.TRANSFORMS
    ),
    foreseen.warn_of_open_actions,
    effects.set_effects,
    members.add_members,
    members.batch_members,
    capacity.check_capacity,
)


def plan(old: TemplateSide, new: TemplateSide, existing: Existing = None) -> Plan:
    """Return the plan of an update; without ``existing``, all resources of ``old`` exist."""
    builder = begin(old, new, existing)
    return replace(
        builder.build(),
        outputs=tree_diff.output_changes(builder),
        differs=tree_diff.differs(builder),
    )


def create(new: TemplateSide, existing: Existing = None) -> Plan:
    return begin(NOTHING, new, existing or {}).build()


def delete(old: TemplateSide, existing: Existing = None) -> Plan:
    return begin(old, NOTHING, existing).build()


def rollback(
    failed: TemplateSide, previous: TemplateSide | None, existing: Existing = None
) -> Plan:
    """Return the plan of a rollback from ``failed``; ``previous`` None: of a failed create."""
    return begin(failed, previous or NOTHING, existing, rollback=True).build()


def begin(
    old: TemplateSide, new: TemplateSide, existing: Existing, *, rollback: bool = False
) -> PlanBuilder:
    existing = existing if isinstance(existing, ExistingStack) else ExistingStack(records=existing)
    return PlanBuilder(
        old=old, new=new, existing=existing, rollback=rollback, transforms=TRANSFORMS
    )


# --------------------------------------------------------------------------------- step by step


class Step(NamedTuple):
    """The graph before and after a transform; a line is a vertex, its action and requirements."""

    name: str
    summary: str
    before: list[str]
    after: list[str]

    @property
    def added(self) -> list[str]:
        return [line for line in self.after if line not in set(self.before)]

    @property
    def removed(self) -> list[str]:
        return [line for line in self.before if line not in set(self.after)]


def explain(builder: PlanBuilder) -> Iterator[Step]:
    """Apply each transform and yield the graph before and after it."""
    before = _lines(builder)
    for transform in builder.transforms:
        transform(builder)
        after = _lines(builder)
        summary = (transform.__doc__ or "").partition("\n")[0]
        yield Step(transform.__name__, summary, before, after)
        before = after


def explanation(builder: PlanBuilder) -> str:
    lines: list[str] = []
    for step in explain(builder):
        lines.append(f"{step.name}: {step.summary}")
        lines += [f"  - {line}" for line in step.removed]
        lines += [f"  + {line}" for line in step.added]
    return "\n".join([*lines, ""])


def _lines(builder: PlanBuilder) -> list[str]:
    lines = []
    for key in builder.graph.keys():  # noqa: SIM118  # asks no order
        action = builder.actions.get(key)
        verb = f": {action.verb}" if action else ""
        needs = ", ".join(sorted(str(need) for need in builder.graph.requires(key)))
        lines.append(f"{key}{verb}{' <- ' if needs else ''}{needs}")
    return lines
