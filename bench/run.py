"""Run every program, or those that are named, and print the table.

    make bench ARGS="requests cycle"

A run of all, in full rounds, writes results.json.

Each program is a process of its own: none measures what another left in memory.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
sys.path[0] = str(HERE.parent)

from bench import harness  # noqa: E402  found from the root, beside which requests.py is no library

PROGRAMS: Final = (
    "requests", "transition", "cycle", "crowd", "lists", "allocations", "memory", "idle", "start",
    "waiting", "bmc", "rpc", "power_sync", "stacks", "machine_stacks", "stack_instances",
    "stack_wakes", "drift", "machine_plans", "event_relay", "webhooks", "heartbeats",
    "many_conductors", "orchestration_templates", "pages",
)  # fmt: skip
RESULTS: Final = HERE / "results.json"
NO_BYTECODE: Final = "PYTHONDONTWRITEBYTECODE"  # each start would compile each module anew


def main(names: list[str]) -> int:
    """Return 1 when a program failed; a missed target is told and is no failure."""
    print(harness.heading(), flush=True)
    found: list[dict[str, Any]] = []
    failed = []
    for name in names or PROGRAMS:
        lines = _measured(name)
        found += lines
        if not lines:
            failed.append(name)
    _report(found, failed)
    if not names and harness.ROUNDS_KEY not in os.environ:
        RESULTS.write_text(json.dumps(_document(found), indent=1) + "\n")
    return bool(failed)


def _measured(name: str) -> list[dict[str, Any]]:
    """Run one program, which prints its lines; return them, none if it failed.

    What its servers log (of BMCs that are mute on purpose, say) is shown of a failed one only.
    """
    with tempfile.NamedTemporaryFile(suffix=".json") as file, tempfile.TemporaryFile() as log:
        command = [sys.executable, "-m", f"bench.{name}", file.name]
        env = {key: value for key, value in os.environ.items() if key != NO_BYTECODE}
        if subprocess.run(command, cwd=HERE.parent, check=False, stderr=log, env=env).returncode:
            log.seek(0)
            sys.stderr.write(log.read().decode(errors="replace"))
            return []
        lines: list[dict[str, Any]] = json.loads(Path(file.name).read_text())
    return lines


def _report(found: list[dict[str, Any]], failed: list[str]) -> None:
    aimed = [line for line in found if line["at_most"] is not None]
    met = [line for line in aimed if line["verdict"] == "ok"]
    print(f"{len(met)} of {len(aimed)} targets met; {_load()}")
    for name in failed:
        print(f"bench.{name} failed")


def _load() -> str:
    """How busy the machine was: neighbours on its cores double what an operation costs."""
    return f"load {os.getloadavg()[1]:.1f} on {os.cpu_count()} cores over the last 5 minutes"


def _document(found: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {_load()}",
        "lines": found,
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
