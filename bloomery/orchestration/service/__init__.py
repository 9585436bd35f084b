"""Stacks as rows: the lock of a tree, its store, and who works on it."""
