"""Levels of notifications, from least to most."""

from __future__ import annotations

from typing import Final

LEVELS: Final = ("debug", "info", "warning", "error", "critical")


def passes(level: str, least: str) -> bool:
    """Tell whether a message of ``level`` is sent where ``least`` is asked."""
    return LEVELS.index(level) >= LEVELS.index(least)
