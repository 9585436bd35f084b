"""How the graph of a traversal is built: a table of transforms, one after the other.

A traversal decides again at each vertex, when values are there.  What previews show besides, such
as members of groups, effects on machines and outputs, is added by ``foresight``.
"""

from __future__ import annotations

from typing import Final

from bloomery.orchestration.plan.builder import PlanBuilder, Present, Transform
from bloomery.orchestration.plan.plans import Plan
from bloomery.orchestration.plan.template_side import TemplateSide
from bloomery.orchestration.plan.transforms import edges, vertices

TRANSFORMS: Final[tuple[Transform, ...]] = (
    vertices.choose_rows,
    vertices.add_resources,
    edges.order_creation,
    vertices.compare,
    vertices.add_ends,
    vertices.keep_retained,
    edges.order_deletion,
    edges.drop_noop_vertices,
)


def traversal(
    old: TemplateSide, new: TemplateSide, present: Present, *, rollback: bool = False
) -> Plan:
    """Return what an engine walks: without members, effects, differences and outputs."""
    return PlanBuilder(
        old=old, new=new, present=present, rollback=rollback, transforms=TRANSFORMS
    ).build()
