"""A graph of dependencies: its vertices and edges, their order, and cycles.

A key is anything hashable; an edge is a pair (requirer, required).  Results keep the order of
insertion, so that the same input is always walked, printed and drawn alike.  No function recurses
or reads an edge twice: ten thousand keys are an ordinary graph::

    needs = Graph([("server", "port"), ("port", "net"), ("volume", None)])
    list(needs)  # ["net", "volume", "port", "server"]: what is required comes first
    list(needs.reverse())  # the order of deletion

This package imports nothing else of Bloomery, and defines its own error.
"""

from __future__ import annotations

from bloomery.orchestration.graph.dependencies import Graph
from bloomery.orchestration.graph.walk import Cycle, Walk

__all__ = ["Cycle", "Graph", "Walk"]
