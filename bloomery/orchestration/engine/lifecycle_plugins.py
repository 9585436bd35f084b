"""Plug-ins that are called before and after each action of each stack, as Heat calls them.

A package brings one under ``bloomery.lifecycle_plugins`` in its entry points: a class with
``do_pre_op`` and ``do_post_op``, and maybe ``get_ordinal``.  A ``do_pre_op`` that raises fails the
action before anything is done; those that were called before it hear of that by ``do_post_op``.

They are called in the turn that begins or ends a traversal, before it is stored: once more after a
crash in between, so that they have to bear it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from bloomery.model import stacks as model

LOG = logging.getLogger(__name__)

GROUP: Final = "bloomery.lifecycle_plugins"
ORDINAL: Final = 100  # of those that name none; who has a smaller one is called first


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
    """All of them, in the order in which they are called."""

    __slots__ = ("_plugins",)

    def __init__(self, plugins: Iterable[LifecyclePlugin] = ()) -> None:
        self._plugins: Sequence[LifecyclePlugin] = sorted(plugins, key=_ordinal)

    def begin(self, stack: model.Stack) -> None:
        """Call those that come before an action; raises what the first of them raises."""
        done: list[LifecyclePlugin] = []
        for plugin in self._plugins:
            try:
                plugin.do_pre_op(_context(stack), stack, None, action=stack.action)
            except Exception:
                self._end(done, stack, failed=True)
                raise
            done.append(plugin)

    def end(self, stack: model.Stack, *, failed: bool) -> None:
        """Call those that come after an action; what they raise changes nothing any more."""
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
