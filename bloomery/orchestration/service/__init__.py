"""Stacks in rows: what may be asked of them, and the engine that works on them.

engine_service  the engine of a process, started and stopped
locks           the lock of a tree; store: a tree in rows, loaded and written turn by turn
threads         its workers, and when they look at which stack
tree_work       one stack with all its nested ones, worked on under its lock
sweeper         stacks that nobody works on; liveness says which engines live
wakes           what happened elsewhere and is waited for
purge           what is old enough to go
"""
