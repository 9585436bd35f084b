"""What becomes of a run of tests in which one hangs, or which a script has started."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
PASSES: Final = "\n\ndef test_that_passes(): ...\n"
HANGS: Final = {
    "for another thread": "def test_that_hangs():\n    threading.Event().wait()",
    "for a process, and again at its end": (
        "def test_that_hangs():\n"
        "    command = [sys.executable, '-c', 'input()']\n"
        "    with subprocess.Popen(command, stdin=subprocess.PIPE) as child:\n"
        "        child.wait()"
    ),
    "in a loop": "def test_that_hangs():\n    while True:\n        try: list(range(9))\n"
    "        except Exception: ...",
    "in a fixture": "@pytest.fixture\ndef stuck():\n    threading.Event().wait()\n\n"
    "def test_that_hangs(stuck): ...",
    "at the end of a fixture": "@pytest.fixture\ndef stuck():\n    yield\n"
    "    threading.Event().wait()\n\ndef test_that_hangs(stuck):\n    threading.Event().wait()",
    "in a drawn example": "@hypothesis.given(st.integers())\ndef test_that_hangs(number):\n"
    "    threading.Event().wait()",
}
IMPORTS: Final = (
    "import hypothesis, pytest, subprocess, sys, threading\n"
    "from hypothesis import strategies as st\nfrom tests.kit import hangs\nhangs.AGAIN_S = 0.2\n\n"
)


def run(*args: str | Path, **more: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.kit.hangs", *map(str, args)]
    return subprocess.run(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=100, **more,
    )  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("hang", "processes"),
    [*((hang, 0) for hang in HANGS.values()), (HANGS["in a loop"], 2)],
    ids=[*HANGS, "in one of two processes"],
)
def test_a_test_that_hangs_fails_alone(tmp_path: Path, hang: str, processes: int):
    file = tmp_path / "test_drawn_up.py"
    file.write_text(IMPORTS + hang + PASSES)
    limits = ("-c", ROOT / "pyproject.toml", "-o", "timeout=1", "-n", processes)
    printed = run(*limits, file).stdout
    assert "it took longer than 1 s" in printed
    assert "test_that_hangs" in printed.partition("short test summary")[2]
    assert "1 passed" in printed.splitlines()[-1]


def test_a_run_that_a_script_has_started_in_the_background_ends():
    """Its shell has it ignore SIGINT, and its children inherit that."""
    ignored = run(
        "tests/unit/cli/service/test_lab.py", "-k", "interrupted",
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )  # fmt: skip
    assert "1 passed" in ignored.stdout.splitlines()[-1], ignored.stdout
