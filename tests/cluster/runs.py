"""What ``tests.cluster.run`` says of each run, for tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

_ROOT: Final = Path(__file__).resolve().parents[2]
_MOST_S: Final = 900


def findings(*arguments: str) -> list[dict[str, Any]]:
    """Run it with these arguments; each finding has a name and its faults."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.cluster.run", *arguments]
    done = subprocess.run(
        command, cwd=_ROOT, env=os.environ | {"PYTHONHASHSEED": "0"}, capture_output=True,
        text=True, timeout=_MOST_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]
