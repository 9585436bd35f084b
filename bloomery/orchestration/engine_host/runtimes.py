"""The engine runtime of a process, from its configuration.

The operators' environment merges the files of ``[engine]environment_dir``; files with later names
override earlier files.  An unreadable folder or file is logged and does not stop the process from
starting, because existing stacks must go on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, Final

from bloomery import errors, plugins
from bloomery.conf import Conf
from bloomery.model.stacks import Stack
from bloomery.orchestration.engine.event_sinks import EventSinks
from bloomery.orchestration.engine.lifecycle_plugins import GROUP, LifecyclePlugins
from bloomery.orchestration.engine.runtime import EngineRuntime
from bloomery.orchestration.engine_host import plugin_modules
from bloomery.orchestration.limits import LIMITS, Limits
from bloomery.orchestration.orders import inputs
from bloomery.orchestration.resources.base import Webhooks
from bloomery.orchestration.resources.children import OtherStacks
from bloomery.orchestration.resources.machines import Machines
from bloomery.orchestration.template import merging
from bloomery.orchestration.template.environment import SINK_GROUP, Environment

LOG = logging.getLogger(__name__)

_ENVIRONMENTS: Final = ("*.yaml", "*.yml", "*.json")


def operators_environment(folder: str | None, limits: Limits = LIMITS) -> Environment | None:
    if not folder:
        return None
    try:
        paths = sorted(path for form in _ENVIRONMENTS for path in Path(folder).glob(form))
        texts = {path.name: path.read_text(encoding="utf-8") for path in paths}
        document = merging.merged(list(texts), texts, {}, limits)
        return Environment.of(document, limits=limits)
    except (errors.Failure, OSError, UnicodeError) as exc:
        LOG.error("no stack gets the environment of %s: %s", folder, exc)  # noqa: TRY400  a setting
        return None


def make_runtime(
    conf: Conf,
    *,
    engines: Callable[[], int] = lambda: 1,
    endpoint: str = "",
    software: Callable[[str], Any] | None = None,
    machines: Callable[[Stack], Machines] | None = None,
    stacks: Callable[[EngineRuntime, Stack], OtherStacks] | None = None,
    authorize: Callable[[Stack, Collection[str]], None] | None = None,
    webhooks: Webhooks | None = None,
) -> EngineRuntime:
    """Return the runtime of a process; it reads folders, so make it once."""
    plugin_modules.install(conf.engine.plugin_dirs)
    limits = inputs.limits_of(conf)
    lifecycle_plugins = []
    for name, load in plugins.loaders(GROUP).items():
        try:
            lifecycle_plugins.append(load()())
        except Exception as exc:  # the code of a site may raise anything
            raise errors.CannotStart(
                reason=f"cannot use the plug-in {name} of {GROUP}: {type(exc).__name__}: {exc}"
            ) from exc
    return EngineRuntime(
        operators=operators_environment(conf.engine.environment_dir, limits),
        limits=limits,
        retries=conf.engine.action_retry_limit,
        timeout_s=conf.engine.stack_action_timeout,
        engines=engines,
        endpoint=endpoint,
        software=software,
        machines=machines,
        stacks=stacks,
        authorize=authorize,
        webhooks=webhooks,
        plugins=LifecyclePlugins(lifecycle_plugins),
        sinks=EventSinks(plugins.loaders(SINK_GROUP)),
    )
