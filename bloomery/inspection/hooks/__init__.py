"""The hooks of inspection, and their execution in the configured order.

Entry points ``bloomery.inspection.hooks`` name them.  An unexpected exception of a hook fails the
inspection with the hook's name.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Final, TypeAlias

from bloomery import errors, plugins
from bloomery.conf.inspection import Inspector
from bloomery.inspection.base import Changes, Hook, Inspection
from bloomery.inspection.draft import Draft

LOG = logging.getLogger(__name__)
GROUP: Final = "bloomery.inspection.hooks"
Pipeline: TypeAlias = tuple[tuple[str, Hook], ...]


@functools.lru_cache(maxsize=16)
def pipeline(names: tuple[str, ...]) -> Pipeline:
    """Return the hooks of these names, in this order.

    Raises HardwareInspectionFailure for an unknown name, and for a hook without its required
    predecessors.
    """
    installed = plugins.loaders(GROUP)
    hooks: list[tuple[str, Hook]] = []
    if unknown := ", ".join(name for name in names if name not in installed):
        raise errors.HardwareInspectionFailure(
            reason=f"there is no inspection hook {unknown}: installed are "
            f"{', '.join(sorted(installed))}",
        )
    for name in names:
        hook: Hook = installed[name]()()
        before = [earlier for earlier, _ in hooks]
        if missing := [required for required in hook.requires if required not in before]:
            raise errors.HardwareInspectionFailure(
                reason=f"inspection hook {name} needs {', '.join(missing)} before it in the list",
            )
        hooks.append((name, hook))
    return tuple(hooks)


def run(hooks: Pipeline, draft: Draft, conf: Inspector) -> None:
    """Run ``preprocess`` of every hook, then ``process``.  Raises HardwareInspectionFailure."""
    for name, hook in hooks:
        _apply(name, hook.preprocess, draft, conf)
    for name, hook in hooks:
        _apply(name, hook.process, draft, conf)


def _apply(
    name: str, work: Callable[[Inspection], Changes | None], draft: Draft, conf: Inspector
) -> None:
    try:
        inspection = Inspection(
            node=draft.node,
            ports=tuple(draft.all_ports),
            inventory=draft.inventory,
            plugin_data=draft.plugin_data,
            previous=draft.previous,
            conf=conf,
        )
        changes = work(inspection)
        if changes is not None:
            draft.apply(changes)
    except errors.Failure:
        raise
    except Exception as exc:
        LOG.exception("node %s: inspection hook %s broke", draft.node.uuid, name)
        raise errors.HardwareInspectionFailure(
            reason=f"inspection hook {name} cannot use the data: {type(exc).__name__}",
        ) from exc
