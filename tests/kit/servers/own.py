"""Servers of a test's own, from ``tools/servers.py``."""

from __future__ import annotations

import contextlib
import os
from typing import Any

import pytest

from tools import servers


def start(server: Any, until: contextlib.ExitStack) -> servers.OwnServer:
    """Start a server that ends with ``until``; without one, skip, or fail in CI."""
    try:
        return until.enter_context(server)
    except servers.ServerMissing as exc:
        if os.environ.get("CI") == "true":
            pytest.fail(str(exc))
        pytest.skip(str(exc))
