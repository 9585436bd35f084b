"""Commands that cannot go on: a disk that is full, and somebody who presses Ctrl-C."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from bloomery.cli.service.template import Monotonic
from bloomery.cli.template.commands import Writing
from tests.kit.clients.templates import Command, written

BODY = "resources: {a: {type: OS::Heat::TestResource, properties: {wait_secs: 60}}}\n"
FULL = Path("/dev/full")


@pytest.fixture
def slow(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A template that takes a minute, and a Ctrl-C as soon as it waits."""
    written(here, t__yaml="heat_template_version: 2021-04-16\n" + BODY)
    wait = Monotonic.wait

    def interrupted(self: Monotonic, until_s: float | None) -> None:
        monkeypatch.setattr(Monotonic, "wait", wait)
        os.kill(os.getpid(), signal.SIGINT)
        wait(self, until_s)

    monkeypatch.setattr(Monotonic, "wait", interrupted)


@pytest.mark.usefixtures("slow")
def test_an_interrupted_run_prints_one_document(typed: Command) -> None:
    done = typed("run", "t.yaml", "--real-time", "--json")
    assert done.exit_code == 130
    told = json.loads(done.stdout)
    assert told["status"] == "CREATE_FAILED"
    assert told["error"]["type"] == "Interrupted"
    assert told["outputs"] == {}


@pytest.mark.usefixtures("slow")
def test_an_interrupted_run_says_how_far_it_came(typed: Command) -> None:
    done = typed("run", "t.yaml", "--real-time")
    assert done.exit_code == 130
    *_events, last = done.stdout.splitlines()
    assert last.startswith("CREATE_FAILED: interrupted before the end")


@pytest.mark.skipif(not FULL.exists(), reason="no device here is full")
@pytest.mark.parametrize("words", [("validate",), ("run",), ("show", "--json"), ("graph",)])
def test_a_full_disk_is_told_in_one_sentence(here: Path, words: tuple[str, ...]) -> None:
    written(here, t__yaml="heat_template_version: 2021-04-16\n")
    start = "from bloomery.cli import main; main.main()"
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", start, "template", *words, "t.yaml"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (
        1,
        "Error: cannot print the rest: No space left on device\n",
    )


@pytest.mark.parametrize(
    ("number", "said"), [(errno.ENOSPC, "Error: cannot print the rest: "), (errno.EPIPE, "")]
)
def test_who_reads_no_more_is_told_nothing(number: int, said: str) -> None:
    @click.group(cls=Writing)
    def group() -> None:
        """Print."""

    @group.command
    def told() -> None:
        raise OSError(number, os.strerror(number))

    done = CliRunner().invoke(group, ["told"])
    assert done.exit_code == 1
    assert done.stderr.startswith(said)
    assert bool(done.stderr) == bool(said)
