"""Vertices and edges: who needs whom, in which order, and where that goes round in circles.

A key is anything hashable; an edge is a pair (requirer, required).  Whatever has an order keeps
the one in which keys came in, so that the same input is always walked, printed and drawn alike.
Nothing here recurses or looks at an edge twice: ten thousand keys are an ordinary graph::

    needs = Graph([("server", "port"), ("port", "net"), ("volume", None)])
    list(needs)  # ["net", "volume", "port", "server"]: what is required comes first
    list(needs.reverse())  # the order of deletion

This room imports nothing of ours, its error included.
"""

from __future__ import annotations

from bloomery.orchestration.graph.dependencies import Graph
from bloomery.orchestration.graph.walk import Cycle, Walk

__all__ = ["Cycle", "Graph", "Walk"]
