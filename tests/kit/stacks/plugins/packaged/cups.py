from __future__ import annotations

from bloomery.orchestration.resources.value import Value


class Cup(Value):
    """Holds what is put into it."""
