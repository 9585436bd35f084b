"""Build the graph of a traversal with a table of transforms, applied in order.

The traversal decides at each vertex, when values are known.  ``foresight`` compares beforehand, and
adds parts that only previews show: members of groups, effects on machines, outputs.
"""

from __future__ import annotations

from typing import Final

from bloomery.orchestration.plan.builder import ExistingStack, PlanBuilder, Transform
from bloomery.orchestration.plan.plans import Plan
from bloomery.orchestration.plan.transforms import edges, vertices
from bloomery.orchestration.stack.template_side import TemplateSide

TRANSFORMS: Final[tuple[Transform, ...]] = (
    vertices.take_rows,
    vertices.add_resources,
    edges.order_creation,
    vertices.expect_changes,
    vertices.add_ends,
    vertices.keep_retained,
    edges.order_deletion,
    edges.drop_noop_vertices,
)


def traversal(
    old: TemplateSide, new: TemplateSide, existing: ExistingStack, *, rollback: bool = False
) -> Plan:
    """Return the plan for the engine: without members, effects, differences and outputs."""
    return PlanBuilder(
        old=old, new=new, existing=existing, rollback=rollback, transforms=TRANSFORMS
    ).build()
