"""Views of the engine's values: names, links and times of Heat's API."""

from __future__ import annotations

from datetime import datetime


def time(at: datetime | None) -> str | None:
    """Format a time: UTC, whole seconds, with a Z; None stays None."""
    return None if at is None else f"{at.isoformat(timespec='seconds')[:19]}Z"
