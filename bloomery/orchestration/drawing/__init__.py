"""Stacks as pictures: DOT for Graphviz, and SVG that needs no other program.

A picture is made of boxes; a box with others inside is a cluster, as a nested stack is.  Edges name
who requires whom, across clusters as well::

    web = Box(key="web", name="web", kind="OS::Heat::Value", status="CREATE_COMPLETE")
    rack = Box(key="rack", name="rack", kind="rack.yaml", inside=[Box(key="rack/a", name="a")])
    picture = Picture(title="shop", boxes=[web, rack], edges=[("web", "rack/a")])
    svg.drawn(picture), dot.written(picture)

What is required stands left of what requires it.  The same picture is always drawn alike, to the
byte, and whatever a name holds, the text stays well-formed.

picture  what is drawn
style    colours, and names as they may be written: escaped, measured, shortened
layers   a column for each box, an order within the columns
places   where in its column each box stands
levels   one cluster arranged: columns, places, the way of each edge
layout   all clusters, from the innermost out
svg      the picture as SVG
dot      the picture as DOT
"""

from __future__ import annotations

from bloomery.orchestration.drawing.picture import Box, Picture

__all__ = ["Box", "Picture"]
