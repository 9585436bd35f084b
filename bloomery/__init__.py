"""Bloomery takes racks of bare-metal machines from plugged in to running."""

from __future__ import annotations

__version__ = "0.1.0"
