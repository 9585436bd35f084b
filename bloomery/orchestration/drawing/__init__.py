"""Stacks as pictures: DOT for Graphviz, and SVG that needs no other program.

A picture has boxes; a box with others inside is a cluster, such as a nested stack.  An edge joins a
box with a box that it requires, in the same cluster::

    web = Box(key="web", name="web", kind="OS::Heat::Value")
    rack = Box(key="rack", name="rack", kind="rack.yaml", inside=[Box(key="rack/a", name="a")])
    picture = Picture(title="shop", boxes=[web, rack], edges=[("web", "rack")])
    svg.drawn(picture), dot.written(picture)

A required box is left of the boxes that require it.  Equal pictures give equal bytes, and the text
is well-formed with any characters in names.

layers   the columns of boxes and of passing edges, also for the pages' graph
layout   boxes and edges, their places and routes
style    colours; names are escaped, measured and shortened
svg      the picture as SVG
dot      the picture as DOT
"""

from __future__ import annotations

from bloomery.orchestration.drawing.layout import Box, Picture

__all__ = ["Box", "Picture"]
