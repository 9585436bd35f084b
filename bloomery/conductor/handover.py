"""Flows of a conductor that stops: at their next pause they are left to one that lives on.

A flow pauses between two steps, and between two turns of a step.  Those that wait for a call are
held by nobody and need no hand-over.  A conductor that nobody could follow ends its flows itself.
"""

from __future__ import annotations

from bloomery.conductor.task_manager import TaskManager


def has_heir(task: TaskManager) -> bool:
    """Is this conductor off line to stop, and does another one serve the task's node?"""
    runtime, node = task.runtime, task.node
    if not runtime.leaving.is_set():
        return False
    host = runtime.ring.find_host(driver=node.driver, group=node.conductor_group, uuid=node.uuid)
    return host not in (None, runtime.host)
