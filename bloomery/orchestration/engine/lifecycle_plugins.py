"""Plug-ins that are called before and after each action of each stack, as Heat calls them.

A package registers a class as an entry point in ``bloomery.lifecycle_plugins``, with
``do_pre_op``, ``do_post_op`` and optionally ``get_ordinal``.  An exception of ``do_pre_op`` fails
the action before it begins; the plug-ins called earlier then get ``do_post_op``.

The turn that begins or ends a traversal calls them before it is stored.  After a crash in between
they are called again, so that a plug-in must tolerate a repeated call.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from bloomery.model import stacks as model

LOG = logging.getLogger(__name__)

GROUP: Final = "bloomery.lifecycle_plugins"
ORDINAL: Final = 100  # the default; plug-ins with smaller ordinals are called first


class LifecyclePlugin(Protocol):
    """``context``: project and user of the stack.  ``stack``: as it is stored, begun or ended."""

    def do_pre_op(
        self,
        context: Mapping[str, Any],
        stack: model.Stack,
        current_stack: model.Stack | None = None,
        action: str | None = None,
    ) -> None: ...

    def do_post_op(
        self,
        context: Mapping[str, Any],
        stack: model.Stack,
        current_stack: model.Stack | None = None,
        action: str | None = None,
        is_stack_failure: bool = False,
    ) -> None: ...


class LifecyclePlugins:
    """All installed plug-ins, in the order of their ordinals."""

    __slots__ = ("_plugins",)

    def __init__(self, plugins: Iterable[LifecyclePlugin] = ()) -> None:
        self._plugins: Sequence[LifecyclePlugin] = sorted(plugins, key=_ordinal)

    def begin(self, stack: model.Stack) -> None:
        """Call ``do_pre_op`` of each plug-in.  Raises the first exception of one."""
        done: list[LifecyclePlugin] = []
        for plugin in self._plugins:
            try:
                plugin.do_pre_op(_context(stack), stack, None, action=stack.action)
            except Exception:
                self._end(done, stack, failed=True)
                raise
            done.append(plugin)

    def end(self, stack: model.Stack, *, failed: bool) -> None:
        """Call ``do_post_op`` of each plug-in; exceptions are only logged."""
        self._end(self._plugins, stack, failed=failed)

    def _end(self, plugins: Iterable[LifecyclePlugin], stack: model.Stack, *, failed: bool) -> None:
        for plugin in plugins:
            try:
                plugin.do_post_op(
                    _context(stack), stack, None, action=stack.action, is_stack_failure=failed
                )
            except Exception:
                name = type(plugin).__name__
                LOG.exception("stack %s: plug-in %s fails after %s", stack.uuid, name, stack.action)


def _ordinal(plugin: LifecyclePlugin) -> int:
    ask = getattr(plugin, "get_ordinal", None)
    return ORDINAL if ask is None else int(ask())


def _context(stack: model.Stack) -> Mapping[str, Any]:
    return {"project_id": stack.project, "user": stack.user}
