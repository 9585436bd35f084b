"""The processes: the only package that builds and joins the services."""

from __future__ import annotations

import sys

# Hide eventlet: futurist and oslo libraries would use it if installed.
sys.modules["eventlet"] = None  # type: ignore[assignment]
