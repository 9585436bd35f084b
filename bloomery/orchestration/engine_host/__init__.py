"""The host of the engine: it loads trees of stacks, works on them and writes them back.

engine_service  starts and stops the engine of a process
locks, store    the stack lock of a tree; its rows, loaded and written turn by turn
threads         worker threads, and when each tree is due
tree_work       the work on one root stack and its nested stacks under their lock
sweeper         finds stacks without a live engine; liveness says which engines are alive
wakes           wakes trees after events of objects that they wait for
purge           deletes old rows
"""
