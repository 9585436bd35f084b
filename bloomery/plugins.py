"""Plug-ins: the entry points of installed packages, each imported when it is asked for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import stevedore


def loaders(group: str) -> dict[str, Callable[[], Any]]:
    """Return a loader for each entry point of ``group``, by name."""
    manager: Any = stevedore.NamedExtensionManager(group, names=[], invoke_on_load=False)
    return {point.name: functools.cache(point.load) for point in manager.list_entry_points()}
