"""Programs that measure: ``make bench`` runs them all, ``python -m bench.requests`` one."""

from __future__ import annotations

import sys

sys.modules["eventlet"] = None  # type: ignore[assignment]  # as every command of ours does
