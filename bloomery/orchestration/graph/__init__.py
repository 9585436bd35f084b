"""Vertices and edges, and nothing of ours: order, frontiers, cycles."""
